"""Transactions on SQLite, and how the connection that writes is set up."""

# ruff: noqa: D102 - the contract stands in sessions.py

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import apsw

from streamridge.service.ledger.base import StorageError
from streamridge.service.ledger.sessions import Row, Value


class SqliteSession:
    """A transaction on a connection of SQLite."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, **values: Value) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def chunks(self, sql: str, most: int) -> Iterator[list[Row]]:
        rows = self._connection.execute(sql)
        while chunk := list(islice(rows, most)):
            yield chunk

    def run(self, sql: str, **values: Value) -> int:
        before = self._connection.total_changes()
        self._connection.execute(sql, values or None)
        return self._connection.total_changes() - before

    def add(self, table: str, rows: Sequence[Row], on_conflict: str = "DO NOTHING") -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            statement = f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT {on_conflict}"
            self._connection.executemany(statement, rows)


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit what is done inside, or undo it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have undone it already
            connection.execute("ROLLBACK")
        raise


def configure(connection: apsw.Connection, longest_log: int) -> None:
    """Let every commit of a connection be synced to a log beside the file.

    Parameters
    ----------
    connection
        The one that writes.
    longest_log
        Bytes to which the log is cut when it begins anew.
    """
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchall()[0]
    if mode != "wal":
        raise StorageError(
            f"{connection.filename} must be on a file system with shared memory, got one without, "
            "such as of a network. Use a local disk, or PostgreSQL."
        )
    # The second and third are about macOS, where a sync would not reach the disk.
    for setting in (
        "synchronous = FULL",
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        f"journal_size_limit = {longest_log}",
        "cache_size = -65536",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
