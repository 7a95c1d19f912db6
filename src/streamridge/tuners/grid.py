"""Grid search: every combination of a few values, the members of a group tied together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any

import numpy as np

from streamridge.arrays import Vector, require_count
from streamridge.errors import InvalidInputError, listed
from streamridge.hyperparameters.feasible import Box
from streamridge.hyperparameters.space import Group, Space
from streamridge.tuners.backtest import Backtest
from streamridge.tuners.base import Tuned, best_of


@dataclass(frozen=True)
class Grid:
    """Tries every combination of a few values per group of hyperparameters.

    The inverse scales of all lags are one group and take one value together, for a grid over each
    of d coordinates would need points^d fits. Points are spaced evenly between the bounds, on a
    logarithmic scale where they are positive; weights evenly on their simplex.

    Parameters
    ----------
    points
        How many per group.
    over
        Which groups, such as ("regularization", "ard.inverse_scales", "weight"); all by default.
        The others stay where they are.
    """

    points: int = 3
    over: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        require_count("points", self.points, least=2)
        if self.over is not None:
            object.__setattr__(self, "over", tuple(self.over))

    def trials(self, space: Space) -> int:
        return 1 + prod(len(each) for each in self._axes(space, space.values))

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        axes = self._axes(backtest.space, start)
        candidates = [np.concatenate(combination) for combination in product(*axes)]
        return best_of(backtest, start, candidates)

    def _axes(self, space: Space, start: Vector) -> list[list[Vector]]:
        """Return the values that every group takes in turn; its start where it is not searched."""
        names = [group_name(group) for group in space.groups]
        for name in self.over or ():
            if name not in names:
                raise InvalidInputError(f"over must name groups of {listed(names)}, got {name!r}.")
        return [
            self._choices(group) if self.over is None or name in self.over else [piece]
            for group, name, piece in zip(space.groups, names, space.pieces(start), strict=True)
        ]

    def _choices(self, group: Group) -> list[Vector]:
        """Return the values that a group takes in turn, shape (size,) each."""
        feasible = group.feasible
        if not isinstance(feasible, Box):
            return list(_weights(feasible.size, self.points - 1))
        low, high = feasible.low, feasible.high
        if (low == high).all():
            return [low]
        shares = np.linspace(0, 1, self.points)
        if (low > 0).all():
            between = [low ** (1 - share) * high**share for share in shares]
        else:
            between = [(1 - share) * low + share * high for share in shares]
        return [feasible.project(values) for values in between]


def group_name(group: Group) -> str:
    """Return what a group is called: its first name, up to where its members differ.

    That is "weight" for the weights of a mixture, "drifting.weight" where it is a part of another.

    Examples
    --------
    >>> from streamridge.hyperparameters.space import positive_group
    >>> group_name(positive_group("scales", [1.0, 2.0], (0.1, 3.0)))
    'scales'
    """
    first = group.names[0]
    owner, _, _ = first.rpartition(".")
    of_weights = owner == "weight" or owner.endswith(".weight")
    return owner if of_weights else first.partition("[")[0]


def _weights(size: int, parts: int) -> Iterator[Vector]:
    """Yield all weights that are multiples of 1 / parts."""
    for cuts in combinations_with_replacement(range(parts + 1), size - 1):
        yield np.diff([0, *cuts, parts]) / parts
