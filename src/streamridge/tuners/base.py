"""The contract of a tuner: search hyperparameters that would have forecast the past well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamridge.arrays import Vector
from streamridge.hyperparameters import Space
from streamridge.tuners.backtest import Backtest


@dataclass(frozen=True)
class Tuned:
    """Is what a search has found, and what it has cost.

    Parameters
    ----------
    lam
        (d,), feasible, and no worse in the backtest than where the search began.
    loss
        Squared error in the backtest, summed over the horizons and averaged over the steps.
    fits, gradients
        How many fits and gradients it took.
    """

    lam: Vector
    loss: float
    fits: int
    gradients: int


class Tuner(Protocol):
    """Searches hyperparameters; all that it knows of the stream is the backtest."""

    def trials(self, space: Space) -> int:
        """Return how many fits a search takes, at most."""

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        """Return the best hyperparameters found, `start` among those tried; shape (d,).

        The same generator gives the same result.
        """


def best_of(backtest: Backtest[Any], start: Vector, candidates: list[Vector]) -> Tuned:
    """Return the candidate of the smallest loss, the start where none is smaller."""
    lam, loss = start, backtest.loss(start)
    for candidate in candidates:
        candidate_loss = backtest.loss(candidate)
        if candidate_loss < loss:
            lam, loss = candidate, candidate_loss
    return Tuned(lam, loss, backtest.fits, backtest.gradients)
