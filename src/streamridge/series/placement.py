"""Readings placed on the steps of a clock, at one rate or several."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from math import lcm
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.errors import InvalidInputError, option, options
from streamridge.series.aggregation import aggregated, longer_clock
from streamridge.series.clock import (
    AnyClock,
    IndexClock,
    containing,
    require_local_step,
)
from streamridge.series.clock_fitting import clock_of_times, round_clock, shared_offset
from streamridge.series.lengths import Length, amount, step_name
from streamridge.series.sensor_clock import MOST_STEPS, longest_gap
from streamridge.series.series import Aggregate, Counts, Readings, Series
from streamridge.series.step_detection import (
    RateSegment,
    distances,
    length_of,
    own_step,
    rarer,
    rates_of,
    require_kind_of_step,
    stands_for,
)
from streamridge.series.time_format import TimeFormat
from streamridge.series.times import Steps, Times, index_of, time_text

# The number and the share of readings that may differ from another reading of the same step.
FEW_CONFLICTS, MOST_CONFLICTS = 5, 0.2
# The number of rate segments that a message lists.
NAMED = 4


def place_on_grid(
    readings: Readings, asked: Length | None, zone: ZoneInfo | None, aggregate: Aggregate | None
) -> Series:
    """Return readings in steps of one length: the requested one, or their own.

    If the rate of readings changes, each segment of one rate is placed separately: a reading fills
    its step, and readings that are finer than the step are aggregated.
    """
    if asked is not None:
        require_local_step(asked, zone)
        require_kind_of_step(readings, asked)
    calendar = readings.time_format if zone is None else TimeFormat(zone=zone.key)
    segments = rates_of(readings, calendar)
    if len(segments) > 1:
        return _of_segments(readings, segments, asked, zone, aggregate)
    units = segments[0].step
    own = own_step(readings, asked, None if units is None else length_of(readings, units))
    series = None if own is None else _placed(readings, _clock(readings, own, zone))
    is_irregular = units is None and bool(distances(readings).size)
    if series is None or (is_irregular and _conflicts_are_many(series.counts, readings)):
        return _binned(readings, asked, zone, aggregate)
    _require_few_conflicts(series.counts, readings)
    if asked is not None and not stands_for(series.clock.step, asked):
        return aggregated(series, asked, aggregate)
    return series


def _of_segments(
    readings: Readings,
    segments: Sequence[RateSegment],
    asked: Length | None,
    zone: ZoneInfo | None,
    aggregate: Aggregate | None,
) -> Series:
    """Return readings whose rate changes, in steps of the requested length."""
    steps = [length_of(readings, each.step or 1) for each in segments]
    if asked is None or not _suits(asked, steps):
        least = min(steps, key=amount)
        whole = {"step": step_name(_shared_step(steps)), "aggregate": "sum"}
        gaps = f", or {option('step', step_name(least))} to leave gaps between rarer readings"
        raise InvalidInputError(
            f"{readings.sensor}: readings must be equally far apart, got "
            f"{_rates_text(readings, segments)}. Pass {options(whole)}, or mean, or last"
            f"{gaps if _suits(least, steps) else ''}."
        )
    parts = [_within(readings, segment) for segment in segments]
    rare = [i for i, step in enumerate(steps) if amount(step) >= amount(asked)]
    # Readings that fill a step each determine the clock, if there are any.
    if rare:
        clock = _clock(parts[rare[0]], asked, zone)
    else:
        clock = longer_clock(_placed(parts[0], _clock(parts[0], steps[0], zone)), asked)
    series = [
        _placed(part, clock)
        if amount(step) >= amount(asked)
        else aggregated(_placed(part, _clock(part, step, zone)), asked, aggregate, clock)
        for part, step in zip(parts, steps, strict=True)
    ]
    return _joined(readings, series, rare)


def _joined(readings: Readings, parts: Sequence[Series], rare: Sequence[int]) -> Series:
    """Return parts on one clock as one series; a reading of a whole step wins where two meet."""
    start = min(part.start for part in parts)
    length = max(part.start + len(part) for part in parts) - start
    ranked = [part for i, part in enumerate(parts) if i not in rare] + [parts[i] for i in rare]

    def column(columns: Sequence[Vector]) -> Vector:
        whole = np.full(length, np.nan)
        for part, values in zip(ranked, columns, strict=True):
            known = ~np.isnan(values)
            whole[part.start - start :][: len(values)][known] = values[known]
        return whole

    counts = [part.counts for part in parts]
    summed = Counts(
        rate_changes=len(parts) - 1,
        **{
            name: sum(getattr(each, name) for each in counts)
            for name in ("duplicates", "conflicts", "off_grid", "partial")
        },
        out_of_order=_out_of_order(readings.moments),
    )
    extras = {name: column([each.extras[name] for each in ranked]) for name in readings.extras}
    values = column([each.values for each in ranked])
    clock = parts[0].clock
    _require_sane_span(readings.sensor, clock, start + np.flatnonzero(~np.isnan(values)))
    return Series(readings.sensor, clock, start, values, extras, summed)


def _binned(
    readings: Readings, asked: Length | None, zone: ZoneInfo | None, aggregate: Aggregate | None
) -> Series:
    """Return irregular readings in steps, each made from the readings within it."""
    if asked is None or aggregate is None:
        suggested = {"step": step_name(asked or rarer(readings)), "aggregate": "mean"}
        raise InvalidInputError(
            f"{readings.sensor}: readings must be equally far apart, got "
            f"{_spread_text(readings)}. Pass {options(suggested)}, or sum, or last, "
            "to make steps of them."
        )
    require_local_step(asked, zone)
    clock: AnyClock = (
        IndexClock(asked)
        if isinstance(asked, int)
        else round_clock(asked, zone, readings.time_format)
    )
    times = readings.moments
    known = np.flatnonzero(~np.isnan(readings.values))
    _, first = np.unique(times[known], return_index=True)  # in order of time
    chosen = known[first]
    steps = containing(clock, times[chosen] if readings.indexed else readings.times[chosen])
    at, begins, sizes = np.unique(steps, return_index=True, return_counts=True)
    _require_sane_span(readings.sensor, clock, at)
    values = np.add.reduceat(readings.values[chosen], begins)
    if aggregate != "sum":
        last = readings.values[chosen[begins + sizes - 1]]
        values = values / sizes if aggregate == "mean" else last
    spread = {name: column[chosen[begins]] for name, column in readings.extras.items()}
    filled = {name: _spread(column, at) for name, column in {**spread, "": values}.items()}
    counts = Counts(
        duplicates=len(known) - len(chosen), out_of_order=_out_of_order(times), binned=len(chosen)
    )
    return Series(readings.sensor, clock, int(at[0]), filled.pop(""), filled, counts)


def _within(readings: Readings, segment: RateSegment) -> Readings:
    """Return the readings of a segment."""
    times = readings.moments
    taken = times >= segment.start
    if segment.end is not None:
        taken &= times < segment.end
    return readings.part(taken)


def _clock(readings: Readings, step: Length, zone: ZoneInfo | None) -> AnyClock:
    """Return the clock of a sensor, on which most of its readings lie."""
    require_local_step(step, zone)
    if isinstance(step, int):
        return IndexClock(step, int(shared_offset(index_of(readings.times) % step) or 0))
    return clock_of_times(readings.times, step, zone, readings.time_format)


def _placed(readings: Readings, clock: AnyClock) -> Series:
    """Return the values at their steps: the first exactly on time, or else the first."""
    times: Times = index_of(readings.times) if readings.indexed else readings.times
    values = readings.values
    steps = clock.steps(times)
    on_grid = times == clock.times(steps)
    order = np.lexsort((np.arange(len(steps)), ~on_grid, np.isnan(values), steps))
    at, first = np.unique(steps[order], return_index=True)
    chosen = order[first]
    _require_sane_span(readings.sensor, clock, at)
    placed = _spread(values[chosen], at)
    columns = {name: _spread(column[chosen], at) for name, column in readings.extras.items()}
    counts = _count(values, steps, placed[steps - at[0]], on_grid)
    written = readings.time_format
    return Series(readings.sensor, clock, int(at[0]), placed, columns, counts, written)


def _spread(column: Vector, at: Steps) -> Vector:
    """Return values at their steps, from the first step to the last; NaN in between."""
    spread = np.full(at[-1] - at[0] + 1, np.nan)
    spread[at - at[0]] = column
    return spread


def _count(values: Vector, steps: Steps, stays: Vector, on_grid: Mask) -> Counts:
    """Return counts of wrong readings, given the value that is used at the step of each."""
    differ = ~(np.isnan(values) | (values == stays))
    repeated = len(steps) - len(np.unique(steps)) - int(differ.sum())
    return Counts(
        duplicates=repeated,
        conflicts=int(differ.sum()),
        off_grid=int((~on_grid).sum()),
        out_of_order=_out_of_order(steps),
    )


def _out_of_order(steps: Steps) -> int:
    """Return the number of readings that are older than a reading before them."""
    return int((steps < np.maximum.accumulate(steps)).sum())


def _conflicts_are_many(counts: Counts, readings: Readings) -> bool:
    return counts.conflicts > max(FEW_CONFLICTS, MOST_CONFLICTS * len(readings.times))


def _require_few_conflicts(counts: Counts, readings: Readings) -> None:
    """Raise if many readings differ from another one at the same time."""
    if not _conflicts_are_many(counts, readings):
        return
    times, found = np.unique(readings.times, return_counts=True)
    example = time_text(times[found.argmax()]) if not readings.indexed else "one step"
    raise InvalidInputError(
        f"{readings.sensor}: there must be one reading at a time, got {counts.conflicts} of "
        f"{len(readings.times)} that differ from another at the same time, such as {example}. If "
        f"they are of several sensors, pass {option('id')} with the column of their names and "
        f"{option('value')} with the column of their values."
    )


def _suits(asked: Length, steps: Sequence[Length]) -> bool:
    """Return whether each step is a multiple of the requested one, or divides it."""
    if amount(asked) < min(map(amount, steps)):
        return False
    pairs = [sorted((amount(asked), amount(step))) for step in steps]
    return all(longer % shorter == 0 for shorter, longer in pairs)


def _shared_step(steps: Sequence[Length]) -> Length:
    """Return the shortest step that is a multiple of all."""
    units = reduce(lcm, map(amount, steps))
    return units if isinstance(steps[0], int) else timedelta(seconds=units)


def _rates_text(readings: Readings, segments: Sequence[RateSegment]) -> str:
    """Return segments in words, such as "15min from 2021-03-01T00:00, 5min from ..."."""
    words = [
        f"{step_name(length_of(readings, each.step or 1))} from {_moment_text(readings, each)}"
        for each in segments[:NAMED]
    ]
    more = len(segments) - NAMED
    return ", ".join(words) + (f" and {more} changes more" if more > 0 else "")


def _moment_text(readings: Readings, segment: RateSegment) -> str:
    if readings.indexed:
        return str(segment.start)
    time = np.array([segment.start]).astype("M8[us]")
    return readings.time_format.texts(time, "minutes")[0]


def _spread_text(readings: Readings) -> str:
    """Return in words how far apart most readings are."""
    ends = np.quantile(distances(readings), [0.1, 0.9]).astype(np.int64).tolist()
    if readings.indexed:
        return "distances of {} to {}".format(*ends)
    return "distances of {} to {}".format(*(timedelta(microseconds=each) for each in ends))


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
