r"""ML-Poly: weights of experts that need no rate, with a bound on the regret.

The loss linearized at the mixture $\hat y$ of forecasts $x_k$ gives each expert the regret
$r_k = 2 (\hat y - y)(\hat y - x_k)$. Its weight is proportional to the positive part of its summed
regrets, divided by the sum of their squares. The loss exceeds the loss of the best expert in
hindsight by the order of $\sqrt{T}$ at most (Gaillard, Stoltz and van Erven 2014). Discounted
sums follow changes. The best discount depends on the stream, so several memories run in parallel,
each with its own mixture. An expert without a forecast has no weight, and keeps its sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_finite, require_shape

# Smaller sums of squared regrets count as zero.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Weighting:
    """The constant parameters of the weights of K experts with G memories."""

    horizon: int  # H
    prior: Vector  # (K,), the weights while no expert is ahead of the mixture
    memories: Vector  # (G,), the number of observations that sums remember
    # (K,), a constant bonus of each expert, in units of the largest regret. An expert with a bonus
    # does not lose its weight after a single observation.
    lead: Vector

    @cached_property
    def keep(self) -> NDArray[np.float64]:
        """Return the discount of the sums per observation, (G, H, K), in full shape.

        NumPy takes three times as long to broadcast it.
        """
        discounts = (1 - 1 / self.memories)[:, None, None]
        return np.tile(discounts, (1, self.horizon, len(self.prior)))

    @cached_property
    def has_lead(self) -> bool:
        """Return whether an expert has a bonus."""
        return bool(self.lead.any())


@dataclass(frozen=True)
class MLPoly:
    """The discounted regrets of K experts at H horizons, for G memories.

    Examples
    --------
    >>> experts = MLPoly.start(1, np.array([0.5, 0.5]), memories=(100,))
    >>> for _ in range(20):
    ...     forecasts = np.array([[3.0], [1.0]])
    ...     experts = experts.observe(forecasts, experts.mixed(forecasts), value=1.0)
    >>> experts.weights(np.array([True, True])).round(2)
    array([[[0., 1.]]])
    """

    weighting: Weighting
    regrets: NDArray[np.float64]  # (G, H, K), discounted sums of the regrets
    squares: NDArray[np.float64]  # (G, H, K), discounted sums of their squares
    largest: Matrix  # (G, H), the largest squared regret, discounted as well

    @classmethod
    def start(
        cls,
        horizon: int,
        prior: Vector,
        memories: tuple[float, ...],
        lead: Vector | None = None,
    ) -> MLPoly:
        """Return the state before any observation; by default no expert has a bonus."""
        zeros = np.zeros((len(memories), horizon, len(prior)))
        ahead = np.zeros(len(prior)) if lead is None else lead
        weighting = Weighting(horizon, prior, np.array(memories, dtype=np.float64), ahead)
        return cls(weighting, zeros, zeros, zeros[..., 0])

    def weights(self, awake: Mask | None = None) -> NDArray[np.float64]:
        """Return the weights of the experts, (G, H, K), if only those `awake` have a forecast."""
        if awake is None:
            return self._weights
        prior = self.weighting.prior * awake
        # If none of them has a prior weight, all count the same.
        return _shares(self._unscaled * awake, prior if prior.any() else awake.astype(np.float64))

    # A step needs them three times.
    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return _shares(self._unscaled, self.weighting.prior)

    @property
    def _unscaled(self) -> NDArray[np.float64]:
        """Return the weights before they are scaled to a sum of one, (G, H, K)."""
        largest = self.largest[..., None]
        ahead = self.regrets
        if self.weighting.has_lead:
            ahead = ahead + np.sqrt(largest) * self.weighting.lead
        unscaled = np.maximum(ahead, 0.0)
        unscaled /= np.maximum(self.squares + largest, TINY)
        return unscaled

    def mixed(self, forecasts: Matrix) -> Matrix:
        """Return the mixtures of (K, H) forecasts, (G, H); NaN is an expert without a forecast."""
        if forecasts.shape[1] == 1:  # one horizon, the usual case, is one product
            mixtures = self._weights[:, 0].dot(forecasts)
            if isfinite(mixtures.item(0)):
                return mixtures
        awake = ~np.isnan(forecasts[:, 0])
        if awake.all():
            return np.einsum("ghk,kh->gh", self._weights, forecasts)
        return np.einsum("ghk,kh->gh", self.weights(awake)[..., awake], forecasts[awake])

    def observe(self, forecasts: Matrix, mixtures: Matrix, value: float) -> MLPoly:
        """Return the state after a value, given (K, H) forecasts of it and (G, H) mixtures.

        NaN is an expert without a forecast, or a horizon at which the value was not forecast.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            errors = 2 * (mixtures - value)
            gained = errors[..., None] * (mixtures[..., None] - forecasts.T)
            squared = gained * gained
        return self._after(gained, squared, np.isnan(mixtures[0]))

    def observe_all(self, forecasts: Matrix, mixtures: Matrix, values: Vector) -> MLPoly:
        """Return the state after n values at once, whose forecasts, (K, n), had the same weights.

        They count as one observation at one horizon. No forecast is missing; `mixtures` are (G, n).
        The loss is the absolute error here: the regret of an expert is
        sign(mixture - y) (mixture - x_k).
        """
        if not len(values):
            return self
        each = np.sign(mixtures - values)[:, None] * (mixtures[:, None] - forecasts)
        gained = each.mean(axis=2)[:, None]
        with np.errstate(over="ignore"):
            squared = gained * gained
        return self._after(gained, squared, np.zeros(1, dtype=bool))

    def _after(
        self, gained: NDArray[np.float64], squared: NDArray[np.float64], absent: Mask
    ) -> MLPoly:
        """Return the state after new regrets, (G, H, K), and their squares.

        Horizons that are absent keep their sums.
        """
        keep = self.weighting.keep
        most = np.maximum.reduce(squared, axis=2)
        if all(map(isfinite, most.ravel().tolist())):  # as a rule
            return MLPoly(
                self.weighting,
                keep * self.regrets + gained,
                keep * self.squares + squared,
                np.maximum(keep[..., 0] * self.largest, most),
            )
        awake = ~np.isnan(gained)
        gained, squared = (np.where(awake, each, 0.0) for each in (gained, squared))
        most = squared.max(axis=2)
        learns = np.isfinite(most).all(axis=0) & ~absent  # numbers too large teach nothing
        awake &= learns[:, None]
        return MLPoly(
            self.weighting,
            np.where(awake, keep * self.regrets + gained, self.regrets),
            np.where(awake, keep * self.squares + squared, self.squares),
            np.where(learns, np.maximum(keep[..., 0] * self.largest, most), self.largest),
        )

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {"regrets": self.regrets, "squares": self.squares, "largest": self.largest}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> MLPoly:
        """Return the experts with a saved state of the same shape."""
        arrays = {name: require_finite(name, state[name]) for name in self.state()}
        for name, array in arrays.items():
            require_shape("experts", array, getattr(self, name).shape)
        return MLPoly(self.weighting, **arrays)


def _shares(unscaled: NDArray[np.float64], prior: Vector) -> NDArray[np.float64]:
    """Return positive parts as shares of their sum; the prior where all are zero."""
    total = np.add.reduce(unscaled, axis=-1, keepdims=True)
    if all(total.ravel().tolist()):
        return unscaled / total
    chosen = np.where(total > 0, unscaled, prior)
    return np.array(chosen / chosen.sum(axis=-1, keepdims=True))
