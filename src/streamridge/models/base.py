"""The contract of a model: a small core, and three capabilities that a model may offer beyond it.

The core fits a history at hyperparameters lam, predicts, differentiates the loss of a window, and
gives its state. Spreads, gradients of single steps and approximate fits are optional: the functions
below know what to do without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.space import Space
from streamridge.samples import Inputs, Samples

Arrays = Mapping[str, Matrix]


class ModelFit(Protocol):
    """A model fitted at one setting of its hyperparameters; predicting does not change it."""

    def predict(self, inputs: Inputs) -> Matrix:
        """Return the predictions for n inputs and H horizons, shape (n, H)."""

    def window_loss(self, window: Samples) -> float:
        """Return the summed squared errors of a window, in the units of the fit."""

    def loss_and_gradient(self, window: Samples) -> tuple[float, Vector]:
        """Return the loss of a window, and its gradient in lam, shape (d,)."""

    def release(self) -> object:
        """Drop whatever can be made again from the samples; results stay the same."""

    def state(self) -> Arrays:
        """Return the fitted numbers, so that `resume` needs no second fit."""


@runtime_checkable
class KnowsSpread(Protocol):
    """A fit that knows how large its errors are, depending on the input."""

    def learn_spread(self) -> None:
        """Learn the size of the errors now, while what the fit was made with is at hand."""

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the predictions, and the size of error to expect of each; (n, H) both."""


@runtime_checkable
class KnowsStepGradients(Protocol):
    """A fit that can tell the gradient of every single step."""

    def step_gradients(self, window: Samples) -> Matrix:
        """Return the gradient of each of the window's m steps, shape (m, d)."""


FitT = TypeVar("FitT", bound=ModelFit)


class Model(Protocol[FitT]):
    """A family of fits with hyperparameters lam."""

    @property
    def space(self) -> Space:
        """Return names, initial values, bounds and learned marks of lam."""

    def fit(self, samples: Samples, lam: Vector, before: FitT | None = None) -> FitT:
        """Return the model fitted to N samples at hyperparameters lam, or raise a `FitError`.

        The fit `before` is not needed any more: the new one may take over its memory, and start
        from its solution. It is released by that.
        """

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> FitT:
        """Return the fit whose `state` was taken, on the same samples at the same lam."""


@runtime_checkable
class FitsApproximately(Protocol[FitT]):
    """A model that can solve its systems to a tolerance only, for less work."""

    def approximate(
        self, samples: Samples, lam: Vector, tolerance: float, before: FitT | None = None
    ) -> FitT:
        """Return a fit whose systems are solved to a relative residual of `tolerance`.

        They start from the solutions of the approximate fit `before` on the same samples, whose
        memory the new one takes over.
        """


def require_samples(samples: Samples) -> None:
    """Raise unless there is something to fit."""
    if not len(samples):
        raise InvalidInputError("samples must hold at least one row, got none.")


def approximate(
    model: Model[FitT], samples: Samples, lam: Vector, tolerance: float, before: FitT | None
) -> FitT:
    """Return an approximate fit, or an exact one of a model that knows no other."""
    if isinstance(model, FitsApproximately):
        return model.approximate(samples, lam, tolerance, before)
    return model.fit(samples, lam, before)


def learn_spread(fit: ModelFit) -> None:
    """Let a fit learn the size of its errors, if it can."""
    if isinstance(fit, KnowsSpread):
        fit.learn_spread()


def predict_with_residuals(
    fit: ModelFit, samples: Samples, inputs: Inputs
) -> tuple[Matrix, Matrix]:
    """Return the predictions of a fit that knows nothing of its spread, and the size of its errors.

    It is taken to be as wrong everywhere as it was on its own samples; (n, H) both.
    """
    residuals = samples.y - fit.predict(samples.inputs)
    spread = np.sqrt(np.mean(residuals**2, axis=0))
    return fit.predict(inputs), np.broadcast_to(spread, (len(inputs), len(spread)))


def step_gradients(fit: ModelFit, window: Samples) -> Matrix:
    """Return the gradient of each step of a window, shape (m, d), or say that the fit has none."""
    if isinstance(fit, KnowsStepGradients):
        return fit.step_gradients(window)
    raise InvalidInputError(
        f"the model must know the gradient of every step to be watched, got {type(fit).__name__}."
    )
