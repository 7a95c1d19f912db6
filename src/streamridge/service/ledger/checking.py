"""What is wrong with a storage, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from streamridge.service.ledger.base import BUCKET, DamagedError, StorageFailedError
from streamridge.service.ledger.layout import bucket_of, checksum_after, snapshot_of, thirds
from streamridge.service.ledger.reading import SNAPSHOTS, arrivals, fact
from streamridge.service.ledger.records import Action, Entry
from streamridge.service.ledger.sessions import Row, Session, Storage
from streamridge.texts import counted

# So many spans of missing numbers are named.
MOST_SPANS = 5
# So many snapshots, of some 70 kB each, are read at once.
MOST_SNAPSHOTS = 200

BUCKETS = """
SELECT min(bucket), max(bucket) FROM (
    SELECT min(bucket) AS bucket FROM {rows} UNION ALL SELECT max(bucket) FROM {rows}
    UNION ALL SELECT min(bucket) FROM {spans} UNION ALL SELECT max(bucket) FROM {spans}
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
CUT_ORDER = """
SELECT sensor, seq, earlier FROM (
    SELECT sensor, seq, lag(seq) OVER (PARTITION BY sensor ORDER BY number) AS earlier FROM cuts
) pairs WHERE seq < earlier ORDER BY sensor, seq
"""
LOST_CUTS = """
SELECT p.sensor, p.seq FROM snapshots p LEFT JOIN cuts c
  ON c.sensor = p.sensor AND c.seq = p.seq AND c.until = p.until
WHERE c.number IS NULL ORDER BY p.sensor
"""


def findings(storage: Storage) -> Iterator[str]:
    """Return what is wrong with a storage; nothing if it is sound.

    It reads everything. The database's own check is one long read, behind which the log of a
    storage that is being served grows: better to check a backup of a large one.
    """
    try:
        damage = list(storage.damage())
        # Rows on damaged pages can be anything.
        yield from damage or _all_findings(storage)
    except StorageFailedError as error:  # what cannot be read has no further findings
        yield str(error)


def _all_findings(storage: Storage) -> Iterator[str]:
    with storage.reading() as session:
        ends = fact(session, "first"), fact(session, "last")
        logged = _span(session, "readings", "buckets", *map(bucket_of, ends))
        issued = _span(session, "forecasts", "forecast_buckets")
    for bucket in logged:
        with storage.reading() as session:
            found = list(_bucket(session, bucket))
        yield from found
    for bucket in issued:
        with storage.reading() as session:
            found = list(_forecasts(session, bucket))
        yield from found
    with storage.reading() as session:
        found = list(_cuts(session))
    yield from found
    yield from _snapshots(storage)


def _span(session: Session, rows: str, spans: str, *more: int) -> range:
    """Return all buckets between the first and the last that there are in two tables."""
    ends = session.rows(BUCKETS.format(rows=rows, spans=spans))[0]
    buckets = [bucket for bucket in (*ends, *more) if bucket is not None]
    return range(min(buckets), max(buckets) + 1) if buckets else range(0)


def _bucket(session: Session, bucket: int) -> Iterator[str]:
    """Return what is wrong with what arrived in a bucket."""
    lowest = max(fact(session, "first"), bucket * BUCKET)
    highest = min(fact(session, "last"), (bucket + 1) * BUCKET - 1)
    arrived = arrivals(session, lowest, highest)
    found = Counter(one.seq for one in arrived)
    if found:
        yield from _numbers("missing", [n for n in range(lowest, highest + 1) if n not in found])
    elif lowest <= highest:
        yield f"arrival numbers {lowest} to {highest} are missing."
    yield from _numbers("there twice", sorted(n for n, times in found.items() if times > 1))
    elsewhere = session.rows(ELSEWHERE, bucket=bucket, lowest=lowest, highest=highest)
    yield from _numbers("in a bucket that is not theirs", [row[0] for row in elsewhere])
    yield from _unknown_sensors(session, {one.sensor for one in arrived}, bucket, "readings")
    if arrived:
        yield from _bucket_row(session, bucket, arrived)


def _numbers(what: str, numbers: Sequence[int]) -> Iterator[str]:
    """Return in words which arrival numbers are wrong, as spans."""
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
    """Return which sensors there are rows of, though nobody knows them."""
    known = {row[0] for row in session.rows("SELECT id FROM sensors")}
    for sensor in sorted(found - known):
        yield f"bucket {bucket} has {what} of sensor {sensor}, which is not known."


def _bucket_row(session: Session, bucket: int, arrived: Sequence[Entry | Action]) -> Iterator[str]:
    """Return what is wrong with what is said of a bucket."""
    query = "SELECT first_time, last_time, checksum FROM buckets WHERE bucket = :bucket"
    rows = session.rows(query, bucket=bucket)
    if not rows:
        yield f"bucket {bucket} of readings is not listed."
        return
    *span, checksum = rows[0]
    times = [one.time for one in arrived if isinstance(one, Entry)]
    yield from _times(bucket, "readings", span, times)
    if checksum_after(0, arrived) != checksum:
        yield f"bucket {bucket} of readings is not what was stored: its checksum differs."


def _times(bucket: int, what: str, span: Sequence[Any], times: Sequence[int]) -> Iterator[str]:
    """Return whether times are outside the span that is said to hold them."""
    first, last = span
    if times and (first is None or min(times) < first or max(times) > last):
        yield (
            f"bucket {bucket} of {what} is listed for times {first} to {last}, and has "
            f"{min(times)} to {max(times)}."
        )


def _forecasts(session: Session, bucket: int) -> Iterator[str]:
    """Return what is wrong with a bucket of forecasts."""
    rows = session.rows(FORECASTS, bucket=bucket)
    if not rows:
        return
    span = session.rows(FORECAST_SPAN, bucket=bucket)
    yield from _times(bucket, "forecasts", span[0] if span else (None, None), [r[2] for r in rows])
    yield from _unknown_sensors(session, {row[1] for row in rows}, bucket, "forecasts")
    last = fact(session, "last")
    wrong = [
        (seq, sensor)
        for seq, sensor, _, fit, numbers in rows
        if bucket_of(seq) != bucket or seq > last or fit > seq or not _in_order(numbers)
    ]
    if wrong:
        yield (
            f"bucket {bucket} has {counted(len(wrong), 'forecast')} whose numbers cannot be right; "
            f"the first is at arrival number {wrong[0][0]}, of sensor {wrong[0][1]}."
        )


def _in_order(packed: bytes) -> bool:
    """Return whether the numbers of a forecast are finite, and its values inside their bands."""
    if len(packed) % 24:
        return False
    return all(
        isfinite(lower) and isfinite(upper) and lower <= value <= upper
        for value, lower, upper in zip(*thirds(packed), strict=True)
    )


def _cuts(session: Session) -> Iterator[str]:
    """Return what is wrong with the order of cuts."""
    for sensor, seq, earlier in session.rows(CUT_ORDER):
        yield f"sensor {sensor} has a cut at arrival number {seq} after one at {earlier}."
    for sensor, seq in session.rows(LOST_CUTS):
        yield f"sensor {sensor} has a snapshot at arrival number {seq} without a cut."


def _snapshots(storage: Storage) -> Iterator[str]:
    """Return what is wrong with the last snapshots of the sensors."""
    first = 0
    while True:
        with storage.reading() as session:
            rows = session.rows(SNAPSHOTS, first=first, most=MOST_SNAPSHOTS)
            last = fact(session, "last")
        if not rows:
            return
        for row in rows:
            yield from _snapshot(row, last)
        first = rows[-1][0] + 1


def _snapshot(row: Row, last: int) -> Iterator[str]:
    """Return what is wrong with the last snapshot of a sensor."""
    try:
        cut = snapshot_of(row).cut
    except DamagedError as error:
        yield str(error)
        return
    if cut.seq > last:
        yield f"sensor {cut.sensor} has a snapshot at arrival number {cut.seq}, after the last."
