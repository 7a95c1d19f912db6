r"""ML-Poly: weights of experts that need no rate, with a bound on the regret.

With forecasts $x_k$ and their mixture $\hat y$, the loss linearized at the mixture gives each
expert the regret $r_k = 2 (\hat y - y)(\hat y - x_k)$. Its weight is in proportion to the positive
part of the summed regrets, over the sum of their squares. Against the best expert in hindsight the
loss then grows by the order of $\sqrt{T}$ at most, whatever the series does (Gaillard, Stoltz and
van Erven 2014). Sums that forget follow changes. An expert that is asleep has no say, and keeps
what it has earned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector, require_finite, require_shape


@dataclass(frozen=True)
class MLPoly:
    """What each of K experts has earned, at each of H horizons.

    Parameters
    ----------
    prior
        (K,), the weights while no expert is ahead of the mixture.
    memory
        The number of observations that the sums remember.
    lead
        (K,), how many of the largest regrets each expert is ahead by, whatever happened: who has a
        lead is left for a reason, not for one observation.
    regrets, squares
        (H, K), discounted sums of the regrets, and of their squares.
    largest
        (H,), the largest squared regret, discounted as well.

    Examples
    --------
    >>> experts = MLPoly.start(1, np.array([0.5, 0.5]), memory=100)
    >>> for _ in range(20):
    ...     opinions = np.array([[3.0], [1.0]])
    ...     experts = experts.observe(0, opinions[:, 0], experts.mixed(opinions)[0], value=1.0)
    >>> experts.weights(np.array([True, True])).round(2)
    array([[0., 1.]])
    """

    prior: Vector
    memory: float
    lead: Vector
    regrets: Matrix
    squares: Matrix
    largest: Vector

    @classmethod
    def start(
        cls, horizon: int, prior: Vector, memory: float, lead: Vector | None = None
    ) -> MLPoly:
        """Return the state before anything is known of the experts; by default none has a lead."""
        zeros = np.zeros((horizon, len(prior)))
        ahead = np.zeros(len(prior)) if lead is None else lead
        return cls(prior, memory, ahead, zeros, zeros, np.zeros(horizon))

    def weights(self, awake: Mask) -> Matrix:
        """Return the weights of the experts, (H, K), given which are awake; there must be one."""
        ahead = np.sqrt(self.largest)[:, None] * self.lead
        earned = np.maximum(self.regrets + ahead, 0.0) * awake
        scale = self.squares + self.largest[:, None]
        earned = earned / np.where(scale > 0, scale, 1.0)
        # Of those awake none may have a prior weight; then all count the same.
        prior = self.prior * awake if (self.prior * awake).any() else 1.0 * awake
        chosen = np.where(earned.any(axis=1, keepdims=True), earned, prior)
        return np.array(chosen / chosen.sum(axis=1, keepdims=True))

    def mixed(self, opinions: Matrix) -> Vector:
        """Return the mixture of forecasts, (K, H), of which NaN says that an expert is asleep."""
        awake = ~np.isnan(opinions[:, 0])
        return np.einsum("hk,kh->h", self.weights(awake)[:, awake], opinions[awake])

    def observe(self, horizon: int, opinions: Vector, mixture: float, value: float) -> MLPoly:
        """Return the state after a value is known; `horizon` counts from 0.

        Parameters
        ----------
        horizon
            How far ahead the value was forecast.
        opinions, mixture
            (K,), what the experts said of it, NaN for none, and what was made of that.
        value
            The value.
        """
        awake = ~np.isnan(opinions)
        with np.errstate(over="ignore", invalid="ignore"):
            gained = 2 * (mixture - value) * np.where(awake, mixture - opinions, 0.0)
            squared = gained**2
        if not np.isfinite(squared).all():
            return self
        keep = 1 - 1 / self.memory
        regrets, squares, largest = (
            array.copy() for array in (self.regrets, self.squares, self.largest)
        )
        for sums, new in ((regrets, gained), (squares, squared)):
            sums[horizon] = np.where(awake, keep * sums[horizon] + new, sums[horizon])
        largest[horizon] = max(keep * largest[horizon], squared.max())
        return replace(self, regrets=regrets, squares=squares, largest=largest)

    def state(self) -> dict[str, Matrix]:
        """Return everything that changes, for `restore`."""
        return {"regrets": self.regrets, "squares": self.squares, "largest": self.largest}

    def restore(self, state: Mapping[str, Matrix]) -> MLPoly:
        """Return as many experts with a saved state."""
        arrays = [require_finite(name, state[name]) for name in self.state()]
        for array, mine in zip(arrays, self.state().values(), strict=True):
            require_shape("experts", array, mine.shape)
        return MLPoly(self.prior, self.memory, self.lead, *arrays)
