"""Landmarks: a few rows of a training set that stand for all of them.

Candidates are drawn by a hash of their times, and those that others explain least are chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs, solve_triangular

from streamridge.arrays import Matrix, Vector
from streamridge.kernels.base import Embedding, Kernel

Indices = NDArray[np.intp]

# After how many rows a row is half as likely to be a candidate: what is near the next forecast has
# to be known best. On three roads, 500 landmarks in 90 days left errors that were 1.5 % smaller so.
# However long a training set is, next to no landmark is older than 12 of them: what is older counts
# through the weights of those.
HALF_LIFE = 1000.0
# Candidates for each landmark, and how many of them are compared at a time. On four roads the best
# 250 of 1000 candidates came as close to kernel ridge regression as the best 250 of all 2880 rows,
# and nearly twice as close as 250 drawn; in batches, choosing them takes a third of the time.
CANDIDATES, BATCH = 4, 200
# A landmark that the others explain up to this share of the kernel adds nothing but rounding: its
# pivot in a factor of the kernel among landmarks would be noise. It is left out.
EXPLAINED = 1e-10


def drawn(t: Vector, count: int, half_life: float = np.inf) -> Indices:
    """Return some rows as a hash of their times orders them: so many at most, given all times.

    So no hour of the day is preferred, as it would be by every tenth row, and the same rows are
    drawn again as the training set moves on: of two rows, which one comes first does not depend on
    how long ago they were. With a half-life, in rows, later ones come first more often.

    Examples
    --------
    >>> drawn(np.arange(20.0), 6)
    array([19, 18,  6,  5, 15, 11])
    """
    uniform = (_mixed(t.view(np.uint64)) + 0.5) / 2.0**64
    ages = np.arange(len(t), 0, -1) / half_life
    # The first of exponential variables at these rates: a draw without replacement.
    return np.argsort(np.log(-np.log(uniform)) + np.log(2) * ages, kind="stable")[:count]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers without any order: the last step of the generator splitmix64."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def chosen(kernel: Kernel, candidates: Embedding, count: int) -> Indices:
    """Return which candidates become landmarks, so many at most: those that others explain least.

    Of each batch of candidates, those are taken that the landmarks so far, and those taken of the
    batch, leave most to explain.
    """
    batches = np.array_split(np.arange(len(candidates)), -(-len(candidates) // BATCH))
    taken, L = np.empty(0, dtype=np.intp), np.empty((0, 0))
    for i, batch in enumerate(batches):
        rows = candidates.rows(batch)
        known = kernel.evaluate(candidates.rows(taken), rows).value
        explained = solve_triangular(L, known, lower=True) if len(L) else known
        quota = -(-(count - len(taken)) // (len(batches) - i))
        best, pivots = _pivoted(kernel.evaluate(rows, rows).value, quota, explained)
        L = np.block([[L, np.zeros((len(L), len(best)))], [explained[:, best].T, pivots]])
        taken = np.append(taken, batch[best])
    return taken


def independent(among: Matrix) -> Indices:
    """Return which landmarks the others do not explain, given the kernel among all of them."""
    return _pivoted(among, len(among), np.empty((0, len(among))))[0]


def _pivoted(among: Matrix, count: int, explained: Matrix) -> tuple[Indices, Matrix]:
    """Return the first pivots of what is left of the kernel among some rows, and their factor.

    Parameters
    ----------
    among
        The kernel among n rows.
    count
        How many pivots there are at most; rows that others explain up to rounding are none.
    explained
        (m, n), E, where E^T E of the kernel is explained already.
    """
    left = among - explained.T @ explained
    if not np.isfinite(left).all():
        raise np.linalg.LinAlgError("the kernel among candidates must be finite")
    least = EXPLAINED * float(np.max(np.diagonal(among), initial=0.0))
    if not (np.diagonal(left) > least).any():
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    (pstrf,) = get_lapack_funcs(("pstrf",), (left,))
    L, order, rank, _ = pstrf(left, lower=1, tol=least)
    count = min(count, rank)
    return order[:count].astype(np.intp) - 1, np.tril(L[:count, :count])
