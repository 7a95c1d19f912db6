r"""Unrest: how much larger errors are of late than the model expects of them.

A model tells the size of an error by the input. But errors have weather of their own: for hours
they are larger than usual, or smaller. The score of a forecast is its error divided by the size
that the model expected. The next sizes are multiplied by $\sqrt{r / u}$, with the mean $r$ of the
scores of late and their usual mean $u$. How long "of late" is depends on the stream: candidates
of several half-lives run side by side, weighed by how likely they have made the recent scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_positive, require_shape

# The candidates: scores of late count half after one of these numbers of scores, (L,).
HALF_LIVES = np.array([2.0, 8.0, 32.0])
# Weight of the newest score in the means of late, and in the usual one.
NEW, USUAL_NEW = (1 - 0.5 ** (1 / HALF_LIVES)).tolist(), 1 - 0.5 ** (1 / 480)
# A product with these is half a sum over the candidates.
HALVES = np.full(len(HALF_LIVES), 0.5)
# Discount, per score, of the likelihoods that candidates are weighed by.
WEIGHING = 1 - 1 / 200
# Before any score, all means are one, with the weight of so many scores.
PRIOR = 8
# A score counts at least so much, and at most this multiple of the usual one.
LEAST, MOST = 1e-2, 8.0


@dataclass(frozen=True)
class Unrest:
    """The means of the scores of late and of the usual ones, per horizon.

    Parameters
    ----------
    late
        (H, L), means of the scores of late, one for each half-life.
    usual
        (H,), means of the scores of the last weeks.
    fits
        (H, L), discounted logarithms of how likely each candidate has made the scores.
    seen
        (H,), the number of scores so far.

    Examples
    --------
    >>> unrest = Unrest.start(horizon=1)
    >>> for score in 200 * [1.0] + 20 * [4.0]:
    ...     unrest = unrest.observe(0, score)
    >>> unrest.factors().round(1)
    array([1.8])
    """

    late: Matrix
    usual: Vector
    fits: Matrix
    seen: Vector

    @classmethod
    def start(cls, horizon: int) -> Unrest:
        """Return the state before any score is known."""
        late = np.ones((horizon, len(HALF_LIVES)))
        return cls(late, np.ones(horizon), np.zeros_like(late), np.zeros(horizon))

    @property
    def half_life(self) -> float:
        """Return how many scores "of late" are one step ahead, a mean over the candidates."""
        return float(np.exp(self.weights()[0] @ np.log(HALF_LIVES)))

    def factors(self) -> Vector:
        """Return what to multiply the sizes of the next errors by, shape (H,)."""
        logs = np.log(self.late / self.usual[:, None])
        return np.exp((self.weights() * logs).dot(HALVES))

    def weights(self) -> Matrix:
        """Return how much each candidate counts, shape (H, L); a row sums to one."""
        weights = np.exp(self.fits - np.maximum.reduce(self.fits, axis=1, keepdims=True))
        return weights / np.add.reduce(weights, axis=1, keepdims=True)

    def observe(self, horizon: int, score: float) -> Unrest:
        """Return the state after the score of a forecast; `horizon` counts from 0."""
        late, usual, fits, seen = (
            each.copy() for each in (self.late, self.usual, self.fits, self.seen)
        )
        u, first = float(usual[horizon]), 1 / (PRIOR + float(seen[horizon]))
        score = min(max(score, LEAST), MOST * u)
        # Numbers one by one: of so few candidates, arrays would take three times as long.
        for i, (mean, new) in enumerate(zip(late[horizon].tolist(), NEW, strict=True)):
            # The density of a score of which one expects the mean f u is exp(-s/(f u))/(f u).
            factor = sqrt(mean / u)
            fits[horizon, i] = WEIGHING * fits[horizon, i] - log(factor) - score / (factor * u)
            late[horizon, i] = mean + max(new, first) * (score - mean)
        usual[horizon] = u + max(USUAL_NEW, first) * (score - u)
        seen[horizon] += 1
        return Unrest(late, usual, fits, seen)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> Unrest:
        """Return the unrest with a saved state of the same horizon."""
        arrays = {name: require_finite(name, state[name]) for name in vars(self)}
        for name, array in arrays.items():
            require_shape("unrest", array, getattr(self, name).shape)
        for name in ("late", "usual"):  # what errors are divided by
            require_positive(name, arrays[name])
        return Unrest(**arrays)
