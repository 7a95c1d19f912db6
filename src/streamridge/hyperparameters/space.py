"""Named groups of hyperparameters, and the flat vector lam of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Vector, require_finite, require_number, require_positive
from streamridge.errors import InvalidInputError, listed, shown
from streamridge.hyperparameters.feasible import Part, Product
from streamridge.hyperparameters.sets import Box

T = TypeVar("T", bound=np.generic)

Bounds = tuple[float, float] | None

# The role of a hyperparameter: it scales distances, weighs kernels, sets the rate of forgetting,
# shapes a cycle (its length and how sharply it repeats), or penalizes weights.
Kind = Literal["scale", "weight", "rate", "period", "ridge"]


@dataclass(frozen=True)
class GroupNames:
    """The name and the kind of a group of hyperparameters, and the names of its members."""

    name: str
    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Hyperparameters of one kind that share one constraint."""

    name: str  # such as "ard.inverse_scales"
    kind: Kind
    names: tuple[str, ...]
    values: Vector
    feasible: Part
    learned: bool = True
    trust: float = np.inf  # the largest relative change in one move

    def assigned(self, values: Vector, by_name: Mapping[str, float]) -> Vector:
        """Return `values` with some replaced by name; raise if the result is not feasible."""
        given = np.array([name in by_name for name in self.names])
        if not given.any():
            return values
        named = [name for name in self.names if name in by_name]
        after = values.copy()
        after[given] = [require_number(name, by_name[name]) for name in named]
        after = self.feasible.completed(after, given)
        if not self.feasible.contains(after):
            asked = ", ".join(f"{name} = {by_name[name]:g}" for name in named)
            raise InvalidInputError(
                f"hyperparameters must lie {self.feasible.limits}, got {asked}."
            )
        return after

    def marked(self, names: tuple[str, ...]) -> list[bool]:
        """Return a flag per member that is named; a name in a tied group marks all members."""
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


def require_within(name: str, values: ArrayLike, bounds: Bounds) -> None:
    """Raise unless values and bounds are positive, and each value lies between low and high."""
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


@dataclass(frozen=True)
class Space:
    """The flat vector lam of all hyperparameters of a model, group after group."""

    groups: tuple[Group, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the name of every coordinate, shape (d,)."""
        return tuple(name for group in self.groups for name in group.names)

    @property
    def naming(self) -> tuple[GroupNames, ...]:
        """Return the names and the kind of each group."""
        return tuple(GroupNames(group.name, group.kind, group.names) for group in self.groups)

    @cached_property
    def values(self) -> Vector:
        """Return the initial value of every coordinate, shape (d,)."""
        values = np.concatenate([group.values for group in self.groups] or [np.empty(0)])
        values.flags.writeable = False  # every caller gets the same array
        return values

    @cached_property
    def feasible(self) -> Product:
        """Return the feasible set C."""
        return Product(tuple(group.feasible for group in self.groups))

    @cached_property
    def learned(self) -> Mask:
        """Return a mask of the coordinates that are learned, shape (d,)."""
        return np.array(self._spread([group.learned for group in self.groups]), dtype=bool)

    @cached_property
    def cycles(self) -> Mask:
        """Return a mask of the coordinates that belong to a cycle, shape (d,)."""
        return np.array(self._spread([group.kind == "period" for group in self.groups]), dtype=bool)

    @cached_property
    def periods(self) -> Mask:
        """Return a mask of the coordinates that are the length of a cycle, shape (d,)."""
        own = [name.rpartition(".")[2] == "period" for name in self.names]
        return self.cycles & np.array(own, dtype=bool)

    @cached_property
    def trust(self) -> Vector:
        """Return the largest relative change of every coordinate in one move, shape (d,)."""
        return np.array(self._spread([group.trust for group in self.groups]), dtype=float)

    def named(self, lam: Vector) -> dict[str, float]:
        """Return the coordinates of lam by name."""
        return dict(zip(self.names, lam.tolist(), strict=True))

    def assigned(self, lam: Vector, values: Mapping[str, float]) -> Vector:
        """Return lam with new values by name; the other weights of a simplex share the rest."""
        self.groups_of(tuple(values))
        pieces = zip(self.groups, self.pieces(lam), strict=True)
        return np.concatenate([group.assigned(piece, values) for group, piece in pieces])

    def pieces(self, vector: NDArray[T]) -> list[NDArray[T]]:
        """Return a vector over all coordinates, split into one piece per group."""
        return np.split(vector, np.cumsum([len(group.names) for group in self.groups])[:-1])

    def groups_of(self, names: tuple[str, ...]) -> Mask:
        """Return a mask of the named coordinates, (d,); a weight marks its whole simplex."""
        known = set(self.names)
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise InvalidInputError(
                    f"hyperparameter must be one of {listed(self.names)}, got {shown(name)}."
                )
        return np.array([mark for group in self.groups for mark in group.marked(names)], dtype=bool)

    def holding(self, lam: Vector, held: Mask) -> Space:
        """Return the space with held coordinates fixed at lam; a held weight fixes its simplex."""
        pieces = zip(self.groups, self.pieces(lam), self.pieces(held), strict=True)
        return Space(tuple(group.holding(values, marks) for group, values, marks in pieces))

    def active_bounds(self, lam: Vector) -> dict[str, str]:
        """Return the learned coordinates of lam at a bound, each with "lower" or "upper"."""
        sides = self.feasible.active(lam).tolist()  # 0 for a constant: it is at both bounds
        words = {-1: "lower", 1: "upper"}
        return {name: words[side] for name, side in zip(self.names, sides, strict=True) if side}

    def _spread(self, per_group: list[bool] | list[float]) -> list[float]:
        pairs = zip(self.groups, per_group, strict=True)
        return [value for group, value in pairs for _ in group.names]
