"""An online correction of forecasts by the model's own last errors.

A fit is up to a window old, and days differ: when the last forecasts were too low, the next ones
tend to be too low as well. So a share of the mean of the last errors is added to a forecast. The
share is learned by discounted least squares, from how much of that mean came true in later errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from streamridge.arrays import Vector, require_finite, require_shape

# Errors count half after this many steps.
HALF_LIFE = 3
KEEP = 0.5 ** (1 / HALF_LIFE)
# Discount, per error, of the sums that the share is learned from.
MEMORY = 1 - 1 / 96
# Discount, per error, of the variance of errors.
VARIANCE_MEMORY = 0.995
# Weight of the prior that the share is zero, in errors.
PRIOR = 10.0


@dataclass(frozen=True)
class ErrorCorrection:
    """The mean of the model's last errors, and the share of it to add per horizon.

    Parameters
    ----------
    mean
        Mean of the last errors one step ahead, in which later errors count more.
    products, squares
        (H,), discounted sums of error times mean, and of the mean squared; the mean is the one when
        the forecast was made.
    variance
        (H,), variance of recent errors; zero before any error is known.

    Examples
    --------
    >>> correction = ErrorCorrection.start(horizon=1)
    >>> for _ in range(40):  # forecasts that are always 2 too low
    ...     correction = correction.learn(0, error=2.0, mean=correction.mean).observe(2.0)
    >>> correction.offsets().round(1)
    array([1.6])
    """

    mean: float
    products: Vector
    squares: Vector
    variance: Vector

    @classmethod
    def start(cls, horizon: int) -> ErrorCorrection:
        """Return the state before any error is known: no correction."""
        return cls(0.0, np.zeros(horizon), np.zeros(horizon), np.zeros(horizon))

    def offsets(self) -> Vector:
        """Return what to add to the next forecasts, shape (H,)."""
        evidence = self.squares + PRIOR * self.variance
        share = np.clip(self.products / np.where(evidence > 0, evidence, 1.0), 0.0, 1.0)
        return share * self.mean

    def learn(self, horizon: int, error: float, mean: float) -> ErrorCorrection:
        """Return the state after a forecast's error is known; `mean` is from when it was made."""
        products, squares, variance = (
            array.copy() for array in (self.products, self.squares, self.variance)
        )
        products[horizon] = MEMORY * products[horizon] + error * mean
        squares[horizon] = MEMORY * squares[horizon] + mean * mean
        seen = variance[horizon] > 0
        weight = 1 - VARIANCE_MEMORY if seen else 1.0
        variance[horizon] += weight * (error * error - variance[horizon])
        return replace(self, products=products, squares=squares, variance=variance)

    def observe(self, error: float) -> ErrorCorrection:
        """Return the state after the error of a forecast one step ahead."""
        return replace(self, mean=KEEP * self.mean + (1 - KEEP) * error)

    def forget(self, steps: int = 1) -> ErrorCorrection:
        """Return the state after steps without a usable error, as if they had come one by one."""
        mean = self.mean
        for _ in range(steps):
            if mean == 0:
                break
            mean *= KEEP
        return replace(self, mean=mean)

    def state(self) -> dict[str, Vector]:
        """Return everything that changes, for `restore`."""
        return {
            "mean": np.array(self.mean),
            "products": self.products,
            "squares": self.squares,
            "variance": self.variance,
        }

    def restore(self, state: Mapping[str, Vector]) -> ErrorCorrection:
        """Return the correction with a saved state of the same horizon."""
        arrays = [require_finite(name, state[name]) for name in ("products", "squares", "variance")]
        for array in arrays:
            require_shape("correction", array, self.products.shape)
        return ErrorCorrection(float(require_finite("mean", state["mean"])), *arrays)
