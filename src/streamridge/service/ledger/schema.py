"""The tables of a ledger, and the numbered migrations that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager

from streamridge import __version__
from streamridge.service.ledger.base import FormatError
from streamridge.service.ledger.sessions import Session

# `buckets` says which times the readings of a bucket are from, so that a range of times opens only
# some buckets; its checksum is over all that arrived in it. States are a table of their own, so
# that a list of all sensors does not read them. Texts of snapshots are bytes, since bytes that are
# damaged can still be read.
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
)

# The n-th brings a storage to format n. One that was released is never changed.
MIGRATIONS = [FIRST]

# What a statement that adds a row says, to replace the one with its key.
REPLACE_FACT = "(key) DO UPDATE SET value = excluded.value"


def current_format() -> int:
    """Return the format that this version writes."""
    return len(MIGRATIONS)


def format_of(tables: Collection[str], facts: Callable[[], Mapping[str, str]], name: str) -> int:
    """Return the format of a storage, zero for an empty one, and refuse one that is newer.

    Parameters
    ----------
    tables
        Names of the tables that there are.
    facts
        Returns the table `meta`; called only if it is there.
    name
        What messages call the storage.
    """
    known = facts() if "meta" in tables else {}
    if not known.get("format", "").isdecimal():
        if tables:
            raise FormatError(f"{name} is not a storage of streamridge; nothing was changed.")
        return 0
    if int(known["format"]) > current_format():
        writer = f"streamridge {known.get('version', 'of a later time')}"
        raise FormatError(
            f"{name} was written by {writer}, this is {__version__}; nothing was changed. "
            "Use that version, or restore a backup of before."
        )
    return int(known["format"])


def require_current(found: int, name: str) -> None:
    """Refuse to read a storage that is of an older format, or empty."""
    if found != current_format():
        raise FormatError(
            f"{name} must be of format {current_format()} to be read, got {found}. Serve it once, "
            "which migrates it."
        )


def migrate(
    found: int, words: Mapping[str, str], writing: Callable[[], AbstractContextManager[Session]]
) -> None:
    """Bring a storage to the current format, by one transaction a format.

    Parameters
    ----------
    found
        The format that it has.
    words
        How the database calls the types of columns.
    writing
        Opens a transaction.
    """
    for number, statements in enumerate(MIGRATIONS[found:], found + 1):
        with writing() as session:
            session.run(statements.format(**words))
            session.add("meta", [("format", str(number))], REPLACE_FACT)
    with writing() as session:
        if session.rows("SELECT value FROM meta WHERE key = 'version'") != [(__version__,)]:
            session.add("meta", [("version", __version__)], REPLACE_FACT)
