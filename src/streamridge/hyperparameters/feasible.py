"""The feasible set C of hyperparameters: boxes, simplices, their product, and its coordinates.

The paper prints C as a union with its intervals reversed; it is a product of intervals and of the
simplex of the kernel weights. Positive hyperparameters may be moved in logarithms: a box stays a
box there, so the theory holds for the loss composed with exp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Vector, require_count, require_finite, require_shape
from streamridge.errors import InvalidInputError

# How far beyond a constraint rounding may leave a feasible point.
TOLERANCE = 1e-9
# How near to a bound counts as sitting there: exp(log(bound)) misses it by a rounding.
NEAR = 1e-12

T = TypeVar("T", bound=np.generic)

# How positive hyperparameters are moved: in logarithms, or as they are.
Coordinates = Literal["log", "natural"]


class Feasible(Protocol):
    """Is a closed convex set with an exact Euclidean projection."""

    @property
    def size(self) -> int:
        """Return the dimension of the space the set lies in."""

    def project(self, u: Vector) -> Vector:
        """Return the point of the set nearest to u."""

    def contains(self, u: Vector) -> bool:
        """Tell whether u lies in the set, up to rounding."""

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where u sits at a lower bound, 1 at an upper one, else 0; shape (size,)."""


@dataclass(frozen=True, eq=False)
class Box:
    """Is the set of all u with low <= u <= high, elementwise.

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
        """Tell whether u lies in the box, up to rounding."""
        slack = TOLERANCE * (1 + np.abs(u))
        return bool(np.all((u >= self.low - slack) & (u <= self.high + slack)))

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where u sits at its lower bound, 1 at its upper one, 0 between or at both."""
        at_high = u >= self.high - NEAR * np.abs(self.high)
        at_low = u <= self.low + NEAR * np.abs(self.low)
        return at_high.astype(np.int8) - at_low.astype(np.int8)


def project_simplex(u: Vector) -> Vector:
    r"""Return the point of the simplex nearest to u.

    The nearest point is $\max(u - \sigma, 0)$ for the one $\sigma$ that makes it sum to one. With
    the entries sorted downwards, the positive ones are the first $\rho$, and $\rho$ is the last
    index at which $u_{(\rho)}$ still exceeds the $\sigma$ of the first $\rho$ entries alone.

    Notes
    -----
    Paper: the projection of Algorithm 2, line 4, onto the kernel weights. Cost: $O(M \log M)$.

    Examples
    --------
    >>> project_simplex(np.array([0.5, 0.9, -1.0]))
    array([0.3, 0.7, 0. ])
    """
    # Shifting u leaves the answer as it is; without it 1 is lost beside entries of 1e17.
    u = u - u.max()
    descending = np.sort(u)[::-1]
    sigmas = (np.cumsum(descending) - 1) / np.arange(1, len(u) + 1)
    rho = np.flatnonzero(descending > sigmas)[-1]
    return np.maximum(u - sigmas[rho], 0.0)


@dataclass(frozen=True)
class Simplex:
    """Is the set of all weights that are not negative and sum to one.

    Examples
    --------
    >>> Simplex(2).project(np.array([3.0, 0.0]))
    array([1., 0.])
    """

    size: int

    def __post_init__(self) -> None:
        require_count("size", self.size)

    def project(self, u: Vector) -> Vector:
        """Return the weights nearest to u."""
        return project_simplex(u)

    def contains(self, u: Vector) -> bool:
        """Tell whether u is a vector of weights, up to rounding."""
        return bool(u.min() >= -TOLERANCE and abs(u.sum() - 1) <= TOLERANCE)

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where a weight is zero, 1 where it takes all, 0 between or if it is alone."""
        if self.size == 1:
            return np.zeros(1, dtype=np.int8)
        return (u >= 1).astype(np.int8) - (u <= 0).astype(np.int8)


@dataclass(frozen=True)
class Product:
    """Is the product of sets, each on its own run of coordinates."""

    parts: tuple[Feasible, ...]

    @property
    def size(self) -> int:
        """Return the dimension of the space the set lies in."""
        return sum(part.size for part in self.parts)

    def project(self, u: Vector) -> Vector:
        """Return the point of the product nearest to u, part by part."""
        return np.concatenate([u[:0], *(part.project(piece) for part, piece in self._split(u))])

    def contains(self, u: Vector) -> bool:
        """Tell whether every piece of u lies in its part."""
        return all(part.contains(piece) for part, piece in self._split(u))

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where u sits at a lower bound, 1 at an upper one, else 0."""
        sides = [part.active(piece) for part, piece in self._split(u)]
        return np.concatenate([np.empty(0, dtype=np.int8), *sides])

    def _split(self, u: NDArray[T]) -> Iterator[tuple[Feasible, NDArray[T]]]:
        ends = np.cumsum([part.size for part in self.parts], dtype=np.intp)
        return zip(self.parts, np.split(u, ends)[:-1], strict=True)


def require_feasible(z: ArrayLike, feasible: Feasible) -> Vector:
    """Return a copy of z, or say that it does not lie in the set."""
    point = require_finite("z", z).copy()
    if point.shape != (feasible.size,) or not feasible.contains(point):
        raise InvalidInputError(f"z must lie in the feasible set, got {point.tolist()}.")
    return point


@dataclass(frozen=True)
class Chart:
    """Maps hyperparameters lam to the coordinates z they are moved in, and gradients along.

    Parameters
    ----------
    feasible
        The feasible set, in coordinates z.
    logged
        Marks the coordinates with z = log(lam); elsewhere z = lam.
    """

    feasible: Product
    logged: Mask

    @classmethod
    def natural(cls, feasible: Product) -> Chart:
        """Return the chart that moves hyperparameters as they are, as the paper does."""
        return cls(feasible, np.zeros(feasible.size, dtype=bool))

    @classmethod
    def log(cls, feasible: Product) -> Chart:
        """Return the chart that moves every positive box in logarithms, free of units.

        Weights on a simplex, and boxes that reach zero or below, stay as they are.
        """
        parts: list[Feasible] = []
        logged = []
        for part in feasible.parts:
            if isinstance(part, Box) and (part.low > 0).all():
                logged += [True] * part.size
                parts.append(Box(np.log(part.low), np.log(part.high)))
            else:
                logged += [False] * part.size
                parts.append(part)
        return cls(Product(tuple(parts)), np.array(logged, dtype=bool))

    @property
    def widths(self) -> Vector:
        """Return how far each coordinate can go, shape (d,); infinity stands for a constant."""
        widths = [
            part.high - part.low if isinstance(part, Box) else np.ones(part.size)
            for part in self.feasible.parts
        ]
        flat = np.concatenate([np.empty(0), *widths])
        return np.where(flat > 0, flat, np.inf)

    def encode(self, lam: Vector) -> Vector:
        """Return the coordinates z of hyperparameters lam."""
        return np.log(lam, out=lam.copy(), where=self.logged)

    def decode(self, z: Vector) -> Vector:
        """Return the hyperparameters lam at coordinates z."""
        return np.exp(z, out=z.copy(), where=self.logged)

    def reach(self, z: Vector, trust: Vector) -> Vector:
        """Return the greatest change of each coordinate for a greatest relative change of lam."""
        natural = ~self.logged & np.isfinite(trust)
        return np.multiply(trust, np.abs(z), out=trust.copy(), where=natural)

    def pull_back(self, lam: Vector, g: Vector) -> Vector:
        """Return df/dz at lam from g = df/dlam, over the last axis of g."""
        return g * np.where(self.logged, lam, 1.0)


def require_coordinates(coordinates: Coordinates) -> None:
    """Raise unless the coordinates are known."""
    if coordinates not in ("log", "natural"):
        raise InvalidInputError(f"coordinates must be 'log' or 'natural', got {coordinates!r}.")


def chart_of(coordinates: Coordinates, feasible: Product) -> Chart:
    """Return the chart of that name."""
    require_coordinates(coordinates)
    return Chart.log(feasible) if coordinates == "log" else Chart.natural(feasible)
