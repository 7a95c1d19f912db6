"""Series in longer steps, made of finer readings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError, option
from streamridge.series.clock import AnyClock, IndexClock, containing, follows_days
from streamridge.series.clock_fitting import round_clock
from streamridge.series.lengths import DAY, Length, amount, step_name
from streamridge.series.series import Aggregate, Series
from streamridge.series.times import EPOCH, Steps

# A bin with at least this share of its readings is scaled up; otherwise it is a gap.
LEAST_OF_BIN = 0.5


def aggregated(
    fine: Series, step: Length, aggregate: Aggregate | None, clock: AnyClock | None = None
) -> Series:
    """Return a series in longer steps, with a count of partial steps.

    The step is a multiple of the step of the series. Bins are aligned to midnight, or to the
    given clock; days and months are those of local time. "sum" and "mean" scale up a bin with at
    least half of its readings; "last" takes the last reading of the bin.
    """
    own = fine.clock.step
    parts, rest = divmod(amount(_even_part(step)), amount(own))
    if rest or not parts:
        raise InvalidInputError(
            f"{fine.sensor}: step must be a multiple of the readings' own {step_name(own)}, "
            f"got {step_name(step)}. Pass {option('step', step_name(own))}, or a multiple."
        )
    if aggregate is None:
        raise InvalidInputError(
            f"{fine.sensor}: aggregate must be sum, mean or last to make steps of "
            f"{step_name(step)} from readings every {step_name(own)}, got none. "
            f"Pass {option('aggregate', 'sum')} for counts."
        )
    bins = _Bins.of(fine, clock or longer_clock(fine, step))
    values = bins.rows(fine.values)
    read = (~np.isnan(values)).sum(axis=1)
    return Series(
        fine.sensor,
        bins.clock,
        bins.first,
        _last(values) if aggregate == "last" else _whole(values, read, bins.parts, aggregate),
        {name: bins.rows(column)[:, 0] for name, column in fine.extras.items()},
        replace(fine.counts, partial=int(((read > 0) & (read < bins.parts)).sum())),
        fine.time_format,
    )


def _even_part(step: Length) -> Length:
    """Return a length that divides a step also if clocks change within: an hour, or a day."""
    if isinstance(step, int) or not follows_days(step):
        return step
    return step if step < DAY else DAY


def longer_clock(fine: Series, step: Length) -> AnyClock:
    """Return a clock of longer steps, aligned to midnight apart from an offset of the readings."""
    own = fine.clock
    if isinstance(own, IndexClock) or isinstance(step, int):
        return replace(own, step=step)  # type: ignore[arg-type]
    longer = round_clock(step, own.zone, fine.time_format)
    if not longer.follows_calendar:
        return replace(longer, phase=own.phase)
    first = longer.calendar.local(fine.times[:1])[0]
    return replace(longer, phase=((first - EPOCH) % np.timedelta64(own.step)).tolist())


@dataclass(frozen=True)
class _Bins:
    """Consecutive steps of a clock, each made of some steps of a finer series."""

    clock: AnyClock
    first: int  # the step that contains the first value
    parts: Steps  # (b,), how many values a step has
    lead: int  # the values of the first step before the first value

    @classmethod
    def of(cls, fine: Series, clock: AnyClock) -> _Bins:
        times = fine.times
        first, last = containing(clock, times[[0, -1]]).tolist()
        starts = clock.times(np.arange(first, last + 2))
        own = fine.clock.step if isinstance(fine.clock, IndexClock) else fine.clock.length
        parts = np.rint(np.diff(starts) / own).astype(np.int64)
        return cls(clock, first, parts, int(np.rint((times[0] - starts[0]) / own)))

    def rows(self, column: Vector) -> Matrix:
        """Return the values, one bin per row; NaN before the first and after the last value."""
        begins = np.concatenate([[0], np.cumsum(self.parts)])
        at = self.lead + np.arange(len(column))
        bins = np.searchsorted(begins, at, side="right") - 1
        rows = np.full((len(self.parts), self.parts.max()), np.nan)
        rows[bins, at - begins[bins]] = column
        return rows


def summed_to(series: Series, step: Length) -> Series:
    """Return a series with finer readings summed to a step; longer steps stay as they are."""
    return series if amount(series.clock.step) >= amount(step) else aggregated(series, step, "sum")


def _whole(bins: Matrix, read: Vector, parts: Steps, aggregate: Aggregate) -> Vector:
    mean = np.nansum(bins, axis=1) / np.maximum(read, 1)
    mean[read < LEAST_OF_BIN * parts] = np.nan
    return parts * mean if aggregate == "sum" else mean


def _last(bins: Matrix) -> Vector:
    last = bins[:, 0]
    for column in bins.T[1:]:
        last = np.where(np.isnan(column), last, column)
    return last
