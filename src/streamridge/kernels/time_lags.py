"""Differences between times, stored by their distinct values.

A kernel of time alone has to be computed only at the distinct differences. On a regular grid the
matrix of differences is Toeplitz: N rows have only 2N - 1 of them. Whole steps with gaps are looked
up in a table. Only times off any grid need every entry of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from streamridge.arrays import Block, Matrix, Vector
from streamridge.kernels.base import Weights

# A table with more than this many entries per row saves nothing.
LARGEST_TABLE = 64


class TimeLags(Protocol):
    """The matrix t_i - t'_j, shape (n, n'), stored by its distinct entries."""

    @property
    def distinct(self) -> Matrix:
        """Return the distinct differences, at which a formula has to be evaluated."""

    def spread(self, values: Block) -> Block:
        """Return the (n, n') matrix from its values at the distinct differences."""

    def gather(self, W: Weights) -> Block:
        """Return, for each difference, the sum of its entries of W: the transpose of spread."""


@dataclass(frozen=True)
class ToeplitzLags:
    """Differences between two stretches of one regular grid: entry (i, j) depends on i - j."""

    distinct: Vector
    rows: int

    def spread(self, values: Block) -> Block:
        """Return the Toeplitz matrix of n + n' - 1 values, as a view."""
        return sliding_window_view(values, len(values) - self.rows + 1)[::-1]

    def gather(self, W: Weights) -> Block:
        """Return the sums along the diagonals of W; they are correlations if W has low rank."""
        if W.factor is None:
            columns = zip(W.right.T, W.left.T, strict=True)
            return np.sum([np.correlate(right, left, "full") for right, left in columns], axis=0)
        # Rows are written one entry further apart than they are read, so diagonals become columns.
        n, width = W.dense.shape
        skewed = np.zeros(n * (n + width), W.dense.dtype)
        skewed.reshape(n, -1)[:, :width] = W.dense[::-1]
        return skewed[:-n].reshape(n, -1).sum(axis=0)


@dataclass(frozen=True)
class TabledLags:
    """Differences between two sets of whole steps, looked up in a table."""

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
    """Differences between times without a grid, each entry on its own."""

    distinct: Matrix

    def spread(self, values: Block) -> Block:
        """Return the values unchanged."""
        return values

    def gather(self, W: Weights) -> Block:
        """Return W as a dense matrix."""
        return W.dense


def time_lags(t: Vector, other: Vector, *, tables: bool = True) -> TimeLags:
    """Return the differences t_i - t'_j in the most compact form that the times allow.

    Without tables, for a formula that is quicker than to look it up, whole steps with gaps have
    every entry of the matrix.

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
        # Row i is the window that starts at n - 1 - i; entry (i, j) is its element j.
        steps = np.arange(len(t) - 1, -len(other), -1, dtype=np.float64)
        return ToeplitzLags(t[0] - other[0] + step * steps, rows=len(t))
    if not tables:
        return FreeLags(t[:, None] - other)
    low = t.min() - other.max()
    size = t.max() - other.min() - low + 1
    whole = np.array_equal(t, np.rint(t)) and np.array_equal(other, np.rint(other))
    if whole and size <= LARGEST_TABLE * (len(t) + len(other)):
        index = (t[:, None] - (other + low)).astype(np.intp)
        return TabledLags(low + np.arange(size), index)
    return FreeLags(t[:, None] - other)


def _common_step(t: Vector, other: Vector) -> float | None:
    """Return the step of the regular grid that holds both stretches, or None."""
    steps = np.concatenate([np.diff(t), np.diff(other)])
    if not len(steps):
        return 1.0
    step = float(steps[0])
    return step if np.abs(steps - step).max() <= 1e-9 * abs(step) else None
