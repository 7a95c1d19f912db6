"""Landmarks: a few rows that represent a whole training set.

Candidates are drawn by a hash of their times. The chosen landmarks are the candidates that the
others explain least.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs, solve_triangular

from streamridge.arrays import Matrix, Vector
from streamridge.kernels.base import Embedding, Kernel

Indices = NDArray[np.intp]

# The age, in rows, at which a row is half as likely to be a candidate: the model must be best near
# the next forecast. On three roads with 500 landmarks in 90 days it made errors 1.5 % smaller.
# Almost no landmark is older than 12 half-lives; older rows count only as training rows.
HALF_LIFE = 1000.0
# Candidates per landmark, and the number of candidates compared at a time. On four roads the best
# 250 of 1000 candidates came as close to kernel ridge regression as the best 250 of all 2880 rows,
# and nearly twice as close as 250 random rows. Batches take a third of the time.
CANDIDATES, BATCH = 4, 200
# A landmark is redundant if the others explain it up to this share of the kernel: its pivot in a
# factor of the kernel among landmarks would be rounding noise.
EXPLAINED = 1e-10


def drawn(t: Vector, count: int, half_life: float = np.inf) -> Indices:
    """Return at most `count` rows in the order of a hash of their times, given all times.

    No hour of the day is preferred, unlike with every tenth row. The same rows are drawn again as
    the training set moves on, because the order of two rows does not depend on their age. With a
    half-life, in rows, later rows come first more often.

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
    """Return a hash of each number: the last step of the generator splitmix64."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def chosen(kernel: Kernel, candidates: Embedding, count: int) -> Indices:
    """Return the places of at most `count` candidates that become landmarks.

    Each batch contributes the candidates that are explained least by the landmarks so far and by
    the candidates already taken from the batch.
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
    """Return the places of the landmarks that are not redundant, given the kernel among all."""
    return _pivoted(among, len(among), np.empty((0, len(among))))[0]


def _pivoted(among: Matrix, count: int, explained: Matrix) -> tuple[Indices, Matrix]:
    """Return at most `count` first pivots of the kernel among n rows, and their factor.

    The part E^T E of the kernel is already explained, for E = `explained`, (m, n). Rows that others
    explain up to rounding are not pivots.
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
