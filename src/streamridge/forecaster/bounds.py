"""Known bounds: the least and the greatest value that a sensor can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from streamridge.arrays import Vector, require_number
from streamridge.errors import InvalidInputError, shown

# The lower and the upper bound; None where there is none.
BoundPair: TypeAlias = tuple[float | None, float | None]

MEND = "Pass (0, None) for values that are never negative, or None for values without bounds."


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value that a sensor can show.

    Parameters
    ----------
    lower, upper
        The bounds; infinite where there is none.

    Examples
    --------
    >>> bounds = Bounds.of((0.0, None))
    >>> bounds.clipped(np.array([-3.0, 5.0])), bounds.hold(-1.0), bounds.hold(float("nan"))
    (array([0., 5.]), False, True)
    """

    lower: float = -np.inf
    upper: float = np.inf

    @classmethod
    def of(cls, pair: BoundPair | None) -> Bounds:
        """Return the bounds of a checked pair."""
        lower, upper = pair or (None, None)
        return cls(-np.inf if lower is None else lower, np.inf if upper is None else upper)

    def hold(self, value: float) -> bool:
        """Return whether a reading can be right; a missing one breaks no bound."""
        return not (value < self.lower or value > self.upper)

    def clipped(self, values: Vector) -> Vector:
        """Return values moved to the nearest bound where they are beyond."""
        return np.minimum(np.maximum(values, self.lower), self.upper)


def require_bounds(bounds: Sequence[float | None] | None) -> BoundPair | None:
    """Return a pair of bounds, None where there is none; raise unless they leave room between.

    Examples
    --------
    >>> require_bounds([0, None])
    (0.0, None)
    >>> require_bounds((5, 5))
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: bounds must have the lower below the upper, got (5, 5).
    """
    if bounds is None:
        return None
    if np.asarray(bounds, dtype=object).shape != (2,):
        raise InvalidInputError(
            f"bounds must be two numbers, or None for either, got {shown(bounds)}. {MEND}"
        )
    lower, upper = (None if each is None else require_number("bounds", each) for each in bounds)
    if lower is None and upper is None:
        raise InvalidInputError(f"bounds must hold at least one number, got {bounds}. {MEND}")
    if lower is not None and upper is not None and not lower < upper:
        raise InvalidInputError(f"bounds must have the lower below the upper, got {bounds}.")
    return lower, upper
