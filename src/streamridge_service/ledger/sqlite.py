"""A storage in one SQLite file.

One connection writes and checkpoints the write-ahead log; every commit is synced before it returns.
Readers have their own connections, which cannot write.
"""

# ruff: noqa: D102 - the contract stands in schema.py

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import RLock

import apsw

from streamridge_service.ledger.connections import ConnectionPool, FileLock
from streamridge_service.ledger.errors import StorageError, StorageFailedError
from streamridge_service.ledger.schema import current_format, format_of, migrate, require_current
from streamridge_service.ledger.sqlite_connection import (
    SqliteSession,
    configure,
    copy_database,
    is_disk_full,
    require_safe,
    transaction,
    translated,
)

TYPES = {
    "whole": "INTEGER",
    "small": "INTEGER",
    "real": "REAL",
    "bytes": "BLOB",
    "by_key": "STRICT, WITHOUT ROWID",
    "by_row": "STRICT",
}
# Bytes of a page.
PAGE = 4096
# Pages of the write-ahead log at which it is checkpointed. Many of them are the same page again.
CHECKPOINT_AT = 8192
# A checkpoint of a log of this length waits for readers, so that the log can restart.
RESTART_AT = 2 * CHECKPOINT_AT
# Milliseconds that a connection waits for another, and that a checkpoint waits for readers.
BUSY_TIMEOUT, CHECKPOINT_TIMEOUT = 5000, 500
# Faults of pages that are reported.
MOST_FAULTS = 20


class SqliteStorage:
    """An SQLite file with its write-ahead log.

    The file is created if needed. With `read_only` it takes no lock.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        require_safe(apsw.sqlite_lib_version())
        self.name, self._path = str(path), path
        self._readers = ConnectionPool(self._reader)
        self._writer: apsw.Connection | None = None
        self._write_lock = RLock()
        self._failed: str | None = None
        self._log_pages, self._next_checkpoint = 0, CHECKPOINT_AT
        self._resources = ExitStack()
        with ExitStack() as opened:
            opened.callback(self._readers.close)
            try:
                if read_only:
                    require_current(self._format(), self.name)
                else:
                    self._open_to_write(opened)
            except OSError as error:
                raise StorageError(f"{self.name} cannot be opened ({error.strerror}).") from error
            self._resources = opened.pop_all()

    @contextmanager
    def reading(self) -> Iterator[SqliteSession]:
        with self._readers.borrow() as connection, self._translating(connection):
            connection.execute("BEGIN")
            yield SqliteSession(connection)
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[SqliteSession]:
        with self._write_lock:
            if self._writer is None:
                raise StorageError(f"{self.name} must be open to write, got one that is not.")
            if self._failed is not None:
                raise StorageFailedError(self._failed)
            try:
                with self._translating(self._writer), transaction(self._writer):
                    yield SqliteSession(self._writer)
            except StorageFailedError as error:
                self._fail(str(error))
                raise
            self._checkpoint_if_long(self._writer)

    def damage(self) -> Iterator[str]:
        with self.reading() as session:
            faults = session.rows(f"PRAGMA integrity_check({MOST_FAULTS})")
        return (f"{self.name} is damaged: {text}." for (text,) in faults if text != "ok")

    def copy_to(self, path: str) -> None:
        with self._readers.borrow() as connection, self._translating(connection):
            copy_database(connection, Path(path))

    def size(self) -> dict[str, int]:
        with self.reading() as session:
            ((unused,),) = session.rows("PRAGMA freelist_count")
            ((pages,),) = session.rows("PRAGMA page_count")  # including pages in the log
        return {
            "data": pages * PAGE,
            "log": _bytes_of(Path(f"{self._path}-wal")),
            "reusable": unused * PAGE,
            "free": shutil.disk_usage(self._path.parent).free,
        }

    def close(self) -> None:
        with self._write_lock:
            self._resources.close()
            self._writer = None

    def _open_to_write(self, opened: ExitStack) -> None:
        """Take the lock, and migrate the file to the current format."""
        if not self._path.parent.is_dir():
            raise StorageError(f"{self.name} must be in a folder that exists. Create it first.")
        lock = FileLock.take(Path(f"{self._path}.lock"), self.name)
        opened.callback(lock.release)
        # The file holds digests of tokens: other users must not read it.
        self._path.touch(mode=0o600)
        self._finish_interrupted_change()
        found = self._format()
        if 0 < found < current_format():
            self._copy_before_migration(f"{self._path}.format-{found}")
        self._readers.close_idle()  # the journal mode cannot change while a connection is open
        self._writer = self._connect(apsw.SQLITE_OPEN_READWRITE)
        opened.callback(self._close_writer, self._writer)
        with self._translating(self._writer):
            configure(self._writer, longest_log=CHECKPOINT_AT * PAGE)
        self._writer.set_wal_hook(self._store_length)
        migrate(found, TYPES, self.writing)

    def _finish_interrupted_change(self) -> None:
        """Let SQLite roll back an interrupted change of its journal mode; readers cannot do it."""
        if Path(f"{self._path}-journal").exists():
            with (
                closing(self._connect(apsw.SQLITE_OPEN_READWRITE)) as connection,
                self._translating(connection),
            ):
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def _reader(self) -> apsw.Connection:
        """Return a new connection that cannot write."""
        if not self._path.exists():
            raise StorageError(
                f"{self.name} must be a storage of streamridge, got a file that does not exist."
            )
        return self._connect(apsw.SQLITE_OPEN_READONLY)

    def _connect(self, flags: int) -> apsw.Connection:
        """Return a new connection."""
        try:
            connection = apsw.Connection(self.name, flags=flags)
        except apsw.Error as error:
            raise StorageError(f"{self.name} cannot be opened ({error}).") from error
        connection.set_busy_timeout(BUSY_TIMEOUT)
        return connection

    def _format(self) -> int:
        """Return the format of the file without changing it."""
        with self.reading() as session:
            tables = {row[0] for row in session.rows("SELECT name FROM sqlite_schema")}
            return format_of(
                tables, lambda: dict(session.rows("SELECT key, value FROM meta")), self.name
            )

    def _copy_before_migration(self, path: str) -> None:
        """Copy the file before it is migrated."""
        Path(path).unlink(missing_ok=True)  # left by an interrupted migration
        self.copy_to(path)

    def _store_length(self, _: apsw.Connection, __: str, pages: int) -> int:
        """Store the length of the log after a commit."""
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint_if_long(self, writer: apsw.Connection) -> None:
        """Checkpoint the log if it is long.

        The log restarts once all of it is checkpointed and nobody reads from it. From
        `RESTART_AT` pages on, the checkpoint waits for that.
        """
        if self._log_pages < CHECKPOINT_AT:
            self._next_checkpoint = CHECKPOINT_AT
        if self._log_pages < self._next_checkpoint:
            return
        self._next_checkpoint = self._log_pages + CHECKPOINT_AT // 4
        restart = self._log_pages >= RESTART_AT
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if restart else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._checkpoint(writer, mode)

    def _checkpoint(self, writer: apsw.Connection, mode: int) -> None:
        """Checkpoint the log; committed data are safe even if this fails."""
        writer.set_busy_timeout(CHECKPOINT_TIMEOUT)
        try:
            writer.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            pass  # readers are active: the next attempt comes when the log is longer
        except apsw.Error as error:
            if not is_disk_full(error, writer.system_errno):
                self._fail(str(translated(error, self.name, writer.system_errno)))
        finally:
            writer.set_busy_timeout(BUSY_TIMEOUT)

    def _fail(self, reason: str) -> None:
        """Never write with this connection again, not even a checkpoint when it closes."""
        self._failed = reason
        if self._writer is not None:
            self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _close_writer(self, writer: apsw.Connection) -> None:
        """Checkpoint the log and close; what cannot be checkpointed stays in the log."""
        self._readers.close()
        with closing(writer):
            if self._failed is None:
                self._checkpoint(writer, apsw.SQLITE_CHECKPOINT_TRUNCATE)

    @contextmanager
    def _translating(self, connection: apsw.Connection) -> Iterator[None]:
        """Raise errors of SQLite as errors of the ledger."""
        try:
            yield
        except (apsw.Error, UnicodeDecodeError) as error:
            raise translated(error, self.name, connection.system_errno) from error


def _bytes_of(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
