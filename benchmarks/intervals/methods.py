"""Rules for the reach of an interval, given the scores of past forecasts.

The score of a forecast is its error divided by the size of error that the model expected. A rule
keeps a reach for each of its settings, each side (below, above) and each level, shape (R, 2, K), in
units of this size. The score of a side is positive if the value lies on this side of the forecast.
A level of 90 % allows a share of a = 5 % of misses on each side. Every rule has the update that its
authors published. All start at the same reach, and compare a score with the reach that was issued
for it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector

Reach = NDArray[np.float64]  # (R, 2, K)

LEVELS = (0.5, 0.8, 0.9, 0.95)
SHARES = (1 - np.array(LEVELS)) / 2  # (K,), the misses that are allowed on each side
# Fewer scores than this have no quantiles.
FEWEST = 100
# Decay of earlier errors in ECI-integral.
DECAY = 0.95
# The number of scores that the saturation of an integrator is designed for, and its margin.
PLANNED, MARGIN = 5000, 0.01


class Score(NamedTuple):
    """A score, and the scale of the scores before it."""

    sides: Matrix  # (2, 1), the score of each side
    range: Matrix  # (2, 1), the range of the last 100 scores of each side
    largest: float  # the largest size among the first 100 scores


class Rule(Protocol):
    """A rule for the reach of the next interval; it changes with every score."""

    reach: Reach

    def observe(self, score: Score, issued: Reach) -> None:
        """Learn from a score and the reach that was issued for it."""
        ...


class Multiplicative:
    """The product's rule: log q grows by rate * (miss - a), and by more among the first scores."""

    def __init__(self, start: Matrix, rates: Sequence[float]) -> None:
        self.reach, self._rates, self._seen = tiled(start, rates), column(rates), 0

    def observe(self, score: Score, issued: Reach) -> None:
        """Compare with the present reach, as the product does."""
        rate = np.maximum(self._rates, 1 / np.sqrt(8 + self._seen))
        missed = score.sides > self.reach
        self.reach = np.clip(self.reach * np.exp(rate * (missed - SHARES)), 1e-3, 1e6)
        self._seen += 1


class ConformalPID:
    """Quantile tracking with an integrator (Angelopoulos, Candes and Tibshirani 2023).

    p += eta (miss - a), with eta a share of the range of the last scores, and
    q = p + K tan(E log(t + 1) / (C (t + 1))), with the sum E of (miss - a). The integrator is
    limited to twice the range of the last scores, since tan is infinite at times.
    """

    def __init__(self, start: Matrix, rates: Sequence[float], *, integrates: bool = True) -> None:
        self.reach, self._rates, self._integrates = tiled(start, rates), column(rates), integrates
        self._tracked, self._sum, self._seen = self.reach, np.zeros_like(self.reach), 0
        self._saturation = 2 / np.pi * (np.ceil(np.log(PLANNED) * MARGIN) - 1 / np.log(PLANNED))

    def observe(self, score: Score, issued: Reach) -> None:
        """Track the quantile, and add the integrator."""
        excess = (score.sides > issued) - SHARES
        self._sum, self._seen = self._sum + excess, self._seen + 1
        self._tracked = self._tracked + self._rates * score.range * excess
        self.reach = self._tracked + (self._integrated(score) if self._integrates else 0.0)

    def _integrated(self, score: Score) -> Reach:
        t, most = self._seen, 2 * score.range
        angle = self._sum * np.log(t + 1) / (self._saturation * (t + 1))
        return np.clip(score.largest * np.tan(np.clip(angle, -1.57, 1.57)), -most, most)


class ScaleFreeDescent:
    """SF-OGD (Bhatnagar and others 2023): q -= D g / sqrt(3 sum g^2), with g = a - miss.

    D is a multiple of the largest of the first scores; the authors use the root of three.
    """

    def __init__(self, start: Matrix, multiples: Sequence[float]) -> None:
        self.reach, self._multiples = tiled(start, multiples), column(multiples)
        self._squares = np.zeros_like(self.reach)

    def observe(self, score: Score, issued: Reach) -> None:
        """Step along the gradient of the quantile loss."""
        gradient = SHARES - (score.sides > issued)
        self._squares = self._squares + gradient**2
        step = self._multiples * score.largest / np.sqrt(3 * self._squares)
        self.reach = self.reach - step * gradient


class ErrorQuantified:
    """ECI (Wu and others 2025): p += eta (miss - a), q = p + eta (s - q) f'(s - q), f logistic.

    `integral` replaces the last term by its decaying mean over all scores (ECI-integral). As in the
    code of the authors, this term is not part of the sum p; otherwise coverages would be biased.
    """

    def __init__(self, start: Matrix, rates: Sequence[float], *, integral: bool = False) -> None:
        self.reach, self._rates, self._integral = tiled(start, rates), column(rates), integral
        self._tracked = self.reach
        self._total, self._weight = np.zeros_like(self.reach), 0.0

    def observe(self, score: Score, issued: Reach) -> None:
        """Track the quantile, and add a term for the size of the miss."""
        beyond = score.sides - issued
        logistic = 1 / (1 + np.exp(-np.clip(beyond, -50, 50)))
        term = beyond * logistic * (1 - logistic)
        if self._integral:
            self._total, self._weight = DECAY * self._total + term, DECAY * self._weight + 1
            term = self._total / self._weight
        step = self._rates * score.range
        self._tracked = self._tracked + step * ((beyond > 0) - SHARES)
        self.reach = self._tracked + step * term


class RecentQuantiles:
    """The quantiles of the last scores, as in split conformal prediction with a moving window."""

    def __init__(self, start: Matrix, windows: Sequence[int]) -> None:
        self.reach = tiled(start, windows)
        self._windows, self._last = windows, deque[list[float]](maxlen=max(windows) + 1)
        self._sorted: list[tuple[list[float], list[float]]] = [([], []) for _ in windows]

    def observe(self, score: Score, issued: Reach) -> None:
        """Add the newest score, and drop the oldest."""
        sides = score.sides[:, 0].tolist()
        self._last.append(sides)
        reach = self.reach.copy()
        for i, (window, kept) in enumerate(zip(self._windows, self._sorted, strict=True)):
            for side, each in enumerate(kept):
                insort(each, sides[side])
                if len(each) > window:
                    each.pop(bisect_left(each, self._last[-window - 1][side]))
                if len(each) >= FEWEST:
                    reach[i, side] = [each[at] for at in places(len(each))]
        self.reach = reach


class LeaveOneOut:
    """Quantiles of the leave-one-out scores of the newest fit (RetroAdj, Jun and Ohn 2025).

    The share of misses is adapted as in adaptive conformal inference: a_t += rate (a - miss).
    """

    def __init__(self, start: Matrix, rates: Sequence[float]) -> None:
        self.reach, self._rates = tiled(start, rates), column(rates)
        self._shares = np.broadcast_to(SHARES, self.reach.shape)
        self._quantiles: Vector | None = None

    def refit(self, quantiles: Vector) -> None:
        """Use the quantiles of a new fit's signed scores at equal steps of probability, (Q,)."""
        self._quantiles = quantiles
        self._update()

    def observe(self, score: Score, issued: Reach) -> None:
        """Adapt the shares of misses."""
        shares = self._shares + self._rates * (SHARES - (score.sides > issued))
        self._shares = np.clip(shares, 1e-4, 0.5)
        self._update()

    def _update(self) -> None:
        if self._quantiles is not None:
            at, shares = np.linspace(0, 1, len(self._quantiles)), self._shares
            below = -np.interp(shares[:, 0], at, self._quantiles)
            above = np.interp(1 - shares[:, 1], at, self._quantiles)
            self.reach = np.stack([below, above], axis=1)


def tiled(start: Matrix, settings: Sequence[float]) -> Reach:
    """Return the initial reach for each setting, (R, 2, K)."""
    return np.tile(start, (len(settings), 1, 1))


def column(settings: Sequence[float]) -> Reach:
    """Return settings as an array that multiplies a reach, (R, 1, 1)."""
    return np.array(settings, dtype=float)[:, None, None]


def places(count: int) -> list[int]:
    """Return the positions of the quantiles 1 - a among sorted scores, one for each level."""
    found = np.minimum(np.ceil((1 - SHARES) * (count + 1)), count) - 1
    return [int(at) for at in found]


def interval_score(actual: Vector, lower: Matrix, upper: Matrix) -> Vector:
    """Return the mean interval score (Winkler) of each level, (K,), given n intervals, (n, K)."""
    missed = np.maximum(lower - actual[:, None], 0) + np.maximum(actual[:, None] - upper, 0)
    return (upper - lower + missed / SHARES).mean(axis=0)
