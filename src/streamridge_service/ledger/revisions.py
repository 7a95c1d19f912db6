"""Which of several stored readings of one time counts."""

from __future__ import annotations

from collections.abc import Iterable

from streamridge_service.ledger.records import Kind, StoredReading
from streamridge_service.plan import Plan


def counting_readings(readings: Iterable[StoredReading], plan: Plan) -> dict[int, StoredReading]:
    """Return the readings that count by their key: the step without a rule, else the time.

    `readings` belong to one sensor, in order of arrival, without held ones. The first value counts
    until a revision replaces it; null never replaces a value.

    Without a rule, logs of earlier versions may have several values of one step. The value with
    the latest time counts then, as it always did.

    Examples
    --------
    >>> null, value = (StoredReading(seq, 1, 0, each, 0) for seq, each in [(1, None), (2, 5.0)])
    >>> [counting_readings(log, Plan(60))[0].value for log in ([null, value], [value, null])]
    [5.0, 5.0]
    """
    counting: dict[int, StoredReading] = {}
    for reading in readings:
        key = plan.key_of(reading.time)
        known = counting.get(key)
        if known is None or reading.kind == Kind.REVISION or _is_better(reading, known):
            counting[key] = reading
    return counting


def _is_better(reading: StoredReading, known: StoredReading) -> bool:
    """Return whether a reading that is no revision counts instead of an earlier one."""
    if reading.value is None or known.value is None:
        return known.value is None and reading.value is not None
    return known.kind != Kind.REVISION and reading.time > known.time
