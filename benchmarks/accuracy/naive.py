"""Forecasts that need no model: the last value, and the value a season ago."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accuracy.streams import Stream
from streamridge.arrays import Vector


@dataclass(frozen=True)
class LastValue:
    """The last value that is known."""

    def forecasts(self, stream: Stream) -> tuple[Vector, dict[str, float]]:
        """Return the forecasts of the scored steps; nothing was searched for."""
        return last_value(stream.series.values)[stream.warmup :], {}


@dataclass(frozen=True)
class SeasonAgo:
    """The latest known value that is whole seasons ago, else the last one that is known.

    Parameters
    ----------
    period
        The season in steps, which may be a fraction.
    """

    period: float

    def forecasts(self, stream: Stream) -> tuple[Vector, dict[str, float]]:
        """Return the forecasts of the scored steps; nothing was searched for."""
        values = stream.series.values
        ago = np.full(len(values), np.nan)
        for seasons in range(1, int(len(values) / self.period) + 1):
            ago = np.where(np.isnan(ago), shifted(values, round(seasons * self.period)), ago)
        return np.where(np.isnan(ago), last_value(values), ago)[stream.warmup :], {}


def shifted(values: Vector, lag: int) -> Vector:
    """Return the value `lag` steps before each, shape (T,); NaN before the first."""
    return np.concatenate([np.full(lag, np.nan), values])[: len(values)]


def last_value(values: Vector) -> Vector:
    """Return the last known value before each step, shape (T,)."""
    known = np.where(np.isnan(values), 0, np.arange(len(values)))
    return shifted(values[np.maximum.accumulate(known)], 1)
