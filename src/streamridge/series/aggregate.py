"""Fine readings to longer steps, such as five-minute counts to quarters of an hour."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError
from streamridge.series.clock import AnyClock, Length, amount, step_name
from streamridge.series.readings import Aggregate
from streamridge.series.series import Series
from streamridge.texts import option

# A bin with at least this share of its readings is scaled up to a whole one; with less it is a gap.
LEAST_SHARE = 0.5


def coarser(
    fine: Series, step: Length, aggregate: Aggregate | None, clock: AnyClock | None = None
) -> Series:
    """Return a series in longer steps, with a count of those that miss some readings.

    Parameters
    ----------
    fine
        The series in short steps.
    step
        The new step, a multiple of the series' own; bins are aligned to midnight.
    aggregate
        "sum" and "mean" scale up a bin with at least half of its readings; "last" takes the last
        reading of the bin.
    clock
        The clock of the longer steps; by default that of the series, aligned to midnight.
    """
    own = fine.clock.step
    parts, rest = divmod(amount(step), amount(own))
    if rest:
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
    # A clock of times is asked for a step of time, one of an index for a whole number.
    longer: AnyClock = clock or replace(fine.clock, step=step)  # type: ignore[arg-type]
    ahead = amount(fine.clock.phase) - amount(longer.phase)
    start = fine.start + ahead // amount(own)
    lead = start % parts
    bins = _bins(fine.values, lead, parts)
    read = (~np.isnan(bins)).sum(axis=1)
    return Series(
        fine.sensor,
        longer,
        (start - lead) // parts,
        _last(bins) if aggregate == "last" else _whole(bins, read, aggregate),
        {name: _bins(column, lead, parts)[:, 0] for name, column in fine.extras.items()},
        replace(fine.counts, partial=int(((read > 0) & (read < parts)).sum())),
    )


def _bins(column: Vector, lead: int, parts: int) -> Matrix:
    """Return the values, one bin per row; NaN before the first and after the last value."""
    bins = -(-(lead + len(column)) // parts)
    padded = np.full(bins * parts, np.nan)
    padded[lead : lead + len(column)] = column
    return padded.reshape(-1, parts)


def _whole(bins: Matrix, read: Vector, aggregate: Aggregate) -> Vector:
    parts = bins.shape[1]
    mean = np.nansum(bins, axis=1) / np.maximum(read, 1)
    mean[read < LEAST_SHARE * parts] = np.nan
    return parts * mean if aggregate == "sum" else mean


def _last(bins: Matrix) -> Vector:
    last = bins[:, 0]
    for column in bins.T[1:]:
        last = np.where(np.isnan(column), last, column)
    return last
