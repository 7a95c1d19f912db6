r"""How a ridge system is solved: by the cheapest way that its precision allows.

A system of few rows is factored by LAPACK. At more rows that costs most of a refit, and there are
cheaper ways to the same solutions:

- In float64, a factor in float32 preconditions conjugate gradients in float64.
- In float32, a few landmarks precondition conjugate gradients, without any factorization. What is
  left of the residual bounds the errors of forecasts: an approximate solution with the residual $r$
  changes the forecasts at the training inputs by $K A^{-1} r$, which is no larger than $r$. So a
  relative residual of 1e-5 changes forecasts by 1e-5 of the deviation of y, in the root of the
  mean of squares.

If iterations do not converge, the next way is taken: in float64 a factor in float64, in float32
a factor with solutions refined to the precision of the matrix. All of it is a function of samples
and hyperparameters alone, so that a system that was dropped is made again bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Block, Vector
from streamridge.kernels.base import Embedding
from streamridge.memory import Arena
from streamridge.models.conjugate import Operator
from streamridge.models.iterated import PreconditionedSystem, double_product, half_product
from streamridge.models.landmarks import drawn
from streamridge.models.preconditioners import by_factor, by_landmarks
from streamridge.models.systems import (
    Blocks,
    FactoredSystem,
    Ridge,
    System,
    cholesky,
    copy_upper,
    factor,
    fill,
)

# A system of fewer rows is factored: that takes a few milliseconds.
LARGE = 1024
# One landmark per so many rows.
LANDMARK_SHARE = 12
# Single precision needs a ridge constant this many times its rounding. With less, a factor in
# float32 was found to save nothing: iterations took as long as a factor in float64.
ABOVE_NOISE = 16
# Relative residuals at which iterations stop, and after how many they are given up: in float64, in
# float32 by landmarks, and in float32 by a factor.
DOUBLE, DOUBLE_LIMIT = 1e-13, 16
SINGLE, SINGLE_LIMIT = 3e-3, 30
REFINED, REFINED_LIMIT = 1e-8, 12


def ready(ridge: Ridge, embedding: Embedding, times: Vector, memory: Arena) -> System:
    """Return the system of N samples, ready to be solved.

    Parameters
    ----------
    ridge
        Kernel, ridge constant and number format.
    embedding
        The samples, as the kernel embeds them.
    times
        (N,), their times.
    memory
        Source of all large arrays.
    """
    A, blocks = fill(ridge, embedding, memory)
    filled = _Filled(ridge, A, blocks, memory, times)
    return filled.in_double() if ridge.dtype == np.float64 else filled.in_single()


@dataclass(frozen=True)
class _Filled:
    """A system whose matrix is filled, and the ways to solve it.

    Parameters
    ----------
    ridge, memory, times
        As in `ready`.
    A
        (N, N), the upper triangle of the matrix with whole diagonal squares.
    blocks
        The kernel's evaluations on its rows.
    """

    ridge: Ridge
    A: Block
    blocks: Blocks
    memory: Arena
    times: Vector

    def in_double(self) -> System:
        """Return the system with solutions to the precision of float64."""
        L = self._factor_in_single() if self._iterates else None
        if L is None:
            return self._factored(self.A)
        return PreconditionedSystem(
            half_product(self.A),
            self.blocks,
            self.memory,
            by_factor(L),
            DOUBLE,
            DOUBLE_LIMIT,
            rescue=lambda: self._factored(self._copied()),
        )

    def in_single(self) -> System:
        """Return the system with solutions to the precision of float32."""
        P = self._near_landmarks() if self._iterates else None
        if P is None:
            return self._refined()
        return PreconditionedSystem(
            half_product(self.A),
            self.blocks,
            self.memory,
            P,
            SINGLE,
            SINGLE_LIMIT,
            exact=double_product(self.A),
            rescue=self._refined,
        )

    def _factored(self, A: Block) -> FactoredSystem:
        """Return the system factored in the place of its matrix."""
        return FactoredSystem(factor(self.ridge, A, self._time), self.blocks, self.memory)

    def _refined(self) -> PreconditionedSystem:
        """Return the system of a float32 matrix with a factor, and solutions in float64."""
        precondition = by_factor(factor(self.ridge, self._copied(), self._time))
        product = double_product(self.A)
        return PreconditionedSystem(
            product, self.blocks, self.memory, precondition, REFINED, REFINED_LIMIT
        )

    def _factor_in_single(self) -> Block | None:
        return cholesky(copy_upper(self.A, self.memory.empty(self.A.shape, np.float32)))

    def _near_landmarks(self) -> Operator | None:
        places = np.sort(drawn(self.times, len(self.A) // LANDMARK_SHARE))
        return by_landmarks(self.A, self.ridge.regularization, places)

    def _copied(self) -> Block:
        return copy_upper(self.A, self.memory.empty(self.A.shape))

    @property
    def _iterates(self) -> bool:
        """Return whether iterations with a matrix in float32 are worth a try.

        Rounding disturbs A by about eps N^(1/2) times its largest entry, which is on its diagonal.
        That has to be small beside lam_R, below which A has no eigenvalue.
        """
        N = len(self.A)
        noise = np.finfo(np.float32).eps * N**0.5 * np.diagonal(self.A).max()
        return N >= LARGE and self.ridge.regularization > ABOVE_NOISE * noise

    @property
    def _time(self) -> float:
        return float(self.times[-1])
