r"""Ridge systems that are solved by conjugate gradients, with half of the matrix in memory.

Two kinds: one goes on from the latest solutions, to a loose tolerance, for searches that need no
more; the other has a preconditioner and gives solutions to the precision of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
from scipy.linalg import get_blas_funcs

from streamridge.arrays import Block, Matrix
from streamridge.memory import Arena
from streamridge.models.conjugate import Operator, conjugate_gradients
from streamridge.models.systems import BLOCK_ROWS, Blocks, System

# So many columns are multiplied one by one: at N = 2880 symm takes 9 ms for two columns or four,
# symv takes 1.4 ms for each.
FEW = 4


@dataclass
class Guesses:
    """The latest solutions of iterated systems, from which the next ones start.

    Parameters
    ----------
    weights
        (N, H), the latest solution of `solve`; None before the first.
    adjoint
        (N, H), the latest solution of `solve_adjoint`; None before the first.
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

    def solve_adjoint(self, B: Matrix) -> Matrix:
        """Return an approximate A^-1 B, started from the last adjoint solution."""
        self.guesses.adjoint = self._solve(B, self.guesses.adjoint)
        return self.guesses.adjoint

    def _solve(self, B: Matrix, guess: Matrix | None) -> Matrix:
        start = guess if guess is not None and guess.shape == B.shape else None
        return conjugate_gradients(half_product(self.A), B, start, self.tolerance)


@dataclass(frozen=True)
class PreconditionedSystem:
    """The matrix A = K + lam_R I of N samples, solved by iteration with a preconditioner.

    Solutions depend on A and on the right-hand sides alone, not on what was solved before.

    Parameters
    ----------
    product
        Multiplies with A.
    blocks, memory
        As in `FactoredSystem`.
    precondition
        Returns P^-1 R for a P that is near A.
    tolerance
        The relative residual at which iterations stop.
    limit
        Iterations after which they are given up.
    exact
        Multiplies with A more precisely than `product` does: what the first solution leaves of the
        right-hand sides is solved as well, to the same tolerance, which then counts twice.
    rescue
        Returns a system that solves what iterations do not; without one, solutions are then NaN.
    """

    product: Operator
    blocks: Blocks
    memory: Arena
    precondition: Operator
    tolerance: float
    limit: int
    exact: Operator | None = None
    rescue: Callable[[], System] | None = None

    def solve(self, B: Matrix) -> Matrix:
        """Return A^-1 B for right-hand sides B of shape (N, k)."""
        X = self._iterated(B)
        if self.exact is not None:
            X += self._iterated(B - self.exact(X))
        if self._rescued is None or np.isfinite(X).all():
            return X
        return self._rescued().solve(B)

    def solve_adjoint(self, B: Matrix) -> Matrix:
        """Return A^-1 B for right-hand sides B of shape (N, k)."""
        return self.solve(B)

    def _iterated(self, B: Matrix) -> Matrix:
        return conjugate_gradients(
            self.product, B, None, self.tolerance, self.precondition, self.limit
        )

    @cached_property
    def _rescued(self) -> Callable[[], System] | None:
        """Return what makes the rescue at its first call only."""
        return None if self.rescue is None else cache(self.rescue)


def half_product(A: Block) -> Operator:
    """Return what multiplies with a symmetric matrix, given its upper triangle, in its precision.

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [np.nan, 3.0]])
    >>> half_product(A)(np.array([[1.0], [2.0]]))
    array([[4.],
           [7.]])
    """
    symv, symm = get_blas_funcs(("symv", "symm"), (A,))

    def product(X: Matrix) -> Block:
        if X.shape[1] <= FEW:
            return np.column_stack([symv(1.0, A.T, x, lower=1) for x in X.T])
        return symm(1.0, A.T, X, lower=1)

    return product


def double_product(A: Block) -> Operator:
    """Return the same in float64, whatever the precision of A, which has whole diagonal squares."""

    def product(X: Matrix) -> Matrix:
        total = np.zeros_like(X)
        buffer = np.empty(BLOCK_ROWS * len(A))
        for start in range(0, len(A), BLOCK_ROWS):
            part = A[start : start + BLOCK_ROWS, start:]
            stop = start + len(part)
            block = buffer[: part.size].reshape(part.shape)
            block[...] = part
            total[start:stop] += block @ X[start:]
            total[stop:] += block[:, stop - start :].T @ X[start:stop]
        return total

    return product
