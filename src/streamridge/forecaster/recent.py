"""The recent sizes of errors, by which forecasts of several kinds are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite, require_shape

# An error counts half after this many later ones.
HALF_LIFE = 24
KEEP = 0.5 ** (1 / HALF_LIFE)
# Fewer errors than this say little about a mean.
FEW = 8


@dataclass(frozen=True)
class RecentErrors:
    """Means of the sizes of errors, in which later errors count more; one for each forecast.

    Parameters
    ----------
    totals, weights
        (K,), discounted sums of the sizes of errors, and of ones.

    Examples
    --------
    >>> errors = RecentErrors.start(2)
    >>> for size in (1.0, 3.0, 3.0):
    ...     errors = errors.observe(np.array([size, np.nan]))
    >>> errors.means.round(2)
    array([2.35,  inf])
    """

    totals: Vector
    weights: Vector

    @classmethod
    def start(cls, count: int) -> RecentErrors:
        """Return the state before any error is known."""
        return cls(np.zeros(count), np.zeros(count))

    @property
    def means(self) -> Vector:
        """Return the mean sizes, shape (K,); infinite where no error is known."""
        none = self.weights == 0
        return np.where(none, np.inf, self.totals / np.where(none, 1.0, self.weights))

    @property
    def are_few(self) -> bool:
        """Return whether the means say little yet."""
        return bool(self.weights.min() < (1 - KEEP**FEW) / (1 - KEEP))

    def observe(self, sizes: Vector) -> RecentErrors:
        """Return the state after new errors of these sizes; NaN stands for none."""
        made = ~np.isnan(sizes)
        return RecentErrors(
            np.where(made, KEEP * self.totals + np.where(made, sizes, 0.0), self.totals),
            np.where(made, KEEP * self.weights + 1, self.weights),
        )

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"totals": self.totals, "weights": self.weights}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> RecentErrors:
        """Return as many means with a saved state."""
        totals, weights = (require_finite(name, state[name]) for name in ("totals", "weights"))
        for array in (totals, weights):
            require_shape("recent errors", array, self.totals.shape)
        return RecentErrors(totals, weights)
