"""The sets of hyperparameters: boxes of intervals, and the simplex of weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Vector, require_count, require_finite
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import TOLERANCE, Intervals, Part, Spacing

# The relative distance to a bound that counts as at the bound: exp(log(bound)) has rounding errors.
NEAR = 1e-12
# Draws keep this distance from 0 and 1, so that their logarithms are finite and not zero.
LEAST_DRAW = 1e-12


@dataclass(frozen=True, eq=False)
class Box:
    """The set of all u with low <= u <= high, elementwise.

    Examples
    --------
    >>> box = Box(low=[0.0, 1.0], high=[1.0, 2.0])
    >>> box.project(np.array([-3.0, 1.5]))
    array([0. , 1.5])
    >>> box.grid(3)[1]
    array([0.5, 1.5])
    >>> Box(low=2.0, high=1.0)
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: low must not exceed high, got 2.0 > 1.0.
    """

    low: Vector
    high: Vector

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        low = np.array(require_finite("low", low), ndmin=1)
        high = np.array(require_finite("high", high), ndmin=1)
        if high.shape != low.shape:
            raise InvalidInputError(f"high must have shape {low.shape}, got {high.shape}.")
        if (low > high).any():
            worst = np.argmax(low - high)
            raise InvalidInputError(f"low must not exceed high, got {low[worst]} > {high[worst]}.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:
        return len(self.low)

    def project(self, u: Vector) -> Vector:
        return np.clip(u, self.low, self.high)

    def contains(self, u: Vector) -> bool:
        slack = TOLERANCE * (1 + np.abs(u))
        return bool(np.all((u >= self.low - slack) & (u <= self.high + slack)))

    def tangent(self, g: Vector) -> Vector:
        return g

    def active(self, u: Vector) -> NDArray[np.int8]:
        at_high = u >= self.high - NEAR * np.abs(self.high)
        at_low = u <= self.low + NEAR * np.abs(self.low)
        return at_high.astype(np.int8) - at_low.astype(np.int8)

    @property
    def is_tied(self) -> bool:
        return False

    @property
    def widths(self) -> Vector:
        return self.high - self.low

    @property
    def limits(self) -> str:
        low, high = self.low.min(), self.high.max()
        return f"between {low:g} and {high:g}" if low < high else f"at the constant {low:g}"

    def completed(self, u: Vector, given: Mask) -> Vector:
        return u

    def holding(self, u: Vector, held: Mask) -> Box:
        return Box(np.where(held, u, self.low), np.where(held, u, self.high))

    def logarithmic(self) -> Box | None:
        return Box(np.log(self.low), np.log(self.high)) if (self.low > 0).all() else None

    def sample(self, rng: np.random.Generator, spacing: Spacing) -> Vector:
        if spacing == "uniform" or not (self.low > 0).all():
            return rng.uniform(self.low, self.high)
        return self.project(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))

    def grid(self, points: int) -> list[Vector]:
        """Return points from corner to corner, evenly spaced in logarithms if all are positive."""
        low, high = self.low, self.high
        if (low == high).all():
            return [low]
        shares = np.linspace(0, 1, points)
        if (low > 0).all():
            between = [low ** (1 - share) * high**share for share in shares]
        else:
            between = [(1 - share) * low + share * high for share in shares]
        return [self.project(values) for values in between]

    @property
    def draws(self) -> Intervals:
        return self.low, self.high

    def from_draws(self, drawn: Vector) -> Vector:
        return self.project(drawn)

    def to_draws(self, u: Vector) -> Vector:
        return u


@dataclass(frozen=True)
class Simplex:
    """The set of all weights that are not negative and sum to one.

    Examples
    --------
    >>> Simplex(2).project(np.array([3.0, 0.0]))
    array([1., 0.])
    """

    size: int

    def __post_init__(self) -> None:
        require_count("size", self.size)

    def project(self, u: Vector) -> Vector:
        r"""Return the point of the simplex nearest to u.

        The nearest point is $\max(u - \sigma, 0)$ for the $\sigma$ that makes it sum to one. Sort
        the entries in descending order: then the first $\rho$ stay positive, where $\rho$ is the
        last index at which $u_{(\rho)}$ exceeds the $\sigma$ of the first $\rho$ entries.

        Notes
        -----
        Paper: the projection of Algorithm 2, line 4, onto the kernel weights. Cost: $O(M \log M)$.
        """
        # A shift of u does not change the result; without it, entries of 1e17 would absorb the 1.
        u = u - u.max()
        descending = np.sort(u)[::-1]
        sigmas = (np.cumsum(descending) - 1) / np.arange(1, len(u) + 1)
        rho = np.flatnonzero(descending > sigmas)[-1]
        return np.maximum(u - sigmas[rho], 0.0)

    def contains(self, u: Vector) -> bool:
        return bool(u.min() >= -TOLERANCE and abs(u.sum() - 1) <= TOLERANCE)

    def tangent(self, g: Vector) -> Vector:
        return g - g.mean()  # a common shift of all weights is undone by the projection

    def active(self, u: Vector) -> NDArray[np.int8]:
        if self.size == 1:
            return np.zeros(1, dtype=np.int8)
        return (u >= 1).astype(np.int8) - (u <= 0).astype(np.int8)

    @property
    def is_tied(self) -> bool:
        return True  # weights sum to one

    @property
    def widths(self) -> Vector:
        return np.ones(self.size)

    @property
    def limits(self) -> str:
        return "between 0 and 1 and sum to 1"

    def completed(self, u: Vector, given: Mask) -> Vector:
        """Return u with the weights that are not `given` rescaled so that all sum to one."""
        if given.all():
            return u
        others = np.where(given, 0.0, u)
        shares = others / others.sum() if others.sum() > 0 else ~given / (~given).sum()
        return np.where(given, u, (1 - u[given].sum()) * shares)

    def holding(self, u: Vector, held: Mask) -> Part:
        """Return the single point u if any weight is held, else the whole simplex."""
        return Box(u, u) if held.any() else self

    def logarithmic(self) -> None:
        return  # a weight may be zero, which has no logarithm

    def sample(self, rng: np.random.Generator, spacing: Spacing) -> Vector:
        return rng.dirichlet(np.ones(self.size))

    def grid(self, points: int) -> list[Vector]:
        """Return all weights that are multiples of 1 / (points - 1)."""
        parts = points - 1
        cuts = combinations_with_replacement(range(parts + 1), self.size - 1)
        return [np.diff([0, *cut, parts]) / parts for cut in cuts]

    @property
    def draws(self) -> Intervals:
        """Return a unit interval per weight; a single weight is always one and needs no draw."""
        return np.zeros(self.size), np.full(self.size, 1.0 if self.size > 1 else 0.0)

    def from_draws(self, drawn: Vector) -> Vector:
        """Return -log of the draws, scaled to sum to one: uniform draws give uniform weights."""
        shares = -np.log(np.clip(drawn, LEAST_DRAW, 1 - LEAST_DRAW))
        return shares / shares.sum()

    def to_draws(self, u: Vector) -> Vector:
        return np.exp(-u)
