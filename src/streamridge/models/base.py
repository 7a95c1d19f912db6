"""The contract of a model: a small core, and capabilities that a model may offer beyond it.

The core fits a history at hyperparameters lam, predicts, differentiates the loss of a window, and
gives its state. Spreads, gradients of other losses and through the rows, gradients of single steps
and approximate fits are optional: where a model lacks one, the functions below do without it, or
raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Self, TypeGuard, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.space import Space
from streamridge.samples import Inputs, Samples

Arrays = Mapping[str, Matrix]


@dataclass(frozen=True)
class Tangents:
    """How the rows of a fit move with the numbers that they were made with.

    Parameters
    ----------
    training
        (q, N, p), the derivatives of the training set's x with respect to q numbers.
    window
        (q, m, p), those of the rows that the fit has predicted.
    """

    training: NDArray[np.float64]
    window: NDArray[np.float64]


class ModelFit(Protocol):
    """A model fitted at one setting of its hyperparameters; predicting does not change it."""

    def predict(self, inputs: Inputs) -> Matrix:
        """Return the predictions for n inputs and H horizons, shape (n, H)."""

    def window_loss(self, window: Samples) -> float:
        """Return the sum of squared errors over a window, in the units of the fit."""

    def loss_and_gradient(self, window: Samples) -> tuple[float, Vector]:
        """Return the loss of a window, and its gradient with respect to lam, shape (d,)."""

    def release(self) -> object:
        """Drop whatever can be recomputed from the samples; results stay the same."""

    def state(self) -> Arrays:
        """Return the fitted numbers, so that `resume` needs no second fit."""


@runtime_checkable
class KnowsSpread(Protocol):
    """A fit that knows how large its errors are, depending on the input."""

    def learn_spread(self) -> None:
        """Learn the size of the errors now, while the solved system is still in memory."""

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the predictions and the expected size of their errors, shape (n, H) each."""


class WindowLoss(Protocol):
    """A loss of a window's errors other than the sum of their squares."""

    def of(self, errors: Matrix) -> tuple[float, Matrix]:
        """Return the loss of m errors, (m, H), and its residuals, (m, H).

        Residuals c say how the loss moves with the predictions: by -2 c. The residuals of squared
        errors are the errors themselves.
        """

    def in_units(self, units: Vector) -> WindowLoss:
        """Return the loss of errors that are measured in these units, one per horizon, (H,)."""


@runtime_checkable
class KnowsGradients(Protocol):
    """A fit that can differentiate any loss of its errors, and through its rows as well."""

    def gradient_of(
        self, window: Samples, tangents: Tangents | None = None, loss: WindowLoss | None = None
    ) -> Vector:
        """Return the gradient of a window's loss in lam and then in the q numbers of its rows.

        Its shape is (d + q,). Without tangents rows do not move, and q is zero. Without another
        loss it is the gradient of squared errors.
        """


@runtime_checkable
class KnowsStepGradients(Protocol):
    """A fit that can compute the gradient of every single step."""

    def step_gradients(self, window: Samples, tangents: Tangents | None = None) -> Matrix:
        """Return the gradient of each of the window's m steps, shape (m, d).

        With tangents, the q numbers of the rows come after the d others: (m, d + q).
        """


@runtime_checkable
class KnowsStart(Protocol):
    """A model that can start at other hyperparameters."""

    def starting_at(self, lam: Vector) -> Self:
        """Return the model with lam as its initial hyperparameters."""


@runtime_checkable
class TakesOver(Protocol):
    """A fit that can recompute what it has dropped in the memory of another."""

    def take_over(self, before: Self) -> None:
        """Use the memory of a fit that is no longer needed; this releases `before`."""


@runtime_checkable
class Thins(Protocol):
    """A model that can do with less where there are few rows; it resumes what either has fitted."""

    def thinned(self, share: int) -> Self:
        """Return the model for a small part of the rows: one of so many."""


FitT = TypeVar("FitT", bound=ModelFit)


class Model(Protocol[FitT]):
    """A model with hyperparameters lam that can be fitted to samples."""

    @property
    def space(self) -> Space:
        """Return the names, initial values and bounds of lam, and which of them are learned."""

    def fit(self, samples: Samples, lam: Vector, before: FitT | None = None) -> FitT:
        """Return the model fitted to N samples at hyperparameters lam, or raise a `FitError`.

        The fit `before` is no longer needed: the new fit may take over its memory and start from
        its solution. This releases `before`.
        """

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> FitT:
        """Return the fit that `state` was taken from; samples and lam are the same as then."""


@runtime_checkable
class FitsApproximately(Protocol[FitT]):
    """A model that can save work by solving its systems only to a tolerance."""

    def approximate(
        self, samples: Samples, lam: Vector, tolerance: float, before: FitT | None = None
    ) -> FitT:
        """Return a fit whose systems are solved to a relative residual of `tolerance`.

        The solver starts from the solutions of `before`, an approximate fit to the same samples.
        The new fit takes over its memory.
        """


def require_samples(samples: Samples) -> None:
    """Raise if there are no samples to fit."""
    if not len(samples):
        raise InvalidInputError("samples must hold at least one row, got none.")


def approximate(
    model: Model[FitT], samples: Samples, lam: Vector, tolerance: float, before: FitT | None
) -> FitT:
    """Return an approximate fit, or an exact one if the model cannot approximate."""
    if isinstance(model, FitsApproximately):
        return model.approximate(samples, lam, tolerance, before)
    return model.fit(samples, lam, before)


def knows_spread(fit: ModelFit) -> TypeGuard[KnowsSpread]:
    """Return whether a fit knows its spread."""
    return hasattr(fit, "predict_with_spread")  # asked at every forecast; isinstance takes 4 us


def learn_spread(fit: ModelFit) -> None:
    """Let a fit learn the size of its errors, if it can."""
    if knows_spread(fit):
        fit.learn_spread()


def predict_with_residuals(
    fit: ModelFit, samples: Samples, inputs: Inputs
) -> tuple[Matrix, Matrix]:
    """Return predictions and error sizes, (n, H) each, of a fit that does not know its spread.

    Its errors are assumed to be as large everywhere as on its own samples.
    """
    residuals = samples.y - fit.predict(samples.inputs)
    spread = np.sqrt(np.mean(residuals**2, axis=0))
    return fit.predict(inputs), np.broadcast_to(spread, (len(inputs), len(spread)))


def gradient_of(
    fit: ModelFit,
    window: Samples,
    tangents: Tangents | None = None,
    loss: WindowLoss | None = None,
) -> Vector:
    """Return the gradient of a window's loss in lam, and then in the numbers of its rows.

    A fit that knows no more than the gradient of squared errors gives this one. It leaves the
    numbers of its rows where they are: they have a gradient of zero.
    """
    if isinstance(fit, KnowsGradients):
        return fit.gradient_of(window, tangents, loss)
    further = 0 if tangents is None else len(tangents.window)
    return np.append(fit.loss_and_gradient(window)[1], np.zeros(further))


def step_gradients(fit: ModelFit, window: Samples, tangents: Tangents | None = None) -> Matrix:
    """Return the gradient of each step of a window, shape (m, d); raise if the fit has none.

    With tangents, the numbers of the rows come after the d others.
    """
    if isinstance(fit, KnowsStepGradients):
        return fit.step_gradients(window, tangents)
    raise InvalidInputError(
        f"fit must have step_gradients to be watched, got {type(fit).__name__}. Leave out watch."
    )


def thinned(model: Model[FitT], share: int) -> Model[FitT]:
    """Return a model for a small part of the rows; itself if it cannot do with less."""
    return model.thinned(share) if isinstance(model, Thins) else model
