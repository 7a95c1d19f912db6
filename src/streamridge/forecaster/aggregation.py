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
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_finite, require_shape

# What counts as no regret at all.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms on which K experts are weighed by G memories; they never change.

    Parameters
    ----------
    prior
        (K,), the weights while no expert is ahead of the mixture.
    memories
        (G,), the number of observations that sums remember.
    lead
        (K,), how many of the largest regrets each expert is ahead by, whatever happened: who has a
        lead is left for a reason, not for one observation.
    """

    prior: Vector
    memories: Vector
    lead: Vector

    @cached_property
    def keep(self) -> Matrix:
        """Return what an observation leaves of the sums, (G, K): as large as what it multiplies.

        NumPy takes three times as long to stretch it.
        """
        return np.repeat((1 - 1 / self.memories)[:, None], len(self.prior), axis=1)

    @cached_property
    def leads(self) -> bool:
        """Return whether anyone has a lead."""
        return bool(self.lead.any())


@dataclass(frozen=True)
class MLPoly:
    """What each of K experts has earned at each of H horizons, by G memories.

    Parameters
    ----------
    terms
        The terms on which they are weighed.
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

    terms: Terms
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
        terms = Terms(prior, np.array(memories, dtype=np.float64), ahead)
        return cls(terms, zeros, zeros, zeros[..., 0])

    def weights(self, awake: Mask | None = None) -> NDArray[np.float64]:
        """Return the weights of the experts, (G, H, K), given who is awake; there must be one.

        By default all of them are.
        """
        if awake is None:
            return self._weights
        prior = self.terms.prior * awake
        # Of those awake none may have a prior weight; then all count the same.
        return _shares(self._earned * awake, prior if prior.any() else awake.astype(np.float64))

    # A step asks for them three times.
    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return _shares(self._earned, self.terms.prior)

    @property
    def _earned(self) -> NDArray[np.float64]:
        """Return what each expert has earned, not scaled to weights yet, (G, H, K)."""
        largest = self.largest[..., None]
        ahead = self.regrets
        if self.terms.leads:
            ahead = ahead + np.sqrt(largest) * self.terms.lead
        earned = np.maximum(ahead, 0.0)
        earned /= np.maximum(self.squares + largest, TINY)
        return earned

    def mixed(self, opinions: Matrix) -> Matrix:
        """Return the mixtures of forecasts, (G, H), by each memory.

        Parameters
        ----------
        opinions
            (K, H), the forecasts; NaN says that an expert is asleep.
        """
        if opinions.shape[1] == 1:  # as a rule: one horizon is one product
            mixtures = self._weights[:, 0].dot(opinions)
            if isfinite(mixtures.item(0)):
                return mixtures
        awake = ~np.isnan(opinions[:, 0])
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
        with np.errstate(over="ignore", invalid="ignore"):
            gained = (2 * (mixtures - value))[:, None] * (mixtures[:, None] - opinions)
            squared, awake = gained * gained, None
        most = np.maximum.reduce(squared, axis=1)
        if not all(map(isfinite, most.tolist())):  # someone is asleep, or a number is too large
            awake = ~np.isnan(opinions)
            gained, squared = (np.where(awake, each, 0.0) for each in (gained, squared))
            most = squared.max(axis=1)
            if not np.isfinite(most).all():
                return self
        keep, largest = self.terms.keep, self.largest.copy()
        largest[:, horizon] = np.maximum(keep[:, 0] * largest[:, horizon], most)
        return MLPoly(
            self.terms,
            _faded(self.regrets, horizon, keep, gained, awake),
            _faded(self.squares, horizon, keep, squared, awake),
            largest,
        )

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"regrets": self.regrets, "squares": self.squares, "largest": self.largest}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> MLPoly:
        """Return as many experts with a saved state."""
        arrays = {name: require_finite(name, state[name]) for name in self.state()}
        for name, array in arrays.items():
            require_shape("experts", array, getattr(self, name).shape)
        return MLPoly(self.terms, **arrays)


def _shares(earned: NDArray[np.float64], prior: Vector) -> NDArray[np.float64]:
    """Return what was earned, or the prior where that is nothing, as shares of its sum."""
    total = np.add.reduce(earned, axis=-1, keepdims=True)
    if all(total.ravel().tolist()):
        return earned / total
    chosen = np.where(total > 0, earned, prior)
    return np.array(chosen / chosen.sum(axis=-1, keepdims=True))


def _faded(
    sums: NDArray[np.float64], horizon: int, keep: Matrix, new: Matrix, awake: Mask | None
) -> NDArray[np.float64]:
    """Return discounted sums after something new at a horizon, of those awake; None if all are."""
    after, before = sums.copy(), sums[:, horizon]
    now = keep * before + new
    after[:, horizon] = now if awake is None else np.where(awake, now, before)
    return after
