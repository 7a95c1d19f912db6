r"""Sizes of recent errors, volatility, and adaptive conformal bands that learn from past errors.

A model predicts the size of an error from its input. But error sizes also cluster in time: for
hours they are larger than usual, or smaller. The score of a forecast is its error divided by the
size that the model expected. The next sizes are multiplied by $(r / u)^p$, with the mean $r$ of the
recent scores and their usual mean $u$. In usual times the power 1/2 is best, since a mean of few
scores is uncertain; after a change of the noise it is 1. The best half-life of "recent" depends on
the stream as well. So several candidates run in parallel, weighted by the likelihood of the scores.

A band extends from the forecast by a multiple of the expected size on either side. The multiples
follow the quantiles of the scores: after each score,
$\log q \leftarrow \log q + \gamma (\mathrm{miss} - \alpha / 2)$. For every series, the share of
misses comes within $|\log q_T - \log q_0| / (\gamma T)$ of $\alpha / 2$ on each side, at a constant
cost per step (Gibbs and Candes 2021; Angelopoulos, Candes and Tibshirani 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import exp, isfinite, log, sqrt

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import (
    Matrix,
    Vector,
    joined,
    part,
    require_finite,
    require_positive,
    require_shape,
)
from streamridge.forecaster.forecast import JUDGED, Level, Levels, gaussian_quantile, require_levels

# An error counts half in a mean after this many later errors.
HALF_LIFE = 24
KEEP = 0.5 ** (1 / HALF_LIFE)
# Fewer errors than this say little.
FEW = 8
# The weight of the size that is expected before any error is known, in errors.
EXPECTED = 4

# Volatility: recent scores count half after one of these numbers of scores, (L,), and usual scores
# after this number. Each candidate has one of the half-lives and one of the powers, (P,).
HALF_LIVES, USUAL_HALF_LIFE = np.array([2.0, 8.0, 32.0]), 480
POWERS = (0.5, 1.0)
# Weight of the newest score in the recent means, and in the usual mean.
NEW, USUAL_NEW = (1 - 0.5 ** (1 / HALF_LIVES)).tolist(), 1 - 0.5 ** (1 / USUAL_HALF_LIFE)
# The power of each candidate, (P L,).
EXPONENTS = np.repeat(POWERS, len(HALF_LIVES))
# Discount, per score, of the likelihoods that candidates are weighted by.
WEIGHING = 1 - 1 / 200
# Before any score, all means are one, with the weight of this number of scores.
PRIOR = 8
# A score counts at least this much, and at most this multiple of the usual and of recent scores.
LEAST_SCORE, MOST_SCORE = 1e-2, 8.0
# The same for the usual mean, which must not follow a change before the model does.
MOST_USUAL = 2.0


@dataclass(frozen=True)
class RecentErrors:
    """Means of the sizes of errors, in which later errors count more; one for each forecast.

    Examples
    --------
    >>> errors = RecentErrors.start(2)
    >>> for size in (1.0, 3.0, 3.0):
    ...     errors = errors.observe([size, np.nan])
    >>> errors.means.round(2)
    array([2.35,  inf])
    """

    totals: Vector  # (K,), discounted sums of the sizes of errors
    weights: Vector  # (K,), discounted sums of ones

    @classmethod
    def start(cls, count: int) -> RecentErrors:
        """Return the state before any error is known."""
        return cls(np.zeros(count), np.zeros(count))

    def expecting(self, size: float) -> RecentErrors:
        """Return the state that expects errors of this size, before any error is known."""
        return RecentErrors(self.totals + EXPECTED * size, self.weights + EXPECTED)

    @cached_property
    def means(self) -> Vector:
        """Return the mean sizes, shape (K,); infinite where no error is known."""
        pairs = zip(self.totals.tolist(), self.weights.tolist(), strict=True)
        return np.array([total / weight if weight else np.inf for total, weight in pairs])

    def observe(self, sizes: list[float]) -> RecentErrors:
        """Return the state after new errors of these sizes; NaN for none."""
        totals, weights = self.totals.copy(), self.weights.copy()
        for i, size in enumerate(sizes):
            if size == size:  # not NaN
                totals[i], weights[i] = KEEP * totals[i] + size, KEEP * weights[i] + 1
        return RecentErrors(totals, weights)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"totals": self.totals, "weights": self.weights}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> RecentErrors:
        """Return the means with a saved state of the same size."""
        totals, weights = (require_finite(name, state[name]) for name in ("totals", "weights"))
        for array in (totals, weights):
            require_shape("recent errors", array, self.totals.shape)
        return RecentErrors(totals, weights)


@dataclass(frozen=True)
class Volatility:
    """The means of the recent scores and of the usual scores, per horizon.

    Examples
    --------
    >>> volatility = Volatility.start(horizon=1)
    >>> for score in 200 * [1.0] + 20 * [4.0]:
    ...     volatility = volatility.observe(0, score)
    >>> volatility.factors().round(1)
    array([3.6])
    """

    recent: Matrix  # (H, L), means of the recent scores, one for each half-life
    usual: Vector  # (H,), means of the scores of the last weeks
    fits: Matrix  # (H, P L), discounted log likelihoods of the scores under each candidate
    seen: Vector  # (H,), the number of scores so far

    @classmethod
    def start(cls, horizon: int) -> Volatility:
        """Return the state before any score is known."""
        recent, fits = np.ones((horizon, len(HALF_LIVES))), np.zeros((horizon, len(EXPONENTS)))
        return cls(recent, np.ones(horizon), fits, np.zeros(horizon))

    @property
    def half_life(self) -> float:
        """Return the half-life of recent scores one step ahead, a mean over the candidates."""
        return float(np.exp(self.weights()[0] @ np.tile(np.log(HALF_LIVES), len(POWERS))))

    def factors(self) -> Vector:
        """Return the factors for the sizes of the next errors, shape (H,)."""
        logs = np.log(self.recent / self.usual[:, None])
        return np.exp(
            (self.weights() * np.concatenate(len(POWERS) * [logs], axis=1)).dot(EXPONENTS)
        )

    def weights(self) -> Matrix:
        """Return the weight of each candidate, shape (H, P L); a row sums to one."""
        weights = np.exp(self.fits - np.maximum.reduce(self.fits, axis=1, keepdims=True))
        return weights / np.add.reduce(weights, axis=1, keepdims=True)

    def observe(self, horizon: int, score: float) -> Volatility:
        """Return the state after the score of a forecast; `horizon` counts from 0."""
        recent, usual, fits, seen = (
            each.copy() for each in (self.recent, self.usual, self.fits, self.seen)
        )
        u, first = float(usual[horizon]), 1 / (PRIOR + float(seen[horizon]))
        means = recent[horizon].tolist()
        score = min(max(score, LEAST_SCORE), MOST_SCORE * max(u, *means))
        # Plain numbers: for a few candidates, arrays would take three times as long.
        for i, (mean, new) in enumerate(zip(means, NEW, strict=True)):
            # The density of a score with the expected mean f u is exp(-s/(f u))/(f u).
            for j, power in enumerate(POWERS):
                factor, at = (mean / u) ** power, i + j * len(means)
                fits[horizon, at] = (
                    WEIGHING * fits[horizon, at] - log(factor) - score / (factor * u)
                )
            recent[horizon, i] = mean + max(new, first) * (score - mean)
        usual[horizon] = u + max(USUAL_NEW, first) * (min(score, MOST_USUAL * u) - u)
        seen[horizon] += 1
        return Volatility(recent, usual, fits, seen)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> Volatility:
        """Return the volatility with a saved state of the same horizon."""
        arrays = {name: require_finite(name, state[name]) for name in vars(self)}
        for name, array in arrays.items():
            require_shape("volatility", array, getattr(self, name).shape)
        for name in ("recent", "usual"):  # errors are divided by them
            require_positive(name, arrays[name])
        return Volatility(**arrays)


# How fast the multiples follow: a miss widens its side by 5 %, and by more among the first scores.
RATE = 0.05
# Multiples stay between these limits, so they can always recover.
LEAST, MOST = 1e-3, 1e6
# The typical size of a Gaussian error, exp(E log |z|), and the ratio of errors to residuals.
TYPICAL, OPTIMISM = 0.53, 1.3
# More deviations than the band of any level below one.
FAR = 10.0


@dataclass(frozen=True)
class ConformalBands:
    """The widths of bands in multiples of the expected error, per horizon, side and level.

    Examples
    --------
    >>> bands = ConformalBands.start(horizon=1, level=0.9)
    >>> for error in 50 * [0.1]:
    ...     bands = bands.observe(0, error, spread=1.0)
    >>> below, above = bands.offsets(np.array([1.0]), (0.5, 0.9))
    >>> bool(-4 < below[0, 1] < below[0, 0] < 0 < above[0, 0] < above[0, 1] < 4)
    True
    """

    # (K,), the shares of values that should fall into a band, in ascending order. The level that
    # readings are judged by is among them.
    levels: Levels
    # (H, 2, K), the learned multiples below and above, each level on its own.
    reach: NDArray[np.float64]
    seen: Vector  # (H,), the number of scores so far

    @classmethod
    def start(cls, horizon: int, level: Level) -> ConformalBands:
        """Return the initial bands of one level or several, for Gaussian errors."""
        levels = tuple(sorted({JUDGED, *require_levels(level)}))
        multiples = [OPTIMISM * gaussian_quantile(each) / TYPICAL for each in levels]
        return cls(levels, np.tile(multiples, (horizon, 2, 1)), np.zeros(horizon))

    def offsets(self, spreads: Vector, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return the distances from forecasts to the ends of their bands, below and above, (H, L).

        `spreads` are the expected sizes of the errors, (H,). Any levels are possible, learned or
        not. Bands of higher levels contain bands of lower levels.
        """
        known = self.reach
        if len(self.levels) > 1:
            known = nested(known, self.levels.index(JUDGED))
        reach = known if levels == self.levels else self._derived(known, levels)
        reach = reach * spreads[:, None, None]
        return -reach[:, 0], reach[:, 1]

    def observe(self, horizon: int, error: float, spread: float) -> ConformalBands:
        """Return the bands after the error of a forecast is known; `horizon` counts from 0."""
        reach, seen = self.reach.copy(), self.seen.copy()
        rate = max(RATE, 1 / sqrt(FEW + float(seen[horizon])))
        # Plain numbers: for a few levels, arrays would take four times as long.
        for side, score in enumerate((-error / spread, error / spread)):
            for i, q in enumerate(reach[horizon, side].tolist()):
                moved = q * exp(rate * ((score > q) - (1 - self.levels[i]) / 2))
                reach[horizon, side, i] = min(max(moved, LEAST), MOST)
        seen[horizon] += 1
        return ConformalBands(self.levels, reach, seen)

    @property
    def mean_multiple(self) -> float:
        """Return the mean multiple of the band that readings are judged by, one step ahead."""
        return float(self.reach[0, :, self.levels.index(JUDGED)].mean())

    def half_width(self, spread: float) -> float:
        """Return the wider half of the band that readings are judged by, one step ahead."""
        below, above = self.reach[0, :, self.levels.index(JUDGED)].tolist()
        return max(below, above) * spread

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"reach": self.reach, "seen": self.seen}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> ConformalBands:
        """Return the bands with a saved state of the same horizon and levels."""
        reach, seen = (require_finite(name, state[name]) for name in ("reach", "seen"))
        require_shape("reach", reach, self.reach.shape)
        require_shape("seen", seen, self.seen.shape)
        return replace(self, reach=reach, seen=seen)

    def _derived(self, known: NDArray[np.float64], levels: Levels) -> NDArray[np.float64]:
        """Return the multiples of any levels, (H, 2, L), given the multiples of learned levels.

        A learned level has its own. Between two learned levels the multiple is a line over the
        quantile of a Gaussian. Below the lowest and above the highest level, it is proportional to
        the quantile.
        """
        at, shares, beyond = _places(self.levels, levels)
        highest = known[..., -1:]
        heights = np.concatenate([0 * highest, known, beyond * highest], axis=-1)
        low, high = heights[..., at], heights[..., at + 1]
        # Rounding must not lift a band beyond the band of the next known level.
        return np.minimum(low + shares * (high - low), high)


@lru_cache(maxsize=256)
def _places(known: Levels, levels: Levels) -> tuple[NDArray[np.intp], Vector, float]:
    """Return the positions of levels between known levels, by the quantiles of a Gaussian.

    They are the known level at or below each, counted from 1 (0 is the level of zero); the share of
    the distance from there to the next level (the last is `FAR`); and `FAR` divided by the highest.
    """
    quantiles = np.array([gaussian_quantile(level) for level in levels])
    knots = np.array([0.0, *map(gaussian_quantile, known), FAR])
    at = np.searchsorted(knots, quantiles, side="right") - 1
    return at, (quantiles - knots[at]) / (knots[at + 1] - knots[at]), FAR / float(knots[-2])


def nested(reach: NDArray[np.float64], judged: int) -> NDArray[np.float64]:
    """Return multiples that never fall from a level to a higher one.

    Levels learn independently, and may cross for a while. The level that readings are judged by
    stays; lower levels are cut to the next higher, and higher levels are raised to the next lower.

    Examples
    --------
    >>> nested(np.array([3.0, 1.0, 2.0, 1.5]), 2)
    array([1., 1., 2., 2.])
    """
    lower = np.minimum.accumulate(reach[..., judged::-1], axis=-1)[..., ::-1]
    higher = np.maximum.accumulate(reach[..., judged:], axis=-1)
    return np.concatenate([lower, higher[..., 1:]], axis=-1)


@dataclass(frozen=True)
class NaiveErrors:
    """The recent errors of the naive forecasts, and the bands of the best of them.

    The best naive forecast is the fallback before there is a model, and after a long silence of the
    sensor.
    """

    # Recent errors of each naive forecast: the value one season ago, the longest season first, and
    # the last reading at the end.
    errors: RecentErrors
    bands: ConformalBands  # the bands of the best forecast, in multiples of its mean error

    @classmethod
    def start(cls, seasons: int, level: Level) -> NaiveErrors:
        """Return the state before any error is known, with this number of seasons."""
        bands = ConformalBands.start(horizon=1, level=level)
        return cls(RecentErrors.start(seasons + 1), bands)

    def best(self, *, seasonal: bool) -> int:
        """Return the place of the best recent forecast; only seasonal ones count if asked for."""
        means = self.errors.means
        return int((means[:-1] if seasonal and len(means) > 1 else means).argmin())

    def size(self, best: int, value: float, least: float) -> float:
        """Return the mean recent error of a forecast; the value until an error is known."""
        size = float(self.errors.means[best])
        return max(size if isfinite(size) else abs(value), least)

    def observe(
        self, best: int, error: float, sizes: list[float], least: float, expected: float
    ) -> NaiveErrors:
        """Return the state after a reading, given the error of the best forecast, and all sizes.

        `expected` is the size of error to expect before there is any.
        """
        size, errors = float(self.errors.means[best]), self.errors
        if not isfinite(size):
            return NaiveErrors(errors.expecting(expected).observe(sizes), self.bands)
        return NaiveErrors(errors.observe(sizes), self.bands.observe(0, error, max(size, least)))

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return joined({"errors": self.errors.state(), "bands": self.bands.state()})

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> NaiveErrors:
        """Return the errors with a saved state."""
        errors, bands = part(state, "errors"), part(state, "bands")
        return NaiveErrors(self.errors.restore(errors), self.bands.restore(bands))
