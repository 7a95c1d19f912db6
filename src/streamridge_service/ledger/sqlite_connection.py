"""Connections to SQLite: sessions, settings, errors, library versions and file copies."""

# ruff: noqa: D102 - the contract stands in schema.py

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import apsw

from streamridge.errors import InvalidInputError
from streamridge_service.ledger.acknowledged import SUFFIX as ACKNOWLEDGED
from streamridge_service.ledger.errors import (
    DamagedPageError,
    DiskFullError,
    LibraryError,
    StorageAwayError,
    StorageError,
    StorageFailedError,
)
from streamridge_service.ledger.schema import SqlRow, SqlValue

# Earlier versions can corrupt the write-ahead log if two connections write and checkpoint at the
# same instant. The fix is on the main line since `FIXED`, and on some branches.
FIXED = (3, 51, 3)
FIXED_BRANCHES = {(3, 44): 6, (3, 50): 7}
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
SYNC_ERRORS = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


def is_safe(version: str) -> bool:
    """Return whether a version of SQLite never corrupts its write-ahead log.

    Examples
    --------
    >>> is_safe("3.51.2"), is_safe("3.50.7"), is_safe("3.54.1")
    (False, True, True)
    """
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    if (major, minor) in FIXED_BRANCHES:
        return patch >= FIXED_BRANCHES[major, minor]
    return (major, minor, patch) >= FIXED


def require_safe(version: str) -> None:
    """Raise if a version of SQLite can corrupt its write-ahead log."""
    if not is_safe(version):
        raise LibraryError(
            f"SQLite must be 3.51.3 or later, got {version}, which can damage a database that is "
            "read while it is written. Install a current apsw, which brings its own."
        )


class SqliteSession:
    """A transaction on a connection to SQLite."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, **values: SqlValue) -> list[SqlRow]:
        return self._connection.execute(sql, values).fetchall()

    def chunks(self, sql: str, most: int) -> Iterator[list[SqlRow]]:
        rows = self._connection.execute(sql)
        while chunk := list(islice(rows, most)):
            yield chunk

    def run(self, sql: str, **values: SqlValue) -> int:
        before = self._connection.total_changes()
        self._connection.execute(sql, values or None)
        return self._connection.total_changes() - before

    def add(self, table: str, rows: Sequence[SqlRow], on_conflict: str = "DO NOTHING") -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            statement = f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT {on_conflict}"
            self._connection.executemany(statement, rows)


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit the changes of a block, or roll them back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors roll back on their own
            connection.execute("ROLLBACK")
        raise


def configure(connection: apsw.Connection, longest_log: int) -> None:
    """Let a writing connection sync every commit to a write-ahead log.

    The log is truncated to `longest_log` bytes when it restarts.
    """
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchall()[0]
    if mode != "wal":
        raise StorageError(
            f"{connection.filename} must be on a file system with shared memory, got one without, "
            "such as a network file system. Use a local disk, or PostgreSQL."
        )
    # The second and third setting make a sync reach the disk on macOS.
    for setting in (
        "synchronous = FULL",
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        f"journal_size_limit = {longest_log}",
        "cache_size = -16384",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


def is_disk_full(error: Exception, system_error: int) -> bool:
    """Return whether an error means a full disk.

    After a failed sync the content of the disk is unknown, even if the disk was full.
    """
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) not in SYNC_ERRORS and system_error in DISK_FULL
    return isinstance(error, apsw.FullError)


def translated(
    error: Exception, name: str, system_error: int = 0
) -> StorageError | InvalidInputError:
    """Return the ledger's error for an error of SQLite.

    `system_error` is the operating system's number of the last failed file operation.
    """
    if is_disk_full(error, system_error):
        return DiskFullError(f"{name} has no room on its disk; nothing was stored. Free space.")
    if isinstance(error, apsw.ConstraintError):
        return InvalidInputError(f"rows for {name} must not contradict it, got: {error}.")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError):
        return DamagedPageError(
            f"{name} is damaged ({error}). Move it away, and restore a backup with "
            "`streamridge restore`."
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StorageAwayError(f"{name} is locked by another program ({error}).")
    reason = str(error) or type(error).__name__
    return StorageFailedError(f"{name} failed ({reason}). Check its disk, then start again.")


def copy_database(source: apsw.Connection, target: Path) -> None:
    """Copy a database to a new file in one transaction.

    A copy in several steps would restart whenever another process writes.
    """
    with new_file(target) as part, closing(apsw.Connection(str(part))) as copy:
        try:
            with copy.backup("main", source, "main") as backup:
                backup.step(-1)
            end_log(copy)
        except apsw.Error as error:
            raise translated(error, f"the copy {target}", copy.system_errno) from error


def end_log(connection: apsw.Connection) -> None:
    """Write the log into the database and end it, so that the single file can be moved."""
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Give an empty temporary file, which is synced and renamed to the target afterwards.

    It may hold digests of tokens, so that only its owner may read it.
    """
    part = target.with_name(f"{target.name}.part")
    if not target.parent.is_dir():
        raise InvalidInputError(f"{target} must be in a folder that exists. Create it first.")
    _remove(part)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield part
        _sync(part)
        if target.exists():
            raise InvalidInputError(
                f"{target} must be a new file, got one that exists. Choose another name."
            )
        part.rename(target)
        _sync(target.parent)
    finally:
        _remove(part)


def _remove(database: Path) -> None:
    """Remove a database and its auxiliary files."""
    for suffix in ("", "-journal", "-wal", "-shm", ".lock", ACKNOWLEDGED):
        Path(f"{database}{suffix}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
