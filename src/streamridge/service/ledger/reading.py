"""The reading half of a ledger: each query is short, and long answers come bucket by bucket.

So no reader keeps the log from being folded in, however slowly its answer is used.
"""

# ruff: noqa: D102 - the contract stands in base.py

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from streamridge.service.ledger.base import StorageFailedError
from streamridge.service.ledger.layout import (
    bucket_of,
    cut_of,
    forecast_of,
    snapshot_of,
    token_of,
)
from streamridge.service.ledger.records import (
    Action,
    Cut,
    Entry,
    Event,
    Issued,
    SensorRow,
    Snapshot,
    Token,
)
from streamridge.service.ledger.sessions import Row, Session, Storage, Value

# Before and after all times and arrival numbers; whole numbers of 64 bits.
EARLIEST, LATEST = -(2**63), 2**63 - 1
# So many summaries are read at once.
SUMMARIES = 5000

# A CROSS JOIN keeps SQLite from beginning with the readings.
ENTRIES = """
SELECT r.seq, r.sensor, r.time, r.value, r.received, r.kind
FROM buckets b CROSS JOIN readings r
WHERE b.bucket >= :first_bucket AND b.last_time >= :start AND b.first_time < :until
  AND r.bucket = b.bucket AND r.sensor = :sensor
  AND r.seq > :after AND r.seq <= :up_to AND r.time >= :start AND r.time < :until
ORDER BY b.bucket, r.seq
"""
BUCKET_ENTRIES = """
SELECT seq, sensor, time, value, received, kind FROM readings
WHERE bucket = :bucket AND seq > :after AND seq <= :up_to
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
FORECASTS = """
SELECT f.seq, f.sensor, f.time, f.fit, f.source, f.numbers
FROM forecast_buckets b CROSS JOIN forecasts f
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
SELECT seq, sensor, time, fit, source, numbers FROM forecasts
WHERE bucket = :bucket AND seq > :after AND time >= :start AND time < :until
ORDER BY seq, sensor
"""
SNAPSHOTS = """
SELECT p.sensor, p.seq, p.until, p.kind, p.leftover, p.summary, p.tuning, p.fingerprint, p.digest,
       s.state
FROM snapshots p LEFT JOIN states s ON s.sensor = p.sensor
WHERE p.sensor >= :first ORDER BY p.sensor LIMIT :most
"""
EVENTS = """
SELECT id, at, kind, sensor, reason FROM (
    SELECT id, at, kind, sensor, reason FROM events WHERE id > :after ORDER BY id DESC LIMIT :most
) newest ORDER BY id
"""


def fact(session: Session, key: str) -> int:
    """Return a whole number out of the facts."""
    rows = session.rows("SELECT value FROM meta WHERE key = :key", key=key)
    if not rows or not rows[0][0].isdecimal():
        raise StorageFailedError(
            f"the storage is damaged: {key} must be a whole number, got {rows}. Get a backup by "
            "`streamridge restore`."
        )
    return int(rows[0][0])


class Reading:
    """The part of a ledger that reads.

    Parameters
    ----------
    storage
        The database; it is closed with the ledger.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def facts(self) -> dict[str, str]:
        return dict(self._rows("SELECT key, value FROM meta ORDER BY key"))

    def last(self) -> int:
        with self._storage.reading() as session:
            return fact(session, "last")

    def done(self) -> int:
        with self._storage.reading() as session:
            return fact(session, "done")

    def sensors(self) -> list[SensorRow]:
        rows = self._rows("SELECT id, name, created, declared, archived FROM sensors ORDER BY id")
        return [SensorRow(*row) for row in rows]

    def entries(
        self,
        sensor: int,
        *,
        after: int = 0,
        up_to: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> list[Entry]:
        rows = self._rows(
            ENTRIES,
            sensor=sensor,
            first_bucket=bucket_of(after),
            after=after,
            up_to=LATEST if up_to is None else up_to,
            start=EARLIEST if start is None else start,
            until=LATEST if end is None else end,
        )
        return [Entry(*row) for row in rows]

    def recent(self, after: int) -> Iterator[Entry]:
        last = self.last()
        for bucket in range(bucket_of(after), bucket_of(last) + 1):
            for row in self._rows(BUCKET_ENTRIES, bucket=bucket, after=after, up_to=last):
                yield Entry(*row)

    def held(self) -> list[Entry]:
        return [Entry(*row) for row in self._rows(HELD)]

    def actions(self, sensor: int, *, after: int = 0) -> list[Action]:
        query = (
            "SELECT seq, sensor, kind, body, received FROM actions "
            "WHERE sensor = :sensor AND seq > :after ORDER BY seq"
        )
        return [Action(*row) for row in self._rows(query, sensor=sensor, after=after)]

    def cuts(self, sensor: int) -> list[Cut]:
        query = (
            "SELECT sensor, seq, until, kind, leftover FROM cuts "
            "WHERE sensor = :sensor ORDER BY number"
        )
        return [cut_of(row) for row in self._rows(query, sensor=sensor)]

    def snapshot(self, sensor: int) -> Snapshot | None:
        rows = self._rows(SNAPSHOTS, first=sensor, most=1)
        return snapshot_of(rows[0]) if rows and rows[0][0] == sensor else None

    def summaries(self) -> Iterator[tuple[int, int, bytes]]:
        query = (
            "SELECT sensor, seq, summary FROM snapshots "
            "WHERE sensor > :after ORDER BY sensor LIMIT :most"
        )
        after = -1
        while rows := self._rows(query, after=after, most=SUMMARIES):
            yield from rows
            after = rows[-1][0]

    def tunings(self, sensor: int, *, start: int | None = None) -> list[tuple[int, bytes]]:
        query = (
            "SELECT until, tuning FROM cuts WHERE sensor = :sensor AND until >= :start "
            "ORDER BY number"
        )
        start = EARLIEST if start is None else start
        return [(until, tuning) for until, tuning in self._rows(query, sensor=sensor, start=start)]

    def forecasts(
        self,
        sensor: int | None = None,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
    ) -> Iterator[Issued]:
        span: dict[str, Value] = {
            "start": EARLIEST if start is None else start,
            "until": LATEST if end is None else end,
        }
        if sensor is not None:
            first = bucket_of(after)
            rows = self._rows(FORECASTS, sensor=sensor, first_bucket=first, after=after, **span)
            yield from map(forecast_of, rows)
            return
        for (bucket,) in self._rows(FORECAST_BUCKETS, first_bucket=bucket_of(after), **span):
            rows = self._rows(BUCKET_FORECASTS, bucket=bucket, after=after, **span)
            yield from map(forecast_of, rows)

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return [Event(*row) for row in self._rows(EVENTS, after=after, most=limit)]

    def tokens(self) -> list[Token]:
        query = "SELECT id, name, digest, scopes, created, expires, revoked FROM tokens ORDER BY id"
        return [token_of(row) for row in self._rows(query)]

    def _rows(self, sql: str, **values: Value) -> list[Row]:
        with self._storage.reading() as session:
            return session.rows(sql, **values)


def arrivals(session: Session, first: int, last: int) -> list[Entry | Action]:
    """Return all readings and actions from one arrival number to another, in order."""
    found: list[Entry | Action] = []
    for bucket in range(bucket_of(first), bucket_of(last) + 1):
        rows = session.rows(BUCKET_ENTRIES, bucket=bucket, after=first - 1, up_to=last)
        found += [Entry(*row) for row in rows]
    rows = session.rows(ACTIONS_BETWEEN, first=first, last=last)
    return sorted([*found, *(Action(*row) for row in rows)], key=attrgetter("seq"))
