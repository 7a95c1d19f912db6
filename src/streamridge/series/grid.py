"""Readings to a regular series: no reading moves silently, and every problem is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Vector, require_one_of
from streamridge.errors import InvalidInputError
from streamridge.series.aggregate import coarser
from streamridge.series.clock import (
    DAY,
    EPOCH,
    UNITS,
    AnyClock,
    Clock,
    IndexClock,
    Length,
    Steps,
    Times,
    amount,
    require_local_step,
    step_name,
    time_text,
)
from streamridge.series.local_time import Fold, to_utc
from streamridge.series.readings import Aggregate, Readings, index_of, require_kind
from streamridge.series.sensor_clock import MOST_STEPS, longest_gap
from streamridge.series.series import Counts, Series, span_text
from streamridge.texts import option

# Usual steps of sensors, in seconds; a step found from readings becomes the nearest of these.
USUAL = (1, 5, 10, 15, 20, 30, 60, 120, 180, 300, 360, 600, 720, 900, 1200, 1800)
MONTH = UNITS["mo"]
USUAL_STEPS = [
    *(timedelta(seconds=s) for s in (*USUAL, 3600, 7200, 10800, 14400, 21600, 43200, 86400)),
    *(7 * DAY, MONTH, 3 * MONTH, 12 * MONTH),
]
# A step found from readings may differ from a usual one by this share, since stamps jitter.
JITTER = 0.1
# Readings of which this share is equally far apart have that step, however unusual.
REGULAR = 0.9


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
    clock = _clock(readings, times, step, zone)
    times = index_of(times) if readings.indexed else times
    columns = {name: column[kept] for name, column in readings.extras.items()}
    series = _place(readings.sensor, times, readings.values[kept], columns, clock)
    if step is not None and not _stands_for(clock.step, step):
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


def _clock(
    readings: Readings, times: Times, asked: Length | None, zone: ZoneInfo | None
) -> AnyClock:
    """Return the clock of a sensor, which steps as asked for unless the readings are finer."""
    if asked is not None:
        require_local_step(asked, zone)
        _require_kind_of_step(readings, asked)
    if readings.indexed:
        units = _index_step(index_of(times), asked)
        require_local_step(units, zone)
        return IndexClock(units, int(_shared(index_of(times) % units) or 0))
    own = _own_step(readings.sensor, times, asked if isinstance(asked, timedelta) else None)
    require_local_step(own, zone)
    return Clock(own, _phase(times, own), zone)


def _require_kind_of_step(readings: Readings, asked: Length) -> None:
    """Raise unless the step is a whole number where times are, and a time where they are not."""
    if isinstance(asked, int) != readings.indexed:
        kind = "a whole number" if readings.indexed else "a time such as 15min"
        raise InvalidInputError(
            f"{readings.sensor}: step must be {kind}, as its times are, got {step_name(asked)}."
        )


def _index_step(index: Steps, asked: Length | None) -> int:
    """Return the step of an integer index: the requested one, unless the readings are finer."""
    apart = np.diff(np.unique(index))
    median = int(np.median(apart)) if apart.size else amount(asked or 1)
    return min(median, amount(asked)) if asked is not None else median


def _own_step(sensor: str, times: Times, asked: timedelta | None) -> timedelta:
    """Return the step of the readings: the requested one, unless they are finer."""
    apart = np.diff(np.unique(times)) / np.timedelta64(1, "us")
    if not apart.size:
        if asked is not None:
            return asked
        raise InvalidInputError(
            f"{sensor}: step must be given for a single reading, got none. "
            f"Pass it, such as {option('step', '15min')}."
        )
    median = timedelta(microseconds=int(np.median(apart)))
    if _are_months(apart) and _stands_for(MONTH, asked or MONTH):
        return MONTH
    if asked is not None and median >= (1 - JITTER) * asked:
        return asked
    if not median % UNITS["s"] and np.mean(apart == np.median(apart)) >= REGULAR:
        return median
    nearest = min(USUAL_STEPS, key=lambda usual: abs(np.log(usual / median)))
    if abs(nearest / median - 1) > JITTER:
        raise InvalidInputError(
            f"{sensor}: readings must be a usual step apart, such as 15min, got {median}. "
            f"Pass the step, such as {option('step', '15min')}."
        )
    return nearest


def _stands_for(own: Length, asked: Length) -> bool:
    """Return whether readings have the step asked for; 28 to 31 days also mean a month."""
    return own == asked or (own == MONTH and 28 <= amount(asked) / amount(DAY) <= 31)


def _are_months(apart: Vector) -> bool:
    """Return whether stamps are mostly one month apart, given their distances in microseconds."""
    days = apart / (DAY / timedelta(microseconds=1))
    of_a_month = (days >= 28) & (days <= 31)
    return bool(of_a_month.mean() > 0.5 and len(set(days[of_a_month].tolist())) > 1)


def _phase(times: Times, step: timedelta) -> timedelta:
    """Return the offset within a step that most stamps share, or else the middle of long steps.

    Stamps that share none, such as the first days of months, would be ambiguous at other offsets.
    """
    within = (times - EPOCH) % np.timedelta64(step)
    shared = _shared(within)
    if shared is not None:
        return shared.astype("m8[us]").astype(timedelta)
    if step <= DAY:
        return timedelta(0)
    half = np.timedelta64(step) // 2
    around = (within - within[0] + half) % np.timedelta64(step) - half
    middle = np.sort(around)[len(around) // 2]
    return ((within[0] + middle) % np.timedelta64(step)).astype("m8[us]").astype(timedelta)


def _shared(within: NDArray[Any]) -> Any:
    """Return the offset within a step that most readings have, None if there is no such."""
    offsets, counts = np.unique(within, return_counts=True)
    most = int(counts.argmax())
    return offsets[most] if counts[most] > len(within) / 2 else None


def _place(
    sensor: str,
    times: Times,
    values: Vector,
    extras: Mapping[str, Vector],
    clock: AnyClock,
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


def _count(times: Times, values: Vector, steps: Steps, stays: Vector, clock: AnyClock) -> Counts:
    """Return counts of wrong readings, given the value kept at the step of each."""
    differ = ~(np.isnan(values) | (values == stays))
    repeated = len(steps) - len(np.unique(steps)) - int(differ.sum())
    return Counts(
        duplicates=repeated,
        conflicts=int(differ.sum()),
        off_grid=int((times != clock.times(steps)).sum()),
        out_of_order=int((np.diff(steps) < 0).sum()),
    )


def _require_sane_span(sensor: str, clock: AnyClock, at: Steps) -> None:
    gaps = np.diff(at)
    if isinstance(clock, IndexClock):
        longest, limit = MOST_STEPS, f"{MOST_STEPS} steps"
    else:
        span = longest_gap(clock.step)
        longest, limit = span // clock.step, f"{span.days} days"
    if gaps.size and gaps.max() > longest:
        before, after = map(time_text, clock.times(at[np.argmax(gaps) :][:2]))
        raise InvalidInputError(
            f"{sensor}: stamps must be less than {limit} apart, "
            f"got {after} after {before}. Correct the stamp, or pass {option('from_')} or "
            f"{option('to')}."
        )
