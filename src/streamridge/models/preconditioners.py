r"""Matrices P near $A = K + \lambda_R I$ that are cheap to invert, for conjugate gradients.

One is A itself, factored in float32. It is so near that every iteration gains some four digits, and
three reach float64; a factorization in float32 takes half the time of one in float64.

The other has low rank: m rows of the training set are landmarks Z, and K is approximated by
Nystroem's $\tilde K = K_{NZ} K_{ZZ}^{-1} K_{ZN}$, whose columns are columns of A. With the Cholesky
factors $K_{ZZ} = L L^T$, $F = K_{NZ} L^{-T}$ and $F^T F + \lambda_R I = M M^T$, the identity of
Woodbury gives

$$P^{-1} = (F F^T + \lambda_R I)^{-1} = \frac{1}{\lambda_R} \big( I - E E^T \big), \qquad
    E = F M^{-T} .$$

It takes $O(N m^2)$ once and two products of $O(N m)$ per iteration. No entry of E is large, so that
float32 does; the inverse of $F^T F + \lambda_R I$ itself would lose too many digits. What landmarks
do not explain of K, relative to $\lambda_R$, is what iterations have to make up for.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, get_blas_funcs

from streamridge.arrays import Block, Matrix
from streamridge.models.conjugate import Operator
from streamridge.models.landmarks import Indices
from streamridge.models.systems import solve_factored

# Landmarks may leave this many times lam_R of the kernel's mean diagonal unexplained. Beyond that,
# iterations were found to take longer than a factorization.
UNEXPLAINED = 3.0


def by_factor(L: Block) -> Operator:
    """Return P^-1 for P = L L^T, given a Cholesky factor in any precision."""

    def precondition(R: Matrix) -> Matrix:
        return solve_factored(L, R)

    return precondition


def by_landmarks(A: Block, lam_R: float, places: Indices) -> Operator | None:
    """Return P^-1 for a P of low rank, or None if it would be too far from A.

    Parameters
    ----------
    A
        (N, N), the upper triangle of the matrix.
    lam_R
        The ridge constant on its diagonal.
    places
        (m,), which rows are landmarks, in order.
    """
    columns = _columns(A, places)
    columns[places, np.arange(len(places))] -= lam_R
    among = columns[places]
    # K_ZZ is raised by what rounding may have taken from its eigenvalues.
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
    """Return C L^-T in the place of columns C, where L L^T = squared + ridge I; None without L.

    Of `squared` the lower triangle counts; its factor is made in float64.
    """
    try:
        L = cholesky(squared + ridge * np.eye(len(squared)), lower=True)
    except (LinAlgError, ValueError):  # not positive definite, or not finite
        return None
    (trsm,) = get_blas_funcs(("trsm",), (columns,))
    return trsm(1.0, L, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
