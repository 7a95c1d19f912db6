"""The feasible set C of hyperparameters: the contract of its parts, and their product.

The paper prints C as a union with its intervals reversed. It is a product of intervals and of the
simplex of the kernel weights. Each set offers its own projection, random points, grid and subset
with some coordinates held, so that no search has to ask what kind of set it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Vector, require_finite
from streamridge.errors import InvalidInputError

T = TypeVar("T", bound=np.generic)

# Because of rounding, a feasible point may violate a constraint by this much.
TOLERANCE = 1e-9

# Lower and upper ends of intervals, shape (size,) each.
Intervals = tuple[Vector, Vector]

# How positive hyperparameters are drawn: uniformly in their logarithms, or as they are.
Spacing = Literal["log", "uniform"]


class Feasible(Protocol):
    """A closed convex set with an exact Euclidean projection."""

    @property
    def size(self) -> int:
        """Return the dimension of the space the set lies in."""

    def project(self, u: Vector) -> Vector:
        """Return the point of the set nearest to u."""

    def contains(self, u: Vector) -> bool:
        """Return whether u lies in the set, up to rounding."""

    def tangent(self, g: Vector) -> Vector:
        """Return g without what leads out of the plane that the set lies in.

        A step along that part is undone by the projection.
        """

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where u is at a lower bound, 1 at an upper bound, else 0; shape (size,)."""


class Part(Feasible, Protocol):
    """The feasible set of one group of hyperparameters, as searches and charts use it."""

    @property
    def is_tied(self) -> bool:
        """Return whether one coordinate cannot change without the others."""

    @property
    def widths(self) -> Vector:
        """Return the length of each coordinate's range, shape (size,)."""

    @property
    def limits(self) -> str:
        """Return where a point may lie, in words."""

    def completed(self, u: Vector, given: Mask) -> Vector:
        """Return u with the coordinates that are not `given` adjusted to those that are."""

    def holding(self, u: Vector, held: Mask) -> Part:
        """Return the subset in which the held coordinates are equal to those of u."""

    def logarithmic(self) -> Part | None:
        """Return the set of the logarithms of all points; None if a point may have none."""

    def sample(self, rng: np.random.Generator, spacing: Spacing) -> Vector:
        """Return a random point, shape (size,)."""

    def grid(self, points: int) -> list[Vector]:
        """Return points spaced evenly over the set, `points` of them along each side."""

    @property
    def draws(self) -> Intervals:
        """Return intervals to draw independent numbers from; `from_draws` makes them a point."""

    def from_draws(self, drawn: Vector) -> Vector:
        """Return the point that numbers drawn from the intervals of `draws` stand for."""

    def to_draws(self, u: Vector) -> Vector:
        """Return numbers that `from_draws` turns into u."""


@dataclass(frozen=True)
class Product:
    """The product of sets, each on its own run of coordinates."""

    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Return the dimension of the space the set lies in."""
        return sum(part.size for part in self.parts)

    def project(self, u: Vector) -> Vector:
        """Return the point of the product nearest to u, part by part."""
        return np.concatenate([u[:0], *(part.project(piece) for part, piece in self._split(u))])

    def contains(self, u: Vector) -> bool:
        """Return whether every piece of u lies in its part."""
        return all(part.contains(piece) for part, piece in self._split(u))

    def tangent(self, g: Vector) -> Vector:
        """Return g without what leads out of the planes of the parts."""
        return np.concatenate([g[:0], *(part.tangent(piece) for part, piece in self._split(g))])

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where u is at a lower bound, 1 at an upper bound, else 0."""
        sides = [part.active(piece) for part, piece in self._split(u)]
        return np.concatenate([np.empty(0, dtype=np.int8), *sides])

    def _split(self, u: NDArray[T]) -> Iterator[tuple[Part, NDArray[T]]]:
        ends = np.cumsum([part.size for part in self.parts], dtype=np.intp)
        return zip(self.parts, np.split(u, ends)[:-1], strict=True)


def require_feasible(z: ArrayLike, feasible: Feasible) -> Vector:
    """Return a copy of z; raise if it does not lie in the set."""
    point = require_finite("z", z).copy()
    if point.shape != (feasible.size,) or not feasible.contains(point):
        raise InvalidInputError(f"z must lie in the feasible set, got {point.tolist()}.")
    return point
