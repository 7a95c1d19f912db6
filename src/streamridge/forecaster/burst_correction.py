r"""A correction for intermittent streams, whose bursts come at the same time of each day.

A model has few rows with bursts, so its forecasts of them are noisy. If most readings are equal,
the next forecast moves towards the mean of the readings at the same time on the last days. With
the difference $c$ of the mean from the forecast, and the error $e$ of the forecast, the share of
the difference that is added is

$$s = \frac{\sum c\, e - \tfrac12 \sqrt{\sum c^2 (e - s c)^2}}{\sum c^2},$$

the least-squares estimate over past forecasts less half its standard error. It is between zero and
one and starts at zero, so a forecast moves only where this has helped. Sums are discounted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError
from streamridge.forecaster.plausibility import Limits, clipped

# The memory of the sums, in days.
MEMORY = 28
# A share is its estimate less this number of standard errors.
DOUBT = 0.5


@dataclass(frozen=True)
class BurstForecast:
    """A forecast of the next step before its correction, and its difference from the mean."""

    value: float
    change: float  # what has to be added for the mean of the last days
    share: float  # the share of it that is added

    def corrected(self, values: Vector, limits: Limits) -> Vector:
        """Return the forecast, (H,), with its first step corrected, within limits."""
        change = self.share * self.change
        return np.append(clipped(values[:1] + change, limits), values[1:]) if change else values


@dataclass(frozen=True)
class BurstCorrection:
    """The sums that the share is computed from."""

    day: int  # in steps
    # (3,), discounted: the squares of the changes, their products with the errors, and the squares
    # of their products with what is left of the errors.
    sums: Vector = field(default_factory=lambda: np.zeros(3))

    @property
    def share(self) -> float:
        """Return how much of a change is added, between zero and one."""
        squares, products, deviations = self.sums.tolist()
        least = products - DOUBT * sqrt(deviations)
        return min(least / squares, 1.0) if squares > 0 and least > 0 else 0.0

    def forecast(self, value: float, mean: float) -> BurstForecast | None:
        """Return the correction of a forecast; None if the mean is NaN, which is unknown."""
        change = mean - value
        return BurstForecast(value, change, self.share) if isfinite(change) else None

    def observe(self, value: float, forecast: BurstForecast) -> BurstCorrection:
        """Return the correction after a value that can be learned from."""
        change, error = forecast.change, value - forecast.value
        weighted = change * (error - forecast.share * change)
        new = np.array([change * change, change * error, weighted * weighted])
        sums = (1 - 1 / (MEMORY * self.day)) * self.sums + new
        # Numbers that are too large teach nothing.
        return replace(self, sums=sums) if np.isfinite(sums).all() else self

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return {"sums": self.sums}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> BurstCorrection:
        """Return the correction with a saved state."""
        sums = require_finite("sums", state["sums"])
        require_shape("sums", sums, self.sums.shape)
        if min(sums[0], sums[2]) < 0:
            raise InvalidInputError(f"sums must not be negative, got {sums}")
        return replace(self, sums=sums)
