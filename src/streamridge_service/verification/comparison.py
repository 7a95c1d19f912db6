"""Comparison of stored and replayed data: bit for bit, or within a tolerance for rounding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from streamridge import state_content
from streamridge_service.ledger.records import IssuedForecast, Snapshot, StoredReading
from streamridge_service.verification.log_replay import SensorLog, forecasts_since

# The relative difference of numbers from another processor or from other numerical libraries.
TOLERANCE = 1e-9


def nearly_equal(one: bytes, other: bytes) -> bool:
    """Return whether two JSON texts are equal within the tolerance.

    Examples
    --------
    >>> nearly_equal(b'{"rate": 1.0}', b'{"rate": 1.0000000000001}')
    True
    """
    if one == other:
        return True
    return _near(msgspec.json.decode(one), msgspec.json.decode(other))


def nearly_equal_states(one: bytes, other: bytes) -> bool:
    """Return whether two states of a forecaster are equal within the tolerance."""
    if one == other:
        return True
    (header, arrays), (other_header, others) = state_content(one), state_content(other)
    if arrays.keys() != others.keys() or not _near(header, other_header):
        return False
    return all(_near_arrays(arrays[name], others[name]) for name in arrays)


def nearly_equal_forecasts(one: IssuedForecast, other: IssuedForecast) -> bool:
    """Return whether two forecasts are equal within the tolerance."""
    fields, others = (
        (each.seq, each.sensor, each.time, each.fit, each.source) for each in (one, other)
    )
    numbers = ([*each.values, *each.lower, *each.upper] for each in (one, other))
    return fields == others and _near_arrays(*map(np.array, numbers))


def _near(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_near, one, other))
    if _is_number(one) and _is_number(other):
        return abs(one - other) <= TOLERANCE * max(abs(one), abs(other), TOLERANCE)
    return bool(one == other)


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _near_arrays(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Return whether two arrays are equal within the tolerance, relative to their largest value."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    scale = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return bool(np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True))


def forecast_fault(
    log: SensorLog,
    stored: Sequence[IssuedForecast],
    done: int,
    snapshots: Sequence[Snapshot],
    *,
    exact: bool,
) -> str | None:
    """Return the first fault of a sensor's forecasts.

    Forecasts of all readings up to the arrival number `done` must be stored. `snapshots` are the
    replayed snapshots of all refit points. With `exact`, forecasts must be equal bit for bit.
    """
    by_fit: dict[int, list[IssuedForecast]] = defaultdict(list)
    for each in stored:
        by_fit[each.fit].append(each)
    known = {each.seq for each in stored}
    ends = [*(each.point.seq for each in snapshots), done]
    fits = [
        _ReplayedFit(log, fit, end, exact)
        for fit, end in zip([None, *snapshots], ends, strict=True)
    ]
    # Forecasts do not tell fits of the same arrival number apart.
    for number, alike in groupby(fits, key=lambda fit: fit.number):
        group = by_fit.pop(number, [])
        faults = [fit.fault(group, known) for fit in alike]
        if None not in faults:
            return faults[-1]
    for number, group in by_fit.items():
        return (
            f"its forecast at arrival number {group[0].seq} names the fit {number}, which is not "
            "in its log."
        )
    return None


@dataclass(frozen=True)
class _ReplayedFit:
    """One fit, whose forecasts are replayed."""

    log: SensorLog
    snapshot: Snapshot | None
    # No forecast may be missing up to this arrival number.
    end: int
    exact: bool

    @property
    def number(self) -> int:
        """Return the number by which forecasts refer to this fit."""
        return 0 if self.snapshot is None else self.snapshot.point.seq

    def fault(self, group: Sequence[IssuedForecast], known: set[int]) -> str | None:
        """Return the first fault of the forecasts of this fit."""
        replayed = self._replayed(max([self.end, *(each.seq for each in group)]))
        for each in group:
            if not self._is_same(each, replayed.get(each.seq)) and not self._was_same(each):
                return f"its forecast at arrival number {each.seq} differs from the replayed one."
        missing = [seq for seq in replayed if self.number < seq <= self.end and seq not in known]
        if missing:
            return f"its forecast at arrival number {min(missing)} is missing."
        return None

    def _replayed(self, up_to: int) -> dict[int, IssuedForecast]:
        """Return forecasts by arrival number, each with the declaration and plan of its time."""
        changes = [action.seq - 1 for action in self.log.changes if action.seq <= up_to]
        replayed: dict[int, IssuedForecast] = {}
        for end in (*changes, up_to):
            for each in forecasts_since(self.log, self.snapshot, end):
                replayed.setdefault(each.seq, each)
        return replayed

    def _is_same(self, stored: IssuedForecast, replayed: IssuedForecast | None) -> bool:
        if replayed is None or stored == replayed or self.exact:
            return stored == replayed
        return nearly_equal_forecasts(stored, replayed)

    def _was_same(self, stored: IssuedForecast) -> bool:
        """Return whether a forecast was right when it was issued, before earlier steps arrived."""
        return any(
            self._is_same(stored, self._replayed(end).get(stored.seq))
            for end in (stored.seq, *self._later_readings_of_earlier_steps(stored.seq))
        )

    def _later_readings_of_earlier_steps(self, seq: int) -> list[int]:
        plan = self.log.plan_at(seq)
        steps = {
            item.seq: plan.step_of(item.time)
            for item in self.log.items
            if isinstance(item, StoredReading) and item.is_live
        }
        if seq not in steps:
            return []
        reach = steps[seq] - plan.open_for
        return [each for each, step in steps.items() if each > seq and reach <= step < steps[seq]]
