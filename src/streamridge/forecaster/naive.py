"""The seasonal forecast, which needs no model: the value a season ago, with bands of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite
from streamridge.forecaster.bands import ConformalBands
from streamridge.forecaster.levels import Level, Levels

# Weight of a new error in the size of errors: half of the size is new after about 50 steps.
RATE = 0.015


@dataclass(frozen=True)
class SeasonalNaive:
    """The size of the seasonal forecast's errors, and its bands.

    This forecast stands in for a model before there is one, and when a sensor has been silent for
    long.

    Parameters
    ----------
    size
        Recent mean absolute error; zero before any error is known.
    bands
        The multiples of that size that the bands reach.
    """

    size: float
    bands: ConformalBands

    @classmethod
    def start(cls, level: Level) -> SeasonalNaive:
        """Return the state before any error is known."""
        return cls(0.0, ConformalBands.start(horizon=1, level=level))

    def offsets(self, values: Vector, least: float, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far bands reach below and above forecasts; far, until an error is known."""
        size = max(self.size, least) if self.bands.seen[0] else max(float(abs(values).max()), least)
        below, above = self.bands.offsets(np.array([size]), levels)
        return np.repeat(below, len(values), axis=0), np.repeat(above, len(values), axis=0)

    def observe(self, error: float, least: float) -> SeasonalNaive:
        """Return the state after an error has become known."""
        if not self.bands.seen[0]:
            return replace(self, size=abs(error), bands=self.bands.observe(0, 0.0, 1.0))
        bands = self.bands.observe(0, error, max(self.size, least))
        return SeasonalNaive(self.size + RATE * (abs(error) - self.size), bands)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"size": np.array(self.size), **self.bands.state()}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> SeasonalNaive:
        """Return the seasonal forecast with a saved state."""
        return SeasonalNaive(
            float(require_finite("size", state["size"])), self.bands.restore(state)
        )
