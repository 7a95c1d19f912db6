"""The contract of a tuner: search for hyperparameters that would have forecast the past well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamridge.arrays import Vector
from streamridge.hyperparameters.space import Space
from streamridge.tuners.backtest import Backtest


@dataclass(frozen=True)
class Tuned:
    """The result of a search, and its cost.

    Parameters
    ----------
    lam
        (d,), feasible, and no worse in the backtest than the start of the search.
    loss
        Squared error in the backtest, summed over the horizons and averaged over the steps.
    fits, gradients, seconds
        How many fits, gradients and processor seconds the search took.
    """

    lam: Vector
    loss: float
    fits: int
    gradients: int
    seconds: float

    @classmethod
    def of(cls, backtest: Backtest[Any], lam: Vector, loss: float) -> Tuned:
        """Return the result of a search that had this backtest to itself, with its whole cost."""
        return cls(lam, loss, backtest.fits, backtest.gradients, backtest.seconds)


class Tuner(Protocol):
    """A search for hyperparameters, which sees the stream only through a backtest."""

    def require_space(self, space: Space) -> None:
        """Raise if the tuner cannot search this space; by default it can search any."""
        return

    def trials(self, space: Space) -> int:
        """Return how many fits a search takes at most."""

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        """Return the best hyperparameters found, shape (d,); `start` is among those tried.

        The same generator gives the same result.
        """


def best_of(backtest: Backtest[Any], start: Vector, candidates: list[Vector]) -> Tuned:
    """Return the candidate with the smallest loss, or the start if none beats it."""
    lam, loss = start, backtest.loss(start)
    for candidate in candidates:
        candidate_loss = backtest.loss(candidate)
        if candidate_loss < loss:
            lam, loss = candidate, candidate_loss
    return Tuned.of(backtest, lam, loss)
