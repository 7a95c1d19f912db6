r"""Adaptive conformal bands: a level of coverage kept on the errors that were lived through.

The error of a forecast over the size that was expected of it is its score. A band reaches from the
forecast to a multiple of the expected size on either side, and the multiples follow the quantiles
of the scores: after each one, $\log q \leftarrow \log q + \gamma (\mathrm{miss} - \alpha / 2)$.
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

# How fast the multiples follow: a miss widens its side by 5 %, sooner at the start.
RATE = 0.05
# Multiples stay between these, so that they can always come back.
LEAST, MOST = 1e-3, 1e6
# The typical size of a Gaussian error, exp(E log |z|), and how much errors exceed residuals.
TYPICAL, OPTIMISM = 0.53, 1.3


@dataclass(frozen=True)
class ConformalBands:
    """Are the multiples of the expected size of error that bands reach, per horizon and side.

    Parameters
    ----------
    level
        The share of values that shall fall into a band.
    reach
        (H, 2), the multiples below and above.
    seen
        (H,), the scores so far.

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
        """Return bands that expect Gaussian errors."""
        share = require_level(level)
        multiple = OPTIMISM * NormalDist().inv_cdf((1 + share) / 2) / TYPICAL
        return cls(share, np.full((horizon, 2), multiple), np.zeros(horizon))

    def offsets(self, spreads: Vector) -> tuple[Vector, Vector]:
        """Return how far bands reach below and above forecasts whose errors have these sizes."""
        below, above = (self.reach * spreads[:, None]).T
        return -below, above

    def observe(self, horizon: int, error: float, spread: float) -> ConformalBands:
        """Return the bands after a forecast, of horizon 0 on, whose error has become known."""
        sides = np.array([-error, error]) / spread
        rate = max(RATE, 1 / np.sqrt(1 + self.seen[horizon]))
        misses = sides > self.reach[horizon]
        reach, seen = self.reach.copy(), self.seen.copy()
        moved = reach[horizon] * np.exp(rate * (misses - (1 - self.level) / 2))
        reach[horizon] = np.clip(moved, LEAST, MOST)
        seen[horizon] += 1
        return replace(self, reach=reach, seen=seen)

    def state(self) -> dict[str, Matrix]:
        """Return all that changes."""
        return {"reach": self.reach, "seen": self.seen}

    def restore(self, state: Mapping[str, Matrix]) -> ConformalBands:
        """Return the bands that were taken, of the same horizon and level."""
        reach, seen = (require_finite(name, state[name]) for name in ("reach", "seen"))
        require_shape("reach", reach, self.reach.shape)
        require_shape("seen", seen, self.seen.shape)
        return replace(self, reach=reach, seen=seen)


def require_level(level: float) -> float:
    """Return the level, or say that it is no share.

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
