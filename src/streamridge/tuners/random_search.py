"""Random search of Bergstra and Bengio (2012): the best of random hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamridge.arrays import Vector, require_count
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Spacing
from streamridge.hyperparameters.space import Space
from streamridge.tuners.backtest import Backtest
from streamridge.tuners.base import Tuned, Tuner, best_of


@dataclass(frozen=True)
class RandomSearch(Tuner):
    """A search that tries the hyperparameters in force and random draws.

    Parameters
    ----------
    draws
        How many draws to try; the paper has 50.
    spacing
        "log" draws positive hyperparameters uniformly on a logarithmic scale, "uniform" on their
        own, as the paper seems to have done. Weights are drawn uniformly from their simplex.
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
    """Raise unless the spacing is 'log' or 'uniform'."""
    if spacing not in ("log", "uniform"):
        raise InvalidInputError(f"spacing must be 'log' or 'uniform', got {spacing!r}.")


def draw(space: Space, rng: np.random.Generator, spacing: Spacing) -> Vector:
    """Return random hyperparameters from a space, shape (d,)."""
    return np.concatenate([group.feasible.sample(rng, spacing) for group in space.groups])
