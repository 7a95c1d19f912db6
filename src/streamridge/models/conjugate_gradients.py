r"""Conjugate gradients with half of a symmetric matrix in memory, and their preconditioners.

A preconditioner is a matrix P near $A = K + \lambda_R I$ that is cheap to invert. There are two.

One is A itself, factored in float32. Each iteration then gains about four digits, and three
iterations reach float64. A factorization in float32 takes half the time of one in float64.

The other has low rank: m rows of the training set are landmarks Z, and K is approximated by
Nystroem's $\tilde K = K_{NZ} K_{ZZ}^{-1} K_{ZN}$, whose columns are columns of A. With the Cholesky
factors $K_{ZZ} = L L^T$, $F = K_{NZ} L^{-T}$ and $F^T F + \lambda_R I = M M^T$, the Woodbury
identity gives

$$P^{-1} = (F F^T + \lambda_R I)^{-1} = \frac{1}{\lambda_R} \big( I - E E^T \big), \qquad
    E = F M^{-T} .$$

It takes $O(N m^2)$ once and two products of $O(N m)$ per iteration. No entry of E is large, so
float32 is enough; the inverse of $F^T F + \lambda_R I$ itself would lose too many digits. The part
of K that landmarks do not explain, relative to $\lambda_R$, determines the number of iterations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cholesky, get_blas_funcs

from streamridge.arrays import Block, Mask, Matrix, Vector
from streamridge.models.landmarks import Indices

Operator = Callable[[Matrix], Block]

# Rows of K computed at a time: at N = 2880 a mean block takes 1.1 MB, which one core's cache holds.
BLOCK_ROWS = 96
# Up to this number, columns are multiplied one by one: at N = 2880 symm takes 9 ms for two columns
# or four, symv takes 1.4 ms for each.
FEW = 4
# Landmarks may leave this many times lam_R of the kernel's mean diagonal unexplained. Beyond that,
# iterations took longer than a factorization.
UNEXPLAINED = 3.0


def conjugate_gradients(
    product: Operator,
    B: Matrix,
    start: Matrix | None,
    tolerance: float,
    precondition: Operator | None = None,
    limit: int | None = None,
) -> Matrix:
    """Return X with |A x - b| <= tolerance |b| in every column of B, (N, k) or (N,), by iteration.

    `product` returns A X, and `precondition` returns P^-1 R for a P near A. Columns do not
    influence each other; a solved column stays fixed. If a column is not solved after `limit`
    iterations, X is NaN. Without a limit, N iterations return the X reached; in exact arithmetic it
    would be exact.
    """
    X = np.zeros(B.shape)
    if not B.any():
        return X
    residual = B.copy()
    if start is not None:
        X += np.where(B.any(axis=0), start, 0.0)
        residual -= product(X)
    enough = tolerance**2 * _dots(B, B)
    direction: Block = np.zeros(B.shape)
    size: Vector = np.ones(B.shape[1:])
    for _ in range(len(B) if limit is None else limit):
        unsolved = ~(_dots(residual, residual) <= enough)  # a NaN counts as unsolved
        if not unsolved.any():
            return X
        ahead: Block = residual if precondition is None else precondition(residual)
        size, before = _dots(residual, ahead), size
        direction = ahead + _ratio(size, before, unsolved) * direction
        A_direction = product(direction)
        step = _ratio(size, _dots(direction, A_direction), unsolved)
        X += step * direction
        residual -= step * A_direction
    solved = (_dots(residual, residual) <= enough).all()
    return X if solved or limit is None else np.full_like(X, np.nan)


def _dots(a: Block, b: Block) -> Vector:
    """Return the scalar products of the columns of a with the columns of b."""
    return np.einsum("i...,i...->...", a, b)


def _ratio(over: Vector, under: Vector, wanted: Mask) -> Vector:
    """Return over / under where it is wanted, else zero."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a singular A gives NaN
        return np.divide(over, under, out=np.zeros_like(over), where=wanted)


def half_product(A: Block) -> Operator:
    """Return the product with a symmetric matrix, given its upper triangle, in its precision."""
    symv, symm = get_blas_funcs(("symv", "symm"), (A,))

    def product(X: Matrix) -> Block:
        if X.shape[1] <= FEW:
            return np.column_stack([symv(1.0, A.T, x, lower=1) for x in X.T])
        return symm(1.0, A.T, X, lower=1)

    return product


def double_product(A: Block) -> Operator:
    """Return the product in float64 with an upper triangle A that has whole diagonal squares."""

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


def by_landmarks(A: Block, lam_R: float, places: Indices) -> Operator | None:
    """Return P^-1 for a P of low rank, or None if it would be too far from A.

    A is an upper triangle with lam_R on its diagonal. `places` are the m landmark rows, in order.
    """
    columns = _columns(A, places)
    columns[places, np.arange(len(places))] -= lam_R
    among = columns[places]
    # The diagonal of K_ZZ is raised by the possible rounding error of its eigenvalues.
    rounding = len(places) * np.finfo(A.dtype).eps * np.diagonal(among).max()
    F = _divided(columns, among, rounding)
    if F is None:
        return None
    (syrk,) = get_blas_funcs(("syrk",), (F,))
    squared = syrk(1.0, F, trans=1, lower=1)
    unexplained = np.diagonal(A).mean() - lam_R - np.trace(squared) / len(A)
    E = _divided(F, squared, lam_R) if unexplained <= UNEXPLAINED * lam_R else None
    if E is None:
        return None

    def precondition(R: Matrix) -> Matrix:
        return (R - E @ (E.T @ R.astype(E.dtype, copy=False))) / lam_R

    return precondition


def _columns(A: Block, places: Indices) -> Block:
    """Return columns of a symmetric matrix given by its upper triangle, (N, m), column-major."""
    rows = np.empty((len(places), len(A)), A.dtype)
    for row, place in zip(rows, places, strict=True):
        row[:place] = A[:place, place]
        row[place:] = A[place, place:]
    return rows.T


def _divided(columns: Block, squared: Block, ridge: float) -> Block | None:
    """Return C L^-T in place of columns C, where L L^T = squared + ridge I; None without L.

    Only the lower triangle of `squared` is read; its factor is computed in float64.
    """
    try:
        L = cholesky(squared + ridge * np.eye(len(squared)), lower=True)
    except (LinAlgError, ValueError):  # not positive definite, or not finite
        return None
    (trsm,) = get_blas_funcs(("trsm",), (columns,))
    return trsm(1.0, L, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
