"""Differences between times, with the structure that a grid gives them.

A kernel of time alone needs its formula only at the distinct differences. On a regular grid the
matrix of differences is Toeplitz, and N rows have 2N - 1 of them; on whole steps with gaps a table
serves; only for times off any grid is every entry a difference of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from streamridge.arrays import Block, Matrix, Vector
from streamridge.kernels.base import Weights

# A table of more entries than this many times the rows saves nothing.
LARGEST_TABLE = 64


class TimeLags(Protocol):
    """Is the matrix t_i - t'_j, shape (n, n'), known by its distinct entries."""

    @property
    def distinct(self) -> Matrix:
        """Return the differences at which a formula has to be evaluated."""

    def spread(self, values: Block) -> Block:
        """Return the (n, n') matrix of values given at the distinct differences."""

    def gather(self, W: Weights) -> Block:
        """Return the sums of the entries of W that share a difference: the transpose of spread."""


@dataclass(frozen=True)
class ToeplitzLags:
    """Is the difference of two stretches of one regular grid: entry (i, j) depends on i - j."""

    distinct: Vector
    rows: int

    def spread(self, values: Block) -> Block:
        """Return a Toeplitz matrix as a view of n + n' - 1 values; no entry is copied."""
        return sliding_window_view(values, len(values) - self.rows + 1)[::-1]

    def gather(self, W: Weights) -> Block:
        """Return the sums along the diagonals of W: a correlation where W has low rank."""
        if W.factor is None:
            columns = zip(W.right.T, W.left.T, strict=True)
            return np.sum([np.correlate(right, left, "full") for right, left in columns], axis=0)
        # Rows are laid down one entry further apart than they are read: diagonals become columns.
        n, width = W.dense.shape
        skewed = np.zeros(n * (n + width), W.dense.dtype)
        skewed.reshape(n, -1)[:, :width] = W.dense[::-1]
        return skewed[:-n].reshape(n, -1).sum(axis=0)


@dataclass(frozen=True)
class TabledLags:
    """Is the difference of two sets of whole steps: entries are looked up in a table."""

    distinct: Vector
    index: NDArray[np.intp]

    def spread(self, values: Block) -> Block:
        """Return the (n, n') matrix of looked-up values."""
        return values[self.index]

    def gather(self, W: Weights) -> Block:
        """Return the sums of the entries with the same index."""
        return np.bincount(self.index.ravel(), W.dense.ravel(), minlength=len(self.distinct))


@dataclass(frozen=True)
class FreeLags:
    """Is the difference of times without a grid: every entry stands for itself."""

    distinct: Matrix

    def spread(self, values: Block) -> Block:
        """Return the values as they are."""
        return values

    def gather(self, W: Weights) -> Block:
        """Return W as it is."""
        return W.dense


def time_lags(t: Vector, other: Vector) -> TimeLags:
    """Return the differences t_i - t'_j in the most compact form that their times allow.

    Examples
    --------
    >>> lags = time_lags(np.arange(3.0), np.arange(2.0))
    >>> lags.distinct
    array([ 2.,  1.,  0., -1.])
    >>> lags.spread(lags.distinct)
    array([[ 0., -1.],
           [ 1.,  0.],
           [ 2.,  1.]])
    """
    if len(t) <= 1 or not len(other):
        return FreeLags(t[:, None] - other)
    step = _common_step(t, other)
    if step is not None:
        # Entry (i, j) is the window that starts at n - 1 - i, read at j.
        steps = np.arange(len(t) - 1, -len(other), -1, dtype=np.float64)
        return ToeplitzLags(t[0] - other[0] + step * steps, rows=len(t))
    low = t.min() - other.max()
    size = t.max() - other.min() - low + 1
    whole = np.array_equal(t, np.rint(t)) and np.array_equal(other, np.rint(other))
    if whole and size <= LARGEST_TABLE * (len(t) + len(other)):
        index = (t[:, None] - (other + low)).astype(np.intp)
        return TabledLags(low + np.arange(size), index)
    return FreeLags(t[:, None] - other)


def _common_step(t: Vector, other: Vector) -> float | None:
    """Return the step of the regular grid on which both stretches lie, or None."""
    steps = np.concatenate([np.diff(t), np.diff(other)])
    if not len(steps):
        return 1.0
    step = float(steps[0])
    return step if np.abs(steps - step).max() <= 1e-9 * abs(step) else None
