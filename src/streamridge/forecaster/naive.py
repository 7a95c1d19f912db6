"""The forecast that needs no model: the same time a season ago, with the band of its own errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite
from streamridge.forecaster.bands import ConformalBands

# How fast the size of errors follows: by a half in about 50 steps.
RATE = 0.015


@dataclass(frozen=True)
class SeasonalNaive:
    """Knows how wrong the same time a season ago has been.

    It stands in for a model before there is one, and when a sensor has been silent for long.

    Parameters
    ----------
    size
        The mean absolute error of late; zero before any is known.
    bands
        The multiples of that size that its bands reach.
    """

    size: float
    bands: ConformalBands

    @classmethod
    def start(cls, level: float) -> SeasonalNaive:
        """Return the state before any error is known."""
        return cls(0.0, ConformalBands.start(horizon=1, level=level))

    def offsets(self, values: Vector, least: float) -> tuple[Vector, Vector]:
        """Return how far bands reach below and above forecasts; at first far."""
        size = max(self.size, least) if self.bands.seen[0] else max(float(abs(values).max()), least)
        below, above = self.bands.offsets(np.array([size]))
        return np.full(len(values), below[0]), np.full(len(values), above[0])

    def observe(self, error: float, least: float) -> SeasonalNaive:
        """Return the state after an error has become known."""
        if not self.bands.seen[0]:
            return replace(self, size=abs(error), bands=self.bands.observe(0, 0.0, 1.0))
        bands = self.bands.observe(0, error, max(self.size, least))
        return SeasonalNaive(self.size + RATE * (abs(error) - self.size), bands)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return all that changes."""
        return {"size": np.array(self.size), **self.bands.state()}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> SeasonalNaive:
        """Return the state that was taken."""
        return SeasonalNaive(
            float(require_finite("size", state["size"])), self.bands.restore(state)
        )
