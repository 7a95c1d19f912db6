r"""The ridge system $A = K + \lambda_R I$, and the choice of the cheapest way to solve it.

The upper triangle of K is computed in blocks of rows that fit the processor's cache. A small system
is factored by LAPACK. For large systems a factorization takes most of a refit, and there are
cheaper solvers:

- In float64, a factor in float32 preconditions conjugate gradients in float64.
- In float32, landmarks precondition conjugate gradients, without any factorization. The remaining
  residual bounds the errors of forecasts: an approximate solution with residual $r$ changes the
  forecasts at the training inputs by $K A^{-1} r$, which is no larger than $r$. A relative residual
  of 1e-5 therefore changes forecasts by 1e-5 of the deviation of y, in the root mean square.

If iterations do not converge, a fallback is used: in float64 a factor in float64, in float32 a
factor with solutions refined to the precision of the matrix. The choice depends only on samples and
hyperparameters, so a dropped system can be recomputed bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from streamridge.arrays import Block, Matrix, Vector
from streamridge.errors import NotPositiveDefiniteError
from streamridge.kernels.base import Arena, Embedding, Evaluation, Kernel
from streamridge.models.conjugate_gradients import (
    BLOCK_ROWS,
    Operator,
    by_landmarks,
    conjugate_gradients,
    double_product,
    half_product,
)
from streamridge.models.landmarks import drawn

# A system with fewer rows is factored: that takes a few milliseconds.
LARGE = 1024
# Rows per landmark of the preconditioner.
LANDMARK_SHARE = 12
# Single precision needs a ridge constant this many times its rounding error. With less, a factor in
# float32 saved nothing: iterations took as long as a factor in float64.
ABOVE_NOISE = 16
# Relative residuals at which iterations stop, and the limit on their number: in float64, in float32
# by landmarks, and in float32 by a factor.
DOUBLE, DOUBLE_LIMIT = 1e-13, 16
SINGLE, SINGLE_LIMIT = 3e-3, 30
REFINED, REFINED_LIMIT = 1e-8, 12

Blocks = tuple[tuple[slice, Evaluation], ...]


@dataclass(frozen=True)
class Ridge:
    """The definition of a ridge system."""

    kernel: Kernel
    regularization: float
    lower_bound: float  # of the ridge constant in tuning; only the error message needs it
    dtype: np.dtype[Any]  # of the matrix: float64 or float32; it limits the precision of solutions


class System(Protocol):
    """The matrix A = K + lam_R I of N samples, ready to be solved."""

    @property
    def blocks(self) -> Blocks:
        """Return the kernel's evaluations on rows of the upper triangle, for its gradients."""

    @property
    def memory(self) -> Arena:
        """Return the memory that holds all arrays of the system."""

    def solve(self, B: Matrix) -> Matrix:
        """Return A^-1 B for right-hand sides B of shape (N, k)."""

    def solve_adjoint(self, B: Matrix) -> Matrix:
        """Return A^-1 B for the right-hand sides of a gradient, shape (N, k)."""


@dataclass(frozen=True)
class FactoredSystem:
    """A system solved by its Cholesky factor."""

    factor: Block  # (N, N), column-major; its lower triangle L has A = L L^T
    blocks: Blocks
    memory: Arena

    def solve(self, B: Matrix) -> Matrix:
        # LAPACK's layout varies; with one layout, products with X stay bit-equal after a save.
        return np.ascontiguousarray(solve_factored(self.factor, B))

    solve_adjoint = solve


@dataclass
class Guesses:
    """The latest solutions of `solve` and `solve_adjoint`, (N, H): the starts of the next ones."""

    weights: Matrix | None = None
    adjoint: Matrix | None = None


@dataclass(frozen=True)
class IteratedSystem:
    """A system solved to a loose tolerance, by iteration from the latest solution."""

    A: Block  # (N, N), the upper triangle of the matrix
    blocks: Blocks
    memory: Arena
    tolerance: float  # the relative residual at which iterations stop
    guesses: Guesses = field(default_factory=Guesses)  # each solution replaces its guess

    def solve(self, B: Matrix) -> Matrix:
        self.guesses.weights = self._solve(B, self.guesses.weights)
        return self.guesses.weights

    def solve_adjoint(self, B: Matrix) -> Matrix:
        self.guesses.adjoint = self._solve(B, self.guesses.adjoint)
        return self.guesses.adjoint

    def _solve(self, B: Matrix, guess: Matrix | None) -> Matrix:
        start = guess if guess is not None and guess.shape == B.shape else None
        return conjugate_gradients(half_product(self.A), B, start, self.tolerance)


@dataclass(frozen=True)
class PreconditionedSystem:
    """A system solved to the precision of its matrix, by preconditioned iteration.

    Solutions depend only on A and on the right-hand sides, not on earlier solutions.
    """

    product: Operator  # multiplies with A
    blocks: Blocks
    memory: Arena
    precondition: Operator  # returns P^-1 R for a P that is near A
    tolerance: float  # the relative residual at which iterations stop
    limit: int  # of the number of iterations
    # Multiplies with A more precisely than `product`. With it, the residual of the first solution
    # is solved to the same tolerance and added, so that the tolerance counts twice.
    exact: Operator | None = None
    # Returns a system to use if iterations fail; without one, failed solutions are NaN.
    fallback: Callable[[], System] | None = None

    def solve(self, B: Matrix) -> Matrix:
        X = self._iterated(B)
        if self.exact is not None:
            X += self._iterated(B - self.exact(X))
        if self._fallback is None or np.isfinite(X).all():
            return X
        return self._fallback().solve(B)

    solve_adjoint = solve

    def _iterated(self, B: Matrix) -> Matrix:
        return conjugate_gradients(
            self.product, B, None, self.tolerance, self.precondition, self.limit
        )

    @cached_property
    def _fallback(self) -> Callable[[], System] | None:
        """Return the fallback as a function that builds its system once."""
        return None if self.fallback is None else cache(self.fallback)


def solvable(ridge: Ridge, A: Block, blocks: Blocks, memory: Arena, times: Vector) -> System:
    """Return the system of N samples at these times, ready to be solved; see `fill` for A."""
    if ridge.dtype != np.float64:
        return _in_single(ridge, A, blocks, memory, times)
    L, time = None, float(times[-1])
    if len(A) >= LARGE and _resolves_float32(ridge, A):
        L = cholesky(_copy_upper(A, memory.empty(A.shape, np.float32)))
    if L is None:
        return FactoredSystem(factor(ridge, A, time), blocks, memory)

    def factored() -> FactoredSystem:
        copied = _copy_upper(A, memory.empty(A.shape))
        return FactoredSystem(factor(ridge, copied, time), blocks, memory)

    P, product = by_factor(L), half_product(A)
    return PreconditionedSystem(product, blocks, memory, P, DOUBLE, DOUBLE_LIMIT, fallback=factored)


def _in_single(ridge: Ridge, A: Block, blocks: Blocks, memory: Arena, times: Vector) -> System:
    """Return the system with solutions to the precision of float32."""

    def refined() -> PreconditionedSystem:
        L = factor(ridge, _copy_upper(A, memory.empty(A.shape)), float(times[-1]))
        product = double_product(A)
        return PreconditionedSystem(product, blocks, memory, by_factor(L), REFINED, REFINED_LIMIT)

    P = None
    if len(A) >= LARGE and _resolves_float32(ridge, A):
        places = np.sort(drawn(times, len(A) // LANDMARK_SHARE))
        P = by_landmarks(A, ridge.regularization, places)
    if P is None:
        return refined()
    product, exact = half_product(A), double_product(A)
    return PreconditionedSystem(
        product, blocks, memory, P, SINGLE, SINGLE_LIMIT, exact=exact, fallback=refined
    )


def _resolves_float32(ridge: Ridge, A: Block) -> bool:
    """Return whether float32 is precise enough for iterations with A.

    Rounding disturbs A by about eps N^(1/2) times its largest entry, which is on its diagonal.
    This must be small compared to lam_R, the lower bound of the eigenvalues of A.
    """
    noise = np.finfo(np.float32).eps * len(A) ** 0.5 * np.diagonal(A).max()
    return bool(ridge.regularization > ABOVE_NOISE * noise)


def fill(ridge: Ridge, embedding: Embedding, memory: Arena) -> tuple[Block, Blocks]:
    """Return the upper triangle of A with whole diagonal squares, and the kernel's evaluations."""
    N = len(embedding.own)
    A = memory.empty((N, N))
    blocks = []
    for start in range(0, N, BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, N))
        columns = slice(start, N)
        evaluation = ridge.kernel.evaluate(embedding.rows(rows), embedding.rows(columns), memory)
        evaluation.write_to(A[rows, columns])
        diagonal = slice(rows.start * (N + 1), rows.stop * (N + 1), N + 1)
        A.ravel()[diagonal] += ridge.regularization
        blocks.append((rows, evaluation))
    return A, tuple(blocks)


def _copy_upper(A: Block, out: Block) -> Block:
    """Return `out` with the upper triangle of A and whole diagonal squares written to it."""
    for start in range(0, len(A), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        out[rows, start:] = A[rows, start:]
    return out


def factor(ridge: Ridge, A: Block, time: float) -> Block:
    """Return the Cholesky factor of an upper triangle, which is overwritten, or raise."""
    L = cholesky(A)
    if L is not None:
        pivots = np.diagonal(L)
        # If the pivots differ by more than rounding can resolve, solutions would be noise.
        if float((pivots.min() / pivots.max()) ** 2) > len(A) * np.finfo(A.dtype).eps:
            return L
    raise no_factor(ridge, time)


def cholesky(A: Block) -> Block | None:
    """Return the Cholesky factor of an upper triangle, which is overwritten, or None."""
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    # Row-major A is column-major A^T: its upper triangle is LAPACK's lower one, with no copy.
    L, failed = potrf(A.T, lower=1, overwrite_a=1, clean=0)
    return None if failed else L


def no_factor(ridge: Ridge, time: float) -> NotPositiveDefiniteError:
    """Return the error for a system that has no Cholesky factor."""
    system = "K + regularization * I"
    if ridge.dtype == np.float32:
        system += " in float32"
    return NotPositiveDefiniteError(
        system, time, "regularization", ridge.regularization, ridge.lower_bound
    )


def solve_factored(L: Block, B: Matrix) -> Matrix:
    """Return (L L^T)^-1 B to the precision of L, for right-hand sides B of shape (N, k)."""
    # Measured at N = 2880: potrs takes 8.8 ms for one right-hand side, two trsv take 3.4 ms.
    if B.shape[1] == 1:
        (trsv,) = get_blas_funcs(("trsv",), (L,))
        half = trsv(L, B[:, 0], lower=1)
        X = trsv(L, half, lower=1, trans=1)[:, None]
    else:
        (potrs,) = get_lapack_funcs(("potrs",), (L,))
        X, _ = potrs(L, B, lower=1)
    return X.astype(np.float64, copy=False)


def by_factor(L: Block) -> Operator:
    """Return P^-1 for P = L L^T, given a Cholesky factor in any precision."""
    return lambda R: solve_factored(L, R)
