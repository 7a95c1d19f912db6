"""The contract of a tuner, and the backtest through which it sees the stream.

A tuner searches for hyperparameters that would have forecast the past well.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import thread_time
from typing import Any, Generic, Protocol

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import FitError
from streamridge.hyperparameters.space import Space
from streamridge.models.base import FitT, Model
from streamridge.samples import Samples


class Backtest(Generic[FitT]):
    """A fit to earlier samples that forecasts later ones, to score hyperparameters.

    It counts the fits and gradients that it computes. The space is the model's own by default, or
    one that holds some hyperparameters.
    """

    def __init__(
        self, model: Model[FitT], training: Samples, validation: Samples, space: Space | None = None
    ) -> None:
        self.space = space or model.space
        self.fits = 0
        self.gradients = 0
        self._model = model
        self.training = training
        self.validation = validation
        self._latest: FitT | None = None  # the next fit takes over its memory
        self._approximate: FitT | None = None  # the next fit starts from its solutions
        self._began = thread_time()

    @property
    def seconds(self) -> float:
        """Return the processor seconds of this thread since the backtest was created."""
        return thread_time() - self._began

    def loss(self, lam: Vector) -> float:
        """Return the mean loss per step of the validation set; infinite if there is no fit."""
        fit = self._fitted(lam)
        return np.inf if fit is None else fit.window_loss(self.validation) / len(self.validation)

    def loss_and_exact_gradient(self, lam: Vector) -> tuple[float, Vector]:
        """Return the loss and its gradient, shape (d,), from a factored system.

        If there is no fit, or no finite gradient, the loss is infinite and the gradient zero.
        """
        fit = self._fitted(lam)
        return (np.inf, np.zeros_like(lam)) if fit is None else self._differentiated(fit, lam)

    def loss_and_gradient(self, lam: Vector, tolerance: float) -> tuple[float, Vector]:
        """Return the loss and its gradient, shape (d,), from systems solved to a tolerance.

        The solver starts from the solutions of the previous call. If there is no fit, or no finite
        gradient, the loss is infinite and the gradient zero.
        """
        self.fits += 1
        before, self._approximate = self._approximate, None
        try:
            fit = self._model.approximate(self.training, lam, tolerance, before)
        except FitError:
            return np.inf, np.zeros_like(lam)
        loss, gradient = self._differentiated(fit, lam)
        if np.isfinite(loss):  # otherwise no fit may start from its solutions
            self._approximate = fit
        return loss, gradient

    def _fitted(self, lam: Vector) -> FitT | None:
        """Return the exact fit at lam, in the memory of the previous one; None if there is none."""
        self.fits += 1
        before, self._latest = self._latest, None
        try:
            self._latest = self._model.fit(self.training, lam, before)
        except FitError:
            return None
        return self._latest

    def _differentiated(self, fit: FitT, lam: Vector) -> tuple[float, Vector]:
        """Return a fit's mean loss and its gradient; infinite and zero if one is not finite."""
        self.gradients += 1
        loss, gradient = fit.loss_and_gradient(self.validation)
        # The parameters of the features come last, and stay constant.
        gradient = np.append(gradient, np.zeros(len(lam) - len(gradient)))
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            return np.inf, np.zeros_like(gradient)
        return loss / len(self.validation), gradient / len(self.validation)


def split(known: Samples, train_size: int, validation_size: int) -> tuple[Samples, Samples]:
    """Return the samples to fit, and the latest ones to forecast, which are at most half of all.

    No sample to fit has a label from the time of the validation set.
    """
    size = min(validation_size, len(known) // 2)
    before, validation = known[: len(known) - size], known[len(known) - size :]
    horizon = known.y.shape[1]
    ended = before.t + horizon - 1 < validation.t[0]
    return before[: int(ended.sum())][-train_size:], validation


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
        Number of fits, gradients and processor seconds of the search.
    """

    lam: Vector
    loss: float
    fits: int
    gradients: int
    seconds: float

    @classmethod
    def of(cls, backtest: Backtest[Any], lam: Vector, loss: float) -> Tuned:
        """Return the result of a search that used only this backtest, with its whole cost."""
        return cls(lam, loss, backtest.fits, backtest.gradients, backtest.seconds)


class Tuner(Protocol):
    """A search for hyperparameters, which sees the stream only through a backtest."""

    def require_space(self, space: Space) -> None:
        """Raise if the tuner cannot search this space; by default it can search any."""
        return

    def trials(self, space: Space) -> int:
        """Return the largest number of fits of a search."""

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        """Return the best hyperparameters found, or `start`; equal generators, equal results."""


def best_of(backtest: Backtest[Any], start: Vector, candidates: list[Vector]) -> Tuned:
    """Return the candidate with the smallest loss, or the start if no candidate is better."""
    lam, loss = start, backtest.loss(start)
    for candidate in candidates:
        candidate_loss = backtest.loss(candidate)
        if candidate_loss < loss:
            lam, loss = candidate, candidate_loss
    return Tuned.of(backtest, lam, loss)
