r"""Adaptive conformal bands, which keep their level of coverage by learning from past errors.

The score of a forecast is its error divided by the expected size of the error. A band reaches from
the forecast to a multiple of the expected size on either side. The multiples follow the quantiles
of the scores: after each score, $\log q \leftarrow \log q + \gamma (\mathrm{miss} - \alpha / 2)$.
Whatever the series does, the share of misses comes within $|\log q_T - \log q_0| / (\gamma T)$ of
$\alpha / 2$ on each side, at a constant cost per step (Gibbs and Candes 2021; Angelopoulos, Candes
and Tibshirani 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from streamridge.arrays import Matrix, Vector, require_finite, require_number, require_shape
from streamridge.errors import InvalidInputError

# How fast the multiples follow: a miss widens its side by 5 %, and by more at the start.
RATE = 0.05
# Multiples stay between these limits, so that they can always recover.
LEAST, MOST = 1e-3, 1e6
# The typical size of a Gaussian error, exp(E log |z|), and the ratio of errors to residuals.
TYPICAL, OPTIMISM = 0.53, 1.3


@dataclass(frozen=True)
class ConformalBands:
    """The multiples of the expected size of errors that bands reach, per horizon and side.

    Parameters
    ----------
    level
        The share of values that should fall into a band.
    reach
        (H, 2), the multiples below and above.
    seen
        (H,), the number of scores so far.

    Examples
    --------
    >>> bands = ConformalBands.start(horizon=1, level=0.9)
    >>> for error in 50 * [0.1]:
    ...     bands = bands.observe(0, error, spread=1.0)
    >>> below, above = bands.offsets(np.array([1.0]))
    >>> bool(-4 < below[0] < 0 < above[0] < 4)
    True
    """

    level: float
    reach: Matrix
    seen: Vector

    @classmethod
    def start(cls, horizon: int, level: float) -> ConformalBands:
        """Return the first bands, which expect Gaussian errors."""
        share = require_level(level)
        multiple = OPTIMISM * NormalDist().inv_cdf((1 + share) / 2) / TYPICAL
        return cls(share, np.full((horizon, 2), multiple), np.zeros(horizon))

    def offsets(self, spreads: Vector) -> tuple[Vector, Vector]:
        """Return how far bands reach below and above forecasts whose errors have these sizes."""
        below, above = (self.reach * spreads[:, None]).T
        return -below, above

    def observe(self, horizon: int, error: float, spread: float) -> ConformalBands:
        """Return the bands after the error of a forecast is known; `horizon` counts from 0."""
        sides = np.array([-error, error]) / spread
        rate = max(RATE, 1 / np.sqrt(1 + self.seen[horizon]))
        misses = sides > self.reach[horizon]
        reach, seen = self.reach.copy(), self.seen.copy()
        moved = reach[horizon] * np.exp(rate * (misses - (1 - self.level) / 2))
        reach[horizon] = np.clip(moved, LEAST, MOST)
        seen[horizon] += 1
        return replace(self, reach=reach, seen=seen)

    def state(self) -> dict[str, Matrix]:
        """Return everything that changes, for `restore`."""
        return {"reach": self.reach, "seen": self.seen}

    def restore(self, state: Mapping[str, Matrix]) -> ConformalBands:
        """Return the bands with a saved state of the same horizon and level."""
        reach, seen = (require_finite(name, state[name]) for name in ("reach", "seen"))
        require_shape("reach", reach, self.reach.shape)
        require_shape("seen", seen, self.seen.shape)
        return replace(self, reach=reach, seen=seen)


def require_level(level: float) -> float:
    """Return the level as a number; raise unless it lies between 0 and 1.

    Examples
    --------
    >>> require_level(90)
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: level must lie between 0 and 1, got 90.
    """
    share = require_number("level", level)
    if not 0 < share < 1:
        raise InvalidInputError(f"level must lie between 0 and 1, got {level}.")
    return share
