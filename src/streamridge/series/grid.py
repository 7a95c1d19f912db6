"""Readings to a regular series: no reading moves silently, and every problem is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Mask, Vector, require_one_of
from streamridge.errors import InvalidInputError, option
from streamridge.series.clock import containing
from streamridge.series.lengths import DAY, Length, amount, parse_step
from streamridge.series.placement import place_on_grid
from streamridge.series.series import Aggregate, Readings, Series, span_text
from streamridge.series.step_detection import JITTER, SECOND, WINDOW, distances
from streamridge.series.time_format import UTC_FORMAT, TimeFormat
from streamridge.series.times import Steps, Times, index_of, require_kind
from streamridge.series.zones import Fold, parse_zone, to_utc

# The days, and the least number of readings, that determine the step of a live stream.
FIRST_DAYS, FIRST_READINGS = 3, 4 * WINDOW
# The most steps after the end of a series whose extra columns are read.
MOST_UPCOMING = 20_160


def series_from_arrays(
    times: ArrayLike,
    values: ArrayLike,
    *,
    step: str | int | timedelta,
    tz: str | None = None,
    sensor: str = "",
) -> Series:
    """Return readings at times in UTC as a series on a regular grid.

    Parameters
    ----------
    times
        (n,), in UTC and in any order.
    values
        (n,), NaN for missing values.
    step
        Time between readings, such as "15min".
    tz
        Time zone of the sensor's days, such as "Europe/London".
    sensor
        Name of the sensor.

    Examples
    --------
    >>> times = np.array(["2021-06-13T08:00", "2021-06-13T08:30"], "M8[us]")
    >>> series_from_arrays(times, [12.0, 7.0], step="15min").values
    array([12., nan,  7.])
    """
    stamps = np.asarray(times, dtype="M8[us]")
    readings = Readings(sensor, stamps, np.asarray(values, dtype=np.float64), UTC_FORMAT)
    return to_series(readings, step=parse_step(step), zone=parse_zone(tz))


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

    All readings determine the step by default, and late readings count as if they came in time.
    `arrival_order` means that readings arrived in the order given, as in a live stream. Then only
    the first days determine the step, and the series has the step at which each value was known.

    Months, whose lengths differ, are placed in steps of a twelfth of a year, none lost and none
    double; also if the requested step is 28 to 31 days. The zone is that of stamps without an
    offset, and of the sensor's days. `skip` leaves out local times that do not exist, instead of
    raising an error. `first` and `last` are in UTC if there is a zone.
    """
    require_one_of("fold", fold, get_args(Fold))
    require_one_of("aggregate", aggregate, (None, *get_args(Aggregate)))
    for end in (first, last):
        require_kind(readings.sensor, end, indexed=readings.indexed)
    times, exists = _in_utc(readings, zone, fold, skip)
    within = _between(times, first, last)
    within &= _around_values(times, within & exists & ~np.isnan(readings.values))
    kept = exists & within
    if not kept.any():
        raise InvalidInputError(
            f"{readings.sensor}: readings{span_text(first, last)} must hold at least one value, "
            "got none."
        )
    taken = replace(readings, times=times).part(kept)
    if zone is None and not readings.indexed:
        taken = replace(taken, time_format=taken.time_format.with_inferred_zone(taken.times))
    if arrival_order and step is None:
        step = place_on_grid(first_days(taken), None, zone, None).clock.step
    series = place_on_grid(taken, step, zone, aggregate or readings.aggregate)
    counts = replace(
        series.counts,
        readings=int(within.sum()),
        skipped=readings.skipped,
        imputed=readings.imputed,
        nonexistent=int((within & ~exists).sum()),
        missing=int(np.isnan(series.values).sum()),
    )
    known_at = arrivals(series, taken) if arrival_order else None
    time_format = _time_format(taken, taken.times, zone)
    later = replace(readings, times=times).part(exists & (times > taken.times.max()))
    return replace(
        series,
        counts=counts,
        time_format=time_format,
        known_at=known_at,
        upcoming=upcoming_extras(series, later),
    )


def upcoming_extras(series: Series, later: Readings) -> dict[str, Vector]:
    """Return the extra columns at the steps after the end of a series, (n,) each.

    NaN stands for unknown values. If several rows belong to a step, the nearest counts.
    """
    if not later.extras or not len(later.times):
        return {}
    times, clock = index_of(later.times) if later.indexed else later.times, series.clock
    steps = clock.steps(times)
    at = steps - series.start - len(series)
    farthest_first = np.argsort(-np.abs(clock.times(steps) - times), kind="stable")
    order = farthest_first[(at[farthest_first] >= 0) & (at[farthest_first] < MOST_UPCOMING)]
    columns = {name: np.full(at[order].max(initial=-1) + 1, np.nan) for name in later.extras}
    for name, column in columns.items():
        column[at[order]] = later.extras[name][order]
    return columns


def _time_format(readings: Readings, times: Times, zone: ZoneInfo | None) -> TimeFormat:
    """Return the time format of a series, which is the format of its readings."""
    written = readings.time_format
    if zone is None or readings.indexed:
        return written
    if not written.zoned:
        return replace(written, zone=zone.key)
    # Offsets that change twice a year name no zone, but they may belong to the given zone.
    local = replace(written, zone=zone.key, offsets=())
    changes = (
        len(written.offsets) > 1 and (written.offsets_at(times) == local.offsets_at(times)).all()
    )
    return local if changes else written


def _in_utc(
    readings: Readings, zone: ZoneInfo | None, fold: Fold, skip: bool
) -> tuple[Times, Mask]:
    """Return the times in UTC, and which of them exist."""
    if zone is None or readings.time_format.zoned or readings.indexed:
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
    """Return the times between the first and the last value, since columns may end in blanks."""
    if not known.any():
        return np.zeros(len(times), dtype=bool)
    return _between(times, times[known].min(), times[known].max())


def first_days(readings: Readings) -> Readings:
    """Return the readings that arrived up to the first one of the fourth day."""
    times = readings.moments
    later = np.flatnonzero(times - times[0] >= FIRST_DAYS * amount(DAY) * SECOND)
    early = slice(0, max(int(later[0]) if later.size else len(times), FIRST_READINGS))
    return readings.part(early)


def arrivals(series: Series, readings: Readings) -> Steps:
    """Return the step at which each value of a series was known, shape (T,).

    Readings are in the order in which they arrived. A reading arrives together with the newest
    reading before it. A step that is made of several readings is known with the last of them;
    otherwise the first reading of its value counts.
    """
    times = index_of(readings.times) if readings.indexed else readings.times
    clock = series.clock
    units = amount(clock.step) * (1 if readings.indexed else SECOND)
    apart = distances(readings)
    several = bool(apart.size and np.median(apart) < (1 - JITTER) * units)
    steps = containing(clock, times) if several else clock.steps(times)
    newest, at = np.maximum.accumulate(steps), steps - series.start
    own = series.start + np.arange(len(series))
    counts = (at >= 0) & (at < len(series)) & ~np.isnan(readings.values)
    counts[counts] &= several | (readings.values[counts] == series.values[at[counts]])
    never = np.iinfo(np.int64).max
    known = np.full(len(series), 0 if several else never)
    (np.maximum if several else np.minimum).at(known, at[counts], newest[counts])
    return np.maximum(own, np.where(known == never, own, known))
