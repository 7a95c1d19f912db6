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
from functools import lru_cache
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.forecaster.levels import JUDGED, Level, Levels, gaussian_quantile, require_levels

# How fast the multiples follow: a miss widens its side by 5 %, and by more at the start.
RATE = 0.05
# Multiples stay between these limits, so that they can always recover.
LEAST, MOST = 1e-3, 1e6
# The typical size of a Gaussian error, exp(E log |z|), and the ratio of errors to residuals.
TYPICAL, OPTIMISM = 0.53, 1.3
# More deviations than the band of any level that a number can hold.
FAR = 10.0


@dataclass(frozen=True)
class ConformalBands:
    """The multiples of the expected size of errors that bands reach, per horizon, side and level.

    Parameters
    ----------
    levels
        (K,), the shares of values that should fall into a band, in ascending order. The level that
        readings are judged by is among them.
    reach
        (H, 2, K), the multiples below and above, as they are learned: each level on its own.
    seen
        (H,), the number of scores so far.

    Examples
    --------
    >>> bands = ConformalBands.start(horizon=1, level=0.9)
    >>> for error in 50 * [0.1]:
    ...     bands = bands.observe(0, error, spread=1.0)
    >>> below, above = bands.offsets(np.array([1.0]), (0.5, 0.9))
    >>> bool(-4 < below[0, 1] < below[0, 0] < 0 < above[0, 0] < above[0, 1] < 4)
    True
    """

    levels: Levels
    reach: NDArray[np.float64]
    seen: Vector

    @classmethod
    def start(cls, horizon: int, level: Level) -> ConformalBands:
        """Return the first bands of one level or several, which expect Gaussian errors."""
        levels = tuple(sorted({JUDGED, *require_levels(level)}))
        multiples = [OPTIMISM * gaussian_quantile(each) / TYPICAL for each in levels]
        return cls(levels, np.tile(multiples, (horizon, 2, 1)), np.zeros(horizon))

    def offsets(self, spreads: Vector, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far bands reach below and above forecasts whose errors have these sizes.

        Parameters
        ----------
        spreads
            (H,), the expected sizes.
        levels
            (L,), any levels, learned or not.

        Returns
        -------
        (H, L), (H, L)
            The band of a higher level contains that of a lower one.
        """
        reach = self._multiples(levels) * spreads[:, None, None]
        return -reach[:, 0], reach[:, 1]

    def observe(self, horizon: int, error: float, spread: float) -> ConformalBands:
        """Return the bands after the error of a forecast is known; `horizon` counts from 0."""
        reach, seen = self.reach.copy(), self.seen.copy()
        rate = max(RATE, 1 / sqrt(1 + float(seen[horizon])))
        # Numbers one by one: of so few levels, arrays would take four times as long.
        for side, score in enumerate((-error / spread, error / spread)):
            for i, q in enumerate(reach[horizon, side].tolist()):
                moved = q * exp(rate * ((score > q) - (1 - self.levels[i]) / 2))
                reach[horizon, side, i] = min(max(moved, LEAST), MOST)
        seen[horizon] += 1
        return ConformalBands(self.levels, reach, seen)

    def half_width(self, spread: float) -> float:
        """Return the wider side of the band that readings are judged by, one step ahead."""
        below, above = self.reach[0, :, self.levels.index(JUDGED)].tolist()
        return max(below, above) * spread

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"reach": self.reach, "seen": self.seen}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> ConformalBands:
        """Return the bands with a saved state of the same horizon and levels."""
        reach, seen = (require_finite(name, state[name]) for name in ("reach", "seen"))
        if reach.ndim == 2 and len(self.levels) <= 2:
            reach = reach_of_one_level(reach, self.levels)
        require_shape("reach", reach, self.reach.shape)
        require_shape("seen", seen, self.seen.shape)
        return replace(self, reach=reach, seen=seen)

    def _multiples(self, levels: Levels) -> NDArray[np.float64]:
        """Return the multiples of some levels, (H, 2, L).

        A level that is learned has its own. Between two of them the multiple is a line over the
        quantile of a Gaussian. Below the lowest and above the highest, it is in proportion to the
        quantile.
        """
        known = nested(self.reach, self.levels.index(JUDGED))
        if levels == self.levels:  # nothing to derive
            return known
        at, shares, beyond = _places(self.levels, levels)
        highest = known[..., -1:]
        heights = np.concatenate([0 * highest, known, beyond * highest], axis=-1)
        low, high = heights[..., at], heights[..., at + 1]
        # Rounding must not lift a band beyond that of the next known level.
        return np.minimum(low + shares * (high - low), high)


@lru_cache(maxsize=256)
def _places(known: Levels, levels: Levels) -> tuple[NDArray[np.intp], Vector, float]:
    """Return where levels lie between known ones, by the quantiles of a Gaussian.

    Returns
    -------
    (L,)
        The known level at or below each, counted from 1; 0 stands for the level of zero.
    (L,)
        The share of the way from there to the next, of which the last is `FAR`.
    float
        How many times as far as the highest known level `FAR` is.
    """
    quantiles = np.array([gaussian_quantile(level) for level in levels])
    knots = np.array([0.0, *map(gaussian_quantile, known), FAR])
    at = np.searchsorted(knots, quantiles, side="right") - 1
    return at, (quantiles - knots[at]) / (knots[at + 1] - knots[at]), FAR / float(knots[-2])


def nested(reach: NDArray[np.float64], judged: int) -> NDArray[np.float64]:
    """Return multiples that never fall from a level to a higher one.

    Levels learn on their own, and may cross for a while. The one that readings are judged by stays;
    lower ones are cut to the next higher, and higher ones are raised to the next lower.

    Parameters
    ----------
    reach
        (..., K), the multiples of ascending levels.
    judged
        The place of the level that stays.

    Examples
    --------
    >>> nested(np.array([3.0, 1.0, 2.0, 1.5]), 2)
    array([1., 1., 2., 2.])
    """
    if reach.shape[-1] == 1:
        return reach
    lower = np.minimum.accumulate(reach[..., judged::-1], axis=-1)[..., ::-1]
    higher = np.maximum.accumulate(reach[..., judged:], axis=-1)
    return np.concatenate([lower, higher[..., 1:]], axis=-1)


def reach_of_one_level(reach: Matrix, levels: Levels) -> NDArray[np.float64]:
    """Return the multiples of all levels out of a state that knew only the one asked for.

    That of the level that readings are judged by is in proportion to the quantile of a Gaussian.

    Parameters
    ----------
    reach
        (H, 2), the multiples of the level asked for.
    levels
        The level asked for, and the one that readings are judged by, if it is another.

    Returns
    -------
    (H, 2, K)
    """
    (asked,) = [level for level in levels if level != JUDGED] or [JUDGED]
    ratios = [gaussian_quantile(level) / gaussian_quantile(asked) for level in levels]
    return np.clip(reach[:, :, None] * np.array(ratios), LEAST, MOST)
