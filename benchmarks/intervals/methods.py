"""Rules for the reach of an interval, given the scores of past forecasts.

The score of a forecast is its error divided by the size of error that the model expected. A rule
keeps a reach for each side (below, above) and each level, shape (2, K), in units of this size. The
score of a side is positive if the value lies on this side of the forecast. A level of 90 % allows a
share of a = 5 % of misses on each side. Every rule has the update that its authors published. All
start at the same reach, and a rule compares a score with the reach that was issued for it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from streamridge.arrays import Matrix, Vector

LEVELS = (0.5, 0.8, 0.9, 0.95)
SHARES = (1 - np.array(LEVELS)) / 2  # (K,), the misses that are allowed on each side
# The last scores whose range sets a rate, and the first scores whose largest sets a scale.
RANGE, FIRST = 100, 100
# Decay of earlier errors in ECI-integral.
DECAY = 0.95
# The number of scores that the saturation of an integrator is designed for, and its margin.
PLANNED, MARGIN = 5000, 0.01


class Rule(Protocol):
    """A rule for the reach of the next interval; it changes with every score."""

    reach: Matrix  # (2, K)

    def observe(self, scores: Vector, issued: Matrix) -> None:
        """Learn from the score of both sides, (2,), and the reach that was issued, (2, K)."""
        ...


@dataclass
class Multiplicative:
    """The product's rule: log q grows by rate * (miss - a), and by more among the first scores."""

    reach: Matrix
    rate: float
    seen: int = 0

    def observe(self, scores: Vector, issued: Matrix) -> None:
        """Compare with the present reach, as the product does."""
        rate = max(self.rate, 1 / np.sqrt(8 + self.seen))
        missed = scores[:, None] > self.reach
        self.reach = np.clip(self.reach * np.exp(rate * (missed - SHARES)), 1e-3, 1e6)
        self.seen += 1


@dataclass
class RecentScores:
    """The range of the last scores of each side, and the largest of the first scores."""

    last: deque[Vector] = field(default_factory=lambda: deque(maxlen=RANGE))
    largest: float = 0.0
    seen: int = 0

    def add(self, scores: Vector) -> None:
        """Add the score of both sides."""
        self.last.append(scores)
        self.seen += 1
        if self.seen <= FIRST:
            self.largest = max(self.largest, float(np.abs(scores).max()))

    @property
    def range(self) -> Matrix:
        """Return the range of the last scores, (2, 1)."""
        return np.ptp(np.array(self.last), axis=0)[:, None]


@dataclass
class ConformalPID:
    """Quantile tracking with an integrator (Angelopoulos, Candes and Tibshirani 2023).

    p += eta (miss - a), with eta a share of the range of the last scores, and
    q = p + K tan(E log(t + 1) / (C (t + 1))), with the sum E of (miss - a). The integrator is
    limited to twice the largest score of the last ones, since tan is infinite at times.
    """

    reach: Matrix
    rate: float
    integrates: bool = True
    recent: RecentScores = field(default_factory=RecentScores)

    def __post_init__(self) -> None:
        self._tracked, self._sum = self.reach.copy(), np.zeros_like(self.reach)
        self._saturation = 2 / np.pi * (np.ceil(np.log(PLANNED) * MARGIN) - 1 / np.log(PLANNED))

    def observe(self, scores: Vector, issued: Matrix) -> None:
        """Track the quantile, and add the integrator."""
        self.recent.add(scores)
        excess = (scores[:, None] > issued) - SHARES
        self._sum += excess
        self._tracked = self._tracked + self.rate * self.recent.range * excess
        self.reach = self._tracked + self._integrated() if self.integrates else self._tracked

    def _integrated(self) -> Matrix:
        t, most = self.recent.seen, 2 * self.recent.range
        angle = self._sum * np.log(t + 1) / (self._saturation * (t + 1))
        tan = np.tan(np.clip(angle, -1.57, 1.57))
        return np.clip(self.recent.largest * tan, -most, most)


@dataclass
class ScaleFreeDescent:
    """SF-OGD (Bhatnagar and others 2023): q -= D g / sqrt(3 sum g^2), with g = a - miss.

    D is a multiple of the largest of the first scores; the authors use the root of three.
    """

    reach: Matrix
    multiple: float
    recent: RecentScores = field(default_factory=RecentScores)

    def __post_init__(self) -> None:
        self._squares = np.zeros_like(self.reach)

    def observe(self, scores: Vector, issued: Matrix) -> None:
        """Step along the gradient of the quantile loss."""
        self.recent.add(scores)
        gradient = SHARES - (scores[:, None] > issued)
        self._squares += gradient**2
        step = self.multiple * self.recent.largest / np.sqrt(3 * self._squares)
        self.reach = self.reach - step * gradient


@dataclass
class ErrorQuantified:
    """ECI (Wu and others 2025): p += eta (miss - a), q = p + eta (s - q) f'(s - q), f logistic.

    `integral` replaces the last term by its decaying mean over all scores (ECI-integral). As in the
    code of the authors, this term is not part of the sum p; otherwise coverages would be biased.
    """

    reach: Matrix
    rate: float
    integral: bool = False
    recent: RecentScores = field(default_factory=RecentScores)

    def __post_init__(self) -> None:
        self._tracked = self.reach.copy()
        self._total, self._weight = np.zeros_like(self.reach), 0.0

    def observe(self, scores: Vector, issued: Matrix) -> None:
        """Track the quantile, and add a term for the size of the miss."""
        self.recent.add(scores)
        beyond = scores[:, None] - issued
        logistic = 1 / (1 + np.exp(-np.clip(beyond, -50, 50)))
        term = beyond * logistic * (1 - logistic)
        if self.integral:
            self._total = DECAY * self._total + term
            self._weight = DECAY * self._weight + 1
            term = self._total / self._weight
        step = self.rate * self.recent.range
        self._tracked = self._tracked + step * ((beyond > 0) - SHARES)
        self.reach = self._tracked + step * term


@dataclass
class RecentQuantiles:
    """The quantiles of the last scores, as in split conformal prediction with a moving window."""

    reach: Matrix
    window: int

    def __post_init__(self) -> None:
        self._last: deque[Vector] = deque()
        self._sorted: tuple[list[float], list[float]] = ([], [])

    def observe(self, scores: Vector, issued: Matrix) -> None:
        """Add the newest score, and drop the oldest."""
        self._last.append(scores)
        for each, score in zip(self._sorted, scores.tolist(), strict=True):
            insort(each, score)
        if len(self._last) > self.window:
            for each, score in zip(self._sorted, self._last.popleft().tolist(), strict=True):
                each.pop(bisect_left(each, score))
        count = len(self._last)
        if count >= FIRST:
            places = np.minimum(np.ceil((1 - SHARES) * (count + 1)).astype(int), count) - 1
            self.reach = np.array([[each[at] for at in places] for each in self._sorted])


@dataclass
class LeaveOneOut:
    """Quantiles of the leave-one-out scores of the newest fit (RetroAdj, Jun and Ohn 2025).

    The share of misses is adapted as in adaptive conformal inference: a_t += rate (a - miss).
    """

    reach: Matrix
    rate: float

    def __post_init__(self) -> None:
        self._shares = np.tile(SHARES, (2, 1))
        self._quantiles: Vector | None = None

    def refit(self, quantiles: Vector) -> None:
        """Use the quantiles of a new fit's signed scores at equal steps of probability, (Q,)."""
        self._quantiles = quantiles
        self._update()

    def observe(self, scores: Vector, issued: Matrix) -> None:
        """Adapt the shares of misses."""
        missed = scores[:, None] > issued
        self._shares = np.clip(self._shares + self.rate * (SHARES - missed), 1e-4, 0.5)
        self._update()

    def _update(self) -> None:
        if self._quantiles is not None:
            at = np.linspace(0, 1, len(self._quantiles))
            below = -np.interp(self._shares[0], at, self._quantiles)
            self.reach = np.stack([below, np.interp(1 - self._shares[1], at, self._quantiles)])


def interval_score(actual: Vector, lower: Matrix, upper: Matrix) -> Vector:
    """Return the mean interval score (Winkler) of each level, (K,), given n intervals, (n, K)."""
    missed = np.maximum(lower - actual[:, None], 0) + np.maximum(actual[:, None] - upper, 0)
    return (upper - lower + missed / SHARES).mean(axis=0)
