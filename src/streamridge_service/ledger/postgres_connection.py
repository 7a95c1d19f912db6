"""Connections to PostgreSQL: settings, sessions and errors."""

# ruff: noqa: D102 - the contract stands in schema.py

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, cast

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from streamridge.errors import InvalidInputError
from streamridge_service.ledger.errors import (
    DiskFullError,
    StorageAwayError,
    StorageError,
    StorageFailedError,
)
from streamridge_service.ledger.schema import SqlRow, SqlValue

Connection = psycopg.Connection[SqlRow]

# A lost network is detected within seconds, unless the address overrides these settings.
DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
# Milliseconds that a statement waits for a lock.
LOCK_TIMEOUT = 10_000
# Single inserts are faster than a staging table up to this number of rows.
FEW = 100

# A weaker setting would lose acknowledged data; a stronger setting stays.
SYNC_COMMITS = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
CORRUPTION = (errors.DataCorrupted, errors.IndexCorrupted, errors.IoError)
# A standby server refuses writes until it is promoted.
UNREACHABLE = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)


def connect(url: str, who: str) -> Connection:
    """Return a new connection that syncs every commit.

    `who` is its name in the server's list of connections.
    """
    # Without prepared statements each query is planned for its values. A generic plan would read
    # all buckets.
    connection = psycopg.connect(
        **cast(dict[str, Any], {**DEFAULTS, **conninfo_to_dict(url), "application_name": who}),
        autocommit=True,
        prepare_threshold=None,
    )
    connection.execute(SYNC_COMMITS)
    connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT}")
    row = connection.execute("SHOW fsync").fetchone()
    if row != ("on",):
        connection.close()
        raise StorageError("PostgreSQL must run with fsync on, got off, which can lose readings.")
    return connection


class PostgresSession:
    """A transaction on a connection to PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, **values: SqlValue) -> list[SqlRow]:
        return self._connection.execute(_dialect(sql), values or None).fetchall()

    def chunks(self, sql: str, most: int) -> Iterator[list[SqlRow]]:
        with self._connection.cursor(name="chunks") as cursor:
            cursor.execute(_dialect(sql))
            while chunk := cursor.fetchmany(most):
                yield chunk

    def run(self, sql: str, **values: SqlValue) -> int:
        return self._connection.execute(_dialect(sql), values or None).rowcount

    def add(self, table: str, rows: Sequence[SqlRow], on_conflict: str = "DO NOTHING") -> None:
        if len(rows) > FEW:
            self._add_staged(table, rows, on_conflict)
        elif rows:
            marks = ", ".join(["%s"] * len(rows[0]))
            statement = f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT {on_conflict}"
            with self._connection.cursor() as cursor:
                cursor.executemany(_dialect(statement), rows)

    def _add_staged(self, table: str, rows: Sequence[SqlRow], on_conflict: str) -> None:
        """Copy many rows into a temporary table, and insert them from there."""
        staged = f"staged_{table}"
        self.run(f"CREATE TEMP TABLE IF NOT EXISTS {staged} (LIKE {table})")
        with (
            self._connection.cursor() as cursor,
            cursor.copy(_dialect(f"COPY {staged} FROM STDIN")) as copy,
        ):
            for row in rows:
                copy.write_row(row)
        self.run(f"INSERT INTO {table} SELECT * FROM {staged} ON CONFLICT {on_conflict}")
        self.run(f"TRUNCATE {staged}")


@cache
def _dialect(sql: str) -> str:
    """Return a statement with parameters in the style of psycopg."""
    return re.sub(r":(\w+)", r"%(\1)s", sql)


def translated(error: psycopg.Error, name: str) -> StorageError | InvalidInputError:
    """Return the ledger's error for an error of PostgreSQL."""
    reason = " ".join(str(error).split())
    if isinstance(error, errors.DiskFull):
        return DiskFullError(f"{name} has no room on its disk; nothing was stored. Free space.")
    if isinstance(error, CORRUPTION):
        return StorageFailedError(
            f"{name} is damaged ({reason}). Restore a backup with `streamridge restore`."
        )
    if isinstance(error, psycopg.IntegrityError | psycopg.DataError):
        return InvalidInputError(f"rows for {name} must not contradict it, got: {reason}.")
    if isinstance(error, UNREACHABLE):
        return StorageAwayError(f"{name} cannot be reached ({reason}).")
    return StorageFailedError(f"{name} failed ({reason}).")
