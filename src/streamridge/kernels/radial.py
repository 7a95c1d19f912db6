r"""Kernels of one weighted distance $s = \sum_i \nu_i (x_i - x'_i)^2$: eqs (8), (9) and Matern.

Each is a radial function $k(s)$ with the gradient
$\partial K / \partial \nu_i = k'(s) \circ (x_i - x'_i)^2$. The square is expanded: three products
replace p, and no (p, N, N) array is formed. In the code, $z_i = \sqrt{\nu_i} x_i$. If rows move
along $\dot z$, $\dot K = 2 k'(s) \circ \sum_i (z_i - z'_i)(\dot z_i - \dot z'_i)$ is expanded too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Block, Matrix, Vector, require_number
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.space import (
    Bounds,
    Group,
    positive_group,
    require_within,
)
from streamridge.kernels.base import HEAP, Embedding, Evaluation, Heap, Slopes, WeightedSum, Weights
from streamridge.kernels.mixture import Summand
from streamridge.samples import Inputs, Layout


@dataclass(frozen=True)
class RadialFunction:
    """A radial function k(s) of a squared distance s, and its slope, elementwise on any arrays.

    It is a function of its own distance r(s), so that the slope needs no second exponential.
    """

    value: Callable[[Block, Block], Block]  # replaces s by r, writes k to the second array
    slope: Callable[[Block, Block, Block], Block]  # writes -dk/ds of r and k to the third array
    in_place: bool = False  # k is its own slope and r is not needed: all share one array


def _squared_exponential(s: Block, out: Block) -> Block:
    return np.exp(np.negative(s, out=out), out=out)


def _slope_of_exponential(r: Block, k: Block, out: Block) -> Block:
    return k


def _matern_12(s: Block, out: Block) -> Block:
    r = np.sqrt(s, out=s)
    return np.exp(np.negative(r, out=out), out=out)


def _slope_12(r: Block, k: Block, out: Block) -> Block:
    # k / (2 r). At r = 0 it is set to 0, since every (x_i - x'_i)^2 goes to 0 faster than r.
    with np.errstate(divide="ignore"):
        slope = np.divide(k, r, out=out)
    slope[r == 0] = 0.0
    slope *= 0.5
    return slope


def _matern_32(s: Block, out: Block) -> Block:
    s *= 3
    r = np.sqrt(s, out=s)
    k = np.exp(np.negative(r, out=out), out=out)
    return np.multiply(k, 1 + r, out=k)


def _slope_32(r: Block, k: Block, out: Block) -> Block:
    slope = np.add(r, 1, out=out)
    np.divide(k, slope, out=slope)
    slope *= 1.5
    return slope


def _matern_52(s: Block, out: Block) -> Block:
    s *= 5
    r = np.sqrt(s, out=s)
    k = np.exp(np.negative(r, out=out), out=out)
    return np.multiply(k, 1 + r + r * r / 3, out=k)


def _slope_52(r: Block, k: Block, out: Block) -> Block:
    return np.divide((5 / 6) * (1 + r) * k, 1 + r + r * r / 3, out=out)


SQUARED_EXPONENTIAL = RadialFunction(_squared_exponential, _slope_of_exponential, in_place=True)

# Functions by order: exp(-r), (1 + r) exp(-r), (1 + r + r^2 / 3) exp(-r).
MATERN = {
    0.5: RadialFunction(_matern_12, _slope_12),
    1.5: RadialFunction(_matern_32, _slope_32),
    2.5: RadialFunction(_matern_52, _slope_52),
}

INVERSE_SCALE_BOUNDS = (1e-6, 1e2)
# Relative rounding error of |z - z'|^2 = |z|^2 + |z'|^2 - 2 z z'. Each |z|^2 is reduced by it, so
# that duplicates have distance exactly zero; sqrt would raise a rounding error to 1e-8.
ROUNDING = 8 * np.finfo(np.float64).eps


class Radial(Summand):
    """A kernel that is a radial function of the weighted squared distance between features."""

    features: tuple[str, ...] | None

    @property
    @abstractmethod
    def function(self) -> RadialFunction: ...

    @property
    @abstractmethod
    def _nu(self) -> Vector:
        """Return the inverse scales: shape () if all features share one, else (p,)."""

    def embed(self, inputs: Inputs) -> Embedding:
        x = inputs.x[:, inputs.layout.columns(self.features)]
        nu = self._nu
        if nu.ndim and len(nu) != x.shape[1]:
            raise InvalidInputError(
                f"x must have {len(nu)} features, one per inverse scale of "
                f"{type(self).__name__}, got {x.shape[1]}."
            )
        rows = np.ones((len(x), x.shape[1] + 2))
        z = np.multiply(np.sqrt(nu), x, out=rows[:, :-2])
        rows[:, -1] = (1 - ROUNDING) * np.einsum("ip,ip->i", z, z)
        return Embedding(rows)

    def embed_tangent(self, tangent: Inputs) -> Embedding:
        return Embedding(np.sqrt(self._nu) * tangent.block(self.features))

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> RadialEvaluation:
        # One product of rows [z, 1, |z|^2] gives |z|^2 + |z'|^2 - 2 z z' for all pairs. It is in
        # float64, because close points differ only in its last digits.
        left = np.hstack([-2 * a.own[:, :-2], a.own[:, :-3:-1]])
        out = memory.empty((len(a.own), len(b.own)))
        s = np.matmul(left, b.own.T, out=out if out.dtype == np.float64 else None)
        s = np.maximum(s, 0.0, out=out, casting="same_kind")
        function = self.function
        k = function.value(s, s if function.in_place else memory.empty(s.shape))
        return RadialEvaluation(function, s, k, a.own, b.own, self._nu)

    def weighted_sum(self, rows: Embedding, weights: Matrix, layout: Layout) -> WeightedSum:
        function, where, root = self.function, layout.columns(self.features), np.sqrt(self._nu)

        def summed(t: float, x: Vector) -> Vector:
            z = root * x[where]
            # |z|^2 + |z'|^2 - 2 z z' of all rows [z', 1, |z'|^2] is one product.
            left = np.ones(len(z) + 2)
            np.multiply(z, -2.0, out=left[:-2])
            left[-2] = (1 - ROUNDING) * z.dot(z)
            s = rows.own.dot(left)
            np.maximum(s, 0.0, out=s)
            return function.value(s, s if function.in_place else np.empty(s.shape)).dot(weights)

        return summed


@dataclass(frozen=True)
class RadialEvaluation(Evaluation):
    """A radial kernel between two blocks of rows [z, 1, |z|^2]."""

    function: RadialFunction
    r: Block
    k: Block
    a: Matrix
    b: Matrix
    nu: Vector

    @property
    def value(self) -> Block:
        return self.k

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        G = self._slope(HEAP) if factor is None else self._slope(HEAP) * factor
        z, other = self.a[:, :-2], self.b[:, :-2]
        # The square in G o (z_i - z'_j)^2 is expanded: three products with G serve all p features.
        products = G @ np.column_stack([v, v[:, None] * other, v[:, None] * other**2])
        Gv, Gzv, Gzzv = np.split(products, [1, 1 + other.shape[1]], axis=1)
        return self._per_scale(2 * z * Gzv - z**2 * Gv - Gzzv)

    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        G = self._slope(HEAP) if factor is None else self._slope(HEAP) * factor
        z, other = self.a[:, :-2], self.b[:, :-2]
        along = np.einsum("jp,jp->j", other, b.own)
        products = G @ (v[:, None] * np.column_stack([np.ones(len(v)), along, other, b.own]))
        Gv, Gzdv, Gzv, Gdv = np.split(products, [1, 2, 2 + other.shape[1]], axis=1)
        return np.asarray(
            -2 * ((z * a.own) * Gv - a.own * Gzv - z * Gdv).sum(axis=1) - 2 * Gzdv[:, 0]
        )

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        slope = self._slope(W.memory)
        H = np.multiply(W.dense, slope, out=W.memory.empty(slope.shape))
        a, b = (rows.astype(H.dtype, copy=False) for rows in (self.a, self.b))
        # b = [z', 1, |z'|^2]: one product gives H z' and the row sums H 1.
        z, other, Hb = a[:, :-2], b[:, :-2], H @ b
        cross = np.einsum("ip,ip->p", z, Hb[:, :-2])
        sums = H.sum(axis=0)
        squares = Hb[:, -2] @ z**2 + sums @ other**2
        if slopes is not None:
            in_b = H.T @ (2 * z)
            in_b -= (2 * sums)[:, None] * other
            slopes.add(2 * (Hb[:, :-2] - Hb[:, -2:-1] * z), in_b)
        return float(np.vdot(W.dense, self.k)), self._per_scale(2 * cross - squares)

    def _slope(self, memory: Heap) -> Block:
        """Return -dk/ds, shape (n, n')."""
        out = self.k if self.function.in_place else memory.empty(self.k.shape)
        return self.function.slope(self.r, self.k, out)

    def _per_scale(self, in_logarithms: Block) -> Block:
        """Return d/dnu from the p columns d/d(log nu); they are summed if all features share nu."""
        if self.nu.ndim:
            return in_logarithms / self.nu
        return in_logarithms.sum(axis=-1, keepdims=True) / self.nu


@dataclass(frozen=True)
class SquaredExponential(Radial):
    r"""A kernel with one scale for all features: $k = \exp(-\nu \|x - x'\|^2)$.

    Parameters
    ----------
    inverse_scale
        $\nu$; large means narrow.
    inverse_scale_bounds
        Interval in which it is learned; None keeps it constant.
    features
        Names of the blocks of x to read; all by default.

    Notes
    -----
    Paper: eq. (8).
    """

    inverse_scale: float = 1.0
    inverse_scale_bounds: Bounds = INVERSE_SCALE_BOUNDS
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        require_number("inverse_scale", self.inverse_scale)
        require_within("inverse_scale", self.inverse_scale, self.inverse_scale_bounds)

    @property
    def groups(self) -> tuple[Group, ...]:
        bounds = self.inverse_scale_bounds
        return (positive_group("inverse_scale", "scale", self.inverse_scale, bounds),)

    def at(self, values: Vector) -> Self:
        return self._changed(inverse_scale=values.item())

    @property
    def function(self) -> RadialFunction:
        return SQUARED_EXPONENTIAL

    @property
    def _nu(self) -> Vector:
        return np.array(self.inverse_scale)


class _PerFeature(Radial):
    """A radial kernel with one inverse scale per feature, or one for all."""

    inverse_scales: ArrayLike
    inverse_scales_bounds: Bounds

    def __post_init__(self) -> None:
        require_within("inverse_scales", self.inverse_scales, self.inverse_scales_bounds)
        nu = np.ravel(self._nu).tolist()  # as a hashable value
        object.__setattr__(self, "inverse_scales", tuple(nu) if self._nu.ndim else nu[0])

    @property
    def groups(self) -> tuple[Group, ...]:
        bounds = self.inverse_scales_bounds
        return (positive_group("inverse_scales", "scale", self.inverse_scales, bounds),)

    def at(self, values: Vector) -> Self:
        nu = values.tolist()
        scalar = isinstance(self.inverse_scales, float)
        return self._changed(inverse_scales=nu[0] if scalar else tuple(nu))

    @property
    def _nu(self) -> Vector:
        return np.asarray(self.inverse_scales, dtype=np.float64)


@dataclass(frozen=True)
class ARD(_PerFeature):
    r"""A kernel with one scale per feature: $k = \exp(-\sum_i \nu_i (x_i - x'_i)^2)$.

    Parameters
    ----------
    inverse_scales
        $\nu_i$, one per feature; the closer to zero, the less the feature matters.
    inverse_scales_bounds
        Interval in which each is learned; None keeps them constant.
    features
        Names of the blocks of x to read; all by default.

    Notes
    -----
    Paper: eq. (9). It is printed without the square, and is not a kernel without it.
    """

    inverse_scales: ArrayLike
    inverse_scales_bounds: Bounds = INVERSE_SCALE_BOUNDS
    features: tuple[str, ...] | None = None

    @property
    def function(self) -> RadialFunction:
        return SQUARED_EXPONENTIAL


@dataclass(frozen=True)
class Matern(_PerFeature):
    r"""A Matern kernel of order 1/2, 3/2 or 5/2, rougher than the squared exponential.

    Parameters
    ----------
    inverse_scales
        $\nu_i$, one per feature, or a single number for all of them.
    order
        0.5, 1.5 or 2.5; the higher, the smoother the functions that it models.
    inverse_scales_bounds
        Interval in which each is learned; None keeps them constant.
    features
        Names of the blocks of x to read; all by default.

    Notes
    -----
    With $s = \sum_i \nu_i (x_i - x'_i)^2$: $e^{-\sqrt{s}}$, $(1 + \sqrt{3s}) e^{-\sqrt{3s}}$,
    $(1 + \sqrt{5s} + 5s/3) e^{-\sqrt{5s}}$.
    """

    inverse_scales: ArrayLike
    order: float = 0.5
    inverse_scales_bounds: Bounds = INVERSE_SCALE_BOUNDS
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.order not in MATERN:
            raise InvalidInputError(f"order must be 0.5, 1.5 or 2.5, got {self.order}.")
        super().__post_init__()

    @cached_property
    def function(self) -> RadialFunction:
        return MATERN[self.order]
