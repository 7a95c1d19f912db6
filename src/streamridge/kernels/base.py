"""The contract of a kernel.

A kernel is a frozen value. It embeds inputs once per fit. Then it evaluates rows of one embedding
against rows of another. An evaluation gives the value K(a, b) and products with its gradient:
`gradient_dot` for the paper's Jacobian and `inner` for the adjoint. No (d, N, N) array is ever
formed.

A forecast needs no more than a sum over one row, k(x, Z) W, and needs it at once: `predictor` makes
all that does not depend on x beforehand.

Rows may move themselves, with numbers that they were made with. `tangent_dot` follows such a move
forward; `inner` gathers backward, on request, what a move of every embedded row would change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from operator import methodcaller
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Block, Matrix, Vector
from streamridge.hyperparameters.groups import Group
from streamridge.hyperparameters.space import Space
from streamridge.memory import Heap
from streamridge.samples import Inputs, Layout

HEAP = Heap()

# Gives k(x, Z) W, shape (k,), for one input at a time t with all its features x, shape (p,).
Predictor: TypeAlias = Callable[[float, Vector], Vector]


@dataclass(frozen=True)
class Embedding:
    """The n inputs as a kernel needs them: an array of n rows, and the embeddings of its parts."""

    own: Matrix
    parts: tuple[Embedding, ...] = ()

    def __len__(self) -> int:
        return len(self.own)

    def rows(self, rows: slice | NDArray[np.intp]) -> Embedding:
        """Return the embedding of some of the inputs; of a slice, arrays are views."""
        return Embedding(self.own[rows], tuple(map(methodcaller("rows", rows), self.parts)))

    def zeros(self) -> Embedding:
        """Return an embedding of the same form that holds zeros."""
        return Embedding(np.zeros_like(self.own), tuple(map(methodcaller("zeros"), self.parts)))

    def dot(self, other: Embedding) -> float:
        """Return the sum of the products of all entries with those of one of the same form."""
        parts = zip(self.parts, other.parts, strict=True)
        return float(np.vdot(self.own, other.own)) + sum(a.dot(b) for a, b in parts)


@dataclass(frozen=True)
class Slopes:
    """The place where `inner` adds how its sum moves with each entry of the embedded rows.

    Parameters
    ----------
    a, b
        In the form of tangents of the n rows a and the n' rows b.
    share
        What is added is multiplied by it: the weight of a kernel in a mixture.
    """

    a: Embedding
    b: Embedding
    share: float = 1.0

    def part(self, index: int, share: float = 1.0) -> Slopes:
        """Return the place of one part, which counts with a share."""
        return Slopes(self.a.parts[index], self.b.parts[index], share * self.share)

    def add(self, in_a: Block, in_b: Block) -> None:
        """Add what moves with the rows a, (n, p), and with the rows b, (n', p)."""
        self.a.own[...] += self.share * in_a
        self.b.own[...] += self.share * in_b


@dataclass(frozen=True)
class Weights:
    """A matrix of weights W = (left right^T) o factor, formed only if a kernel needs it.

    Parameters
    ----------
    left, right
        (n, k) and (n', k).
    factor
        (n, n'), or None for a factor of one. W then has rank k, which some kernels exploit.
    memory
        Source of the work arrays of this shape.
    """

    left: Block
    right: Block
    factor: Block | None = None
    memory: Heap = HEAP

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, n')."""
        return len(self.left), len(self.right)

    @cached_property
    def dense(self) -> Block:
        """Return W, shape (n, n')."""
        product = np.matmul(self.left, self.right.T, out=self.memory.empty(self.shape))
        return product if self.factor is None else np.multiply(product, self.factor, out=product)

    def times(self, factor: Block) -> Weights:
        """Return the weights W o factor."""
        combined = factor if self.factor is None else self.factor * factor
        return replace(self, factor=combined)


class Evaluation(ABC):
    """A kernel evaluated between n rows a and n' rows b, ready for its gradient."""

    @property
    @abstractmethod
    def value(self) -> Block:
        """Return K(a, b), shape (n, n'); sums and products are computed again at each call."""

    def write_to(self, out: Block, weight: float = 1.0) -> None:
        """Write weight * K(a, b) into `out`, shape (n, n')."""
        np.multiply(self.value, weight, out=out)

    def add_to(self, out: Block, weight: float) -> None:
        """Add weight * K(a, b) to `out`, shape (n, n')."""
        out += weight * self.value

    @abstractmethod
    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        """Return the columns (factor o dK/dlam_i) v, shape (n, d).

        v has shape (n',) and factor (n, n'); None means a factor of one.
        """

    @abstractmethod
    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        """Return (factor o dK) v, shape (n,), as the rows move along the tangents a and b."""

    @abstractmethod
    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        """Return the sum of all entries of W o K, and of each W o dK/dlam_i, shape (d,).

        How the sum of W o K moves with the rows is added to `slopes`, if they are given.
        """


class Kernel(ABC):
    """A positive semi-definite function of two inputs, with named hyperparameters."""

    @property
    @abstractmethod
    def groups(self) -> tuple[Group, ...]:
        """Return the hyperparameters in the order of lam."""

    @abstractmethod
    def replace(self, values: Vector) -> Self:
        """Return the same kernel with new hyperparameters, shape (d,).

        They are not checked against the bounds: the caller projects them first.
        """

    @abstractmethod
    def embed(self, inputs: Inputs) -> Embedding:
        """Return the inputs in the form that `evaluate` needs."""

    @abstractmethod
    def embed_tangent(self, tangent: Inputs) -> Embedding:
        """Return how the embedding moves when x moves along a tangent, shape (n, p), given as x.

        A part that does not read x has an array without columns.
        """

    @abstractmethod
    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> Evaluation:
        """Return the kernel between two embeddings, in the dtype of `memory`.

        The arrays that the evaluation keeps come from `memory`.
        """

    def predictor(self, rows: Embedding, weights: Matrix, layout: Layout) -> Predictor:
        """Return the sums k(x, Z) W as a function of one input.

        Parameters
        ----------
        rows
            The n rows Z.
        weights
            (n, k), their weights W in each of the sums.
        layout
            The blocks of x.
        """

        def summed(t: float, x: Vector) -> Vector:
            one = self.embed(Inputs(np.array([t]), x[None, :], layout))
            return np.asarray(self.evaluate(one, rows).value[0] @ weights)

        return summed

    @abstractmethod
    def diagonal(self, inputs: Inputs) -> Vector:
        """Return K(a_i, a_i) for each of n inputs, shape (n,)."""

    def _changed(self, **fields: object) -> Self:
        """Return a copy with some fields changed, without the checks of the constructor."""
        changed = copy(self)
        changed.__dict__.pop("space", None)  # it holds the values of this one
        for name, value in fields.items():
            object.__setattr__(changed, name, value)
        return changed

    @cached_property
    def space(self) -> Space:
        """Return the names, values and bounds of the hyperparameters, and which are learned."""
        return Space(self.groups)

    @property
    def values(self) -> Vector:
        """Return the hyperparameters, shape (d,)."""
        return self.space.values

    def __call__(self, a: Inputs, b: Inputs) -> Matrix:
        """Return K(a, b), shape (n, n')."""
        return self.evaluate(self.embed(a), self.embed(b)).value

    def gradient_dot(self, a: Inputs, b: Inputs, v: Vector) -> Matrix:
        """Return the columns (dK(a, b)/dlam_i) v, shape (n, d)."""
        return self.evaluate(self.embed(a), self.embed(b)).gradient_dot(v)
