"""The contract of a kernel.

A kernel is a frozen value. It embeds inputs once per fit. Then it evaluates rows of one embedding
against rows of another. An evaluation returns the value K(a, b) and products with its gradient:
`gradient_dot` for the paper's Jacobian and `inner` for the adjoint. No (d, N, N) array is ever
formed.

A forecast needs only sums over one row, k(x, Z) W. `weighted_sum` returns them as a function of
one input, and precomputes everything that does not depend on the input.

Rows may depend on parameters of their features. `tangent_dot` differentiates the kernel forward
along tangents of the rows. `inner` can also differentiate backward, in every entry of the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import methodcaller
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from streamridge.arrays import Block, Matrix, Vector
from streamridge.hyperparameters.space import Group, Space, require_values
from streamridge.samples import Inputs, Layout

# Returns k(x, Z) W, shape (k,), for one input at time t with all its features x, shape (p,).
WeightedSum: TypeAlias = Callable[[float, Vector], Vector]

# Elements per slab: large enough for the operating system to use huge pages.
SLAB = 1 << 21


class Heap:
    """A source of new arrays of one dtype."""

    def __init__(self, dtype: DTypeLike = np.float64) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Block:
        """Return an uninitialized array, in the dtype of this memory or a narrower one."""
        return np.empty(shape, self.dtype if dtype is None else dtype)


class Arena(Heap):
    """A source of arrays that are slices of a few large slabs; `rewind` takes them back.

    A refit at N = 2880 fills about 130 MB. New memory pages cost more than the arithmetic on them
    (33 MB in small arrays: 18 ms new, 2 ms reused), so a fit takes over the arena of the last one.
    """

    def __init__(self, dtype: DTypeLike = np.float64) -> None:
        self.dtype = np.dtype(dtype)
        self._slabs: list[Block] = []
        self._current = self._used = 0

    @property
    def size(self) -> int:
        """Return the number of elements of all slabs."""
        return sum(slab.size for slab in self._slabs)

    def mark(self) -> tuple[int, int]:
        """Return the current position, up to which memory is in use."""
        return self._current, self._used

    def rewind(self, mark: tuple[int, int] = (0, 0)) -> None:
        """Take back every array that was returned after the mark; by default all of them."""
        self._current, self._used = mark

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Block:
        kind = self.dtype if dtype is None else np.dtype(dtype)
        count = prod(shape)
        size = -(-count * kind.itemsize // self.dtype.itemsize)  # in elements of the slab
        slabs = self._slabs
        if self._current < len(slabs) and self._used + size > slabs[self._current].size:
            self._current += 1
            self._used = 0
        if self._current == len(slabs):
            slabs.append(np.empty(max(size, SLAB), self.dtype))
        elif slabs[self._current].size < size:
            slabs[self._current] = np.empty(size, self.dtype)
        start, self._used = self._used, self._used + size
        return slabs[self._current][start : self._used].view(kind)[:count].reshape(shape)


HEAP = Heap()


@dataclass(frozen=True)
class Embedding:
    """The n inputs in the form a kernel needs: an array of n rows, and the embeddings of parts."""

    own: Matrix
    parts: tuple[Embedding, ...] = ()

    def __len__(self) -> int:
        return len(self.own)

    def rows(self, rows: slice | NDArray[np.intp]) -> Embedding:
        """Return the embedding of some of the inputs; the arrays of a slice are views."""
        return Embedding(self.own[rows], tuple(map(methodcaller("rows", rows), self.parts)))

    def zeros(self) -> Embedding:
        """Return an embedding of the same form that holds zeros."""
        return Embedding(np.zeros_like(self.own), tuple(map(methodcaller("zeros"), self.parts)))

    def dot(self, other: Embedding) -> float:
        """Return the sum of the products of all entries with the entries of another embedding."""
        of_parts = 0.0
        for part, other_part in zip(self.parts, other.parts, strict=True):
            of_parts += part.dot(other_part)
        return float(np.vdot(self.own, other.own)) + of_parts


@dataclass(frozen=True)
class Slopes:
    """The arrays to which `inner` adds the derivatives of its sum in the entries of the rows."""

    a: Embedding  # in the form of tangents of the n rows a
    b: Embedding  # of the n' rows b
    share: float = 1.0  # a factor of all that is added: the weight of a kernel in a mixture

    def part(self, index: int, share: float = 1.0) -> Slopes:
        """Return the slopes of one part, with a further factor."""
        return Slopes(self.a.parts[index], self.b.parts[index], share * self.share)

    def add(self, in_a: Block, in_b: Block) -> None:
        """Add the derivatives in the rows a, (n, p), and in the rows b, (n', p)."""
        self.a.own[...] += self.share * in_a
        self.b.own[...] += self.share * in_b


@dataclass(frozen=True)
class Weights:
    """A matrix of weights W = (left right^T) o factor, formed only if a kernel needs it."""

    left: Block  # (n, k)
    right: Block  # (n', k)
    factor: Block | None = None  # (n, n'); without it W has rank k, which some kernels exploit
    memory: Heap = HEAP

    @cached_property
    def dense(self) -> Block:
        """Return W, shape (n, n')."""
        out = self.memory.empty((len(self.left), len(self.right)))
        product = np.matmul(self.left, self.right.T, out=out)
        return product if self.factor is None else np.multiply(product, self.factor, out=product)


class Evaluation(ABC):
    """A kernel evaluated between n rows a and n' rows b, ready for its gradient."""

    @property
    @abstractmethod
    def value(self) -> Block:
        """Return K(a, b), shape (n, n'); sums and products are recomputed at each call."""

    def write_to(self, out: Block, weight: float = 1.0) -> None:
        """Write weight * K(a, b) into `out`, shape (n, n')."""
        np.multiply(self.value, weight, out=out)

    def add_to(self, out: Block, weight: float) -> None:
        """Add weight * K(a, b) to `out`, shape (n, n')."""
        out += weight * self.value

    @abstractmethod
    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        """Return the columns (factor o dK/dlam_i) v, shape (n, d), for v (n',), factor (n, n')."""

    @abstractmethod
    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        """Return (factor o dK) v, shape (n,), for rows that move along the tangents a and b."""

    @abstractmethod
    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        """Return the sum of all entries of W o K, and of each W o dK/dlam_i, shape (d,).

        The derivatives of the sum of W o K in the entries of the rows are added to `slopes`.
        """


class Kernel(ABC):
    """A positive semi-definite function of two inputs, with named hyperparameters."""

    @property
    @abstractmethod
    def groups(self) -> tuple[Group, ...]:
        """Return the hyperparameters in the order of lam."""

    @abstractmethod
    def at(self, values: Vector) -> Self:
        """Return the same kernel at other hyperparameters, shape (d,), which are not checked."""

    def replace(self, values: Vector) -> Self:
        """Return the same kernel at other hyperparameters, shape (d,), within any bounds."""
        return self.at(require_values(values, len(self.space.names)))

    @abstractmethod
    def embed(self, inputs: Inputs) -> Embedding:
        """Return the inputs in the form that `evaluate` needs."""

    @abstractmethod
    def embed_tangent(self, tangent: Inputs, /) -> Embedding:
        """Return the derivative of the embedding along a tangent of x, (n, p), given as x.

        A part that does not read x has an array without columns.
        """

    @abstractmethod
    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> Evaluation:
        """Return the kernel between two embeddings; its arrays come from `memory`."""

    def weighted_sum(self, rows: Embedding, weights: Matrix, layout: Layout) -> WeightedSum:
        """Return the sums k(x, Z) W as a function of one input, for n rows Z and W (n, k)."""

        def summed(t: float, x: Vector) -> Vector:
            one = self.embed(Inputs(np.array([t]), x[None, :], layout))
            return np.asarray(self.evaluate(one, rows).value[0] @ weights)

        return summed

    def _changed(self, **fields: object) -> Self:
        """Return a copy with some fields changed, without the checks of the constructor."""
        changed = copy(self)
        changed.__dict__.pop("space", None)  # it holds the old values
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
