"""The linear kernel K^lin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamridge.arrays import Block, Matrix, Vector
from streamridge.hyperparameters.groups import Group, require_values
from streamridge.kernels.base import HEAP, Embedding, Evaluation, Weights
from streamridge.kernels.mixture import Summand
from streamridge.memory import Heap
from streamridge.samples import Inputs


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

    def replace(self, values: Vector) -> Self:
        require_values(values, 0)
        return self

    def embed(self, inputs: Inputs) -> Embedding:
        return Embedding(inputs.block(self.features))

    def diagonal(self, inputs: Inputs) -> Vector:
        return (inputs.block(self.features) ** 2).sum(axis=1)

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> LinearEvaluation:
        dtype = memory.dtype
        return LinearEvaluation(a.own.astype(dtype, copy=False), b.own.astype(dtype, copy=False))


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

    def inner(self, W: Weights) -> tuple[float, Vector]:
        if W.factor is None:  # trace of (x^T left)(right^T x'): W is never formed
            in_value = np.vdot(self.x.T @ W.left, self.other.T @ W.right)
        else:
            in_value = np.vdot(self.x, W.dense @ self.other)
        return float(in_value), np.empty(0)
