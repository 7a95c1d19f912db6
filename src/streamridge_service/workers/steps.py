"""From stored readings to steps: the order of processing, and the value of a step.

The order is a function of the log alone. Within the grace, steps are processed in the order of
their times, whatever their order of arrival. Later readings are processed where they arrived.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

import numpy as np

from streamridge_service.ledger.records import Action, Kind, StoredReading
from streamridge_service.ledger.revisions import counting_readings
from streamridge_service.plan import Plan

LogItem = StoredReading | Action
# Within one step, values that fill in for null come first, then other readings, late readings,
# and actions.
FILL, ON_TIME, LATE, ACTION = range(4)


def in_order(items: Iterable[LogItem], newest: int, plan: Plan) -> list[LogItem]:
    """Return readings and actions in the order in which they are processed.

    `items` belong to one sensor, in order of arrival. `newest` is the time of the newest step
    before. `plan` is the sensor's own.
    """
    keys = {}
    for item in items:
        if isinstance(item, Action):
            keys[item.seq] = newest, ACTION, item.seq
            continue
        step = plan.step_of(item.time)
        if is_late(item, step, newest, plan):
            keys[item.seq] = newest, LATE, item.seq
        else:
            keys[item.seq] = step, FILL if fills_step(item, plan) else ON_TIME, item.seq
            newest = max(newest, step)
    return sorted(items, key=lambda item: keys[item.seq])


def is_late(reading: StoredReading, step: int, newest: int, plan: Plan) -> bool:
    """Return whether a reading is not processed at its step: it is too late, or not live."""
    return not reading.is_live or newest - step > plan.open_for


def fills_step(reading: StoredReading, plan: Plan) -> bool:
    """Return whether a reading is the value of a step that was null."""
    return reading.kind == Kind.FILL and plan.rule is None


def combined_value(readings: list[StoredReading], rule: str | None) -> float | None:
    """Return the value of a step from its readings, whatever their order of arrival.

    Examples
    --------
    >>> two = [StoredReading(1, 1, time=5, value=2.0, received=0), StoredReading(2, 1, 0, 1.0, 0)]
    >>> combined_value(two, "last"), combined_value(two, "sum"), combined_value(two, "mean")
    (2.0, 3.0, 1.5)
    """
    known = [(reading.time, reading.value) for reading in readings if reading.value is not None]
    if not known:
        return None
    if rule == "last":
        return max(known)[1]
    total = fsum(value for _, value in known)
    return total / len(known) if rule == "mean" else total


def step_values(readings: list[StoredReading], plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of steps in order, and their values, NaN for missing ones."""
    by_step: dict[int, list[StoredReading]] = {}
    for reading in counting_readings(readings, plan).values():
        by_step.setdefault(plan.step_of(reading.time), []).append(reading)
    steps = sorted(by_step)
    found = [combined_value(by_step[step], plan.rule or "last") for step in steps]
    values = np.array([np.nan if value is None else value for value in found], dtype=np.float64)
    return np.array(steps, dtype=np.int64).astype("M8[us]"), values
