"""The ledger, the durable storage of the service: the methods that write.

One process writes through one `Ledger`. Any number of processes read, each through a ledger of its
own that is opened with `read_only`. Every method that writes is one transaction. After it returns,
its data survive a power failure. If it raises, it has written nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Self

from streamridge.errors import InvalidInputError
from streamridge_service.ledger import pruning
from streamridge_service.ledger.integrity import find_faults
from streamridge_service.ledger.layout import (
    bucket_of,
    checksum_after,
    correction_row,
    forecast_row,
    group_step_row,
    normalized,
    reading_row,
    refit_point_row,
    snapshot_row,
    token_row,
)
from streamridge_service.ledger.reading import LedgerQueries, arrivals, number_fact
from streamridge_service.ledger.records import (
    Action,
    Event,
    GroupResult,
    IssuedForecast,
    SensorRow,
    Snapshot,
    StoredReading,
    Token,
)
from streamridge_service.ledger.schema import REPLACE_FACT, Session

REPLACE_SENSOR = "(id) DO UPDATE SET declared = excluded.declared, archived = excluded.archived"
REPLACE_BUCKET = """(bucket) DO UPDATE SET
    first_time = excluded.first_time, last_time = excluded.last_time, checksum = excluded.checksum
"""
REPLACE_FORECAST_BUCKET = """(bucket) DO UPDATE SET
    first_time = excluded.first_time, last_time = excluded.last_time
"""
REPLACE_TOKEN = """(id) DO UPDATE SET
    name = excluded.name, digest = excluded.digest, scopes = excluded.scopes,
    created = excluded.created, expires = excluded.expires, revoked = excluded.revoked
"""


class Ledger(LedgerQueries):
    """Readings, actions, refit points, snapshots, forecasts, tokens and events.

    The statements are the same for SQLite and PostgreSQL.
    """

    def close(self) -> None:
        """Checkpoint the write-ahead log, release the lock and close."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(
        self,
        sensors: Sequence[SensorRow] = (),
        readings: Sequence[StoredReading] = (),
        actions: Sequence[Action] = (),
    ) -> None:
        """Add sensors, readings and actions; their arrival numbers continue without a gap.

        A known sensor gets the declaration and the archive time given here. Identical rows that
        are stored already are skipped, so a caller may repeat the call after a
        `StorageAwayError`. A gap, or an arrival number that belongs to other data, raises an
        `InvalidInputError`.
        """
        arrived: list[StoredReading | Action] = [*map(normalized, readings), *actions]
        arrived.sort(key=attrgetter("seq"))
        with self._storage.writing() as session:
            new = _new(session, arrived)
            session.add("sensors", _sensor_rows(sensors), REPLACE_SENSOR)
            session.add(
                "readings", [reading_row(one) for one in new if isinstance(one, StoredReading)]
            )
            session.add("actions", [_action_row(one) for one in new if isinstance(one, Action)])
            for bucket, group in groupby(new, lambda one: bucket_of(one.seq)):
                _update_bucket(session, bucket, list(group))
            if new:
                session.add("meta", [("last", str(new[-1].seq))], REPLACE_FACT)
        if new:
            self._storage.acknowledge(new[-1].seq)

    def add_forecasts(self, forecasts: Sequence[IssuedForecast], done: int | None = None) -> None:
        """Add forecasts; a stored forecast is never replaced.

        All readings up to the arrival number `done` have been processed.
        """
        rows = [forecast_row(forecast) for forecast in forecasts]
        with self._storage.writing() as session:
            session.add("forecasts", rows)
            for bucket in {row[0] for row in rows}:
                _update_forecast_bucket(
                    session, bucket, [row[3] for row in rows if row[0] == bucket]
                )
            if done is not None:
                session.add("meta", [("done", str(done))], REPLACE_FACT)

    def add_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        """Add the refit points of snapshots to the log, and replace the sensors' snapshots.

        A snapshot that is older than the sensor's stored snapshot is skipped.
        """
        with self._storage.writing() as session:
            newer = _newer(session, snapshots)
            number = session.rows("SELECT coalesce(max(number), 0) FROM cuts")[0][0]
            points = [refit_point_row(number + i, one) for i, one in enumerate(newer, 1)]
            session.add("cuts", points)
            last = {one.point.sensor: one for one in newer}
            # An update in place that meets a damaged page would look like a full disk to SQLite.
            for sensor in last:
                session.run("DELETE FROM snapshots WHERE sensor = :sensor", sensor=sensor)
                session.run("DELETE FROM states WHERE sensor = :sensor", sensor=sensor)
            session.add("snapshots", [snapshot_row(one) for one in last.values()])
            session.add("states", [(key, one.state) for key, one in last.items()])

    def add_group_steps(self, results: Sequence[GroupResult]) -> None:
        """Add steps of groups and their corrections, and replace states; stored steps stay."""
        corrected = [correction_row(each) for result in results for each in result.corrected]
        states = {
            (one.step.group, one.step.step): (one.step.time, one.state)
            for one in results
            if one.state is not None
        }
        with self._storage.writing() as session:
            session.add("group_steps", [group_step_row(result.step) for result in results])
            session.add("corrections", corrected)
            for name, step in states:
                statement = "DELETE FROM group_states WHERE name = :name AND step = :step"
                session.run(statement, name=name, step=step)
            session.add("group_states", [(*key, *row) for key, row in states.items()])

    def add_events(self, events: Sequence[Event]) -> None:
        """Add events; an event with a stored number is skipped."""
        rows = [(one.id, one.at, one.kind, one.sensor, one.reason) for one in events]
        with self._storage.writing() as session:
            session.add("events", rows)

    def put_tokens(self, tokens: Sequence[Token]) -> None:
        """Add tokens, or replace tokens with the same number."""
        last = {token.id: token for token in tokens}
        with self._storage.writing() as session:
            session.add("tokens", [token_row(token) for token in last.values()], REPLACE_TOKEN)

    def put_facts(self, facts: Mapping[str, str]) -> None:
        """Add facts about the service, such as its step, or replace facts of the same name."""
        with self._storage.writing() as session:
            session.add("meta", list(facts.items()), REPLACE_FACT)

    def prune(self, before: int) -> dict[str, int]:
        """Delete readings and forecasts from before a time, except those forecasters need.

        Whole buckets are deleted, the oldest first, if all of their readings are older. The
        remaining arrival numbers have no gap. Transactions are small, so that the write-ahead log
        stays small, too.

        A forecaster needs the readings after its snapshot, or all of them if it has no snapshot.
        It needs none if its sensor is archived, or has neither a snapshot nor a recent reading.

        Returns the numbers of deleted readings, forecasts and buckets, and the number of old
        buckets that were kept because a forecaster needs the first of them.
        """
        return pruning.prune(self._storage, before)

    def prunable_bucket(self, before: int) -> int | None:
        """Return the next bucket that `prune` would delete; None if there is none."""
        return pruning.prunable_bucket(self._storage, before)

    def drop_bucket(self, bucket: int) -> None:
        """Take the oldest bucket out of the log; its rows are deleted by `delete_dropped`."""
        pruning.drop_bucket(self._storage, bucket)

    def delete_dropped(self) -> dict[str, int]:
        """Delete some rows of dropped buckets; return their number by table, empty if none is left.

        Each call is a short transaction, so that readings can be stored in between.
        """
        return pruning.delete_dropped(self._storage)

    def require_files(self) -> None:
        """Raise a `StorageGoneError` if a file of the database was deleted or replaced."""
        self._storage.require_files()

    def check(self) -> Iterator[str]:
        """Yield a sentence for each fault of the storage; nothing if it is intact."""
        return find_faults(self._storage)

    def copy_to(self, path: str) -> None:
        """Write a consistent copy to a new SQLite file while others write.

        A copy of a PostgreSQL database is an SQLite file, too.
        """
        self._storage.copy_to(path)

    def size(self) -> dict[str, int]:
        """Return sizes in bytes by name.

        "data"; "log", the write-ahead log; "reusable", free pages within the data; and "free" on
        the disk, which is missing if it is unknown.
        """
        return self._storage.size()


def _new(
    session: Session, arrived: Sequence[StoredReading | Action]
) -> Sequence[StoredReading | Action]:
    """Return the records that are not stored yet; raise on a gap or a contradiction."""
    if not arrived:
        return arrived
    last = number_fact(session, "last")
    first, numbers = arrived[0].seq, [one.seq for one in arrived]
    if first < 1 or first > last + 1 or numbers != list(range(first, first + len(numbers))):
        raise InvalidInputError(
            f"arrival numbers must continue from {last + 1} without a gap, got {first} to "
            f"{numbers[-1]} for {len(numbers)} records."
        )
    known = arrived[: last + 1 - first]
    if known and arrivals(session, first, known[-1].seq) != known:
        raise InvalidInputError(
            f"arrival numbers must be used once, got {first} to {known[-1].seq} again for other "
            "records."
        )
    return arrived[len(known) :]


def _update_bucket(
    session: Session, bucket: int, arrived: Sequence[StoredReading | Action]
) -> None:
    """Update the span of times and the checksum of a bucket."""
    query = "SELECT first_time, last_time, checksum FROM buckets WHERE bucket = :bucket"
    before = session.rows(query, bucket=bucket)
    first, last, checksum = before[0] if before else (None, None, 0)
    times = [one.time for one in arrived if isinstance(one, StoredReading)]
    times += [time for time in (first, last) if time is not None]
    span = (min(times), max(times)) if times else (None, None)
    row = (bucket, *span, checksum_after(checksum, arrived))
    session.add("buckets", [row], REPLACE_BUCKET)


def _update_forecast_bucket(session: Session, bucket: int, times: Sequence[int]) -> None:
    """Update the span of times of a bucket of forecasts."""
    query = "SELECT first_time, last_time FROM forecast_buckets WHERE bucket = :bucket"
    times = [*times, *(time for row in session.rows(query, bucket=bucket) for time in row)]
    row = (bucket, min(times), max(times))
    session.add("forecast_buckets", [row], REPLACE_FORECAST_BUCKET)


def _newer(session: Session, snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Return the snapshots that are not older than the stored ones, and rebuilt ones."""
    last: dict[int, int] = {}
    newer = []
    for snapshot in snapshots:
        sensor, seq = snapshot.point.sensor, snapshot.point.seq
        if sensor not in last:
            query = "SELECT seq FROM snapshots WHERE sensor = :sensor"
            last[sensor] = max((row[0] for row in session.rows(query, sensor=sensor)), default=0)
        if seq >= last[sensor] or snapshot.point.kind == "rebuilt":
            newer.append(snapshot)
            last[sensor] = seq
    return newer


def _sensor_rows(sensors: Sequence[SensorRow]) -> list[tuple[object, ...]]:
    last = {sensor.id: sensor for sensor in sensors}
    return [(one.id, one.name, one.created, one.declared, one.archived) for one in last.values()]


def _action_row(action: Action) -> tuple[object, ...]:
    return action.seq, action.sensor, action.kind, action.body, action.received
