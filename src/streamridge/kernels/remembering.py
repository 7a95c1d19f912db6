"""Memories of several lengths: any kernel times shares of exp(-rho_i |t - t'|), rates learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamridge.arrays import Block, Matrix, Vector, require_finite
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.groups import (
    Bounds,
    Group,
    positive_group,
    require_values,
    require_within,
)
from streamridge.hyperparameters.simplex import Simplex
from streamridge.kernels.base import (
    HEAP,
    Embedding,
    Evaluation,
    Kernel,
    Predictor,
    Slopes,
    Weights,
)
from streamridge.kernels.drifting import Forgetting, ForgettingEvaluation
from streamridge.kernels.time_lags import TimeLags, time_lags
from streamridge.memory import Heap
from streamridge.samples import Layout


@dataclass(frozen=True)
class Remembering(Forgetting):
    r"""A kernel with memories of several lengths: $k(a, b) \sum_i s_i \exp(-\rho_i |t - t'|)$.

    Parameters
    ----------
    kernel
        Any kernel.
    rates
        $\rho_i$, per step; each memory is $1 / \rho_i$ steps.
    shares
        $s_i$, the share of each memory: non-negative, with sum one.
    rates_bounds
        Interval in which each rate is learned; None keeps them constant.

    Notes
    -----
    Not in the paper. It is a sum of `Drifting` kernels of one kernel, which is evaluated once: what
    stays the same for months is learned by the slow part, what passes by the quick one, and the
    shares tell how much there is of each.
    """

    kernel: Kernel
    rates: Sequence[float] = (3e-4, 1e-5)
    shares: Sequence[float] = (0.5, 0.5)
    rates_bounds: Bounds = (1e-7, 1e-2)

    def __post_init__(self) -> None:
        require_within("rates", self.rates, self.rates_bounds)
        object.__setattr__(self, "rates", tuple(np.atleast_1d(self.rates).tolist()))
        shares = require_finite("shares", self.shares)
        if shares.shape != (len(self.rates),) or not Simplex(len(shares)).contains(shares):
            raise InvalidInputError(
                "shares must be one for each rate, none negative, with a sum of 1, got "
                f"{shares.tolist()}."
            )
        object.__setattr__(self, "shares", tuple(shares.tolist()))

    @property
    def groups(self) -> tuple[Group, ...]:
        shares = np.array(self.shares)
        names = tuple(f"shares[{i}]" for i in range(len(shares)))
        own = (
            Group("shares", "weight", names, shares, Simplex(len(shares))),
            positive_group("rates", "rate", self.rates, self.rates_bounds),
        )
        inner = self.kernel.groups
        if any(group.name == "rates" for group in inner):  # one Remembering right inside another
            inner = tuple(group.under("remembering") for group in inner)
        return (*own, *inner)

    def replace(self, values: Vector) -> Self:
        count = len(self.rates)
        values = require_values(values, 2 * count + len(self.kernel.values))
        shares, rates, own = np.split(values, [count, 2 * count])
        return self._changed(
            shares=tuple(shares.tolist()),
            rates=tuple(rates.tolist()),
            kernel=self.kernel.replace(own),
        )

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> RememberingEvaluation:
        lags = time_lags(a.own, b.own, tables=False)
        ages = np.abs(lags.distinct).astype(memory.dtype, copy=False)
        fading = np.array([np.exp(-rate * ages) for rate in self.rates], dtype=memory.dtype)
        inner = self.kernel.evaluate(a.parts[0], b.parts[0], memory)
        shares = np.array(self.shares, dtype=memory.dtype)
        factor = lags.spread(np.tensordot(shares, fading, axes=1))
        return RememberingEvaluation(inner, lags, ages, fading, shares, factor)

    def predictor(self, rows: Embedding, weights: Matrix, layout: Layout) -> Predictor:
        # Of an input after all rows, exp(-rate (t - t')) is one number times one that stays.
        newest = float(rows.own.max(initial=-np.inf))
        rates, ages = np.array(self.rates), newest - rows.own
        pairs = zip(self.shares, self.rates, strict=True)
        faded = [share * weights * np.exp(-rate * ages)[:, None] for share, rate in pairs]
        after = self.kernel.predictor(rows.parts[0], np.hstack(faded), layout)
        at_any_time = super().predictor(rows, weights, layout)

        def summed(t: float, x: Vector) -> Vector:
            if t < newest:
                return at_any_time(t, x)
            return np.exp(-rates * (t - newest)) @ after(t, x).reshape(len(rates), -1)

        return summed


@dataclass(frozen=True)
class RememberingEvaluation(ForgettingEvaluation):
    """An evaluation times the factor of several memories.

    Parameters
    ----------
    kernel
        The evaluation.
    lags, ages
        The differences of time, and their distinct sizes.
    fading
        What each memory keeps at these sizes.
    shares
        The share of each memory.
    factor
        (n, n'), the shares of what they keep, entry by entry.
    """

    kernel: Evaluation
    lags: TimeLags
    ages: Block
    fading: Block
    shares: Block
    factor: Block

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        combined = self.factor if factor is None else self.factor * factor
        K = self.kernel.value if factor is None else self.kernel.value * factor
        own = [(K * self.lags.spread(each)) @ v for each in self._slopes()]
        return np.column_stack([*own, self.kernel.gradient_dot(v, combined)])

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        in_value, own = self.kernel.inner(W.times(self.factor), slopes and slopes.part(0))
        weighted = np.multiply(self.kernel.value, W.dense, out=W.memory.empty(W.shape))
        in_factor = [np.vdot(weighted, self.lags.spread(each)) for each in self._slopes()]
        return in_value, np.concatenate([in_factor, own])

    def _slopes(self) -> list[Block]:
        """Return how the factor moves with each share, and then with each rate."""
        pairs = zip(self.shares, self.fading, strict=True)
        return [*self.fading, *(-share * self.ages * faded for share, faded in pairs)]
