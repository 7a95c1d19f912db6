"""Pruning: whole buckets of old readings and forecasts are deleted, the oldest first.

A bucket is dropped in one short transaction: its span is deleted, and the first arrival number
moves behind it. Its rows then belong to no query any more, and are deleted in small transactions.
A pruning that was interrupted is continued by the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from streamridge_service.ledger.layout import bucket_ends, bucket_of, numbers_of
from streamridge_service.ledger.reading import number_fact
from streamridge_service.ledger.schema import REPLACE_FACT, Session, Storage

# Rows that one transaction deletes.
MOST_ROWS, MOST_STEPS = 10_000, 500
# Tables with rows of buckets, and those that are counted.
TABLES, COUNTED = ("readings", "forecasts", "corrections"), ("readings", "forecasts")

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
RECENT = """
SELECT r.seq FROM buckets b CROSS JOIN readings r
WHERE b.last_time >= :before AND r.bucket = b.bucket AND r.sensor = :sensor AND r.time >= :before
LIMIT 1
"""
OLD_STEPS = "SELECT seq FROM group_steps WHERE seq < :first ORDER BY seq LIMIT :most"
LAST_ROW = """
SELECT sensor, seq FROM {table} WHERE bucket = :bucket
ORDER BY sensor, seq LIMIT 1 OFFSET :skipped
"""


def prune(storage: Storage, before: int) -> dict[str, int]:
    """Delete old buckets; see `Ledger.prune`."""
    counts: Counter[str] = Counter()
    while True:
        while deleted := delete_dropped(storage):
            counts.update(deleted)
        bucket = prunable_bucket(storage, before)
        if bucket is None:
            break
        drop_bucket(storage, bucket)
        counts["buckets"] += 1
    with storage.reading() as session:
        needed = len(list(_old(session, before)))
    return {**{name: counts[name] for name in ("buckets", *COUNTED)}, "needed": needed}


def prunable_bucket(storage: Storage, before: int) -> int | None:
    """Return the oldest bucket if all of its times are old and no forecaster needs it."""
    with storage.reading() as session:
        bucket = next(_old(session, before), None)
        if bucket is None or _is_needed(session, bucket, before):
            return None
        return bucket


def drop_bucket(storage: Storage, bucket: int) -> None:
    """Take the oldest bucket out of the log; its rows are deleted by `delete_dropped`."""
    with storage.writing() as session:
        for table in ("buckets", "forecast_buckets"):
            session.run(f"DELETE FROM {table} WHERE bucket = :bucket", bucket=bucket)
        session.add("meta", [("first", str(bucket_ends(bucket)[1] + 1))], REPLACE_FACT)


def delete_dropped(storage: Storage) -> dict[str, int]:
    """Delete some rows of dropped buckets; return their number by table, empty if none is left."""
    with storage.writing() as session:
        first = bucket_of(number_fact(session, "first"))
        for table in TABLES:
            bucket = session.rows(f"SELECT min(bucket) FROM {table}")[0][0]
            if bucket is not None and bucket < first:
                return {table: _delete_some(session, table, bucket)}
        steps = session.rows(OLD_STEPS, first=bucket_ends(first)[0], most=MOST_STEPS)
        if steps:
            last = steps[-1][0]
            return {"group_steps": session.run("DELETE FROM group_steps WHERE seq <= :s", s=last)}
    return {}


def _delete_some(session: Session, table: str, bucket: int) -> int:
    """Delete the first rows of a bucket; return their number."""
    statement = f"DELETE FROM {table} WHERE bucket = :bucket"
    last = session.rows(LAST_ROW.format(table=table), bucket=bucket, skipped=MOST_ROWS - 1)
    if not last:
        return session.run(statement, bucket=bucket)
    sensor, seq = last[0]
    statement += " AND (sensor, seq) <= (:sensor, :seq)"
    return session.run(statement, bucket=bucket, sensor=sensor, seq=seq)


def _old(session: Session, before: int) -> Iterator[int]:
    """Yield the oldest buckets, up to the first that has a recent time."""
    current = bucket_of(number_fact(session, "last"))
    for bucket, *times in session.rows(SPANS, current=current):
        if any(time is not None and time >= before for time in times):
            return
        yield bucket


def _is_needed(session: Session, bucket: int, before: int) -> bool:
    """Return whether a forecaster needs a reading of a bucket."""
    leftovers = session.rows(LEFTOVERS, nothing=b"[]")
    if any(bucket_of(seq) == bucket for (unused,) in leftovers for seq in numbers_of(unused)):
        return True
    if session.rows(AFTER_SNAPSHOTS, bucket=bucket):
        return True
    new_sensors = session.rows(WITHOUT_SNAPSHOT, bucket=bucket)
    return any(session.rows(RECENT, sensor=sensor, before=before) for (sensor,) in new_sensors)
