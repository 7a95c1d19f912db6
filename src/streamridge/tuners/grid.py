"""Grid search: every combination of a few values per group of hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from streamridge.arrays import Vector, require_count
from streamridge.errors import InvalidInputError, listed
from streamridge.hyperparameters.space import Space
from streamridge.tuners.backtest import Backtest
from streamridge.tuners.base import Tuned, Tuner, best_of


@dataclass(frozen=True)
class Grid(Tuner):
    """A search that tries every combination of a few values per group of hyperparameters.

    The inverse scales of all lags are one group and share one value, because a grid over each of d
    coordinates would need points^d fits. Points are spaced evenly between the bounds, on a
    logarithmic scale if the bounds are positive. Weights are spaced evenly on their simplex.

    Parameters
    ----------
    points
        How many values to try per group.
    over
        Names of the groups to search, such as ("regularization", "ard.inverse_scales", "weight");
        all by default. The other groups keep their values.
    """

    points: int = 3
    over: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        require_count("points", self.points, least=2)
        if self.over is not None:
            object.__setattr__(self, "over", tuple(self.over))

    def require_space(self, space: Space) -> None:
        names = [group.name for group in space.groups]
        for name in self.over or ():
            if name not in names:
                raise InvalidInputError(f"over must be among {listed(names)}, got {name!r}.")

    def trials(self, space: Space) -> int:
        return 1 + prod(len(each) for each in self._axes(space, space.values))

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        axes = self._axes(backtest.space, start)
        candidates = [np.concatenate(combination) for combination in product(*axes)]
        return best_of(backtest, start, candidates)

    def _axes(self, space: Space, start: Vector) -> list[list[Vector]]:
        """Return the values to try for each group; only its start if it is not searched."""
        self.require_space(space)
        return [
            group.feasible.grid(self.points)
            if self.over is None or group.name in self.over
            else [piece]
            for group, piece in zip(space.groups, space.pieces(start), strict=True)
        ]
