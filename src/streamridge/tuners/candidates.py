"""Tuners that compare a list of candidates: no search, grid search and random search."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from streamridge.arrays import Vector, require_count
from streamridge.errors import InvalidInputError, listed
from streamridge.hyperparameters.feasible import Spacing
from streamridge.hyperparameters.space import Space
from streamridge.tuners.base import Backtest, Tuned, Tuner, best_of


@dataclass(frozen=True)
class Fixed(Tuner):
    """A tuner that keeps the given hyperparameters, without any fit."""

    def trials(self, space: Space) -> int:
        return 0

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        return Tuned.of(backtest, start, np.nan)


@dataclass(frozen=True)
class Grid(Tuner):
    """A search that tries every combination of a few values per group of hyperparameters.

    The inverse scales of all lags are one group and share one value, because a grid over each of d
    coordinates would need points^d fits. Points are spaced evenly between the bounds, on a
    logarithmic scale if the bounds are positive. Weights are spaced evenly on their simplex.

    Parameters
    ----------
    points
        Number of values to try per group.
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


@dataclass(frozen=True)
class RandomSearch(Tuner):
    """A search that tries the current hyperparameters and random draws.

    Parameters
    ----------
    draws
        Number of draws to try; the paper uses 50.
    spacing
        "log" draws positive hyperparameters uniformly on a logarithmic scale, "uniform" on a linear
        scale, as the paper seems to do. Weights are drawn uniformly from their simplex.

    Notes
    -----
    J. Bergstra and Y. Bengio, Random search for hyper-parameter optimization, JMLR 2012.
    """

    draws: int = 50
    spacing: Spacing = "log"

    def __post_init__(self) -> None:
        require_count("draws", self.draws)
        if self.spacing not in ("log", "uniform"):
            raise InvalidInputError(f"spacing must be 'log' or 'uniform', got {self.spacing!r}.")

    def trials(self, space: Space) -> int:
        return 1 + self.draws

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        candidates = [draw(backtest.space, rng, self.spacing) for _ in range(self.draws)]
        return best_of(backtest, start, candidates)


def draw(space: Space, rng: np.random.Generator, spacing: Spacing) -> Vector:
    """Return random hyperparameters from a space, shape (d,)."""
    return np.concatenate([group.feasible.sample(rng, spacing) for group in space.groups])
