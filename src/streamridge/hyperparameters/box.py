"""Boxes: the sets of hyperparameters that have one interval each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import TOLERANCE, Intervals, Spacing

# How close to a bound counts as at the bound, relatively: exp(log(bound)) is off by rounding.
NEAR = 1e-12


@dataclass(frozen=True, eq=False)
class Box:
    """The set of all u with low <= u <= high, elementwise.

    Examples
    --------
    >>> box = Box(low=[0.0, 1.0], high=[1.0, 2.0])
    >>> box.project(np.array([-3.0, 1.5]))
    array([0. , 1.5])
    >>> Box(low=2.0, high=1.0)
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: low must not exceed high, got 2.0 > 1.0.
    """

    low: Vector
    high: Vector

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        low, high = (
            np.array(require_finite(*side), ndmin=1) for side in (("low", low), ("high", high))
        )
        require_shape("high", high, low.shape)
        if (low > high).any():
            worst = np.argmax(low - high)
            raise InvalidInputError(f"low must not exceed high, got {low[worst]} > {high[worst]}.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:
        """Return the dimension of the space the set lies in."""
        return len(self.low)

    def project(self, u: Vector) -> Vector:
        """Return the point of the box nearest to u."""
        return np.clip(u, self.low, self.high)

    def contains(self, u: Vector) -> bool:
        """Return whether u lies in the box, up to rounding."""
        slack = TOLERANCE * (1 + np.abs(u))
        return bool(np.all((u >= self.low - slack) & (u <= self.high + slack)))

    def tangent(self, g: Vector) -> Vector:
        """Return g unchanged: a box does not lie in a plane."""
        return g

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where u is at its lower bound, 1 at its upper bound, 0 between or at both."""
        at_high = u >= self.high - NEAR * np.abs(self.high)
        at_low = u <= self.low + NEAR * np.abs(self.low)
        return at_high.astype(np.int8) - at_low.astype(np.int8)

    @property
    def is_tied(self) -> bool:
        """Return False: each coordinate can change alone."""
        return False

    @property
    def widths(self) -> Vector:
        """Return the length of each interval, shape (size,)."""
        return self.high - self.low

    @property
    def limits(self) -> str:
        """Return the smallest interval that covers all coordinates, in words."""
        low, high = self.low.min(), self.high.max()
        return f"between {low:g} and {high:g}" if low < high else f"at the constant {low:g}"

    def completed(self, u: Vector, given: Mask) -> Vector:
        """Return u unchanged: no coordinate depends on another."""
        return u

    def holding(self, u: Vector, held: Mask) -> Box:
        """Return the box with each held interval shrunk to the value in u."""
        return Box(np.where(held, u, self.low), np.where(held, u, self.high))

    def logarithmic(self) -> Box | None:
        """Return the box of the logarithms; None unless every lower bound is positive."""
        return Box(np.log(self.low), np.log(self.high)) if (self.low > 0).all() else None

    def sample(self, rng: np.random.Generator, spacing: Spacing) -> Vector:
        """Return a uniform random point; for "log" and positive bounds, uniform in logarithms."""
        if spacing == "uniform" or not (self.low > 0).all():
            return rng.uniform(self.low, self.high)
        return self.project(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))

    def grid(self, points: int) -> list[Vector]:
        """Return evenly spaced points from corner to corner, in logarithms if bounds are positive.

        Examples
        --------
        >>> Box([1.0], [100.0]).grid(3)
        [array([1.]), array([10.]), array([100.])]
        """
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
        """Return the intervals of the box."""
        return self.low, self.high

    def from_draws(self, drawn: Vector) -> Vector:
        """Return the point of the box nearest to the drawn numbers."""
        return self.project(drawn)

    def to_draws(self, u: Vector) -> Vector:
        """Return u unchanged."""
        return u
