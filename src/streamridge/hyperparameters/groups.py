"""Groups of named hyperparameters: their kind, their bounds, and whether they are learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Mask, Vector, require_finite, require_number, require_positive
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.box import Box
from streamridge.hyperparameters.feasible import Part

Bounds = tuple[float, float] | None

# What a hyperparameter does: it scales distances, weighs kernels, sets how fast the past is
# forgotten, shapes a cycle (its length and how sharply it repeats), or penalizes weights.
Kind = Literal["scale", "weight", "rate", "period", "ridge"]


@dataclass(frozen=True)
class GroupNames:
    """The name and the kind of a group of hyperparameters, and the names of its members."""

    name: str
    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Hyperparameters of one kind that share one constraint.

    Parameters
    ----------
    name
        Name of the group, such as "ard.inverse_scales".
    kind
        What its members do.
    names
        One name per value.
    values
        Current values.
    feasible
        The set that the values must stay in.
    learned
        False keeps the values constant.
    trust
        Largest relative change in one move; infinite by default.
    """

    name: str
    kind: Kind
    names: tuple[str, ...]
    values: Vector
    feasible: Part
    learned: bool = True
    trust: float = np.inf

    def assigned(self, values: Vector, by_name: Mapping[str, float]) -> Vector:
        """Return `values` with some replaced by name; raise if the result is not feasible."""
        given = np.array([name in by_name for name in self.names])
        if not given.any():
            return values
        after = values.copy()
        after[given] = [require_number(name, by_name[name]) for name in self._among(by_name)]
        after = self.feasible.completed(after, given)
        if not self.feasible.contains(after):
            asked = ", ".join(f"{name} = {by_name[name]:g}" for name in self._among(by_name))
            raise InvalidInputError(
                f"hyperparameters must lie {self.feasible.limits}, got {asked}."
            )
        return after

    def marked(self, names: tuple[str, ...]) -> list[bool]:
        """Return for each member whether it is named; naming one of a tied group names all."""
        marks = [name in names for name in self.names]
        return [any(marks)] * len(marks) if self.feasible.is_tied else marks

    def holding(self, values: Vector, held: Mask) -> Group:
        """Return the group with held members fixed at these values; constant if none is free."""
        if not held.any():
            return self
        feasible = self.feasible.holding(values, held)
        is_free = bool((feasible.widths > 0).any())
        return replace(self, feasible=feasible, learned=self.learned and is_free)

    def under(self, prefix: str) -> Group:
        """Return the group with `prefix.` before every name."""
        names = tuple(f"{prefix}.{name}" for name in self.names)
        return replace(self, name=f"{prefix}.{self.name}", names=names)

    def _among(self, by_name: Mapping[str, float]) -> list[str]:
        return [name for name in self.names if name in by_name]


def require_within(name: str, values: ArrayLike, bounds: Bounds) -> None:
    """Raise unless values and bounds are positive, and each value lies between low and high.

    Examples
    --------
    >>> require_within("rate", 1.0, (3.0, 2.0))
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: rate_bounds must run from low to high, got (3.0, 2.0).
    >>> require_within("rate", 1.0, (2.0, 3.0))
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: rate must lie within its bounds (2.0, 3.0), got 1.0.
    """
    array = np.atleast_1d(require_positive(name, values))
    if bounds is None:
        return
    sides = require_positive(f"{name}_bounds", bounds)
    if sides.shape != (2,):
        raise InvalidInputError(f"{name}_bounds must be a pair (low, high), got {bounds}.")
    low, high = sides.tolist()
    if low >= high:
        raise InvalidInputError(f"{name}_bounds must run from low to high, got {(low, high)}.")
    outside = (array < low) | (array > high)
    if outside.any():
        raise InvalidInputError(
            f"{name} must lie within its bounds {(low, high)}, got {array[outside][0]}."
        )


def positive_group(
    name: str, kind: Kind, values: ArrayLike, bounds: Bounds, *, trust: float = np.inf
) -> Group:
    """Return a group of positive hyperparameters in one interval; constant if `bounds` is None.

    Values and bounds are not checked here: `require_within` checks them where they enter.

    Examples
    --------
    >>> positive_group("inverse_scale", "scale", [1.0, 2.0], (0.1, 10.0)).names
    ('inverse_scale[0]', 'inverse_scale[1]')
    """
    array = np.asarray(values, dtype=np.float64)
    flat = np.atleast_1d(array)
    names = (name,) if array.ndim == 0 else tuple(f"{name}[{i}]" for i in range(len(flat)))
    if bounds is None:
        return Group(name, kind, names, flat, Box(flat, flat), learned=False)
    box = Box(np.full(len(flat), bounds[0]), np.full(len(flat), bounds[1]))
    return Group(name, kind, names, flat, box, trust=trust)


def require_values(values: ArrayLike, size: int) -> Vector:
    """Return `values` as an array; raise unless they are `size` finite numbers."""
    array = require_finite("hyperparameters", values)
    if array.shape != (size,):
        raise InvalidInputError(f"hyperparameters must have shape ({size},), got {array.shape}.")
    return array
