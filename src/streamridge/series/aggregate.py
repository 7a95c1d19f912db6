"""Finer readings to longer steps: five-minute counts to quarters of an hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError
from streamridge.series.clock import step_name
from streamridge.series.readings import Aggregate
from streamridge.series.series import Series

# A bin of which at least this share was read is scaled up to a whole one; less is a gap.
LEAST_SHARE = 0.5


def coarser(fine: Series, step: timedelta, aggregate: Aggregate | None) -> Series:
    """Return a series in longer steps, each made of several; partly read ones are counted.

    Parameters
    ----------
    fine
        The series.
    step
        A multiple of its own step; bins are aligned to midnight.
    aggregate
        "sum" and "mean" take a bin of which at least half was read for a whole one; "last" takes
        the last reading there is.
    """
    own = fine.clock.step
    parts, rest = divmod(step, own)
    if rest:
        raise InvalidInputError(
            f"{fine.sensor}: step must be a multiple of the readings' own {step_name(own)}, "
            f"got {step_name(step)}."
        )
    if aggregate is None:
        raise InvalidInputError(
            f"{fine.sensor}: readings come every {step_name(own)}, and {step_name(step)} is asked "
            "for. Pass --aggregate sum for counts (aggregate= in Python), mean or last."
        )
    lead = fine.start % parts
    bins = _bins(fine.values, lead, parts)
    read = (~np.isnan(bins)).sum(axis=1)
    return Series(
        fine.sensor,
        replace(fine.clock, step=step),
        (fine.start - lead) // parts,
        _last(bins) if aggregate == "last" else _whole(bins, read, aggregate),
        {name: _bins(column, lead, parts)[:, 0] for name, column in fine.extras.items()},
        replace(fine.counts, partial=int(((read > 0) & (read < parts)).sum())),
    )


def _bins(column: Vector, lead: int, parts: int) -> Matrix:
    """Return the values bin by bin, NaN before the first and after the last."""
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
