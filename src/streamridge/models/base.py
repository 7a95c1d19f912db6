"""The contract of a model: fit a history at hyperparameters lam, predict, and differentiate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from streamridge.arrays import Matrix, Vector
from streamridge.hyperparameters.space import Space
from streamridge.samples import Inputs, Samples

Arrays = Mapping[str, Matrix]


class ModelFit(Protocol):
    """Is a model fitted at one setting of its hyperparameters; predicting does not change it."""

    def predict(self, inputs: Inputs) -> Matrix:
        """Return the predictions for n inputs and H horizons, shape (n, H)."""

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the predictions, and the size of error to expect of each; (n, H) both."""

    def window_loss(self, window: Samples) -> float:
        """Return the summed squared errors of a window, in the units of the fit."""

    def loss_and_gradient(self, window: Samples) -> tuple[float, Vector]:
        """Return the loss of a window, and its gradient in lam, shape (d,)."""

    def step_gradients(self, window: Samples) -> Matrix:
        """Return the gradient of each of the window's m steps, shape (m, d)."""

    def release(self) -> object:
        """Drop whatever can be made again from the samples; results stay the same."""

    def state(self) -> Arrays:
        """Return the fitted numbers, so that `resume` needs no second fit."""


FitT = TypeVar("FitT", bound=ModelFit)


class Model(Protocol[FitT]):
    """Is a family of fits with hyperparameters lam."""

    @property
    def space(self) -> Space:
        """Return names, initial values, bounds and learned marks of lam."""

    def fit(self, samples: Samples, lam: Vector, retired: FitT | None = None) -> FitT:
        """Return the model fitted to N samples at hyperparameters lam.

        A `retired` fit gives its memory to the new one; it is released by that.
        """

    def approximate(
        self, samples: Samples, lam: Vector, tolerance: float, before: FitT | None = None
    ) -> FitT:
        """Return a fit whose systems are solved to a relative residual of `tolerance` only.

        They start from the solutions of the approximate fit `before` on the same samples, which
        gives its memory to the new one. A model whose systems cost nothing solves them exactly.
        """

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> FitT:
        """Return the fit whose `state` was taken, on the same samples at the same lam."""
