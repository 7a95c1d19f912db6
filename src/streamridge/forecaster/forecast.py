"""A forecast as users get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamridge.arrays import Vector
from streamridge.series.clock import Times

Source = Literal["model", "seasonal", "none"]


@dataclass(frozen=True)
class Forecast:
    """A forecast of the next steps, with one entry per horizon.

    Parameters
    ----------
    time
        (H,), the times of the steps; whole numbers for an integer index.
    value, lower, upper
        (H,), the forecast, and the band that should hold the actual value as often as `level` says.
    source
        "model"; "seasonal", the value a season ago, before there is a model and when the sensor has
        been silent for the shortest season, or for eight steps of a day or longer; or "none" before
        the first reading, when the numbers are NaN.
    """

    time: Times
    value: Vector
    lower: Vector
    upper: Vector
    source: Source

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def none(cls, horizon: int) -> Forecast:
        """Return the forecast before the first reading, when nothing is known."""
        unknown = np.full(horizon, np.nan)
        return cls(np.full(horizon, "NaT", "M8[us]"), unknown, unknown, unknown, "none")
