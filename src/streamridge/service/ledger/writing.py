"""The whole ledger: what is written, and the checks that keep its log without holes."""

# ruff: noqa: D102 - the contract stands in base.py

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Self

from streamridge.errors import InvalidInputError
from streamridge.service.ledger.checking import findings
from streamridge.service.ledger.layout import (
    bucket_of,
    checksum_after,
    cut_row,
    entry_row,
    forecast_row,
    normal,
    snapshot_row,
    token_row,
)
from streamridge.service.ledger.pruning import prune
from streamridge.service.ledger.reading import Reading, arrivals, fact
from streamridge.service.ledger.records import (
    Action,
    Entry,
    Event,
    Issued,
    SensorRow,
    Snapshot,
    Token,
)
from streamridge.service.ledger.schema import REPLACE_FACT
from streamridge.service.ledger.sessions import Session

REPLACE_SENSOR = "(id) DO UPDATE SET declared = excluded.declared, archived = excluded.archived"
REPLACE_BUCKET = """(bucket) DO UPDATE SET
    first_time = excluded.first_time, last_time = excluded.last_time, checksum = excluded.checksum
"""
REPLACE_FORECAST_BUCKET = """(bucket) DO UPDATE SET
    first_time = excluded.first_time, last_time = excluded.last_time
"""
REPLACE_SNAPSHOT = """(sensor) DO UPDATE SET
    seq = excluded.seq, until = excluded.until, kind = excluded.kind,
    leftover = excluded.leftover, summary = excluded.summary, tuning = excluded.tuning,
    fingerprint = excluded.fingerprint, digest = excluded.digest
"""
REPLACE_STATE = "(sensor) DO UPDATE SET state = excluded.state"
REPLACE_TOKEN = """(id) DO UPDATE SET
    name = excluded.name, digest = excluded.digest, scopes = excluded.scopes,
    created = excluded.created, expires = excluded.expires, revoked = excluded.revoked
"""


class SqlLedger(Reading):
    """A ledger on a database, the same for SQLite and PostgreSQL.

    Parameters
    ----------
    storage
        The database; it is closed with the ledger.
    """

    def close(self) -> None:
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(
        self,
        sensors: Sequence[SensorRow] = (),
        entries: Sequence[Entry] = (),
        actions: Sequence[Action] = (),
    ) -> None:
        arrived: list[Entry | Action] = [*map(normal, entries), *actions]
        arrived.sort(key=attrgetter("seq"))
        with self._storage.writing() as session:
            new = _new(session, arrived)
            session.add("sensors", _sensor_rows(sensors), REPLACE_SENSOR)
            session.add("readings", [entry_row(one) for one in new if isinstance(one, Entry)])
            session.add("actions", [_action_row(one) for one in new if isinstance(one, Action)])
            for bucket, group in groupby(new, lambda one: bucket_of(one.seq)):
                _fill(session, bucket, list(group))
            if new:
                session.add("meta", [("last", str(new[-1].seq))], REPLACE_FACT)

    def issue(self, forecasts: Sequence[Issued], done: int | None = None) -> None:
        rows = [forecast_row(forecast) for forecast in forecasts]
        with self._storage.writing() as session:
            session.add("forecasts", rows)
            for bucket in {row[0] for row in rows}:
                _fill_forecasts(session, bucket, [row[3] for row in rows if row[0] == bucket])
            if done is not None:
                session.add("meta", [("done", str(done))], REPLACE_FACT)

    def keep(self, snapshots: Sequence[Snapshot]) -> None:
        with self._storage.writing() as session:
            taken = _newer(session, snapshots)
            number = session.rows("SELECT coalesce(max(number), 0) FROM cuts")[0][0]
            cuts = [cut_row(number + i, one) for i, one in enumerate(taken, 1)]
            session.add("cuts", cuts)
            last = {one.cut.sensor: one for one in taken}
            session.add("snapshots", [snapshot_row(one) for one in last.values()], REPLACE_SNAPSHOT)
            session.add("states", [(key, one.state) for key, one in last.items()], REPLACE_STATE)

    def note(self, events: Sequence[Event]) -> None:
        rows = [(one.id, one.at, one.kind, one.sensor, one.reason) for one in events]
        with self._storage.writing() as session:
            session.add("events", rows)

    def put_tokens(self, tokens: Sequence[Token]) -> None:
        last = {token.id: token for token in tokens}
        with self._storage.writing() as session:
            session.add("tokens", [token_row(token) for token in last.values()], REPLACE_TOKEN)

    def put_facts(self, facts: Mapping[str, str]) -> None:
        with self._storage.writing() as session:
            session.add("meta", list(facts.items()), REPLACE_FACT)

    def prune(self, before: int) -> dict[str, int]:
        return prune(self._storage, before)

    def check(self) -> Iterator[str]:
        return findings(self._storage)

    def copy_to(self, path: str) -> None:
        self._storage.copy_to(path)

    def size(self) -> dict[str, int]:
        return self._storage.size()


def _new(session: Session, arrived: Sequence[Entry | Action]) -> Sequence[Entry | Action]:
    """Return what is not there yet of what arrived, and refuse holes and contradictions."""
    if not arrived:
        return arrived
    last = fact(session, "last")
    first, numbers = arrived[0].seq, [one.seq for one in arrived]
    if first < 1 or first > last + 1 or numbers != list(range(first, first + len(numbers))):
        raise InvalidInputError(
            f"arrival numbers must go on from {last + 1} without a hole, got {first} to "
            f"{numbers[-1]} for {len(numbers)} of them."
        )
    known = arrived[: last + 1 - first]
    if known and arrivals(session, first, known[-1].seq) != known:
        raise InvalidInputError(
            f"arrival numbers must be given once, got {first} to {known[-1].seq} again for "
            "something else."
        )
    return arrived[len(known) :]


def _fill(session: Session, bucket: int, arrived: Sequence[Entry | Action]) -> None:
    """Widen the span of times of a bucket, and let its checksum go on."""
    query = "SELECT first_time, last_time, checksum FROM buckets WHERE bucket = :bucket"
    before = session.rows(query, bucket=bucket)
    first, last, checksum = before[0] if before else (None, None, 0)
    times = [one.time for one in arrived if isinstance(one, Entry)]
    times += [time for time in (first, last) if time is not None]
    span = (min(times), max(times)) if times else (None, None)
    row = (bucket, *span, checksum_after(checksum, arrived))
    session.add("buckets", [row], REPLACE_BUCKET)


def _fill_forecasts(session: Session, bucket: int, times: Sequence[int]) -> None:
    """Widen the span of times of a bucket of forecasts."""
    query = "SELECT first_time, last_time FROM forecast_buckets WHERE bucket = :bucket"
    times = [*times, *(time for row in session.rows(query, bucket=bucket) for time in row)]
    row = (bucket, min(times), max(times))
    session.add("forecast_buckets", [row], REPLACE_FORECAST_BUCKET)


def _newer(session: Session, snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Return the snapshots that are not older than the last of their sensors, or replace it."""
    last: dict[int, int] = {}
    taken = []
    for snapshot in snapshots:
        sensor, seq = snapshot.cut.sensor, snapshot.cut.seq
        if sensor not in last:
            query = "SELECT seq FROM snapshots WHERE sensor = :sensor"
            last[sensor] = max((row[0] for row in session.rows(query, sensor=sensor)), default=0)
        if seq >= last[sensor] or snapshot.cut.kind == "rebuilt":
            taken.append(snapshot)
            last[sensor] = seq
    return taken


def _sensor_rows(sensors: Sequence[SensorRow]) -> list[tuple[object, ...]]:
    last = {sensor.id: sensor for sensor in sensors}
    return [(one.id, one.name, one.created, one.declared, one.archived) for one in last.values()]


def _action_row(action: Action) -> tuple[object, ...]:
    return action.seq, action.sensor, action.kind, action.body, action.received
