"""The stored readings that count, of several ones of the same time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from streamridge_service.ledger.reading import LedgerQueries
from streamridge_service.ledger.records import Kind, StoredReading
from streamridge_service.plan import Plan

# Steps whose readings are in memory at once, and steps between two keys that are read for nothing.
SPAN, GAP = 50_000, 100


def find_readings(
    ledger: LedgerQueries, sensor: int, plan: Plan, keys: Collection[int]
) -> dict[int, StoredReading]:
    """Return the stored readings of some keys that count, by key.

    A query reads all readings of the sensor in its buckets, so that one query for a span of near
    keys takes about as long as a query for one key.
    """
    found: dict[int, StoredReading] = {}
    for first, last in _spans(sorted(keys), plan.step):
        readings = readings_of_keys(ledger, sensor, plan, first, last)
        found |= counting_readings(
            (each for each in readings if plan.key_of(each.time) in keys), plan
        )
    return found


def readings_of_keys(
    ledger: LedgerQueries, sensor: int, plan: Plan, first: int, last: int
) -> list[StoredReading]:
    """Return the stored readings from one key to another, without held ones."""
    start, end = (first, last + 1) if plan.rule else plan.times_of(first, last + 1)
    found = ledger.readings(sensor, start=start, end=end)
    return [each for each in found if each.kind != Kind.HELD]


def _spans(keys: Sequence[int], step: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last key of spans that cover sorted keys, without wide gaps."""
    first = last = keys[0]
    for key in keys:
        if key - first > SPAN * step or key - last > GAP * step:
            yield first, last
            first = key
        last = key
    yield first, last


def counting_readings(readings: Iterable[StoredReading], plan: Plan) -> dict[int, StoredReading]:
    """Return the readings that count by their key: the step without a rule, else the time.

    `readings` belong to one sensor, in order of arrival, without held ones. The first value of a
    time counts until a revision replaces it. Null counts only if there is no value.

    Without a rule, logs of earlier versions may have values of several times about one step. The
    latest time counts then, as it always did.

    Examples
    --------
    >>> null, value = (StoredReading(seq, 1, 0, each, 0) for seq, each in [(1, None), (2, 5.0)])
    >>> [counting_readings(log, Plan(60))[0].value for log in ([null, value], [value, null])]
    [5.0, 5.0]
    """
    by_time: dict[int, StoredReading] = {}
    for reading in readings:
        known = by_time.get(reading.time)
        if known is None or known.value is None or reading.kind == Kind.REVISION:
            by_time[reading.time] = reading
    if plan.rule is not None:
        return by_time
    by_step: dict[int, StoredReading] = {}
    for time, reading in by_time.items():
        step = plan.step_of(time)
        if step not in by_step or _is_better(reading, by_step[step]):
            by_step[step] = reading
    return by_step


def _is_better(reading: StoredReading, known: StoredReading) -> bool:
    """Return whether a reading of the same step counts instead of another one."""
    if reading.value is None or known.value is None:
        return reading.value is not None
    return reading.time > known.time
