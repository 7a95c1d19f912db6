r"""Kernels of one weighted distance $s = \sum_i \nu_i (x_i - x'_i)^2$: eqs (8), (9) and Matern.

Each is a profile $k(s)$ with the gradient
$\partial K / \partial \nu_i = k'(s) \circ (x_i - x'_i)^2$. The square is expanded: three products
replace p, and no (p, N, N) array is formed. In the code, $z_i = \sqrt{\nu_i} x_i$. Where rows move
along $\dot z$, $\dot K = 2 k'(s) \circ \sum_i (z_i - z'_i)(\dot z_i - \dot z'_i)$ is expanded too.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Block, Matrix, Vector, require_number
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.groups import (
    Bounds,
    Group,
    positive_group,
    require_values,
    require_within,
)
from streamridge.kernels.base import HEAP, Embedding, Evaluation, Predictor, Slopes, Weights
from streamridge.kernels.mixture import Summand
from streamridge.kernels.shapes import MATERN, SQUARED_EXPONENTIAL, Profile
from streamridge.memory import Heap
from streamridge.samples import Inputs, Layout, places

INVERSE_SCALE_BOUNDS = (1e-6, 1e2)
# Relative rounding error of |z - z'|^2 = |z|^2 + |z'|^2 - 2 z z'. Each |z|^2 is reduced by it, so
# that duplicates have distance exactly zero; sqrt would raise a remainder to 1e-8.
ROUNDING = 8 * np.finfo(np.float64).eps


class Radial(Summand):
    """A kernel that is a profile of the weighted squared distance between features."""

    features: tuple[str, ...] | None

    @property
    @abstractmethod
    def profile(self) -> Profile:
        """Return the radial function."""

    @property
    @abstractmethod
    def _nu(self) -> Vector:
        """Return the inverse scales: shape () if all features share one, else (p,)."""

    def embed(self, inputs: Inputs) -> Embedding:
        x = inputs.block(self.features)
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

    def diagonal(self, inputs: Inputs) -> Vector:
        return np.ones(len(inputs))

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> RadialEvaluation:
        s = squared_distances(a.own, b.own, memory.empty((len(a), len(b))))
        r = self.profile.distance(s)
        return RadialEvaluation(
            self.profile, r, self.profile.value(r, memory), a.own, b.own, self._nu
        )

    def predictor(self, rows: Embedding, weights: Matrix, layout: Layout) -> Predictor:
        profile, where, root = self.profile, places(layout, self.features), np.sqrt(self._nu)

        def summed(t: float, x: Vector) -> Vector:
            z = root * x[where]
            # |z|^2 + |z'|^2 - 2 z z' of all rows [z', 1, |z'|^2] is one product.
            left = np.ones(len(z) + 2)
            np.multiply(z, -2.0, out=left[:-2])
            left[-2] = (1 - ROUNDING) * z.dot(z)
            s = rows.own.dot(left)
            r = profile.distance(np.maximum(s, 0.0, out=s))
            return profile.value(r, HEAP).dot(weights)

        return summed


def squared_distances(a: Matrix, b: Matrix, out: Block) -> Block:
    """Return |z_i - z'_j|^2 from rows [z, 1, |z|^2] by one matrix product, written to `out`."""
    left = np.hstack([-2 * a[:, :-2], a[:, :-3:-1]])
    # The product is always float64: close points differ only in its last digits.
    s = np.matmul(left, b.T, out=out if out.dtype == np.float64 else None)
    return np.maximum(s, 0.0, out=out, casting="same_kind")


@dataclass(frozen=True)
class RadialEvaluation(Evaluation):
    """A radial kernel between two blocks of rows [z, 1, |z|^2]."""

    profile: Profile
    r: Block
    k: Block
    a: Matrix
    b: Matrix
    nu: Vector

    @property
    def value(self) -> Block:
        return self.k

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        G = self.profile.slope(self.r, self.k, HEAP)
        G = G if factor is None else G * factor
        z, other = self.a[:, :-2], self.b[:, :-2]
        # The square in G o (z_i - z'_j)^2 is expanded: three products with G serve all p features.
        products = G @ np.column_stack([v, v[:, None] * other, v[:, None] * other**2])
        Gv, Gzv, Gzzv = np.split(products, [1, 1 + other.shape[1]], axis=1)
        return self._per_scale(2 * z * Gzv - z**2 * Gv - Gzzv)

    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        G = self.profile.slope(self.r, self.k, HEAP)
        G = G if factor is None else G * factor
        z, other = self.a[:, :-2], self.b[:, :-2]
        along = np.einsum("jp,jp->j", other, b.own)
        products = G @ (v[:, None] * np.column_stack([np.ones(len(v)), along, other, b.own]))
        Gv, Gzdv, Gzv, Gdv = np.split(products, [1, 2, 2 + other.shape[1]], axis=1)
        return np.asarray(
            -2 * ((z * a.own) * Gv - a.own * Gzv - z * Gdv).sum(axis=1) - 2 * Gzdv[:, 0]
        )

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        slope = self.profile.slope(self.r, self.k, W.memory)
        H = np.multiply(W.dense, slope, out=W.memory.empty(W.shape))
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

    def replace(self, values: Vector) -> Self:
        (nu,) = require_values(values, 1).tolist()
        return self._changed(inverse_scale=nu)

    @property
    def profile(self) -> Profile:
        return SQUARED_EXPONENTIAL

    @property
    def _nu(self) -> Vector:
        return np.array(self.inverse_scale)


def _hashable(values: ArrayLike) -> float | tuple[float, ...]:
    """Return the inverse scales as a hashable value: one number, or one per feature."""
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else tuple(array.ravel().tolist())


class _Relevance(Radial):
    """A radial kernel with one inverse scale per feature, or one for all."""

    inverse_scales: ArrayLike
    inverse_scales_bounds: Bounds

    def __post_init__(self) -> None:
        require_within("inverse_scales", self.inverse_scales, self.inverse_scales_bounds)
        object.__setattr__(self, "inverse_scales", _hashable(self.inverse_scales))

    @property
    def groups(self) -> tuple[Group, ...]:
        bounds = self.inverse_scales_bounds
        return (positive_group("inverse_scales", "scale", self.inverse_scales, bounds),)

    def replace(self, values: Vector) -> Self:
        nu = require_values(values, self._nu.size)
        return self._changed(inverse_scales=_hashable(nu.reshape(self._nu.shape)))

    @property
    def _nu(self) -> Vector:
        return np.asarray(self.inverse_scales, dtype=np.float64)


@dataclass(frozen=True)
class ARD(_Relevance):
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
    def profile(self) -> Profile:
        return SQUARED_EXPONENTIAL


@dataclass(frozen=True)
class Matern(_Relevance):
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

    @property
    def profile(self) -> Profile:
        return MATERN[self.order]
