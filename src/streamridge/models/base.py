"""The contract of a model: base classes of models and of their fits.

A model fits a history at hyperparameters lam. Its fit predicts, differentiates the loss of a
window, and returns its state. The other methods have defaults: a model overrides a method if it
can do better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.space import Space
from streamridge.samples import Inputs, Samples

Arrays = Mapping[str, Matrix]


@dataclass(frozen=True)
class Tangents:
    """The derivatives of rows with respect to the q parameters of their features."""

    training: NDArray[np.float64]  # (q, N, p), of the training set's x
    window: NDArray[np.float64]  # (q, m, p), of the x that the fit has predicted


class WindowLoss(Protocol):
    """A loss of a window's errors other than the sum of their squares."""

    def of(self, errors: Matrix) -> tuple[float, Matrix]:
        """Return the loss of m errors, (m, H), and its residuals, (m, H).

        The derivative of the loss with respect to the predictions is -2 times the residuals. The
        residuals of squared errors are the errors.
        """

    def in_units(self, units: Vector) -> WindowLoss:
        """Return the loss of errors that are measured in these units, one per horizon, (H,)."""


class Predictor(Protocol):
    """The part of a fit that predicts one input, without the training set."""

    def predict(self, inputs: Inputs) -> Matrix:
        """Return the predictions for one input and H horizons, shape (1, H)."""

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix] | None:
        """Return predictions and expected error sizes, (1, H) each; None if it knows no sizes."""


class ModelFit(ABC):
    """A model fitted at one setting of its hyperparameters; predicting does not change it."""

    @abstractmethod
    def predict(self, inputs: Inputs) -> Matrix:
        """Return the predictions for n inputs and H horizons, shape (n, H)."""

    @abstractmethod
    def window_loss(self, window: Samples) -> float:
        """Return the sum of squared errors over a window, in the units of the fit."""

    @abstractmethod
    def loss_and_gradient(
        self, window: Samples, tangents: Tangents | None = None, loss: WindowLoss | None = None
    ) -> tuple[float, Vector]:
        """Return the loss of a window, and its gradient with respect to lam, shape (d,).

        Parameters
        ----------
        window
            The m inputs that were predicted, with their labels.
        tangents
            How rows change with the q parameters of their features. The gradient with respect to
            these comes last, so its shape is (d + q,). It is zero if the fit cannot compute it.
        loss
            A loss of the errors; None is the sum of their squares. A fit that cannot differentiate
            another loss may ignore it.
        """

    @abstractmethod
    def release(self) -> object:
        """Drop everything that can be recomputed from the samples; results stay the same."""

    @abstractmethod
    def state(self) -> Arrays:
        """Return the fitted arrays, so that `resume` needs no second fit."""

    def step_gradients(self, window: Samples, tangents: Tangents | None = None) -> Matrix:
        """Return the gradient of each of the window's m steps, shape (m, d), or (m, d + q)."""
        raise InvalidInputError(
            f"fit must have step_gradients to be watched, got {type(self).__name__}. "
            "Leave out watch."
        )

    def learn_spread(self) -> object:
        """Learn the size of the errors now, while the solved system is still in memory."""
        return None

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix] | None:
        """Return predictions and expected error sizes, (n, H) each; None if it knows no sizes."""
        return None

    def predictor(self) -> Predictor:
        """Return the smallest part of the fit that predicts one input: by default, all of it."""
        return self

    def take_over(self, before: Self) -> None:
        """Use the memory of a fit that is no longer needed; this may release `before`."""
        return


FitT = TypeVar("FitT", bound=ModelFit)


class Model(ABC, Generic[FitT]):
    """A model with hyperparameters lam that can be fitted to samples."""

    @property
    @abstractmethod
    def space(self) -> Space:
        """Return the names, initial values and bounds of lam, and which of them are learned."""

    @abstractmethod
    def fit(self, samples: Samples, lam: Vector, before: FitT | None = None) -> FitT:
        """Return the model fitted to N samples at hyperparameters lam, or raise a `FitError`.

        The fit `before` is no longer needed: the new fit may take over its memory and start from
        its solution. This releases `before`.
        """

    @abstractmethod
    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> FitT:
        """Return the fit that `state` was taken from, given the same samples and lam."""

    def approximate(
        self, samples: Samples, lam: Vector, tolerance: float, before: FitT | None = None
    ) -> FitT:
        """Return a fit whose systems are solved to a relative residual of `tolerance`.

        The solver starts from the solutions of `before`, an approximate fit to the same samples,
        and takes over its memory. By default, the fit is exact.
        """
        return self.fit(samples, lam, before)

    def thinned(self, share: int, landmarks: Vector) -> Model[FitT]:
        """Return a smaller model for one of `share` rows; it resumes fits of this model too.

        `landmarks` are the times of the landmarks of another fit. If some of these are among the
        samples of a fit, none is chosen anew.
        """
        return self

    def starting_at(self, lam: Vector) -> Self:
        """Return the model with lam as its initial hyperparameters."""
        raise InvalidInputError(f"the model must have a start that can be changed, got {self!r}.")


def require_samples(samples: Samples) -> None:
    """Raise if there are no samples to fit."""
    if not len(samples):
        raise InvalidInputError("samples must hold at least one row, got none.")


def predict_with_residuals(
    fit: ModelFit, samples: Samples, inputs: Inputs
) -> tuple[Matrix, Matrix]:
    """Return predictions and error sizes, (n, H) each, of a fit that does not know its spread.

    The errors are assumed to be as large everywhere as on the training samples.
    """
    residuals = samples.y - fit.predict(samples.inputs)
    spread = np.sqrt(np.mean(residuals**2, axis=0))
    return fit.predict(inputs), np.broadcast_to(spread, (len(inputs), len(spread)))
