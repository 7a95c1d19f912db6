"""Landmarks: a few rows of a training set that stand for all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector

Indices = NDArray[np.intp]


def drawn(t: Vector, count: int) -> Indices:
    """Return which of some rows are landmarks, in order: so many of them, given all their times.

    They are drawn by a hash of the time. So the same rows are drawn again while they are in the
    training set, and no hour of the day is preferred, as it would be by every tenth row.

    Examples
    --------
    >>> drawn(np.arange(20.0), 6)
    array([ 0,  1,  2, 12, 14, 16])
    """
    if count >= len(t):
        return np.arange(len(t))
    return np.sort(np.argsort(_mixed(t.view(np.uint64)), kind="stable")[:count])


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers without any order: the last step of the generator splitmix64."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
