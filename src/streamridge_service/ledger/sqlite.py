"""A storage in one SQLite file.

One connection writes and checkpoints the write-ahead log; every commit is synced before it returns.
Readers have their own connections, which cannot write.
"""

# ruff: noqa: D102 - the contract stands in schema.py

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import RLock

import apsw

from streamridge_service.ledger.acknowledged import AcknowledgedFile, Acknowledgement
from streamridge_service.ledger.connections import ConnectionPool, FileLock
from streamridge_service.ledger.database_files import DatabaseFiles
from streamridge_service.ledger.errors import (
    DamagedPageError,
    LinkedFileError,
    StorageError,
    StorageFailedError,
    StorageGoneError,
)
from streamridge_service.ledger.schema import current_format, format_of, migrate, require_current
from streamridge_service.ledger.sqlite_connection import (
    SqliteSession,
    configure,
    copy_database,
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

    The file is created if needed. With `read_only` it takes no lock. With `accept_loss` it may lack
    acknowledged readings.
    """

    def __init__(self, path: Path, *, read_only: bool = False, accept_loss: bool = False) -> None:
        require_safe(apsw.sqlite_lib_version())
        self.name, self._files = str(path), DatabaseFiles(path)
        self._acknowledged, self._accept_loss = AcknowledgedFile.of(self._files.main), accept_loss
        self._identity = ""
        self._readers = ConnectionPool(self._reader)
        self._writer: apsw.Connection | None = None
        self._write_lock = RLock()
        self._failed: StorageFailedError | None = None
        self._log_pages, self._next_checkpoint = 0, CHECKPOINT_AT
        self._resources = ExitStack()
        with ExitStack() as opened:
            opened.callback(self._readers.close)
            try:
                if read_only:
                    self._open_to_read()
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
                raise type(self._failed)(str(self._failed))
            try:
                with self._translating(self._writer), transaction(self._writer):
                    yield SqliteSession(self._writer)
                self._require_in_place(self._writer)
            except DamagedPageError:
                raise  # it was rolled back, and other pages can be written
            except StorageFailedError as error:
                self._fail(error)
                raise
            self._checkpoint_if_long(self._writer)

    def acknowledge(self, last: int) -> None:
        self._acknowledged.write(Acknowledgement(self._identity, last))

    def require_files(self) -> None:
        with self.writing():
            pass

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
        try:
            log, free = self._files.log_size(), self._files.free()
        except OSError as error:
            raise StorageError(f"{self.name} cannot be measured ({error.strerror}).") from error
        return {"data": pages * PAGE, "log": log, "reusable": unused * PAGE, "free": free}

    def close(self) -> None:
        with self._write_lock:
            self._resources.close()
            self._writer = None

    def _open_to_read(self) -> None:
        """Check whether the file may be read."""
        if self._files.main.is_file() and not self._files.has_complete_name:
            raise self._linked()
        found = self._format()
        self._require_acknowledged(self._facts)
        require_current(found, self.name)

    def _open_to_write(self, opened: ExitStack) -> None:
        """Take the lock, and migrate the file to the current format."""
        path = self._files.main
        if not path.parent.is_dir():
            raise StorageError(f"{self.name} must be in a folder that exists. Create it first.")
        lock = FileLock.take(self._files.beside(".lock"), self.name)
        opened.callback(lock.release)
        if not path.exists():
            self._require_acknowledged(dict)
        # The file holds digests of tokens: other users must not read it.
        path.touch(mode=0o600)
        if self._files.has_several_names:
            raise self._linked()
        self._finish_interrupted_change()
        found = self._format()
        self._require_acknowledged(self._facts)
        if 0 < found < current_format():
            self._copy_before_migration(self._files.beside(f".format-{found}"))
        self._readers.close_idle()  # the journal mode cannot change while a connection is open
        self._writer = self._connect(apsw.SQLITE_OPEN_READWRITE)
        opened.callback(self._close_writer, self._writer)
        with self._translating(self._writer):
            configure(self._writer, longest_log=CHECKPOINT_AT * PAGE)
        self._writer.set_wal_hook(self._store_length)
        migrate(found, TYPES, self.writing)
        facts = self._facts()
        self._identity = facts["identity"]
        if self._acknowledged.read() is None:
            self.acknowledge(int(facts["last"]))
        self._files.remember()

    def _require_in_place(self, writer: apsw.Connection) -> None:
        """Raise if a file was deleted or replaced: SQLite goes on with a file without a name."""
        path = self._files.missing()
        if path is None:
            return
        if not self._files.is_database(path):  # the content of a deleted log can be saved
            self._checkpoint(writer, apsw.SQLITE_CHECKPOINT_FULL)
        raise StorageGoneError(
            f"{path} was deleted or replaced while it was in use; nothing was acknowledged since. "
            "Put the file back, or restore a backup with `streamridge restore`. Then start again."
        )

    def _linked(self) -> LinkedFileError:
        return LinkedFileError(
            f"{self.name} must have one name, got a file with hard links. Each name would get a "
            "write-ahead log of its own, which damages the database. Remove the other names, or "
            "use a copy."
        )

    def _require_acknowledged(self, facts: Callable[[], Mapping[str, str]]) -> None:
        if not self._accept_loss:
            self._acknowledged.require_stored(self.name, facts)

    def _finish_interrupted_change(self) -> None:
        """Let SQLite roll back an interrupted change of its journal mode; readers cannot do it."""
        if self._files.beside("-journal").exists():
            with (
                closing(self._connect(apsw.SQLITE_OPEN_READWRITE)) as connection,
                self._translating(connection),
            ):
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def _reader(self) -> apsw.Connection:
        """Return a new connection that cannot write."""
        if not self._files.main.exists():
            raise StorageError(
                f"{self.name} must be a storage of streamridge, got a file that does not exist."
            )
        return self._connect(apsw.SQLITE_OPEN_READONLY)

    def _connect(self, flags: int) -> apsw.Connection:
        """Return a new connection."""
        try:
            connection = apsw.Connection(str(self._files.main), flags=flags)
        except apsw.Error as error:
            raise StorageError(f"{self.name} cannot be opened ({error}).") from error
        connection.set_busy_timeout(BUSY_TIMEOUT)
        return connection

    def _format(self) -> int:
        """Return the format of the file without changing it."""
        with self.reading() as session:
            return format_of(_tables(session), lambda: _facts(session), self.name)

    def _facts(self) -> dict[str, str]:
        """Return the table `meta`; nothing if the file is empty."""
        with self.reading() as session:
            return _facts(session) if "meta" in _tables(session) else {}

    def _copy_before_migration(self, path: Path) -> None:
        """Copy the file before it is migrated."""
        path.unlink(missing_ok=True)  # left by an interrupted migration
        self.copy_to(str(path))

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
            known = translated(error, self.name, writer.system_errno)
            if isinstance(known, StorageFailedError):
                self._fail(known)
        finally:
            writer.set_busy_timeout(BUSY_TIMEOUT)

    def _fail(self, error: StorageFailedError) -> None:
        """Never write with this connection again, not even a checkpoint when it closes."""
        self._failed = error
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


def _tables(session: SqliteSession) -> set[str]:
    return {row[0] for row in session.rows("SELECT name FROM sqlite_schema")}


def _facts(session: SqliteSession) -> dict[str, str]:
    return dict(session.rows("SELECT key, value FROM meta"))
