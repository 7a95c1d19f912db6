r"""ML-Poly: weights of experts that need no rate, with a bound on the regret.

With forecasts $x_k$ and their mixture $\hat y$, the loss linearized at the mixture gives each
expert the regret $r_k = 2 (\hat y - y)(\hat y - x_k)$. Its weight is in proportion to the positive
part of the summed regrets, over the sum of their squares. Against the best expert in hindsight the
loss then grows by the order of $\sqrt{T}$ at most, whatever the series does (Gaillard, Stoltz and
van Erven 2014). Sums that forget follow changes; how fast they should forget depends on the stream,
so several memories can run side by side, each with a mixture of its own. An expert that is asleep
has no say, and keeps what it has earned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_finite, require_shape


@dataclass(frozen=True)
class MLPoly:
    """What each of K experts has earned at each of H horizons, by G memories.

    Parameters
    ----------
    prior
        (K,), the weights while no expert is ahead of the mixture.
    memories
        (G,), the number of observations that sums remember.
    lead
        (K,), how many of the largest regrets each expert is ahead by, whatever happened: who has a
        lead is left for a reason, not for one observation.
    regrets, squares
        (G, H, K), discounted sums of the regrets, and of their squares.
    largest
        (G, H), the largest squared regret, discounted as well.

    Examples
    --------
    >>> experts = MLPoly.start(1, np.array([0.5, 0.5]), memories=(100,))
    >>> for _ in range(20):
    ...     opinions = np.array([[3.0], [1.0]])
    ...     experts = experts.observe(0, opinions[:, 0], experts.mixed(opinions)[:, 0], value=1.0)
    >>> experts.weights(np.array([True, True])).round(2)
    array([[[0., 1.]]])
    """

    prior: Vector
    memories: Vector
    lead: Vector
    regrets: NDArray[np.float64]
    squares: NDArray[np.float64]
    largest: Matrix

    @classmethod
    def start(
        cls,
        horizon: int,
        prior: Vector,
        memories: tuple[float, ...],
        lead: Vector | None = None,
    ) -> MLPoly:
        """Return the state before anything is known of the experts; by default none has a lead."""
        zeros = np.zeros((len(memories), horizon, len(prior)))
        ahead = np.zeros(len(prior)) if lead is None else lead
        return cls(prior, np.array(memories), ahead, zeros, zeros, zeros[..., 0])

    def weights(self, awake: Mask) -> NDArray[np.float64]:
        """Return the weights of the experts, (G, H, K), given who is awake; there must be one."""
        if awake.all():
            return self._weights
        earned = self._earned * awake
        # Of those awake none may have a prior weight; then all count the same.
        prior = self.prior * awake if (self.prior * awake).any() else 1.0 * awake
        chosen = np.where(earned.any(axis=-1, keepdims=True), earned, prior)
        return np.array(chosen / chosen.sum(axis=-1, keepdims=True))

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """Return the weights while everyone is awake, which the same step asks for three times."""
        earned = self._earned
        total = np.add.reduce(earned, axis=-1, keepdims=True)
        if total.all():
            return earned / total
        chosen = np.where(total > 0, earned, self.prior)
        return chosen / np.add.reduce(chosen, axis=-1, keepdims=True)

    @cached_property
    def _earned(self) -> NDArray[np.float64]:
        """Return what each expert has earned, not scaled to weights yet, (G, H, K)."""
        ahead = np.sqrt(self.largest)[..., None] * self.lead
        scale = self.squares + self.largest[..., None]
        scale[scale <= 0] = 1.0
        return np.maximum(self.regrets + ahead, 0.0) / scale

    def mixed(self, opinions: Matrix) -> Matrix:
        """Return the mixtures of forecasts, (G, H), by each memory.

        Parameters
        ----------
        opinions
            (K, H), the forecasts; NaN says that an expert is asleep.
        """
        awake = opinions[:, 0] == opinions[:, 0]  # not NaN
        if awake.all():
            return np.add.reduce(self._weights * opinions.T, axis=-1)
        return np.einsum("ghk,kh->gh", self.weights(awake)[..., awake], opinions[awake])

    def observe(self, horizon: int, opinions: Vector, mixtures: Vector, value: float) -> MLPoly:
        """Return the state after a value is known; `horizon` counts from 0.

        Parameters
        ----------
        horizon
            How far ahead the value was forecast.
        opinions, mixtures
            (K,) and (G,), what the experts said of it, NaN for none, and what was made of that.
        value
            The value.
        """
        awake = opinions == opinions  # not NaN
        everyone = awake.all()
        with np.errstate(over="ignore", invalid="ignore"):
            apart = mixtures[:, None] - opinions
            if not everyone:
                apart[:, ~awake] = 0.0
            gained = (2 * (mixtures - value))[:, None] * apart
            squared = gained * gained
        most = np.maximum.reduce(squared, axis=1)
        if not np.isfinite(most).all():
            return self
        keep = 1 - 1 / self.memories
        regrets, squares, largest = self.regrets.copy(), self.squares.copy(), self.largest.copy()
        for sums, new in ((regrets, gained), (squares, squared)):
            before = sums[:, horizon]
            after = keep[:, None] * before + new
            sums[:, horizon] = after if everyone else np.where(awake, after, before)
        largest[:, horizon] = np.maximum(keep * largest[:, horizon], most)
        return MLPoly(self.prior, self.memories, self.lead, regrets, squares, largest)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"regrets": self.regrets, "squares": self.squares, "largest": self.largest}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> MLPoly:
        """Return as many experts with a saved state."""
        arrays = {name: require_finite(name, state[name]) for name in self.state()}
        for name, array in arrays.items():
            require_shape("experts", array, getattr(self, name).shape)
        return replace(self, **arrays)
