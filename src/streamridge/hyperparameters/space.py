"""All hyperparameters of a model as one flat vector, group after group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Vector
from streamridge.errors import InvalidInputError, listed, shown
from streamridge.hyperparameters.feasible import Product
from streamridge.hyperparameters.groups import Group, GroupNames

T = TypeVar("T", bound=np.generic)


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
        """Return how the groups are called, and what their members do."""
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
        """Return a mask of the coordinates that say after how long a cycle repeats, shape (d,)."""
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
        """Return lam with new values by name; the other weights of a simplex share what is left.

        Examples
        --------
        >>> from streamridge.hyperparameters.simplex import Simplex
        >>> thirds, names = np.ones(3) / 3, ("w[0]", "w[1]", "w[2]")
        >>> space = Space((Group("w", "weight", names, thirds, Simplex(3)),))
        >>> space.assigned(space.values, {"w[0]": 0.5})
        array([0.5 , 0.25, 0.25])
        """
        self.groups_of(tuple(values))
        return np.concatenate(
            [
                group.assigned(piece, values)
                for group, piece in zip(self.groups, self.pieces(lam), strict=True)
            ]
        )

    def pieces(self, vector: NDArray[T]) -> list[NDArray[T]]:
        """Return a vector over all coordinates, split into one piece per group."""
        return np.split(vector, np.cumsum([len(group.names) for group in self.groups])[:-1])

    def groups_of(self, names: tuple[str, ...]) -> Mask:
        """Return a mask of the named coordinates, shape (d,).

        A name in a box marks itself only; a weight marks its whole simplex.
        """
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
        return [
            value for group, value in zip(self.groups, per_group, strict=True) for _ in group.names
        ]
