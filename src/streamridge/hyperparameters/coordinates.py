"""The coordinates in which hyperparameters move: their logarithms, or their values as they are.

Positive hyperparameters may move in logarithms: a box stays a box there, so the theory holds for
the loss composed with exp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Product

# How positive hyperparameters move: in logarithms, or as they are.
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
        """Return the chart that moves hyperparameters as they are, as the paper does."""
        return cls(feasible, np.zeros(feasible.size, dtype=bool))

    @classmethod
    def log(cls, feasible: Product) -> Chart:
        """Return the chart that moves every positive box in logarithms, where units do not matter.

        Weights on a simplex, and boxes that reach zero or below, stay as they are.
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
