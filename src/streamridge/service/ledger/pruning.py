"""Dropping what is old: whole buckets, the oldest first, but not what a forecaster still needs."""

from __future__ import annotations

from collections.abc import Iterator

from streamridge.service.ledger.base import BUCKET
from streamridge.service.ledger.layout import bucket_of, numbers_of
from streamridge.service.ledger.reading import fact
from streamridge.service.ledger.schema import REPLACE_FACT
from streamridge.service.ledger.sessions import Session, Storage

SPANS = """
SELECT b.bucket, b.last_time, f.last_time
FROM buckets b LEFT JOIN forecast_buckets f ON f.bucket = b.bucket
WHERE b.bucket < :current ORDER BY b.bucket
"""
LEFTOVERS = """
SELECT p.leftover FROM snapshots p JOIN sensors s ON s.id = p.sensor
WHERE s.archived IS NULL AND p.leftover <> :nothing
"""
AFTER_SNAPSHOTS = """
SELECT r.seq FROM readings r JOIN sensors s ON s.id = r.sensor JOIN snapshots p ON p.sensor = s.id
WHERE r.bucket = :bucket AND s.archived IS NULL AND r.seq > p.seq LIMIT 1
"""
WITHOUT_SNAPSHOT = """
SELECT DISTINCT r.sensor FROM readings r JOIN sensors s ON s.id = r.sensor
LEFT JOIN snapshots p ON p.sensor = s.id
WHERE r.bucket = :bucket AND s.archived IS NULL AND p.sensor IS NULL
"""
OF_LATE = """
SELECT r.seq FROM buckets b CROSS JOIN readings r
WHERE b.last_time >= :before AND r.bucket = b.bucket AND r.sensor = :sensor AND r.time >= :before
LIMIT 1
"""


def prune(storage: Storage, before: int) -> dict[str, int]:
    """Drop old buckets, as `Ledger.prune` says.

    Returns how many readings, forecasts and buckets were dropped, and how many buckets are as old
    but were kept, since a forecaster needs the first of them.
    """
    counts = {"readings": 0, "forecasts": 0, "buckets": 0}
    with storage.reading() as session:
        old = list(_old(session, before))
    for bucket in old:
        with storage.reading() as session:
            if _needed(session, bucket, before):
                break
        with storage.writing() as session:
            counts["readings"] += _delete(session, "readings", bucket)
            counts["forecasts"] += _delete(session, "forecasts", bucket)
            counts["buckets"] += _delete(session, "buckets", bucket)
            _delete(session, "forecast_buckets", bucket)
            session.add("meta", [("first", str((bucket + 1) * BUCKET))], REPLACE_FACT)
    return {**counts, "needed": len(old) - counts["buckets"]}


def _old(session: Session, before: int) -> Iterator[int]:
    """Return the oldest buckets, up to the first that holds anything of late."""
    current = bucket_of(fact(session, "last"))
    for bucket, *times in session.rows(SPANS, current=current):
        if any(time is not None and time >= before for time in times):
            return
        yield bucket


def _needed(session: Session, bucket: int, before: int) -> bool:
    """Return whether a forecaster needs anything of a bucket."""
    leftovers = session.rows(LEFTOVERS, nothing=b"[]")
    if any(bucket_of(seq) == bucket for (left,) in leftovers for seq in numbers_of(left)):
        return True
    if session.rows(AFTER_SNAPSHOTS, bucket=bucket):
        return True
    young = session.rows(WITHOUT_SNAPSHOT, bucket=bucket)
    return any(session.rows(OF_LATE, sensor=sensor, before=before) for (sensor,) in young)


def _delete(session: Session, table: str, bucket: int) -> int:
    return session.run(f"DELETE FROM {table} WHERE bucket = :bucket", bucket=bucket)
