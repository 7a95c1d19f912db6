"""Readings to a regular series: no reading moves silently, and every problem is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask, require_one_of
from streamridge.errors import InvalidInputError
from streamridge.series.arrivals import arrivals, first_days
from streamridge.series.clock import Length, Times
from streamridge.series.local_time import Fold, to_utc
from streamridge.series.placing import regular
from streamridge.series.readings import Aggregate, Readings, require_kind
from streamridge.series.series import Series, span_text
from streamridge.series.writing import Writing
from streamridge.texts import option


def to_series(
    readings: Readings,
    *,
    step: Length | None = None,
    zone: ZoneInfo | None = None,
    fold: Fold = "infer",
    aggregate: Aggregate | None = None,
    skip: bool = False,
    first: np.datetime64 | None = None,
    last: np.datetime64 | None = None,
    arrival_order: bool = False,
) -> Series:
    """Return the readings of a sensor on a regular grid, from its first value to its last.

    Parameters
    ----------
    readings
        In any order.
    step
        The step of the series; found from the readings by default. Months, whose lengths differ,
        are placed in steps of a twelfth of a year, none lost and none double; so they are if the
        step asked for is 28 to 31 days. A step may be a whole number if times are.
    zone
        The time zone of stamps without an offset, and of the sensor's days.
    fold
        See `to_utc`.
    aggregate
        How finer readings become the value of a step; by default as their source says.
    skip
        Whether to leave out local times that do not exist, instead of raising an error.
    first, last
        The first and the last time to take; in UTC if there is a zone.
    arrival_order
        Whether readings arrived in the order given, as in a live stream. Then the step is found
        from the first days alone, and the series says when each value was known. By default the
        step is found from all readings, and those out of order count as if they came in time.
    """
    require_one_of("fold", fold, get_args(Fold))
    require_one_of("aggregate", aggregate, (None, *get_args(Aggregate)))
    for end in (first, last):
        require_kind(readings.sensor, end, indexed=readings.indexed)
    times, exists = _in_utc(readings, zone, fold, skip)
    within = _between(times, first, last)
    within &= _around_values(times, within & exists & ~np.isnan(readings.values))
    kept = exists & within
    times = times[kept]
    if not len(times):
        raise InvalidInputError(
            f"{readings.sensor}: readings{span_text(first, last)} must hold at least one value, "
            "got none."
        )
    columns = {name: column[kept] for name, column in readings.extras.items()}
    taken = replace(readings, times=times, values=readings.values[kept], extras=columns)
    if arrival_order and step is None:
        step = regular(first_days(taken), None, zone, None).clock.step
    series = regular(taken, step, zone, aggregate or readings.aggregate)
    counts = replace(
        series.counts,
        readings=int(within.sum()),
        skipped=readings.skipped,
        imputed=readings.imputed,
        nonexistent=int((within & ~exists).sum()),
        missing=int(np.isnan(series.values).sum()),
    )
    known_at = arrivals(series, taken) if arrival_order else None
    writing = _writing(readings, times, zone)
    return replace(series, counts=counts, writing=writing, known_at=known_at)


def _writing(readings: Readings, times: Times, zone: ZoneInfo | None) -> Writing:
    """Return how the times of a series are written: as those of its readings were."""
    written = readings.writing
    if zone is None or readings.indexed:
        return written
    if not written.zoned:
        return replace(written, zone=zone.key)
    # Offsets that change with the seasons name no zone; the zone that was given may be theirs.
    local = replace(written, zone=zone.key, offsets=())
    changes = len(written.offsets) > 1 and (written.ahead(times) == local.ahead(times)).all()
    return local if changes else written


def _in_utc(
    readings: Readings, zone: ZoneInfo | None, fold: Fold, skip: bool
) -> tuple[Times, Mask]:
    """Return the times in UTC, and which of them exist."""
    if zone is None or readings.zoned or readings.indexed:
        return readings.times, np.ones(len(readings.times), dtype=bool)
    times, exists = to_utc(readings.times, zone, fold)
    wrong_times = readings.times[~exists & ~np.isnan(readings.values)]
    if len(wrong_times) and not skip:
        wrong = wrong_times[0].astype("M8[s]")
        raise InvalidInputError(
            f"{readings.sensor}: time must exist in {zone.key}, got {wrong}, which clocks skip "
            f"there. Pass {option('gap', 'skip')} to leave such readings out."
        )
    return times, exists


def _between(times: Times, first: np.datetime64 | None, last: np.datetime64 | None) -> Mask:
    within = np.ones(len(times), dtype=bool)
    if first is not None:
        within &= times >= first
    if last is not None:
        within &= times <= last
    return within


def _around_values(times: Times, known: Mask) -> Mask:
    """Return which times lie between the first and the last value: columns may end in blanks."""
    if not known.any():
        return np.zeros(len(times), dtype=bool)
    return _between(times, times[known].min(), times[known].max())
