"""Radial functions k(s) of a squared distance s: squared exponential and the Matern family.

Each is a function of its own distance r(s), chosen so that the slope -dk/ds follows from r and k
without a second exponential. All functions work elementwise on arrays of any shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Block
from streamridge.memory import Heap


@dataclass(frozen=True)
class Profile:
    """A radial function, with its distance and its slope.

    Parameters
    ----------
    distance
        Gives r for a squared distance s; s is overwritten.
    value
        Gives k at r, in an array from the given memory; r is overwritten unless the slope needs it.
    slope
        Gives -dk/ds from r and k, in an array from the given memory or as k itself.
    """

    distance: Callable[[Block], Block]
    value: Callable[[Block, Heap], Block]
    slope: Callable[[Block, Block, Heap], Block]


def _root(order: float) -> Callable[[Block], Block]:
    """Return the distance r = sqrt(2 order s)."""

    def distance(s: Block) -> Block:
        if order != 0.5:
            s *= 2 * order
        return np.sqrt(s, out=s)

    return distance


def _exponential(r: Block, memory: Heap) -> Block:
    k = np.negative(r, out=memory.empty(r.shape))
    return np.exp(k, out=k)


def _exponential_in_place(r: Block, memory: Heap) -> Block:
    return np.exp(np.negative(r, out=r), out=r)


def _slope_12(r: Block, k: Block, memory: Heap) -> Block:
    # k / (2 r). At r = 0 it is set to 0, since every (x_i - x'_i)^2 goes to 0 faster than r.
    with np.errstate(divide="ignore"):
        slope = np.divide(k, r, out=memory.empty(k.shape))
    slope[r == 0] = 0.0
    slope *= 0.5
    return slope


def _value_32(r: Block, memory: Heap) -> Block:
    k = _exponential(r, memory)
    return np.multiply(k, 1 + r, out=k)


def _slope_32(r: Block, k: Block, memory: Heap) -> Block:
    return np.divide(1.5 * k, 1 + r, out=memory.empty(k.shape))


def _value_52(r: Block, memory: Heap) -> Block:
    k = _exponential(r, memory)
    return np.multiply(k, 1 + r + r * r / 3, out=k)


def _slope_52(r: Block, k: Block, memory: Heap) -> Block:
    return np.divide((5 / 6) * (1 + r) * k, 1 + r + r * r / 3, out=memory.empty(k.shape))


SQUARED_EXPONENTIAL = Profile(lambda s: s, _exponential_in_place, lambda _r, k, _memory: k)

# Profiles by order: exp(-r), (1 + r) exp(-r), (1 + r + r^2 / 3) exp(-r).
MATERN = {
    0.5: Profile(_root(0.5), _exponential, _slope_12),
    1.5: Profile(_root(1.5), _value_32, _slope_32),
    2.5: Profile(_root(2.5), _value_52, _slope_52),
}
