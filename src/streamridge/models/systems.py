r"""The ridge system $A = K + \lambda_R I$: filled in blocks, then factored by LAPACK.

The upper triangle of K is computed in blocks of rows that fit the processor's cache. A Cholesky
factor overwrites it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from streamridge.arrays import Block, Matrix
from streamridge.errors import NotPositiveDefiniteError
from streamridge.kernels.base import Embedding, Evaluation, Kernel
from streamridge.memory import Arena

# Rows of K computed at a time: at N = 2880 a mean block takes 1.1 MB, which one core's cache holds.
BLOCK_ROWS = 96

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

    def solve_adjoint(self, B: Matrix) -> Matrix:
        """Return A^-1 B for the right-hand sides of a gradient, shape (N, k)."""


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
        Number format of the matrix, and so of its solutions' precision: float64 or float32.
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
    memory
        The memory that holds all of them.
    """

    factor: Block
    blocks: Blocks
    memory: Arena

    def solve(self, B: Matrix) -> Matrix:
        """Return A^-1 B for right-hand sides B of shape (N, k)."""
        # One layout, whatever LAPACK returns: products with X stay bit-equal after a save.
        return np.ascontiguousarray(solve_factored(self.factor, B))

    def solve_adjoint(self, B: Matrix) -> Matrix:
        """Return A^-1 B for right-hand sides B of shape (N, k)."""
        return self.solve(B)


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


def copy_upper(A: Block, out: Block) -> Block:
    """Return `out` with the upper triangle of A and whole diagonal squares written to it."""
    for start in range(0, len(A), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        out[rows, start:] = A[rows, start:]
    return out


def factor(ridge: Ridge, A: Block, time: float) -> Block:
    """Return the Cholesky factor of an upper triangle, which is overwritten; raise without one."""
    L = cholesky(A)
    # If the pivots differ by more than rounding can resolve, the factor says nothing about y.
    if L is None or not _least_pivot(L) > len(A) * np.finfo(A.dtype).eps:
        raise no_factor(ridge, time)
    return L


def cholesky(A: Block) -> Block | None:
    """Return the Cholesky factor of an upper triangle, which is overwritten; None without one."""
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    # Row-major A is column-major A^T: its upper triangle is LAPACK's lower one, with no copy.
    L, failed = potrf(A.T, lower=1, overwrite_a=1, clean=0)
    return None if failed else L


def _least_pivot(L: Block) -> float:
    """Return the least pivot of a factor, relative to the largest."""
    pivots = np.diagonal(L)
    return float((pivots.min() / pivots.max()) ** 2)


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


def no_factor(ridge: Ridge, time: float) -> NotPositiveDefiniteError:
    """Return the error for a system that has no Cholesky factor."""
    system = "K + regularization * I"
    if ridge.dtype == np.float32:
        system += " in float32"
    return NotPositiveDefiniteError(
        system, time, "regularization", ridge.regularization, ridge.lower_bound
    )
