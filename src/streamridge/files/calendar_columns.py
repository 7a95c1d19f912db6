"""Columns of a wide table that are no sensors: they hold one value, or a part of the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamridge.arrays import Vector
from streamridge.series.times import INDEX_END, Times

# The fewest values that show a column to be constant, or to follow the clock.
LEAST_VALUES = 48
CONSTANT = "one value throughout"
# Rows that are looked at first, spread over all.
SAMPLE = 64

_DAY, _HOUR = np.timedelta64(1, "D"), np.timedelta64(1, "h")


def _days(local: Times) -> Any:
    return local.astype("M8[D]").astype(np.int64)


_PARTS_OF_TIME: tuple[Callable[[Times], Any], ...] = (
    lambda local: (local - local.astype("M8[D]")) / _HOUR,
    lambda local: np.floor((local - local.astype("M8[D]")) / _HOUR),
    lambda local: (local - local.astype("M8[h]")) / _HOUR,
    lambda local: (_days(local) + 3) % 7,  # Monday is 0
    lambda local: (_days(local) + 4) % 7,  # Sunday is 0
    lambda local: ((_days(local) + 3) % 7 >= 5) + 0,  # whether it is a weekend
    lambda local: (local.astype("M8[D]") - local.astype("M8[M]")) / _DAY,
    lambda local: (local.astype("M8[D]") - local.astype("M8[Y]")) / _DAY,
    lambda local: local.astype("M8[M]").astype(np.int64) % 12,
    lambda local: local.astype("M8[Y]").astype(np.int64),
)


def reason_for_no_sensor(local: Times, values: Vector) -> str:
    """Return why a column is no sensor, empty if it may be one; `local` are its local times.

    >>> local = np.datetime64("2021-06-13", "us") + np.arange(96) * np.timedelta64(1, "h")
    >>> reason_for_no_sensor(local, 60.0 * (np.arange(96) % 24)), reason_for_no_sensor(
    ...     local, np.full(96, 3.0))
    ('it follows the clock', 'one value throughout, 3')
    """
    known = ~np.isnan(values)
    values, local = values[known], local[known]
    if len(values) < LEAST_VALUES:
        return ""
    if values.min() == values.max():
        return f"{CONSTANT}, {values[0]:g}"
    return "it follows the clock" if local[0] > INDEX_END and _is_calendar(local, values) else ""


def _is_calendar(local: Times, values: Vector) -> bool:
    """Return whether values are a part of the time, times a number and plus a number."""
    some = np.linspace(0, len(values) - 1, SAMPLE).astype(np.int64)
    return _is_row_number(values) or any(
        _is_affine(part(local[some]), values[some]) and _is_affine(part(local), values)
        for part in _PARTS_OF_TIME
    )


def _is_row_number(values: Vector) -> bool:
    """Return whether values count from 0 or 1; another straight line may be a sensor's."""
    return values[0] in (0, 1) and bool((np.diff(values) == 1).all())


def _is_affine(part: Any, values: Vector) -> bool:
    low, high = int(part.argmin()), int(part.argmax())
    rise = part[high] - part[low]
    if not rise:
        return False
    slope = (values[high] - values[low]) / rise
    off = np.abs(values - values[low] - slope * (part - part[low]))
    return bool(slope and off.max() <= 1e-9 * np.ptp(values))
