"""The periodic kernel K^prd, eq. (7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from streamridge.arrays import Block, Vector, require_number
from streamridge.hyperparameters.space import (
    Bounds,
    Group,
    positive_group,
    require_within,
)
from streamridge.kernels.base import HEAP, Embedding, Evaluation, Heap, Slopes, Weights
from streamridge.kernels.drifting import FreeLags, TimeLags, time_lags
from streamridge.kernels.mixture import Summand
from streamridge.samples import Inputs

# The loss as a function of the period has dozens of local minima. One move must stay in the same
# valley: it may shift the phase across a month of history by only a fraction of a turn.
PERIOD_TRUST = 0.005


@dataclass(frozen=True)
class Periodic(Summand):
    r"""A kernel that repeats itself in time: $k(t, t') = \exp(-\nu \sin^2(\pi |t - t'| / \omega))$.

    Parameters
    ----------
    period
        $\omega$, in steps.
    inverse_scale
        $\nu$; if it is large, only times of nearly the same phase are similar.
    period_bounds
        Interval in which the period is learned; constant by default.
    inverse_scale_bounds
        Interval in which the inverse scale is learned; None keeps it constant.
    period_trust
        Largest relative change of a learned period in one move; the paper has no such limit.

    Notes
    -----
    Paper: eq. (7). On a regular grid the Gram matrix is Toeplitz and costs O(N) evaluations.

    Examples
    --------
    >>> day = Periodic(period=96.0)
    >>> x = np.empty((3, 0))
    >>> day(Inputs.of([0, 48, 96], x), Inputs.of([0, 48, 96], x)).round(3)
    array([[1.   , 0.368, 1.   ],
           [0.368, 1.   , 0.368],
           [1.   , 0.368, 1.   ]])
    """

    period: float
    inverse_scale: float = 1.0
    period_bounds: Bounds = None
    inverse_scale_bounds: Bounds = (1e-3, 1e3)
    period_trust: float = PERIOD_TRUST

    def __post_init__(self) -> None:
        require_number("period", self.period)
        require_number("inverse_scale", self.inverse_scale)
        require_within("period", self.period, self.period_bounds)
        require_within("inverse_scale", self.inverse_scale, self.inverse_scale_bounds)

    @property
    def groups(self) -> tuple[Group, ...]:
        omega, nu = self.period, self.inverse_scale
        return (
            positive_group("period", "period", omega, self.period_bounds, trust=self.period_trust),
            positive_group("inverse_scale", "period", nu, self.inverse_scale_bounds),
        )

    def at(self, values: Vector) -> Self:
        omega, nu = values.tolist()
        return self._changed(period=omega, inverse_scale=nu)

    def embed(self, inputs: Inputs) -> Embedding:
        # The remainder keeps the phase accurate at large times.
        phase = (np.pi / self.period) * np.remainder(inputs.t, self.period)
        return Embedding(np.column_stack([inputs.t, np.sin(phase), np.cos(phase)]))

    def embed_tangent(self, tangent: Inputs) -> Embedding:
        return Embedding(np.empty((len(tangent.t), 0)))

    def evaluate(self, a: Embedding, b: Embedding, memory: Heap = HEAP) -> PeriodicEvaluation:
        nu, omega = self.inverse_scale, self.period
        lags = time_lags(a.own[:, 0], b.own[:, 0])
        if isinstance(lags, FreeLags):  # sin(a - b) by the addition theorem: no sine per pair
            sine = a.own[:, 1:2] * b.own[:, 2] - a.own[:, 2:] * b.own[:, 1]
        else:
            sine = np.sin((np.pi / omega) * lags.distinct)
        k = np.exp(-nu * sine**2)
        return PeriodicEvaluation(lags, sine, k, nu, omega, memory.dtype)


@dataclass(frozen=True)
class PeriodicEvaluation(Evaluation):
    """The periodic kernel at the distinct time differences."""

    lags: TimeLags
    sine: Block
    k: Block
    nu: float
    omega: float
    dtype: np.dtype[np.floating]

    @property
    def value(self) -> Block:
        return self._spread(self.k)

    def add_to(self, out: Block, weight: float) -> None:
        out += self._spread(weight * self.k)

    def gradient_dot(self, v: Vector, factor: Block | None = None) -> Block:
        spread = [self._spread(dk) for dk in self._gradients]
        return np.column_stack([(dK if factor is None else dK * factor) @ v for dK in spread])

    def tangent_dot(
        self, v: Vector, a: Embedding, b: Embedding, factor: Block | None = None
    ) -> Vector:
        return np.zeros(len(a))

    def inner(self, W: Weights, slopes: Slopes | None = None) -> tuple[float, Vector]:
        w = self.lags.collect(W)
        own = np.array([np.vdot(w, dk) for dk in self._gradients])
        return float(np.vdot(w, self.k)), own

    @property
    def _gradients(self) -> tuple[Block, Block]:
        angle = (np.pi / self.omega) * self.lags.distinct
        dk_domega = self.k * self.nu * np.sin(2 * angle) * angle / self.omega
        dk_dnu = -self.k * self.sine**2
        return dk_domega, dk_dnu

    def _spread(self, values: Block) -> Block:
        return self.lags.expand(values.astype(self.dtype, copy=False))
