"""The tables of a ledger, their migrations, and the operations that a database must offer.

Statements are the same for both databases; parameters are written as `:name`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from secrets import token_hex
from typing import Any, Protocol

from streamridge import __version__
from streamridge_service.ledger.errors import FormatError

SqlRow = tuple[Any, ...]
SqlValue = int | float | str | bytes | None


class Session(Protocol):
    """A running transaction."""

    def rows(self, sql: str, **values: SqlValue) -> list[SqlRow]:
        """Return the rows of a query."""

    def chunks(self, sql: str, most: int) -> Iterator[list[SqlRow]]:
        """Yield the rows of a long query, at most `most` at a time."""

    def run(self, sql: str, **values: SqlValue) -> int:
        """Run a statement, or several without values; return the number of changed rows."""

    def add(self, table: str, rows: Sequence[SqlRow], on_conflict: str = "DO NOTHING") -> None:
        """Add rows to a table; `on_conflict` applies to rows whose key exists."""


class Storage(Protocol):
    """An open database."""

    name: str

    def reading(self) -> AbstractContextManager[Session]:
        """Open a short read transaction, in any thread."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open a write transaction; it commits unless an error leaves the block."""

    def acknowledge(self, last: int) -> None:
        """Remember the last arrival number that is about to be acknowledged."""

    def require_files(self) -> None:
        """Raise a `StorageGoneError` if a file of the database was deleted or replaced."""

    def damage(self) -> Iterator[str]:
        """Yield a sentence for each damage that the database finds in its pages."""

    def copy_to(self, path: str) -> None:
        """Write a consistent copy to a new file."""

    def size(self) -> dict[str, int]:
        """Return sizes in bytes by name, as `Ledger.size` does."""

    def close(self) -> None:
        """Checkpoint the write-ahead log, release the lock and close."""


# `buckets` stores the span of times of each bucket, so that a query for a span of times opens only
# some buckets; its checksum covers all records of the bucket. States have a table of their own, so
# that a list of all sensors does not read them. Texts of snapshots are stored as bytes, since
# damaged bytes can still be read. Table `cuts` holds the refit points.
FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) {by_key};
CREATE TABLE sensors (
    id {small} PRIMARY KEY, name TEXT NOT NULL UNIQUE, created {whole} NOT NULL,
    declared {bytes} NOT NULL, archived {whole}
) {by_row};
CREATE TABLE readings (
    bucket {small} NOT NULL, sensor {small} NOT NULL, seq {whole} NOT NULL,
    time {whole} NOT NULL, value {real}, received {whole} NOT NULL, kind {small} NOT NULL,
    PRIMARY KEY (bucket, sensor, seq)
) {by_key};
CREATE INDEX held_readings ON readings (time) WHERE kind = 2;
CREATE TABLE buckets (
    bucket {small} PRIMARY KEY, first_time {whole}, last_time {whole}, checksum {whole} NOT NULL
) {by_row};
CREATE TABLE actions (
    seq {whole} PRIMARY KEY, sensor {small} NOT NULL, kind TEXT NOT NULL,
    body {bytes} NOT NULL, received {whole} NOT NULL
) {by_row};
CREATE INDEX actions_of_sensor ON actions (sensor, seq);
CREATE TABLE cuts (
    number {whole} PRIMARY KEY, sensor {small} NOT NULL, seq {whole} NOT NULL,
    until {whole} NOT NULL, kind TEXT NOT NULL, leftover {bytes} NOT NULL, tuning {bytes} NOT NULL,
    UNIQUE (sensor, seq, until, kind)
) {by_row};
CREATE TABLE snapshots (
    sensor {small} PRIMARY KEY, seq {whole} NOT NULL, until {whole} NOT NULL, kind {bytes} NOT NULL,
    leftover {bytes} NOT NULL, summary {bytes} NOT NULL, tuning {bytes} NOT NULL,
    fingerprint {bytes} NOT NULL, digest {bytes} NOT NULL
) {by_row};
CREATE TABLE states (sensor {small} PRIMARY KEY, state {bytes} NOT NULL) {by_row};
CREATE TABLE forecasts (
    bucket {small} NOT NULL, sensor {small} NOT NULL, seq {whole} NOT NULL, time {whole} NOT NULL,
    fit {whole} NOT NULL, source TEXT NOT NULL, numbers {bytes} NOT NULL,
    PRIMARY KEY (bucket, sensor, seq)
) {by_key};
CREATE TABLE forecast_buckets (
    bucket {small} PRIMARY KEY, first_time {whole} NOT NULL, last_time {whole} NOT NULL
) {by_row};
CREATE TABLE tokens (
    id {small} PRIMARY KEY, name TEXT NOT NULL, digest {bytes} NOT NULL, scopes TEXT NOT NULL,
    created {whole} NOT NULL, expires {whole}, revoked {whole}
) {by_row};
CREATE TABLE events (
    id {whole} PRIMARY KEY, at {whole} NOT NULL, kind TEXT NOT NULL, sensor {small},
    reason TEXT NOT NULL
) {by_row};
INSERT INTO meta VALUES ('first', '1'), ('last', '0'), ('done', '0')
"""

# Sensors of one group correct each other's forecasts. `corrections` has the numbers of corrected
# forecasts; `seq` of a group's step is the largest arrival number that it names.
SECOND = """
CREATE TABLE corrections (
    bucket {small} NOT NULL, sensor {small} NOT NULL, seq {whole} NOT NULL,
    numbers {bytes} NOT NULL, PRIMARY KEY (bucket, sensor, seq)
) {by_key};
CREATE TABLE group_steps (
    name TEXT NOT NULL, step {whole} NOT NULL, time {whole} NOT NULL, seq {whole} NOT NULL,
    body {bytes} NOT NULL, PRIMARY KEY (name, step, time)
) {by_key};
CREATE INDEX steps_by_number ON group_steps (seq);
CREATE TABLE group_states (
    name TEXT NOT NULL, step {whole} NOT NULL, time {whole} NOT NULL, state {bytes} NOT NULL,
    PRIMARY KEY (name, step)
) {by_row}
"""

TABLES = (
    "meta",
    "sensors",
    "readings",
    "buckets",
    "actions",
    "cuts",
    "snapshots",
    "states",
    "forecasts",
    "forecast_buckets",
    "tokens",
    "events",
    "corrections",
    "group_steps",
    "group_states",
)

# Migration n brings a storage to format n. A released migration never changes.
MIGRATIONS = [FIRST, SECOND]

# The conflict clause that replaces a fact.
REPLACE_FACT = "(key) DO UPDATE SET value = excluded.value"
# Rows in memory at once while tables are copied; fewer where rows are large.
MANY_ROWS, LARGE_ROWS = 20_000, 200
LARGE = ("states", "group_steps", "group_states")


def current_format() -> int:
    """Return the format that this version writes."""
    return len(MIGRATIONS)


def format_of(tables: Collection[str], facts: Callable[[], Mapping[str, str]], name: str) -> int:
    """Return the format of a storage, zero if it is empty; raise if it is newer.

    `facts` returns the table `meta`; it is called only if that exists.
    """
    known = facts() if "meta" in tables else {}
    if not known.get("format", "").isdecimal():
        if tables:
            raise FormatError(f"{name} is not a storage of streamridge; nothing was changed.")
        return 0
    if int(known["format"]) > current_format():
        writer = f"streamridge {known.get('version', '(a later version)')}"
        raise FormatError(
            f"{name} was written by {writer}, this is {__version__}; nothing was changed. "
            "Use that version, or restore an earlier backup."
        )
    return int(known["format"])


def require_current(found: int, name: str) -> None:
    """Raise unless a storage has the current format, as reading requires."""
    if found != current_format():
        raise FormatError(
            f"{name} must be of format {current_format()} to be read, got {found}. Serve it once, "
            "which migrates it."
        )


def migrate(
    found: int, types: Mapping[str, str], writing: Callable[[], AbstractContextManager[Session]]
) -> None:
    """Bring a storage to the current format, with one transaction for each migration.

    A new storage gets a random identity, which its copies share. `types` are the database's names
    of column types.
    """
    for number, statements in enumerate(MIGRATIONS[found:], found + 1):
        with writing() as session:
            session.run(statements.format(**types))
            session.add("meta", [("format", str(number))], REPLACE_FACT)
    with writing() as session:
        facts: dict[str, str] = dict(session.rows("SELECT key, value FROM meta"))
        if facts.get("version") != __version__:
            session.add("meta", [("version", __version__)], REPLACE_FACT)
        if "identity" not in facts:
            session.add("meta", [("identity", token_hex(16))])


def copy_tables(source: Session, writing: Callable[[], AbstractContextManager[Session]]) -> None:
    """Copy all rows of a read transaction into the tables of a new storage.

    `writing` opens a transaction of the new storage, one for each chunk of rows.
    """
    for table in TABLES:
        most = LARGE_ROWS if table in LARGE else MANY_ROWS
        for rows in source.chunks(f"SELECT * FROM {table}", most):
            with writing() as session:
                session.add(table, rows, REPLACE_FACT if table == "meta" else "DO NOTHING")
