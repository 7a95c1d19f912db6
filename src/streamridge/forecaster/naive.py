"""Forecasts that need no model: the value a season ago or the last reading, with own bands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.forecaster.bands import ConformalBands
from streamridge.forecaster.levels import Level, Levels
from streamridge.forecaster.recent import RecentErrors
from streamridge.learners.state import joined, part


@dataclass(frozen=True)
class Naive:
    """The recent errors of the naive forecasts, and the bands of the best of them.

    The best stands in for a model before there is one, when a sensor has been silent for long, and
    when it has been better than the model of late.

    Parameters
    ----------
    errors
        Of each naive forecast: the value the longest season ago, of the shorter ones, and last the
        last reading.
    bands
        The multiples of the best one's errors that its bands reach.
    """

    errors: RecentErrors
    bands: ConformalBands

    @classmethod
    def start(cls, seasons: int, level: Level) -> Naive:
        """Return the state before any error is known, with this number of seasons."""
        bands = ConformalBands.start(horizon=1, level=level)
        return cls(RecentErrors.start(seasons + 1), bands)

    def best(self, *, seasonal: bool) -> int:
        """Return which forecast has been the best of late; of the seasonal ones, if asked for."""
        means = self.errors.means
        return int((means[:-1] if seasonal and len(means) > 1 else means).argmin())

    def offsets(
        self, best: int, values: Vector, least: float, levels: Levels
    ) -> tuple[Matrix, Matrix]:
        """Return how far bands reach below and above forecasts; far, until an error is known."""
        size = float(self.errors.means[best])
        size = max(size if isfinite(size) else float(abs(values).max()), least)
        below, above = self.bands.offsets(np.array([size]), levels)
        return np.repeat(below, len(values), axis=0), np.repeat(above, len(values), axis=0)

    def observe(self, best: int, error: float, sizes: Vector, least: float) -> Naive:
        """Return the state after a reading.

        Parameters
        ----------
        best, error
            Which forecast stood in, or would have, and its error.
        sizes
            (K,), the sizes of the errors of all of them.
        least
            The least size of error that counts.
        """
        size, errors = float(self.errors.means[best]), self.errors.observe(sizes)
        if not isfinite(size):
            return Naive(errors, self.bands)
        return Naive(errors, self.bands.observe(0, error, max(size, least)))

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return joined({"errors": self.errors.state(), "bands": self.bands.state()})

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> Naive:
        """Return the naive forecasts with a saved state."""
        errors, bands = part(state, "errors"), part(state, "bands")
        return Naive(self.errors.restore(errors), self.bands.restore(bands))
