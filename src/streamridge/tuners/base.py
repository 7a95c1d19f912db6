"""The contract of a tuner: search hyperparameters that would have forecast the past well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamridge.arrays import Vector
from streamridge.hyperparameters.space import Space
from streamridge.tuners.backtest import Backtest


@dataclass(frozen=True)
class Tuned:
    """What a search has found, and what it has cost.

    Parameters
    ----------
    lam
        (d,), feasible, and no worse in the backtest than where the search began.
    loss
        Squared error in the backtest, summed over the horizons and averaged over the steps.
    fits, gradients, seconds
        How many fits and gradients it took, and how many seconds of the processor.
    """

    lam: Vector
    loss: float
    fits: int
    gradients: int
    seconds: float

    @classmethod
    def of(cls, backtest: Backtest[Any], lam: Vector, loss: float) -> Tuned:
        """Return what a search on a backtest of its own has found, with all that it took."""
        return cls(lam, loss, backtest.fits, backtest.gradients, backtest.seconds)


class Tuner(Protocol):
    """A search for hyperparameters; all that it knows of the stream is the backtest."""

    def require_space(self, space: Space) -> None:
        """Raise unless the tuner can search a space; by default it can search any."""
        return

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
    return Tuned.of(backtest, lam, loss)
