"""Random search of Bergstra and Bengio (2012): the setting in force, and random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from streamridge.arrays import Vector, require_count
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Box
from streamridge.hyperparameters.space import Group, Space
from streamridge.tuners.backtest import Backtest
from streamridge.tuners.base import Tuned, best_of

Spacing = Literal["log", "uniform"]


@dataclass(frozen=True)
class RandomSearch:
    """Tries the hyperparameters in force and random draws.

    Parameters
    ----------
    draws
        How many; the paper has 50.
    spacing
        "log" draws positive hyperparameters evenly on a logarithmic scale, "uniform" on their own,
        as the paper seems to have done. Weights are drawn evenly on their simplex.
    """

    draws: int = 50
    spacing: Spacing = "log"

    def __post_init__(self) -> None:
        require_count("draws", self.draws)
        require_spacing(self.spacing)

    def trials(self, space: Space) -> int:
        return 1 + self.draws

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        candidates = [draw(backtest.space, rng, self.spacing) for _ in range(self.draws)]
        return best_of(backtest, start, candidates)


def require_spacing(spacing: Spacing) -> None:
    """Raise unless the spacing is known."""
    if spacing not in ("log", "uniform"):
        raise InvalidInputError(f"spacing must be 'log' or 'uniform', got {spacing!r}.")


def draw(space: Space, rng: np.random.Generator, spacing: Spacing) -> Vector:
    """Return random hyperparameters of a space, shape (d,)."""
    return np.concatenate([_draw_group(group, rng, spacing) for group in space.groups])


def _draw_group(group: Group, rng: np.random.Generator, spacing: Spacing) -> Vector:
    feasible = group.feasible
    if not isinstance(feasible, Box):
        return rng.dirichlet(np.ones(feasible.size))
    low, high = feasible.low, feasible.high
    if spacing == "uniform" or not (low > 0).all():
        return rng.uniform(low, high)
    return feasible.project(np.exp(rng.uniform(np.log(low), np.log(high))))
