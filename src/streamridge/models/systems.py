r"""The ridge system $A = K + \lambda_R I$: filled in blocks, then factored, or solved by iteration.

The upper triangle of K is computed in blocks of rows that fit the processor's cache. Then a
Cholesky factor overwrites it, or it is kept for conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from streamridge.arrays import Block, Matrix, Vector
from streamridge.errors import NotPositiveDefiniteError
from streamridge.kernels.base import Embedding, Evaluation, Kernel
from streamridge.memory import Arena
from streamridge.models.conjugate import conjugate_gradients

# Rows of K computed at a time: at N = 2880 a mean block takes 1.1 MB, which one core's cache holds.
BLOCK_ROWS = 96
# Refinement of a float32 factor stops at this relative residual, and fails after so many rounds.
REFINED = 1e-8
REFINEMENT_ROUNDS = 12

Blocks = tuple[tuple[slice, Evaluation], ...]


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

    def solve_once(self, B: Matrix) -> Matrix:
        """Return A^-1 B to the precision of the factor, shape (N, k)."""


@dataclass(frozen=True)
class Ridge:
    """A ridge system to be solved.

    Parameters
    ----------
    kernel
        The kernel, at its hyperparameters.
    regularization
        The ridge constant.
    lower_bound
        The smallest ridge constant that tuning may choose; only the error message needs it.
    dtype
        Number format of the factorization: float64, or float32 refined to float64 solutions.
    """

    kernel: Kernel
    regularization: float
    lower_bound: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class FactoredSystem:
    """The matrix A = K + lam_R I of N samples, factored.

    Parameters
    ----------
    factor
        (N, N), column-major; its lower triangle L has A = L L^T.
    blocks
        The kernel's evaluations on rows of the upper triangle, for its gradients.
    upper
        The upper triangle of A with whole diagonal squares, if the factor needs refinement; else
        None.
    memory
        The memory that holds all of them.
    """

    factor: Block
    blocks: Blocks
    upper: Block | None
    memory: Arena

    def solve(self, B: Matrix) -> Matrix:
        """Return A^-1 B for right-hand sides B of shape (N, k)."""
        X = self.solve_once(B)
        X = X if self.upper is None else self._refine(X, B, self.upper)
        # One layout, whatever LAPACK returns: products with X stay bit-equal after a save.
        return np.ascontiguousarray(X)

    def solve_once(self, B: Matrix) -> Matrix:
        """Return A^-1 B to the precision of the factor, shape (N, k)."""
        # Measured at N = 2880: potrs takes 8.8 ms for one right-hand side, two trsv take 3.4 ms.
        if B.shape[1] == 1:
            (trsv,) = get_blas_funcs(("trsv",), (self.factor,))
            half = trsv(self.factor, B[:, 0], lower=1)
            x = trsv(self.factor, half, lower=1, trans=1)[:, None]
        else:
            (potrs,) = get_lapack_funcs(("potrs",), (self.factor,))
            x, _ = potrs(self.factor, B, lower=1)
        return x.astype(np.float64, copy=False)

    def _refine(self, X: Matrix, B: Matrix, upper: Block) -> Matrix:
        """Return X refined in float64 until its residual is small; NaN if that does not converge.

        Every round shrinks the residual by the same factor, so the size of one residual predicts
        the next. This saves the last product, which would only confirm the prediction.
        """
        last = np.linalg.norm(B, axis=0)
        accepted = REFINED * last
        for _ in range(REFINEMENT_ROUNDS):
            residual = B - _symmetric_product(upper, X)
            size = np.linalg.norm(residual, axis=0)
            X = X + self.solve_once(residual)
            if (size**2 <= accepted * last).all():
                return X
            last = size
        return np.full_like(X, np.nan)


@dataclass
class Guesses:
    """The latest solutions of iterated systems, from which the next ones start.

    Parameters
    ----------
    weights
        (N, H), the latest solution of `solve`; None before the first.
    adjoint
        (N, H), the latest solution of `solve_once`; None before the first.
    """

    weights: Matrix | None = None
    adjoint: Matrix | None = None


@dataclass(frozen=True)
class IteratedSystem:
    """The matrix A = K + lam_R I of N samples, solved by iteration from the latest solution.

    Parameters
    ----------
    A
        (N, N), the upper triangle of the matrix.
    blocks, memory
        As in `FactoredSystem`.
    tolerance
        The relative residual at which iterations stop.
    guesses
        Where iterations start; each solution replaces its guess.
    """

    A: Block
    blocks: Blocks
    memory: Arena
    tolerance: float
    guesses: Guesses = field(default_factory=Guesses)

    def solve(self, B: Matrix) -> Matrix:
        """Return an approximate A^-1 B, started from the last weights."""
        self.guesses.weights = self._solve(B, self.guesses.weights)
        return self.guesses.weights

    def solve_once(self, B: Matrix) -> Matrix:
        """Return an approximate A^-1 B, started from the last adjoint solution."""
        self.guesses.adjoint = self._solve(B, self.guesses.adjoint)
        return self.guesses.adjoint

    def _solve(self, B: Matrix, start: Matrix | None) -> Matrix:
        if start is None or start.shape != B.shape:
            start = np.zeros_like(B)
        (symv,) = get_blas_funcs(("symv",), (self.A,))

        def product(x: Vector) -> Vector:
            return symv(1.0, self.A.T, x, lower=1)

        columns = zip(B.T, start.T, strict=True)
        solved = [conjugate_gradients(product, b, x, self.tolerance) for b, x in columns]
        return np.column_stack(solved)


def fill(ridge: Ridge, embedding: Embedding, memory: Arena) -> tuple[Block, Blocks]:
    """Return the upper triangle of A with whole diagonal squares, and the kernel's evaluations."""
    N = len(embedding)
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


def factor(ridge: Ridge, A: Block, blocks: Blocks, memory: Arena, time: float) -> FactoredSystem:
    """Return the factored system of an upper triangle from `fill`, which is overwritten."""
    N = len(A)
    upper = None
    if ridge.dtype == np.float32:
        upper = memory.empty((N, N))
        for rows, _ in blocks:
            upper[rows, rows.start :] = A[rows, rows.start :]
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    # Row-major A is column-major A^T: its upper triangle is LAPACK's lower one, with no copy.
    L, failed = potrf(A.T, lower=1, overwrite_a=1, clean=0)
    pivots = np.diagonal(L)
    # If the pivots differ by more than rounding can resolve, the factor says nothing about y.
    least = N * np.finfo(ridge.dtype).eps * pivots.max() ** 2
    if failed or not pivots.min() ** 2 > least:
        raise no_factor(ridge, time)
    return FactoredSystem(L, blocks, upper, memory)


def _symmetric_product(upper: Block, X: Matrix) -> Matrix:
    """Return A X in float64, given the upper triangle of A with whole diagonal squares."""
    product = np.zeros_like(X)
    for start in range(0, len(X), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(X))
        block = upper[start:stop, start:].astype(np.float64)
        product[start:stop] += block @ X[start:]
        product[stop:] += block[:, stop - start :].T @ X[start:stop]
    return product


def no_factor(ridge: Ridge, time: float) -> NotPositiveDefiniteError:
    """Return the error for a system that has no Cholesky factor."""
    system = "K + regularization * I"
    if ridge.dtype == np.float32:
        system += " in float32"
    return NotPositiveDefiniteError(
        system, time, "regularization", ridge.regularization, ridge.lower_bound
    )
