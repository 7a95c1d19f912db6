"""Forgetting: any kernel times exp(-rho |t - t'|), or times a weighted sum of such factors.

A factor that depends only on time is computed only at the distinct differences. On a regular grid
the matrix of differences is Toeplitz: N rows have only 2N - 1 of them. Whole steps with gaps are
looked up in a table. Only times without a grid need every entry of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Protocol, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from streamridge.arrays import Block, Matrix, Vector, require_finite, require_number
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.sets import Simplex
from streamridge.hyperparameters.space import (
    Bounds,
    Group,
    positive_group,
    require_within,
)
from streamridge.kernels.base import (
    HEAP,
    Embedding,
    Evaluation,
    Heap,
    Kernel,
    Slopes,
    WeightedSum,
    Weights,
)
from streamridge.kernels.mixture import Summand
from streamridge.samples import Inputs, Layout

# A table with more than this many entries per row saves nothing.
LARGEST_TABLE = 64


class TimeLags(Protocol):
    """The matrix t_i - t'_j, shape (n, n'), stored by its distinct entries."""

    @property
    def distinct(self) -> Matrix:
        """Return the distinct differences, at which a formula has to be evaluated."""

    def expand(self, values: Block) -> Block:
        """Return the (n, n') matrix from its values at the distinct differences."""

    def collect(self, W: Weights) -> Block:
        """Return, for each difference, the sum of its entries of W: the transpose of `expand`."""


@dataclass(frozen=True)
class ToeplitzLags:
    """Differences between two stretches of one regular grid: entry (i, j) depends on i - j."""

    distinct: Vector
    rows: int

    def expand(self, values: Block) -> Block:
        return sliding_window_view(values, len(values) - self.rows + 1)[::-1]

    def collect(self, W: Weights) -> Block:
        if W.factor is None:  # the sums along the diagonals are correlations
            columns = zip(W.right.T, W.left.T, strict=True)
            return np.sum([np.correlate(right, left, "full") for right, left in columns], axis=0)
        # Rows are written one entry further apart than they are read, so diagonals become columns.
        n, width = W.dense.shape
        skewed = np.zeros(n * (n + width), W.dense.dtype)
        skewed.reshape(n, -1)[:, :width] = W.dense[::-1]
        return skewed[:-n].reshape(n, -1).sum(axis=0)


@dataclass(frozen=True)
class TabledLags:
    """Differences between two sets of whole steps, looked up in a table."""

    distinct: Vector
    index: NDArray[np.intp]

    def expand(self, values: Block) -> Block:
        return values[self.index]

    def collect(self, W: Weights) -> Block:
        return np.bincount(self.index.ravel(), W.dense.ravel(), minlength=len(self.distinct))


@dataclass(frozen=True)
class FreeLags:
    """Differences between times without a grid, each entry on its own."""

    distinct: Block

    def expand(self, values: Block) -> Block:
        return values

    def collect(self, W: Weights) -> Block:
        return W.dense


def time_lags(t: Vector, other: Vector, *, tables: bool = True, memory: Heap = HEAP) -> TimeLags:
    """Return the differences t_i - t'_j in the most compact form that the times allow.

    Without tables, whole steps with gaps have every entry of the matrix. This is faster for a
    formula that costs less than a lookup. A matrix of all entries comes from `memory`.
    """
    if len(t) > 1 and len(other):
        gaps = np.concatenate([np.diff(t), np.diff(other)])
        step = float(gaps[0])
        if np.abs(gaps - step).max() <= 1e-9 * abs(step):
            # Row i is the window that starts at n - 1 - i; entry (i, j) is its element j.
            steps = np.arange(len(t) - 1, -len(other), -1, dtype=np.float64)
            return ToeplitzLags(t[0] - other[0] + step * steps, rows=len(t))
        low = t.min() - other.max()
        size = t.max() - other.min() - low + 1
        fits = tables and size <= LARGEST_TABLE * (len(t) + len(other))
        if fits and np.array_equal(t, np.rint(t)) and np.array_equal(other, np.rint(other)):
            index = (t[:, None] - (other + low)).astype(np.intp)
            return TabledLags(low + np.arange(size), index)
    return FreeLags(np.subtract(t[:, None], other, out=memory.empty((len(t), len(other)))))


class Forgetting(Summand):
    """A kernel times a factor of the time between two inputs."""

    kernel: Kernel

    def embed(self, inputs: Inputs) -> Embedding:
        return Embedding(inputs.t, (self.kernel.embed(inputs),))

    def embed_tangent(self, tangent: Inputs) -> Embedding:
        return Embedding(np.empty((len(tangent.t), 0)), (self.kernel.embed_tangent(tangent),))

    def _with_inner(self, *own: Group) -> tuple[Group, ...]:
        """Return the own groups and the inner kernel's, renamed if it is of the same type."""
        inner = self.kernel.groups
        if any(group.name == own[-1].name for group in inner):
            inner = tuple(group.under(type(self).__name__.lower()) for group in inner)
        return (*own, *inner)


class ForgettingEvaluation(Evaluation):
    """An evaluation times a factor of time, (n, n')."""

    kernel: Evaluation
    factor: Block

    @property
    def value(self) -> Block:
        return self.kernel.value * self.factor

    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        return self.kernel.tangent_dot(v, a.parts[0], b.parts[0], self._times(factor))

    def _times(self, factor: Block | None) -> Block:
        return self.factor if factor is None else self.factor * factor


@dataclass(frozen=True)
class Drifting(Forgetting):
    r"""A kernel that lets old samples count less: $k(a, b) \exp(-\rho |t - t'|)$.

    Parameters
    ----------
    kernel
        Any kernel.
    rate
        $\rho$, per step; the memory is $1 / \rho$ steps.
    rate_bounds
        Interval in which it is learned; None keeps it constant.

    Notes
    -----
    Not in the paper. The factor is a kernel, so the product is a kernel. The rate starts small, for
    a long memory. It stays near zero on steady streams and grows on drifting ones.
    """

    kernel: Kernel
    rate: float = 1e-4
    rate_bounds: Bounds = (1e-6, 1e-2)

    def __post_init__(self) -> None:
        require_number("rate", self.rate)
        require_within("rate", self.rate, self.rate_bounds)

    @property
    def groups(self) -> tuple[Group, ...]:
        rate = positive_group("rate", "rate", self.rate, self.rate_bounds)
        return self._with_inner(rate)

    def at(self, values: Vector) -> Self:
        return self._changed(rate=float(values[0]), kernel=self.kernel.at(values[1:]))

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> DriftingEvaluation:
        lags = time_lags(a.own, b.own, tables=False)
        age = np.abs(lags.distinct)
        factor = np.exp(-self.rate * age)
        inner = self.kernel.evaluate(a.parts[0], b.parts[0], memory)
        age, factor = age.astype(memory.dtype, copy=False), factor.astype(memory.dtype, copy=False)
        return DriftingEvaluation(inner, lags.expand(age), lags.expand(factor))

    def weighted_sum(self, rows: Embedding, weights: Matrix, layout: Layout) -> WeightedSum:
        # For inputs newer than all rows the factor splits into a scalar and a constant vector.
        rate, newest = self.rate, float(rows.own.max(initial=-np.inf))
        faded = weights * np.exp(-rate * (newest - rows.own))[:, None]
        after = self.kernel.weighted_sum(rows.parts[0], faded, layout)
        at_any_time = super().weighted_sum(rows, weights, layout)

        def summed(t: float, x: Vector) -> Vector:
            return exp(-rate * (t - newest)) * after(t, x) if t >= newest else at_any_time(t, x)

        return summed


@dataclass(frozen=True)
class DriftingEvaluation(ForgettingEvaluation):
    """An evaluation times the factor that forgets."""

    kernel: Evaluation
    age: Block
    factor: Block

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        combined = self._times(factor)
        in_rate = -(self.kernel.value * combined * self.age) @ v
        return np.column_stack([in_rate, self.kernel.gradient_dot(v, combined)])

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        faded = replace(W, factor=self._times(W.factor))
        in_value, own = self.kernel.inner(faded, slopes and slopes.part(0))
        aged = np.multiply(self.kernel.value, self.age, out=W.memory.empty(self.factor.shape))
        in_rate = -float(np.vdot(faded.dense, aged))
        return in_value, np.concatenate([[in_rate], own])


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
    Not in the paper. It is a sum of `Drifting` kernels of one kernel, which is evaluated once. The
    slow part learns patterns that last for months, the fast part learns short-lived ones, and the
    shares weigh them.
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
        return self._with_inner(
            Group("shares", "weight", names, shares, Simplex(len(shares))),
            positive_group("rates", "rate", self.rates, self.rates_bounds),
        )

    def at(self, values: Vector) -> Self:
        count = len(self.rates)
        shares, rates, own = np.split(values, [count, 2 * count])
        given = {"shares": tuple(shares.tolist()), "rates": tuple(rates.tolist())}
        return self._changed(kernel=self.kernel.at(own), **given)

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> RememberingEvaluation:
        # All arrays come from the memory: new pages would take longer than the arithmetic.
        lags = time_lags(a.own, b.own, tables=False, memory=memory)
        # The signs are not needed again: of the lags, only `expand` is valid from here on.
        ages = np.abs(lags.distinct, out=lags.distinct).astype(memory.dtype, copy=False)
        fading, factor = memory.empty((len(self.rates), *ages.shape)), memory.empty(ages.shape)
        for rate, each in zip(self.rates, fading, strict=True):
            np.exp(np.multiply(ages, -rate, out=each), out=each)
        shares = np.array(self.shares, dtype=memory.dtype)
        np.dot(shares, fading.reshape(len(shares), -1), out=factor.reshape(-1))
        inner = self.kernel.evaluate(a.parts[0], b.parts[0], memory)
        return RememberingEvaluation(inner, lags, ages, fading, shares, lags.expand(factor))

    def weighted_sum(self, rows: Embedding, weights: Matrix, layout: Layout) -> WeightedSum:
        # For inputs newer than all rows the factor splits into a scalar and a constant vector.
        newest = float(rows.own.max(initial=-np.inf))
        rates, ages = np.array(self.rates), newest - rows.own
        pairs = zip(self.shares, self.rates, strict=True)
        faded = [share * weights * np.exp(-rate * ages)[:, None] for share, rate in pairs]
        after = self.kernel.weighted_sum(rows.parts[0], np.hstack(faded), layout)
        at_any_time = super().weighted_sum(rows, weights, layout)

        def summed(t: float, x: Vector) -> Vector:
            if t < newest:
                return at_any_time(t, x)
            return np.exp(-rates * (t - newest)) @ after(t, x).reshape(len(rates), -1)

        return summed


@dataclass(frozen=True)
class RememberingEvaluation(ForgettingEvaluation):
    """An evaluation times the factor of several memories."""

    kernel: Evaluation
    lags: TimeLags
    ages: Block  # the distinct sizes of the time differences
    fading: Block  # the factor of each memory at these sizes
    shares: Block  # the share of each memory
    factor: Block  # (n, n'), the weighted sum of these factors

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        combined = self._times(factor)
        K = self.kernel.value if factor is None else self.kernel.value * factor
        aged = K * self.lags.expand(self.ages)
        in_shares = [(K * self.lags.expand(each)) @ v for each in self.fading]
        in_rates = [
            -share * ((aged * self.lags.expand(each)) @ v)
            for share, each in zip(self.shares, self.fading, strict=True)
        ]
        return np.column_stack([*in_shares, *in_rates, self.kernel.gradient_dot(v, combined)])

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        faded = replace(W, factor=self._times(W.factor))
        in_value, own = self.kernel.inner(faded, slopes and slopes.part(0))
        shape, fading = self.factor.shape, [self.lags.expand(each) for each in self.fading]
        weighted = np.multiply(self.kernel.value, W.dense, out=W.memory.empty(shape))
        in_shares = [np.vdot(weighted, each) for each in fading]
        aged = np.multiply(weighted, self.lags.expand(self.ages), out=weighted)
        in_rates = [
            -share * np.vdot(aged, each) for share, each in zip(self.shares, fading, strict=True)
        ]
        return in_value, np.concatenate([in_shares, in_rates, own])
