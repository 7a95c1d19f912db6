"""Checks of a whole storage: checksums, arrival numbers, spans and snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from streamridge.errors import counted
from streamridge_service.ledger.errors import DamagedError, StorageFailedError
from streamridge_service.ledger.layout import (
    bucket_ends,
    bucket_of,
    checksum_after,
    snapshot_of,
    unpacked_bands,
)
from streamridge_service.ledger.reading import SNAPSHOTS, arrivals, number_fact
from streamridge_service.ledger.records import EVERYONE, Action, StoredReading
from streamridge_service.ledger.schema import Session, SqlRow, Storage

# Spans of missing numbers that a sentence lists.
MOST_SPANS = 5
# Snapshots, of about 70 kB each, that are read at once.
MOST_SNAPSHOTS = 200

BUCKETS = """
SELECT max(bucket) FROM (
    SELECT max(bucket) AS bucket FROM {rows} UNION ALL SELECT max(bucket) FROM {spans}
) ends
"""
ELSEWHERE = """
SELECT seq FROM readings
WHERE bucket = :bucket AND (seq < :lowest OR seq > :highest) ORDER BY seq
"""
FORECASTS = """
SELECT seq, sensor, time, fit, numbers FROM forecasts WHERE bucket = :bucket ORDER BY seq, sensor
"""
FORECAST_SPAN = "SELECT first_time, last_time FROM forecast_buckets WHERE bucket = :bucket"
POINT_ORDER = """
SELECT sensor, seq, earlier FROM (
    SELECT sensor, seq, lag(seq) OVER (PARTITION BY sensor ORDER BY number) AS earlier FROM cuts
) pairs WHERE seq < earlier ORDER BY sensor, seq
"""
LOST_POINTS = """
SELECT p.sensor, p.seq FROM snapshots p LEFT JOIN cuts c
  ON c.sensor = p.sensor AND c.seq = p.seq AND c.until = p.until
WHERE c.number IS NULL ORDER BY p.sensor
"""


def find_faults(storage: Storage) -> Iterator[str]:
    """Yield a sentence for each fault of a storage; nothing if it is intact.

    All rows are read. The database's own check is one long transaction, during which the
    write-ahead log of a served storage grows. Check a backup of a large storage instead.
    """
    try:
        damage = list(storage.damage())
        # Rows on damaged pages may contain anything, so they are not checked.
        yield from damage or _row_faults(storage)
    except StorageFailedError as error:  # unreadable rows have no further faults
        yield str(error)


def _row_faults(storage: Storage) -> Iterator[str]:
    with storage.reading() as session:
        first, last = (bucket_of(number_fact(session, name)) for name in ("first", "last"))
        logged = _span(session, "readings", "buckets", first, last)
        issued = _span(session, "forecasts", "forecast_buckets", first)
    for bucket in logged:
        with storage.reading() as session:
            found = list(_bucket(session, bucket))
        yield from found
    for bucket in issued:
        with storage.reading() as session:
            found = list(_forecasts(session, bucket))
        yield from found
    with storage.reading() as session:
        found = list(_refit_points(session))
    yield from found
    yield from _snapshots(storage)


def _span(session: Session, rows: str, spans: str, first: int, last: int = -1) -> range:
    """Return the range of buckets that occur in two tables, from the first of the log on."""
    highest = session.rows(BUCKETS.format(rows=rows, spans=spans))[0][0]
    return range(first, max(last, -1 if highest is None else highest) + 1)


def _bucket(session: Session, bucket: int) -> Iterator[str]:
    """Yield the faults of the readings and actions of a bucket."""
    if _is_dropped(session, bucket):
        return
    first, last = bucket_ends(bucket)
    lowest = max(number_fact(session, "first"), first)
    highest = min(number_fact(session, "last"), last)
    arrived = arrivals(session, lowest, highest)
    found = Counter(one.seq for one in arrived)
    if found:
        yield from _numbers("missing", [n for n in range(lowest, highest + 1) if n not in found])
    elif lowest <= highest:
        yield f"arrival numbers {lowest} to {highest} are missing."
    yield from _numbers("stored twice", sorted(n for n, times in found.items() if times > 1))
    elsewhere = session.rows(ELSEWHERE, bucket=bucket, lowest=lowest, highest=highest)
    yield from _numbers("in the wrong bucket", [row[0] for row in elsewhere])
    named = {one.sensor for one in arrived} - {EVERYONE}
    yield from _unknown_sensors(session, named, bucket, "readings")
    if arrived:
        yield from _bucket_row(session, bucket, arrived)


def _is_dropped(session: Session, bucket: int) -> bool:
    """Return whether a pruning has dropped a bucket; rows may be left, until the next pruning."""
    return bucket < bucket_of(number_fact(session, "first"))


def _numbers(what: str, numbers: Sequence[int]) -> Iterator[str]:
    """Yield a sentence that lists spans of wrong arrival numbers."""
    if not numbers:
        return
    starts = [n for n, before in zip(numbers, (None, *numbers), strict=False) if n - 1 != before]
    ends = [n for n, after in zip(numbers, (*numbers[1:], None), strict=True) if n + 1 != after]
    spans = [
        str(start) if start == end else f"{start} to {end}"
        for start, end in zip(starts, ends, strict=True)
    ]
    more = (
        f" and {counted(len(spans) - MOST_SPANS, 'more span')}" if len(spans) > MOST_SPANS else ""
    )
    yield f"arrival numbers {', '.join(spans[:MOST_SPANS])}{more} are {what}."


def _unknown_sensors(session: Session, found: set[int], bucket: int, what: str) -> Iterator[str]:
    """Yield the sensors that have rows but are not declared."""
    known = {row[0] for row in session.rows("SELECT id FROM sensors")}
    for sensor in sorted(found - known):
        yield f"bucket {bucket} has {what} of sensor {sensor}, which is unknown."


def _bucket_row(
    session: Session, bucket: int, arrived: Sequence[StoredReading | Action]
) -> Iterator[str]:
    """Yield the faults of the span and the checksum of a bucket."""
    query = "SELECT first_time, last_time, checksum FROM buckets WHERE bucket = :bucket"
    rows = session.rows(query, bucket=bucket)
    if not rows:
        yield f"bucket {bucket} of readings is not listed."
        return
    *span, checksum = rows[0]
    times = [one.time for one in arrived if isinstance(one, StoredReading)]
    yield from _times(bucket, "readings", span, times)
    if checksum_after(0, arrived) != checksum:
        yield f"bucket {bucket} of readings is damaged: its checksum differs."


def _times(bucket: int, what: str, span: Sequence[Any], times: Sequence[int]) -> Iterator[str]:
    """Yield a sentence if times lie outside the span of their bucket."""
    first, last = span
    if times and (first is None or min(times) < first or max(times) > last):
        yield (
            f"bucket {bucket} of {what} is listed for times {first} to {last}, but has "
            f"{min(times)} to {max(times)}."
        )


def _forecasts(session: Session, bucket: int) -> Iterator[str]:
    """Yield the faults of a bucket of forecasts."""
    rows = session.rows(FORECASTS, bucket=bucket)
    if not rows or _is_dropped(session, bucket):
        return
    span = session.rows(FORECAST_SPAN, bucket=bucket)
    yield from _times(bucket, "forecasts", span[0] if span else (None, None), [r[2] for r in rows])
    yield from _unknown_sensors(session, {row[1] for row in rows}, bucket, "forecasts")
    last = number_fact(session, "last")
    wrong = [
        (seq, sensor)
        for seq, sensor, _, fit, numbers in rows
        if bucket_of(seq) != bucket or seq > last or fit > seq or not _in_order(numbers)
    ]
    if wrong:
        yield (
            f"bucket {bucket} has {counted(len(wrong), 'forecast')} with impossible numbers; "
            f"the first is at arrival number {wrong[0][0]}, of sensor {wrong[0][1]}."
        )


def _in_order(packed: bytes) -> bool:
    """Return whether the numbers of a forecast are finite and its values inside their bands."""
    if len(packed) % 24:
        return False
    return all(
        isfinite(lower) and isfinite(upper) and lower <= value <= upper
        for value, lower, upper in zip(*unpacked_bands(packed), strict=True)
    )


def _refit_points(session: Session) -> Iterator[str]:
    """Yield the faults of the order of refit points."""
    for sensor, seq, earlier in session.rows(POINT_ORDER):
        yield f"sensor {sensor} has a refit point at arrival number {seq} after one at {earlier}."
    for sensor, seq in session.rows(LOST_POINTS):
        yield f"sensor {sensor} has a snapshot at arrival number {seq} without a refit point."


def _snapshots(storage: Storage) -> Iterator[str]:
    """Yield the faults of the sensors' snapshots."""
    first = 0
    while True:
        with storage.reading() as session:
            rows = session.rows(SNAPSHOTS, first=first, most=MOST_SNAPSHOTS)
            last = number_fact(session, "last")
        if not rows:
            return
        for row in rows:
            yield from _snapshot(row, last)
        first = rows[-1][0] + 1


def _snapshot(row: SqlRow, last: int) -> Iterator[str]:
    """Yield the faults of a sensor's snapshot."""
    try:
        point = snapshot_of(row).point
    except DamagedError as error:
        yield str(error)
        return
    if point.seq > last:
        yield f"sensor {point.sensor} has a snapshot at arrival number {point.seq}, after the last."
