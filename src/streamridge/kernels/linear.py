"""The linear kernel K^lin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamridge.arrays import Block, Matrix, Vector
from streamridge.hyperparameters.space import Group
from streamridge.kernels.base import HEAP, Embedding, Evaluation, Heap, Slopes, WeightedSum, Weights
from streamridge.kernels.mixture import Summand
from streamridge.samples import Inputs, Layout


@dataclass(frozen=True)
class Linear(Summand):
    """The kernel of a model that is linear in its features: k = <x, x'>, without hyperparameters.

    Parameters
    ----------
    features
        Names of the blocks of x to read; all by default.
    """

    features: tuple[str, ...] | None = None

    @property
    def groups(self) -> tuple[Group, ...]:
        return ()

    def at(self, values: Vector) -> Self:
        return self

    def embed(self, inputs: Inputs) -> Embedding:
        return Embedding(inputs.block(self.features))

    embed_tangent = embed

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> LinearEvaluation:
        dtype = memory.dtype
        return LinearEvaluation(a.own.astype(dtype, copy=False), b.own.astype(dtype, copy=False))

    def weighted_sum(self, rows: Embedding, weights: Matrix, layout: Layout) -> WeightedSum:
        # A sum of products with n rows is one product with their sum.
        where, total = layout.columns(self.features), rows.own.T @ weights
        return lambda t, x: x[where].dot(total)


@dataclass(frozen=True)
class LinearEvaluation(Evaluation):
    """The linear kernel between two blocks of rows."""

    x: Matrix
    other: Matrix

    @property
    def value(self) -> Block:
        return self.x @ self.other.T

    def write_to(self, out: Block, weight: float = 1.0) -> None:
        np.matmul(weight * self.x, self.other.T, out=out)

    def add_to(self, out: Block, weight: float) -> None:
        out += (weight * self.x) @ self.other.T

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        return np.empty((len(self.x), 0))

    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        dK = a.own @ self.other.T + self.x @ b.own.T
        return np.asarray((dK if factor is None else dK * factor) @ v)

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        if W.factor is None:  # trace of (x^T left)(right^T x'): W is never formed
            of_left, of_right = self.x.T @ W.left, self.other.T @ W.right
            if slopes is not None:
                slopes.add(W.left @ of_right.T, W.right @ of_left.T)
            return float(np.vdot(of_left, of_right)), np.empty(0)
        in_x = W.dense @ self.other
        if slopes is not None:
            slopes.add(in_x, W.dense.T @ self.x)
        return float(np.vdot(self.x, in_x)), np.empty(0)
