"""The feasible set C of hyperparameters, and the coordinates in which they move.

The paper prints C as a union with its intervals reversed. It is a product of intervals and of the
simplex of the kernel weights. Each part has its own projection, random points, grid, and subset
with held coordinates, so that a search does not depend on the kind of a part.

Positive hyperparameters may move in logarithms: a box stays a box there, so the theory holds for
the loss composed with exp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Vector, require_finite
from streamridge.errors import InvalidInputError

T = TypeVar("T", bound=np.generic)

# A feasible point may violate a constraint by this much, because of rounding.
TOLERANCE = 1e-9

# Lower and upper ends of intervals, shape (size,) each.
Intervals = tuple[Vector, Vector]

# The scale on which positive hyperparameters are drawn uniformly: logarithmic or linear.
Spacing = Literal["log", "uniform"]


class Feasible(Protocol):
    """A closed convex set with an exact Euclidean projection."""

    @property
    def size(self) -> int:
        """Return the number of coordinates."""

    def project(self, u: Vector) -> Vector:
        """Return the point of the set nearest to u."""

    def contains(self, u: Vector) -> bool:
        """Return whether u lies in the set, up to rounding."""

    def tangent(self, g: Vector) -> Vector:
        """Return the part of g within the plane of the set; the projection undoes the rest."""

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
        """Return the range of the set in words, for messages."""

    def completed(self, u: Vector, given: Mask) -> Vector:
        """Return u with the coordinates that are not `given` adjusted to the given ones."""

    def holding(self, u: Vector, held: Mask) -> Part:
        """Return the subset whose held coordinates equal those in u."""

    def logarithmic(self) -> Part | None:
        """Return the set of the logarithms of all points; None if a point may have none."""

    def sample(self, rng: np.random.Generator, spacing: Spacing) -> Vector:
        """Return a random point, shape (size,)."""

    def grid(self, points: int) -> list[Vector]:
        """Return points spaced evenly over the set, `points` of them along each side."""

    @property
    def draws(self) -> Intervals:
        """Return intervals to draw independent numbers from; `from_draws` turns them to a point."""

    def from_draws(self, drawn: Vector) -> Vector:
        """Return the point that corresponds to numbers drawn from the intervals of `draws`."""

    def to_draws(self, u: Vector) -> Vector:
        """Return numbers that `from_draws` turns into u."""


@dataclass(frozen=True)
class Product:
    """The product of sets, each on its own run of coordinates."""

    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def project(self, u: Vector) -> Vector:
        return np.concatenate([u[:0], *(part.project(piece) for part, piece in self._split(u))])

    def contains(self, u: Vector) -> bool:
        return all(part.contains(piece) for part, piece in self._split(u))

    def tangent(self, g: Vector) -> Vector:
        return np.concatenate([g[:0], *(part.tangent(piece) for part, piece in self._split(g))])

    def active(self, u: Vector) -> NDArray[np.int8]:
        sides = [part.active(piece) for part, piece in self._split(u)]
        return np.concatenate([np.empty(0, dtype=np.int8), *sides])

    def _split(self, u: NDArray[T]) -> Iterator[tuple[Part, NDArray[T]]]:
        return zip(self.parts, np.split(u, self._ends)[:-1], strict=True)

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        return np.cumsum([part.size for part in self.parts], dtype=np.intp)


def require_feasible(z: ArrayLike, feasible: Feasible) -> Vector:
    """Return a copy of z; raise if it does not lie in the set."""
    point = require_finite("z", z).copy()
    if point.shape != (feasible.size,) or not feasible.contains(point):
        raise InvalidInputError(f"z must lie in the feasible set, got {point.tolist()}.")
    return point


# The coordinates of positive hyperparameters: logarithms, or values.
Coordinates = Literal["log", "natural"]


@dataclass(frozen=True)
class Chart:
    """The map between hyperparameters lam and the coordinates z in which they move.

    Parameters
    ----------
    feasible
        The feasible set, in coordinates z.
    logged
        Mask of the coordinates with z = log(lam); elsewhere z = lam.
    """

    feasible: Product
    logged: Mask

    @classmethod
    def natural(cls, feasible: Product) -> Chart:
        """Return the chart in which hyperparameters are their own coordinates, as in the paper."""
        return cls(feasible, np.zeros(feasible.size, dtype=bool))

    @classmethod
    def log(cls, feasible: Product) -> Chart:
        """Return the chart that moves every positive box in logarithms, where units do not matter.

        Weights on a simplex, and boxes that reach zero or below, are their own coordinates.
        """
        logarithms = [part.logarithmic() for part in feasible.parts]
        pairs = list(zip(feasible.parts, logarithms, strict=True))
        logged = [log is not None for part, log in pairs for _ in range(part.size)]
        parts = tuple(part if log is None else log for part, log in pairs)
        return cls(Product(parts), np.array(logged, dtype=bool))

    @property
    def widths(self) -> Vector:
        """Return the length of each coordinate's range, shape (d,); infinite for a constant."""
        flat = np.concatenate([np.empty(0), *(part.widths for part in self.feasible.parts)])
        return np.where(flat > 0, flat, np.inf)

    def encode(self, lam: Vector) -> Vector:
        """Return the coordinates z of hyperparameters lam."""
        return np.log(lam, out=lam.copy(), where=self.logged)

    def decode(self, z: Vector) -> Vector:
        """Return the hyperparameters lam at coordinates z."""
        return np.exp(z, out=z.copy(), where=self.logged)

    def reach(self, z: Vector, trust: Vector) -> Vector:
        """Return the largest change of each coordinate if lam may change by the shares `trust`."""
        natural = ~self.logged & np.isfinite(trust)
        return np.multiply(trust, np.abs(z), out=trust.copy(), where=natural)

    def pull_back(self, lam: Vector, g: Vector) -> Vector:
        """Return df/dz at lam from g = df/dlam, over the last axis of g."""
        return g * np.where(self.logged, lam, 1.0)


def require_coordinates(coordinates: Coordinates) -> None:
    """Raise unless the coordinates are 'log' or 'natural'."""
    if coordinates not in ("log", "natural"):
        raise InvalidInputError(f"coordinates must be 'log' or 'natural', got {coordinates!r}.")


def chart_of(coordinates: Coordinates, feasible: Product) -> Chart:
    """Return the chart of the feasible set in these coordinates."""
    require_coordinates(coordinates)
    return Chart.log(feasible) if coordinates == "log" else Chart.natural(feasible)
