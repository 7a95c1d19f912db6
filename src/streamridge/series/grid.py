"""Readings to a regular series: no reading moves silently, and every problem is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.errors import InvalidInputError
from streamridge.series.aggregate import coarser
from streamridge.series.clock import Clock, Steps, Times, require_local_step
from streamridge.series.local_time import Fold, to_utc
from streamridge.series.readings import Aggregate, Readings
from streamridge.series.sensor_clock import LONGEST_GAP
from streamridge.series.series import Counts, Series, span_text

# Usual steps of sensors, in seconds; a step found from readings becomes the nearest of these.
USUAL = (1, 5, 10, 15, 20, 30, 60, 120, 180, 300, 360, 600, 720, 900, 1200, 1800)
USUAL_STEPS = [
    timedelta(seconds=s) for s in (*USUAL, 3600, 7200, 10800, 14400, 21600, 43200, 86400)
]
# A step found from readings may differ from a usual one by this share, since stamps jitter.
JITTER = 0.1


def to_series(
    readings: Readings,
    *,
    step: timedelta | None = None,
    zone: ZoneInfo | None = None,
    fold: Fold = "infer",
    aggregate: Aggregate | None = None,
    skip: bool = False,
    first: np.datetime64 | None = None,
    last: np.datetime64 | None = None,
) -> Series:
    """Return the readings of a sensor on a regular grid, from its first value to its last.

    Parameters
    ----------
    readings
        In any order.
    step
        The step of the series; found from the readings by default.
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
    """
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
    require_local_step(step or timedelta(0), zone)
    own = _own_step(readings.sensor, times, step)
    require_local_step(own, zone)
    clock = Clock(own, _phase(times, own), zone)
    columns = {name: column[kept] for name, column in readings.extras.items()}
    series = _place(readings.sensor, times, readings.values[kept], columns, clock)
    if step is not None and step != own:
        series = coarser(series, step, aggregate or readings.aggregate)
    counts = replace(
        series.counts,
        readings=int(within.sum()),
        skipped=readings.skipped,
        imputed=readings.imputed,
        nonexistent=int((within & ~exists).sum()),
        missing=int(np.isnan(series.values).sum()),
    )
    return replace(series, counts=counts)


def _in_utc(
    readings: Readings, zone: ZoneInfo | None, fold: Fold, skip: bool
) -> tuple[Times, Mask]:
    """Return the times in UTC, and which of them exist."""
    if zone is None or readings.zoned:
        return readings.times, np.ones(len(readings.times), dtype=bool)
    times, exists = to_utc(readings.times, zone, fold)
    wrong_times = readings.times[~exists & ~np.isnan(readings.values)]
    if len(wrong_times) and not skip:
        wrong = wrong_times[0].astype("M8[s]")
        raise InvalidInputError(
            f"{readings.sensor}: time must exist in {zone.key}, got {wrong}, which clocks skip "
            "there. Pass --gap skip to leave such readings out."
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


def _own_step(sensor: str, times: Times, asked: timedelta | None) -> timedelta:
    """Return the step of the readings: the requested one, unless they are finer."""
    apart = np.diff(np.unique(times))
    if not apart.size:
        if asked is not None:
            return asked
        raise InvalidInputError(
            f"{sensor}: step must be given for a single reading, got none. "
            "Pass it, such as --step 15min."
        )
    median = timedelta(microseconds=int(np.median(apart / np.timedelta64(1, "us"))))
    if asked is not None and median >= (1 - JITTER) * asked:
        return asked
    nearest = min(USUAL_STEPS, key=lambda usual: abs(np.log(usual / median)))
    if abs(nearest / median - 1) > JITTER:
        raise InvalidInputError(
            f"{sensor}: readings must be a usual step apart, such as 15min, got {median}. "
            "Pass the step, such as --step 15min."
        )
    return nearest


def _phase(times: Times, step: timedelta) -> timedelta:
    """Return the offset within a step that most stamps share; zero if they share none."""
    within = (times - times.astype("M8[D]")) % np.timedelta64(step)
    phases, counts = np.unique(within, return_counts=True)
    most = int(counts.argmax())
    shared = counts[most] > len(times) / 2
    return phases[most].astype("m8[us]").astype(timedelta) if shared else timedelta(0)


def _place(
    sensor: str, times: Times, values: Vector, extras: Mapping[str, Vector], clock: Clock
) -> Series:
    """Return the values at their steps; of several at one step, the first number is kept."""
    steps = clock.steps(times)
    order = np.lexsort((np.arange(len(steps)), np.isnan(values), steps))
    at, first = np.unique(steps[order], return_index=True)
    chosen = order[first]
    _require_sane_span(sensor, clock, at)
    placed = np.full(at[-1] - at[0] + 1, np.nan)
    placed[at - at[0]] = values[chosen]
    columns = {}
    for name, column in extras.items():
        columns[name] = np.full(len(placed), np.nan)
        columns[name][at - at[0]] = column[chosen]
    counts = _count(times, values, steps, placed[steps - at[0]], clock)
    return Series(sensor, clock, int(at[0]), placed, columns, counts)


def _count(times: Times, values: Vector, steps: Steps, stays: Vector, clock: Clock) -> Counts:
    """Return counts of wrong readings, given the value kept at the step of each."""
    differ = ~(np.isnan(values) | (values == stays))
    repeated = len(steps) - len(np.unique(steps)) - int(differ.sum())
    return Counts(
        duplicates=repeated,
        conflicts=int(differ.sum()),
        off_grid=int((times != clock.times(steps)).sum()),
        out_of_order=int((np.diff(steps) < 0).sum()),
    )


def _require_sane_span(sensor: str, clock: Clock, at: Steps) -> None:
    gaps = np.diff(at)
    if gaps.size and gaps.max() * clock.step > LONGEST_GAP:
        before, after = clock.times(at[np.argmax(gaps) :][:2]).astype("M8[s]")
        raise InvalidInputError(
            f"{sensor}: stamps must be less than {LONGEST_GAP.days} days apart, "
            f"got {after} after {before}. Correct the stamp, or pass --from or --to."
        )
