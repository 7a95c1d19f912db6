"""Forgetting: any kernel times exp(-rho |t - t'|), where the rate rho is learned as well."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Self

import numpy as np

from streamridge.arrays import Block, Matrix, Vector, require_number
from streamridge.hyperparameters.groups import (
    Bounds,
    Group,
    positive_group,
    require_values,
    require_within,
)
from streamridge.kernels.base import (
    HEAP,
    Embedding,
    Evaluation,
    Kernel,
    Predictor,
    Slopes,
    Weights,
)
from streamridge.kernels.mixture import Summand
from streamridge.kernels.time_lags import time_lags
from streamridge.memory import Heap
from streamridge.samples import Inputs, Layout


class Forgetting(Summand):
    """A kernel times a factor of the time between two inputs."""

    kernel: Kernel

    def embed(self, inputs: Inputs) -> Embedding:
        return Embedding(inputs.t, (self.kernel.embed(inputs),))

    def embed_tangent(self, tangent: Inputs) -> Embedding:
        return Embedding(np.empty((len(tangent), 0)), (self.kernel.embed_tangent(tangent),))

    def diagonal(self, inputs: Inputs) -> Vector:
        return self.kernel.diagonal(inputs)


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
        combined = self.factor if factor is None else self.factor * factor
        return self.kernel.tangent_dot(v, a.parts[0], b.parts[0], combined)


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
        inner = self.kernel.groups
        if any(group.name == rate.name for group in inner):  # one Drifting right inside another
            inner = tuple(group.under("drifting") for group in inner)
        return (rate, *inner)

    def replace(self, values: Vector) -> Self:
        values = require_values(values, 1 + len(self.kernel.values))
        return self._changed(rate=float(values[0]), kernel=self.kernel.replace(values[1:]))

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> DriftingEvaluation:
        lags = time_lags(a.own, b.own, tables=False)
        age = np.abs(lags.distinct)
        factor = np.exp(-self.rate * age)
        inner = self.kernel.evaluate(a.parts[0], b.parts[0], memory)
        age, factor = (
            lags.spread(values.astype(memory.dtype, copy=False)) for values in (age, factor)
        )
        return DriftingEvaluation(inner, age, factor)

    def predictor(self, rows: Embedding, weights: Matrix, layout: Layout) -> Predictor:
        # Of an input after all rows, exp(-rate (t - t')) is one number times one that stays.
        rate, newest = self.rate, float(rows.own.max(initial=-np.inf))
        faded = weights * np.exp(-rate * (newest - rows.own))[:, None]
        after = self.kernel.predictor(rows.parts[0], faded, layout)
        at_any_time = super().predictor(rows, weights, layout)

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
        combined = self.factor if factor is None else self.factor * factor
        in_rate = -(self.kernel.value * combined * self.age) @ v
        return np.column_stack([in_rate, self.kernel.gradient_dot(v, combined)])

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        forgetful = W.times(self.factor)
        in_value, own = self.kernel.inner(forgetful, slopes and slopes.part(0))
        aged = np.multiply(self.kernel.value, self.age, out=W.memory.empty(W.shape))
        in_rate = -float(np.vdot(forgetful.dense, aged))
        return in_value, np.concatenate([[in_rate], own])
