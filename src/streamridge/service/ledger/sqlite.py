"""A storage in one file, by SQLite.

One connection writes and folds in the write-ahead log; every commit is synced before it returns.
Readers have connections of their own, which cannot write.
"""

# ruff: noqa: D102 - the contract stands in sessions.py

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import RLock

import apsw

from streamridge.service.ledger.base import StorageError, StorageFailedError
from streamridge.service.ledger.locking import FileLock
from streamridge.service.ledger.pool import Pool
from streamridge.service.ledger.schema import current_format, format_of, migrate, require_current
from streamridge.service.ledger.sqlite_copies import copy_database
from streamridge.service.ledger.sqlite_errors import is_full, translated
from streamridge.service.ledger.sqlite_session import SqliteSession, configure, transaction
from streamridge.service.ledger.sqlite_versions import require_safe

WORDS = {
    "whole": "INTEGER",
    "small": "INTEGER",
    "real": "REAL",
    "bytes": "BLOB",
    "by_key": "STRICT, WITHOUT ROWID",
    "by_row": "STRICT",
}
# Bytes of a page.
PAGE = 4096
# Pages of the log after which it is folded in: many of them are the same page again.
FOLD_AT = 8192
# Beyond these, readers are waited for, so that the log can begin anew.
RESTART_AT = 2 * FOLD_AT
# Milliseconds that a reader or the writer waits for another, and that folding waits for readers.
PATIENCE, FOLDING_PATIENCE = 5000, 500
# Findings of the database about its own pages that are told.
MOST_FINDINGS = 20


class SqliteStorage:
    """A file of SQLite, with its log beside it.

    Parameters
    ----------
    path
        The file, which is made if needed.
    read_only
        Whether to leave the lock to another process, and only read.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        require_safe(apsw.sqlite_lib_version())
        self.name, self._path = str(path), path
        self._readers = Pool(self._reader)
        self._writer: apsw.Connection | None = None
        self._turn = RLock()
        self._failed: str | None = None
        self._logged, self._fold_next = 0, FOLD_AT
        self._held = ExitStack()
        with ExitStack() as opened:
            opened.callback(self._readers.close)
            try:
                if read_only:
                    require_current(self._format(), self.name)
                else:
                    self._open_to_write(opened)
            except OSError as error:
                raise StorageError(f"{self.name} cannot be opened ({error.strerror}).") from error
            self._held = opened.pop_all()

    @contextmanager
    def reading(self) -> Iterator[SqliteSession]:
        with self._readers.lent() as connection, self._explaining(connection):
            connection.execute("BEGIN")
            yield SqliteSession(connection)
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[SqliteSession]:
        with self._turn:
            if self._writer is None:
                raise StorageError(f"{self.name} must be open to write, got one that is not.")
            if self._failed is not None:
                raise StorageFailedError(self._failed)
            try:
                with self._explaining(self._writer), transaction(self._writer):
                    yield SqliteSession(self._writer)
            except StorageFailedError as error:
                self._fail(str(error))
                raise
            self._fold_if_long(self._writer)

    def damage(self) -> Iterator[str]:
        with self.reading() as session:
            findings = session.rows(f"PRAGMA integrity_check({MOST_FINDINGS})")
        return (f"{self.name} is damaged: {text}." for (text,) in findings if text != "ok")

    def copy_to(self, path: str) -> None:
        with self._readers.lent() as connection, self._explaining(connection):
            copy_database(connection, Path(path))

    def size(self) -> dict[str, int]:
        with self.reading() as session:
            ((unused,),) = session.rows("PRAGMA freelist_count")
            ((pages,),) = session.rows("PRAGMA page_count")  # those in the log count as well
        return {
            "data": pages * PAGE,
            "log": _bytes_of(Path(f"{self._path}-wal")),
            "reusable": unused * PAGE,
            "free": shutil.disk_usage(self._path.parent).free,
        }

    def close(self) -> None:
        with self._turn:
            self._held.close()
            self._writer = None

    def _open_to_write(self, opened: ExitStack) -> None:
        """Take the lock, and bring the file to the current format."""
        if not self._path.parent.is_dir():
            raise StorageError(f"{self.name} must be in a folder that exists. Make it first.")
        lock = FileLock.take(Path(f"{self._path}.lock"), self.name)
        opened.callback(lock.release)
        # Tokens are in it, if only their digests: it is nobody else's to read.
        self._path.touch(mode=0o600)
        self._undo_what_was_cut_off()
        found = self._format()
        if 0 < found < current_format():
            self._keep_copy(f"{self._path}.format-{found}")
        self._readers.empty()  # the way to write its log cannot be changed while it is read
        self._writer = self._connect(apsw.SQLITE_OPEN_READWRITE)
        opened.callback(self._close_writer, self._writer)
        with self._explaining(self._writer):
            configure(self._writer, longest_log=FOLD_AT * PAGE)
        self._writer.set_wal_hook(self._count)
        migrate(found, WORDS, self.writing)

    def _undo_what_was_cut_off(self) -> None:
        """Let SQLite undo a change of how it keeps its log, which no reader could."""
        if Path(f"{self._path}-journal").exists():
            with (
                closing(self._connect(apsw.SQLITE_OPEN_READWRITE)) as connection,
                self._explaining(connection),
            ):
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def _reader(self) -> apsw.Connection:
        """Return a new connection that cannot write."""
        if not self._path.exists():
            raise StorageError(f"{self.name} must be a storage of streamridge, got no such file.")
        return self._connect(apsw.SQLITE_OPEN_READONLY)

    def _connect(self, flags: int) -> apsw.Connection:
        """Return a new connection."""
        try:
            connection = apsw.Connection(self.name, flags=flags)
        except apsw.Error as error:
            raise StorageError(f"{self.name} cannot be opened ({error}).") from error
        connection.set_busy_timeout(PATIENCE)
        return connection

    def _format(self) -> int:
        """Return the format of the file, without a change to it."""
        with self.reading() as session:
            tables = {row[0] for row in session.rows("SELECT name FROM sqlite_schema")}
            return format_of(
                tables, lambda: dict(session.rows("SELECT key, value FROM meta")), self.name
            )

    def _keep_copy(self, path: str) -> None:
        """Keep a copy of the file as it is, before it is migrated."""
        Path(path).unlink(missing_ok=True)  # of a migration that was interrupted
        self.copy_to(path)

    def _count(self, _: apsw.Connection, __: str, pages: int) -> int:
        """Note how long the log is after a commit."""
        self._logged = pages
        return apsw.SQLITE_OK

    def _fold_if_long(self, writer: apsw.Connection) -> None:
        """Fold the log in if it is long.

        It begins anew by itself once all of it is folded in and nobody reads from it. Beyond a
        length, that is waited for.
        """
        if self._logged < FOLD_AT:
            self._fold_next = FOLD_AT
        if self._logged < self._fold_next:
            return
        self._fold_next = self._logged + FOLD_AT // 4
        restart = self._logged >= RESTART_AT
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if restart else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._fold(writer, mode)

    def _fold(self, writer: apsw.Connection, mode: int) -> None:
        """Fold the log in; if that fails, what was committed is there all the same."""
        writer.set_busy_timeout(FOLDING_PATIENCE)
        try:
            writer.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            pass  # readers are in the way: it is tried again when the log is somewhat longer
        except apsw.Error as error:
            if not is_full(error, writer.system_errno):
                self._fail(str(translated(error, self.name, writer.system_errno)))
        finally:
            writer.set_busy_timeout(PATIENCE)

    def _fail(self, reason: str) -> None:
        """Never write by this connection again, not even what closing it would fold in."""
        self._failed = reason
        if self._writer is not None:
            self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _close_writer(self, writer: apsw.Connection) -> None:
        """Fold the log in and close; what cannot be folded in stays in the log."""
        self._readers.close()
        with closing(writer):
            if self._failed is None:
                self._fold(writer, apsw.SQLITE_CHECKPOINT_TRUNCATE)

    @contextmanager
    def _explaining(self, connection: apsw.Connection) -> Iterator[None]:
        """Let errors of SQLite become errors of the storage."""
        try:
            yield
        except (apsw.Error, UnicodeDecodeError) as error:
            raise translated(error, self.name, connection.system_errno) from error


def _bytes_of(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
