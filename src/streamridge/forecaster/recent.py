"""The recent sizes of errors, by which forecasts of several kinds are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite, require_shape

# An error counts half after this many later ones.
HALF_LIFE = 24
KEEP = 0.5 ** (1 / HALF_LIFE)
# Fewer errors than this say little about a mean.
FEW = 8
ENOUGH = (1 - KEEP**FEW) / (1 - KEEP)


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

    @cached_property
    def means(self) -> Vector:
        """Return the mean sizes, shape (K,); infinite where no error is known."""
        pairs = zip(self.totals.tolist(), self.weights.tolist(), strict=True)
        return np.array([total / weight if weight else np.inf for total, weight in pairs])

    @property
    def are_few(self) -> bool:
        """Return whether the means say little yet."""
        return min(self.weights.tolist()) < ENOUGH

    def observe(self, sizes: Vector) -> RecentErrors:
        """Return the state after new errors of these sizes; NaN stands for none."""
        totals, weights = self.totals.copy(), self.weights.copy()
        for i, size in enumerate(sizes.tolist()):
            if size == size:  # not NaN
                totals[i], weights[i] = KEEP * totals[i] + size, KEEP * weights[i] + 1
        return RecentErrors(totals, weights)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"totals": self.totals, "weights": self.weights}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> RecentErrors:
        """Return as many means with a saved state."""
        totals, weights = (require_finite(name, state[name]) for name in ("totals", "weights"))
        for array in (totals, weights):
            require_shape("recent errors", array, self.totals.shape)
        return RecentErrors(totals, weights)
