"""A forecast as users get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.forecaster.levels import Levels
from streamridge.series.clock import Times

Source = Literal["model", "seasonal", "last", "none"]


@dataclass(frozen=True)
class Forecast:
    """A forecast of the next steps, with one entry per horizon.

    Parameters
    ----------
    time
        (H,), the times of the steps; whole numbers for an integer index.
    value
        (H,), the forecast.
    lower, upper
        (H,), the band that should hold the actual value as often as its level says. With several
        levels (H, L), a column per level; a higher level's band contains that of a lower one.
    source
        "model", or what stands in for it: "seasonal", the value a season ago, or "last", the last
        reading, whichever was better of late. One of them stands in before there is a model, when
        the sensor has been silent for the shortest season (or for eight steps, if they are of a day
        or longer), and, with `guard`, when it has been clearly better than the model of late. After
        eight steps of silence that is never "last". "none" before the first reading, when the
        numbers are NaN.
    levels
        (L,), the levels of the bands, in the order they were asked for.
    """

    time: Times
    value: Vector
    lower: Vector | Matrix
    upper: Vector | Matrix
    source: Source
    levels: Levels

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def banded(
        cls,
        time: Times,
        value: Vector,
        bands: tuple[Matrix, Matrix],
        *,
        source: Source,
        levels: Levels,
    ) -> Forecast:
        """Return a forecast with the ends of its bands, (H, L) each; one level has no axis."""
        lower, upper = (ends[:, 0] if len(levels) == 1 else ends for ends in bands)
        return cls(time, value, lower, upper, source, levels)

    @classmethod
    def none(cls, horizon: int, levels: Levels) -> Forecast:
        """Return the forecast before the first reading, when nothing is known."""
        times, unknown = np.full(horizon, "NaT", "M8[us]"), np.full((horizon, len(levels)), np.nan)
        bands = (unknown, unknown)
        return cls.banded(times, unknown[:, 0], bands, source="none", levels=levels)
