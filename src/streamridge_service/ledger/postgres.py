"""A storage in a PostgreSQL database.

One connection writes and holds a lock until it closes. The holder of the lock knows that the
transaction of an earlier connection was either committed or rolled back.
"""

# ruff: noqa: D102 - the contract stands in schema.py

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock

import apsw
import psycopg
from psycopg.conninfo import conninfo_to_dict

from streamridge_service.ledger.connections import (
    ConnectionPool,
    LockHolder,
    in_use,
    this_process,
)
from streamridge_service.ledger.errors import StorageAwayError, StorageError
from streamridge_service.ledger.postgres_connection import (
    Connection,
    PostgresSession,
    connect,
    translated,
)
from streamridge_service.ledger.schema import copy_tables, format_of, migrate, require_current
from streamridge_service.ledger.sqlite import SqliteStorage
from streamridge_service.ledger.sqlite_connection import end_log, new_file

TYPES = {
    "whole": "BIGINT",
    "small": "INTEGER",
    "real": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "by_key": "",
    "by_row": "",
}
# The number of the advisory lock.
LOCK = int.from_bytes(b"ridge")
HOLDERS = f"""
SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.database = a.datid
  AND l.objsubid = 1 AND l.classid = {LOCK >> 32} AND l.objid = {LOCK % 2**32}
  AND a.datname = current_database()
"""
# Seconds between two attempts to connect, at first and at most.
SHORTEST_WAIT, LONGEST_WAIT = 0.1, 5.0
# Seconds to wait until the server has ended an earlier connection.
TERMINATION_TIMEOUT = 1.0


class PostgresStorage:
    """A PostgreSQL database.

    With `read_only` it takes no lock.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.name = _without_password(url)
        self._url, self._writable = url, not read_only
        self._who = _application_name(this_process())
        self._readers = ConnectionPool(self._reader)
        self._writer: Connection | None = None
        self._write_lock = RLock()
        self._wait, self._next_attempt = SHORTEST_WAIT, 0.0
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[PostgresSession]:
        with (
            self._translating(self._readers.close_idle),
            self._readers.borrow() as connection,
            connection.transaction(),
        ):
            yield PostgresSession(connection)

    @contextmanager
    def writing(self) -> Iterator[PostgresSession]:
        if not self._writable:
            raise StorageError(f"{self.name} must be open to write, got one that is not.")
        with self._write_lock, self._translating(self._drop_writer):
            connection = self._writer = self._writer or self._locked_connection()
            with connection.transaction():
                yield PostgresSession(connection)

    def acknowledge(self, last: int) -> None:
        """Do nothing: the folder of the database is on the server."""

    def require_files(self) -> None:
        """Do nothing: the files belong to the server."""

    def damage(self) -> Iterator[str]:
        # The server checks each page that it reads, and the other checks read every row.
        return iter(())

    def copy_to(self, path: str) -> None:
        with new_file(Path(path)) as part:
            with closing(SqliteStorage(part)) as copy, self.reading() as session:
                copy_tables(session, copy.writing)
            with closing(apsw.Connection(str(part))) as connection:
                end_log(connection)

    def size(self) -> dict[str, int]:
        with self.reading() as session:
            data = session.rows("SELECT pg_database_size(current_database())")[0][0]
        return {"data": data, "log": 0, "reusable": 0}

    def close(self) -> None:
        with self._write_lock:
            self._writable = False
            self._readers.close()
            self._drop_writer()

    def _open(self) -> None:
        """Take the lock and migrate the tables, unless they are only read."""
        if not self._writable:
            require_current(self._format(), self.name)
            return
        with self._translating(self._drop_writer):
            self._writer = self._locked_connection()
        migrate(self._format(), TYPES, self.writing)

    def _format(self) -> int:
        """Return the format of the tables."""
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        with self.reading() as session:
            tables = {row[0] for row in session.rows(query)}
            return format_of(
                tables, lambda: dict(session.rows("SELECT key, value FROM meta")), self.name
            )

    def _reader(self) -> Connection:
        """Return a new connection that cannot write."""
        connection = self._connect("streamridge reader")
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return connection

    def _connect(self, who: str) -> Connection:
        """Return a new connection; after a failure, raise until the next attempt is due."""
        wait = self._next_attempt - time.monotonic()
        if wait > 0:
            raise StorageAwayError(
                f"{self.name} cannot be reached; the next attempt is in {wait:.1f} seconds."
            )
        try:
            connection = connect(self._url, who)
        except psycopg.OperationalError:
            self._next_attempt = time.monotonic() + self._wait
            self._wait = min(2 * self._wait, LONGEST_WAIT)
            raise
        self._wait = SHORTEST_WAIT
        return connection

    def _locked_connection(self) -> Connection:
        """Return a new connection that holds the lock."""
        connection = self._connect(self._who)
        try:
            self._lock(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock(self, connection: Connection) -> None:
        """Take the lock; terminate an earlier connection of this process that still holds it."""
        deadline = time.monotonic() + TERMINATION_TIMEOUT
        while connection.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone() != (True,):
            holders = connection.execute(HOLDERS).fetchall()
            for pid, who in holders:
                if who == self._who:
                    connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            if time.monotonic() > deadline:
                raise in_use(self.name, _holder(holders[0][1]) if holders else None)
            time.sleep(0.02)

    def _drop_writer(self) -> None:
        """Close the writing connection; a lost connection can look open.

        The reading connections were probably lost, too.
        """
        self._readers.close_idle()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @contextmanager
    def _translating(self, on_disconnect: Callable[[], None]) -> Iterator[None]:
        """Raise errors of PostgreSQL as errors of the ledger."""
        try:
            yield
        except psycopg.Error as error:
            known = translated(error, self.name)
            if isinstance(known, StorageAwayError):
                on_disconnect()
            raise known from error


def _application_name(process: LockHolder) -> str:
    return f"streamridge {process.pid} since {process.since}"


def _holder(application_name: str) -> LockHolder | None:
    """Return the process behind an entry in the server's list of connections."""
    match application_name.split():
        case ["streamridge", pid, "since", since] if pid.isdecimal():
            return LockHolder(int(pid), since)
    return None


def _without_password(url: str) -> str:
    """Return an address without its password."""
    parts = conninfo_to_dict(url)
    return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"
