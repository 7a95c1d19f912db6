"""Transactions on PostgreSQL, and how its connections are made."""

# ruff: noqa: D102 - the contract stands in sessions.py

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict

from streamridge.service.ledger.base import StorageError
from streamridge.service.ledger.sessions import Row, Value

Connection = psycopg.Connection[Row]

# A lost network is noticed within seconds, unless the address says otherwise.
DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
# Milliseconds that a statement waits for another's lock.
PATIENCE = 10_000
# Up to so many rows, the way through a staging table takes longer.
FEW = 100

# A weaker setting would lose what was acknowledged; a stronger one is left as it is.
SYNCED = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""


def connect(url: str, who: str) -> Connection:
    """Return a new connection, each of whose commits is synced.

    Parameters
    ----------
    url
        Address of the database.
    who
        What its list of connections calls this one.
    """
    # Plans are made for the values of each query: those for any value read all buckets.
    connection = psycopg.connect(
        **cast(dict[str, Any], {**DEFAULTS, **conninfo_to_dict(url), "application_name": who}),
        autocommit=True,
        prepare_threshold=None,
    )
    connection.execute(SYNCED)
    connection.execute(f"SET lock_timeout = {PATIENCE}")
    row = connection.execute("SHOW fsync").fetchone()
    if row != ("on",):
        connection.close()
        raise StorageError("PostgreSQL must run with fsync on, got off, which loses readings.")
    return connection


class PostgresSession:
    """A transaction on a connection of PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, **values: Value) -> list[Row]:
        return self._connection.execute(_dialect(sql), values or None).fetchall()

    def chunks(self, sql: str, most: int) -> Iterator[list[Row]]:
        with self._connection.cursor(name="chunks") as cursor:
            cursor.execute(_dialect(sql))
            while chunk := cursor.fetchmany(most):
                yield chunk

    def run(self, sql: str, **values: Value) -> int:
        return self._connection.execute(_dialect(sql), values or None).rowcount

    def add(self, table: str, rows: Sequence[Row], on_conflict: str = "DO NOTHING") -> None:
        if len(rows) > FEW:
            self._add_staged(table, rows, on_conflict)
        elif rows:
            marks = ", ".join(["%s"] * len(rows[0]))
            statement = f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT {on_conflict}"
            with self._connection.cursor() as cursor:
                cursor.executemany(_dialect(statement), rows)

    def _add_staged(self, table: str, rows: Sequence[Row], on_conflict: str) -> None:
        """Copy many rows into a table of this connection, and from there to their place."""
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
    """Return a statement that names its values as psycopg does; no value is part of its text."""
    return re.sub(r":(\w+)", r"%(\1)s", sql)
