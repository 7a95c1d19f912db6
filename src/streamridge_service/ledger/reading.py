"""The queries of a ledger: each transaction is short, and long results come bucket by bucket.

A slow reader therefore never blocks a checkpoint of the write-ahead log.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from streamridge_service.ledger.errors import StorageFailedError
from streamridge_service.ledger.layout import (
    bucket_of,
    forecast_of,
    group_step_of,
    refit_point_of,
    snapshot_of,
    token_of,
)
from streamridge_service.ledger.records import (
    Action,
    Event,
    GroupStep,
    IssuedForecast,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
    Token,
)
from streamridge_service.ledger.schema import Session, SqlRow, SqlValue, Storage

# Bounds of 64-bit times and arrival numbers.
EARLIEST, LATEST = -(2**63), 2**63 - 1
# Summaries that are read at once.
SUMMARIES = 5000

# The CROSS JOIN makes SQLite scan the buckets first, not the readings.
READINGS = """
SELECT r.seq, r.sensor, r.time, r.value, r.received, r.kind
FROM buckets b CROSS JOIN readings r
WHERE b.bucket >= :first_bucket AND b.last_time >= :start AND b.first_time < :until
  AND r.bucket = b.bucket AND r.sensor = :sensor
  AND r.seq > :after AND r.seq <= :up_to AND r.time >= :start AND r.time < :until
ORDER BY b.bucket, r.seq
"""
BUCKET_READINGS = """
SELECT seq, sensor, time, value, received, kind FROM readings
WHERE bucket = :bucket AND seq > :after AND seq <= :up_to
"""
# Kind 2 is a held reading.
NEWEST_TIMES = """
SELECT sensor, max(time) FROM readings
WHERE bucket = :bucket AND seq <= :up_to AND kind <> 2 GROUP BY sensor
"""
LATEST_BUCKETS = """
SELECT bucket, last_time FROM buckets
WHERE bucket <= :last AND last_time IS NOT NULL ORDER BY last_time DESC
"""
HELD = """
SELECT h.seq, h.sensor, h.time, h.value, h.received, h.kind FROM readings h
WHERE h.kind = 2 AND NOT EXISTS (
    SELECT 1 FROM readings r WHERE r.bucket >= h.bucket AND r.sensor = h.sensor
    AND r.time = h.time AND r.seq > h.seq
)
ORDER BY h.seq
"""
ACTIONS_BETWEEN = """
SELECT seq, sensor, kind, body, received FROM actions WHERE seq >= :first AND seq <= :last
"""
# With corrections, a corrected forecast has the corrected numbers, unless they are damaged.
CORRECTIONS = """
LEFT JOIN corrections c ON c.bucket = f.bucket AND c.sensor = f.sensor AND c.seq = f.seq
"""
SERVED = "CASE WHEN length(c.numbers) = length(f.numbers) THEN c.numbers ELSE f.numbers END"
OWN, CORRECTED = ("f.numbers", ""), (SERVED, CORRECTIONS)
FORECASTS = """
SELECT f.seq, f.sensor, f.time, f.fit, f.source, {}
FROM forecast_buckets b CROSS JOIN forecasts f {}
WHERE b.bucket >= :first_bucket AND b.last_time >= :start AND b.first_time < :until
  AND f.bucket = b.bucket AND f.sensor = :sensor
  AND f.seq > :after AND f.time >= :start AND f.time < :until
ORDER BY b.bucket, f.seq
"""
FORECAST_BUCKETS = """
SELECT bucket FROM forecast_buckets
WHERE bucket >= :first_bucket AND last_time >= :start AND first_time < :until ORDER BY bucket
"""
BUCKET_FORECASTS = """
SELECT f.seq, f.sensor, f.time, f.fit, f.source, {}
FROM forecasts f {}
WHERE f.bucket = :bucket AND f.seq > :after AND f.time >= :start AND f.time < :until
ORDER BY f.seq, f.sensor
"""
GROUP_STEPS = """
SELECT name, step, time, body FROM group_steps
WHERE name = :name AND step = :step AND time > :after ORDER BY time LIMIT :most
"""
SNAPSHOTS = """
SELECT p.sensor, p.seq, p.until, p.kind, p.leftover, p.summary, p.tuning, p.fingerprint, p.digest,
       s.state
FROM snapshots p LEFT JOIN states s ON s.sensor = p.sensor
WHERE p.sensor >= :first ORDER BY p.sensor LIMIT :most
"""
RESTARTED = """
SELECT DISTINCT a.sensor FROM actions a LEFT JOIN snapshots p ON p.sensor = a.sensor
WHERE a.kind IN ('reset', 'configure') AND a.seq > coalesce(p.seq, 0) ORDER BY a.sensor
"""
EVENTS = """
SELECT id, at, kind, sensor, reason FROM (
    SELECT id, at, kind, sensor, reason FROM events WHERE id > :after ORDER BY id DESC LIMIT :most
) newest ORDER BY id
"""


def number_fact(session: Session, key: str) -> int:
    """Return a fact that is a whole number."""
    rows = session.rows("SELECT value FROM meta WHERE key = :key", key=key)
    if not rows or not rows[0][0].isdecimal():
        raise StorageFailedError(
            f"the storage is damaged: {key} must be a whole number, got {rows}. Restore a "
            "backup with `streamridge restore`."
        )
    return int(rows[0][0])


class LedgerQueries:
    """The methods of a ledger that read."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def facts(self) -> dict[str, str]:
        """Return facts about the storage by name, such as "format", "version" and "first"."""
        return dict(self._rows("SELECT key, value FROM meta ORDER BY key"))

    def last_seq(self) -> int:
        """Return the last arrival number; zero before the first."""
        with self._storage.reading() as session:
            return number_fact(session, "last")

    def done_seq(self) -> int:
        """Return the arrival number up to which all readings have been processed."""
        with self._storage.reading() as session:
            return number_fact(session, "done")

    def sensors(self) -> list[SensorRow]:
        """Return all sensors, ordered by number."""
        rows = self._rows("SELECT id, name, created, declared, archived FROM sensors ORDER BY id")
        return [SensorRow(*row) for row in rows]

    def readings(
        self,
        sensor: int,
        *,
        after: int = 0,
        up_to: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> list[StoredReading]:
        """Return readings of a sensor in order of arrival.

        `after` and `up_to` limit arrival numbers (after < seq <= up_to), `start` and `end` times
        (start <= time < end).
        """
        rows = self._rows(
            READINGS,
            sensor=sensor,
            first_bucket=bucket_of(after),
            after=after,
            up_to=LATEST if up_to is None else up_to,
            start=EARLIEST if start is None else start,
            until=LATEST if end is None else end,
        )
        return [StoredReading(*row) for row in rows]

    def readings_after(self, after: int) -> Iterator[StoredReading]:
        """Yield the readings of all sensors after an arrival number, in any order."""
        with self._storage.reading() as session:
            last = number_fact(session, "last")
            after = max(after, number_fact(session, "first") - 1)
        for bucket in range(bucket_of(after), bucket_of(last) + 1):
            for row in self._rows(BUCKET_READINGS, bucket=bucket, after=after, up_to=last):
                yield StoredReading(*row)

    def newest_times(self, *, up_to: int, buckets: int) -> tuple[dict[int, int], int]:
        """Return the times of sensors' newest readings, and the latest time of unread readings.

        Readings after an arrival number, and held ones, do not count. Only the `buckets` buckets
        with the latest times are read.
        """
        latest = self._rows(LATEST_BUCKETS, last=bucket_of(up_to))
        newest: dict[int, int] = {}
        for bucket, _ in latest[:buckets]:
            for sensor, time in self._rows(NEWEST_TIMES, bucket=bucket, up_to=up_to):
                newest[sensor] = max(time, newest.get(sensor, time))
        return newest, max((time for _, time in latest[buckets:]), default=EARLIEST)

    def held(self) -> list[StoredReading]:
        """Return the held readings whose time has not come yet."""
        return [StoredReading(*row) for row in self._rows(HELD)]

    def actions(self, sensor: int, *, after: int = 0) -> list[Action]:
        """Return the actions on a sensor in order of arrival."""
        query = (
            "SELECT seq, sensor, kind, body, received FROM actions "
            "WHERE sensor = :sensor AND seq > :after ORDER BY seq"
        )
        return [Action(*row) for row in self._rows(query, sensor=sensor, after=after)]

    def refit_points(self, sensor: int) -> list[RefitPoint]:
        """Return the refit points of a sensor in order of arrival."""
        query = (
            "SELECT sensor, seq, until, kind, leftover FROM cuts "
            "WHERE sensor = :sensor ORDER BY number"
        )
        return [refit_point_of(row) for row in self._rows(query, sensor=sensor)]

    def snapshot(self, sensor: int) -> Snapshot | None:
        """Return the last snapshot of a sensor; raise a `DamagedError` if it is damaged."""
        rows = self._rows(SNAPSHOTS, first=sensor, most=1)
        return snapshot_of(rows[0]) if rows and rows[0][0] == sensor else None

    def summaries(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield sensor, arrival number and summary of every last snapshot."""
        query = (
            "SELECT sensor, seq, summary FROM snapshots "
            "WHERE sensor > :after ORDER BY sensor LIMIT :most"
        )
        after = -1
        while rows := self._rows(query, after=after, most=SUMMARIES):
            yield from rows
            after = rows[-1][0]

    def restarted(self) -> list[int]:
        """Return the sensors that were reset or declared anew since their last snapshot."""
        return [sensor for (sensor,) in self._rows(RESTARTED)]

    def tunings(self, sensor: int, *, start: int | None = None) -> list[tuple[RefitPoint, bytes]]:
        """Return the sensor's refit points in order of arrival, each with the tuning after it."""
        query = (
            "SELECT sensor, seq, until, kind, leftover, tuning FROM cuts "
            "WHERE sensor = :sensor AND until >= :start ORDER BY number"
        )
        start = EARLIEST if start is None else start
        rows = self._rows(query, sensor=sensor, start=start)
        return [(refit_point_of(row[:-1]), row[-1]) for row in rows]

    def forecasts(
        self,
        sensor: int | None = None,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
        corrected: bool = False,
    ) -> Iterator[IssuedForecast]:
        """Yield forecasts by arrival number, of one sensor or of all.

        `start` and `end` limit the time of the first step (start <= time < end). With `corrected`,
        forecasts are those after the corrections by other sensors, where there are any.
        """
        numbers = CORRECTED if corrected else OWN
        span: dict[str, SqlValue] = {
            "start": EARLIEST if start is None else start,
            "until": LATEST if end is None else end,
        }
        if sensor is not None:
            first = bucket_of(after)
            query = FORECASTS.format(*numbers)
            rows = self._rows(query, sensor=sensor, first_bucket=first, after=after, **span)
            yield from map(forecast_of, rows)
            return
        for (bucket,) in self._rows(FORECAST_BUCKETS, first_bucket=bucket_of(after), **span):
            query = BUCKET_FORECASTS.format(*numbers)
            rows = self._rows(query, bucket=bucket, after=after, **span)
            yield from map(forecast_of, rows)

    def groups(self) -> list[tuple[str, int]]:
        """Return the names of groups with steps, each with the length of its steps.

        All steps are read, so this is not for a start of the service.
        """
        return self._rows("SELECT DISTINCT name, step FROM group_steps ORDER BY name, step")

    def last_group_step(self, group: str, step: int) -> int | None:
        """Return the time of the last step of a group; None if it has none."""
        query = "SELECT max(time) FROM group_steps WHERE name = :name AND step = :step"
        last: int | None = self._rows(query, name=group, step=step)[0][0]
        return last

    def group_steps(
        self, group: str, step: int, *, after: int = EARLIEST, most: int = 1000
    ) -> list[GroupStep]:
        """Return the first steps of a group after a time."""
        rows = self._rows(GROUP_STEPS, name=group, step=step, after=after, most=most)
        return [group_step_of(row) for row in rows]

    def group_state(self, group: str, step: int) -> tuple[int, bytes] | None:
        """Return the last stored state of a group, after the time of its last step."""
        query = "SELECT time, state FROM group_states WHERE name = :name AND step = :step"
        rows = self._rows(query, name=group, step=step)
        return rows[0] if rows else None

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Return the newest events after a number, in order."""
        return [Event(*row) for row in self._rows(EVENTS, after=after, most=limit)]

    def tokens(self) -> list[Token]:
        """Return all tokens."""
        query = "SELECT id, name, digest, scopes, created, expires, revoked FROM tokens ORDER BY id"
        return [token_of(row) for row in self._rows(query)]

    def _rows(self, sql: str, **values: SqlValue) -> list[SqlRow]:
        with self._storage.reading() as session:
            return session.rows(sql, **values)


def arrivals(session: Session, first: int, last: int) -> list[StoredReading | Action]:
    """Return the readings and actions with arrival numbers from `first` to `last`, in order."""
    found: list[StoredReading | Action] = []
    for bucket in range(bucket_of(first), bucket_of(last) + 1):
        rows = session.rows(BUCKET_READINGS, bucket=bucket, after=first - 1, up_to=last)
        found += [StoredReading(*row) for row in rows]
    rows = session.rows(ACTIONS_BETWEEN, first=first, last=last)
    return sorted([*found, *(Action(*row) for row in rows)], key=attrgetter("seq"))
