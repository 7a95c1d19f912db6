"""The mixture of kernels, eq. (10), and the `+` that builds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Block, Matrix, Vector, require_finite
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Part
from streamridge.hyperparameters.sets import Box, Simplex
from streamridge.hyperparameters.space import Group
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
from streamridge.samples import Inputs, Layout


class Summand(Kernel):
    """A kernel that `+` adds to another, as a Mixture with equal weights."""

    def __add__(self, other: Kernel) -> Mixture:
        if not isinstance(other, Kernel):
            return NotImplemented
        parts = [*_weighted_parts(self), *_weighted_parts(other)]
        kernels, shares = zip(*parts, strict=True)
        learned = all(k.learn_weights for k in (self, other) if isinstance(k, Mixture))
        return Mixture(kernels, weights=np.array(shares) / len(parts), learn_weights=learned)


def _weighted_parts(kernel: Kernel) -> list[tuple[Kernel, float]]:
    """Return the kernels of a sum with weights of mean one, so that a sum of sums is one sum."""
    if not isinstance(kernel, Mixture):
        return [(kernel, 1.0)]
    return [
        (part, weight * len(kernel.kernels))
        for part, weight in zip(kernel.kernels, kernel.weights, strict=True)
    ]


@dataclass(frozen=True)
class Mixture(Summand):
    r"""A sum of kernels with weights on the simplex: $K = \sum_m \beta_m K^{(m)}$.

    Parameters
    ----------
    kernels
        The kernels to add.
    weights
        $\beta$, non-negative, with sum one; equal by default.
    learn_weights
        False keeps the weights constant.

    Notes
    -----
    Paper: eq. (10). Among the hyperparameters the weights come first, then each kernel's own.
    """

    kernels: tuple[Kernel, ...]
    weights: tuple[float, ...]
    learn_weights: bool = True

    def __init__(
        self,
        kernels: Sequence[Kernel],
        weights: ArrayLike | None = None,
        *,
        learn_weights: bool = True,
    ) -> None:
        if not kernels:
            raise InvalidInputError("kernels must hold at least one kernel, got none.")
        for kernel in kernels:
            if not isinstance(kernel, Kernel):
                raise InvalidInputError(f"kernels must hold kernels only, got {kernel!r}.")
        beta = np.full(len(kernels), 1 / len(kernels)) if weights is None else weights
        object.__setattr__(self, "kernels", tuple(kernels))
        object.__setattr__(self, "weights", _require_weights(beta, len(kernels)))
        object.__setattr__(self, "learn_weights", learn_weights)

    @property
    def groups(self) -> tuple[Group, ...]:
        beta = np.array(self.weights)
        labels = _labels(self.kernels)
        feasible: Part = Simplex(len(beta)) if self.learn_weights else Box(beta, beta)
        names = tuple(f"weight.{label}" for label in labels)
        groups = [Group("weight", "weight", names, beta, feasible, learned=self.learn_weights)]
        for label, kernel in zip(labels, self.kernels, strict=True):
            groups += map(methodcaller("under", label), kernel.space.groups)
        return tuple(groups)

    def at(self, values: Vector) -> Self:
        kernels, start = [], len(self.kernels)
        for kernel in self.kernels:
            stop = start + len(kernel.space.names)
            kernels.append(kernel.at(values[start:stop]))
            start = stop
        beta = tuple(values[: len(self.kernels)].tolist())
        return self._changed(kernels=tuple(kernels), weights=beta)

    def embed(self, inputs: Inputs) -> Embedding:
        return Embedding(inputs.t, tuple(map(methodcaller("embed", inputs), self.kernels)))

    def embed_tangent(self, tangent: Inputs) -> Embedding:
        parts = tuple(map(methodcaller("embed_tangent", tangent), self.kernels))
        return Embedding(np.empty((len(tangent.t), 0)), parts)

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> MixtureEvaluation:
        parts = []
        for kernel, of_a, of_b in zip(self.kernels, a.parts, b.parts, strict=True):
            parts.append(kernel.evaluate(of_a, of_b, memory))
        return MixtureEvaluation(self.weights, tuple(parts))

    def weighted_sum(self, rows: Embedding, weights: Matrix, layout: Layout) -> WeightedSum:
        parts = zip(self.weights, self.kernels, rows.parts, strict=True)
        sums = [kernel.weighted_sum(own, beta * weights, layout) for beta, kernel, own in parts]

        def summed(t: float, x: Vector) -> Vector:
            total = sums[0](t, x)
            for part in sums[1:]:
                total = total + part(t, x)
            return total

        return summed


@dataclass(frozen=True)
class MixtureEvaluation(Evaluation):
    """A weighted sum of evaluations."""

    weights: tuple[float, ...]
    parts: tuple[Evaluation, ...]

    @property
    def value(self) -> Block:
        total = self.weights[0] * self.parts[0].value
        for beta, part in zip(self.weights[1:], self.parts[1:], strict=True):
            part.add_to(total, beta)
        return total

    def write_to(self, out: Block, weight: float = 1.0) -> None:
        # Start at the end: the last part is usually linear and writes its product without a copy.
        self.parts[-1].write_to(out, weight * self.weights[-1])
        for beta, part in zip(self.weights[-2::-1], self.parts[-2::-1], strict=True):
            part.add_to(out, weight * beta)

    def add_to(self, out: Block, weight: float) -> None:
        for beta, part in zip(self.weights, self.parts, strict=True):
            part.add_to(out, weight * beta)

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        values = (part.value for part in self.parts)
        in_weights = [(K if factor is None else K * factor) @ v for K in values]
        pairs = zip(self.weights, self.parts, strict=True)
        own = [beta * part.gradient_dot(v, factor) for beta, part in pairs]
        return np.hstack([np.column_stack(in_weights), *own])

    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        total = np.zeros(len(a))
        parts = zip(self.weights, self.parts, a.parts, b.parts, strict=True)
        for beta, part, of_a, of_b in parts:
            total += beta * part.tangent_dot(v, of_a, of_b, factor)
        return total

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        in_weights, own = [], []
        for m, (beta, part) in enumerate(zip(self.weights, self.parts, strict=True)):
            value, gradient = part.inner(W, slopes and slopes.part(m, beta))
            in_weights.append(value)
            own.append(beta * gradient)
        return float(np.dot(self.weights, in_weights)), np.concatenate([in_weights, *own])


def _labels(kernels: Sequence[Kernel]) -> list[str]:
    """Return a short name for each kernel, with a number if its type occurs more than once."""
    types = [type(kernel).__name__.lower() for kernel in kernels]
    often = Counter(types)
    seen: Counter[str] = Counter()
    labels = []
    for name in types:
        seen[name] += 1
        labels.append(f"{name}{seen[name]}" if often[name] > 1 else name)
    return labels


def _require_weights(weights: ArrayLike, size: int) -> tuple[float, ...]:
    beta = require_finite("weights", weights)
    if beta.shape != (size,):
        raise InvalidInputError(f"weights must have one entry per kernel ({size}), got {beta}.")
    if not Simplex(size).contains(beta):
        raise InvalidInputError(f"weights must be >= 0 and sum to 1, got {beta.tolist()}.")
    return tuple(beta.tolist())
