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


def _squared(s: Block) -> Block:
    return s


def _root(s: Block) -> Block:
    return np.sqrt(s, out=s)


def _root_32(s: Block) -> Block:
    s *= 3
    return np.sqrt(s, out=s)


def _root_52(s: Block) -> Block:
    s *= 5
    return np.sqrt(s, out=s)


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
    k = np.negative(r, out=memory.empty(r.shape))
    np.exp(k, out=k)
    return np.multiply(k, 1 + r, out=k)


def _slope_32(r: Block, k: Block, memory: Heap) -> Block:
    slope = np.add(r, 1, out=memory.empty(k.shape))
    np.divide(k, slope, out=slope)
    slope *= 1.5
    return slope


def _value_52(r: Block, memory: Heap) -> Block:
    k = np.negative(r, out=memory.empty(r.shape))
    np.exp(k, out=k)
    return np.multiply(k, 1 + r + r * r / 3, out=k)


def _slope_52(r: Block, k: Block, memory: Heap) -> Block:
    return np.divide((5 / 6) * (1 + r) * k, 1 + r + r * r / 3, out=memory.empty(k.shape))


def _slope_exponential(r: Block, k: Block, memory: Heap) -> Block:
    return k


SQUARED_EXPONENTIAL = Profile(_squared, _exponential_in_place, _slope_exponential)

# Profiles by order: exp(-r), (1 + r) exp(-r), (1 + r + r^2 / 3) exp(-r).
MATERN = {
    0.5: Profile(_root, _exponential, _slope_12),
    1.5: Profile(_root_32, _value_32, _slope_32),
    2.5: Profile(_root_52, _value_52, _slope_52),
}
