"""Standardization: a model sees differences from the latest value, in standard deviations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.space import Space
from streamridge.models.base import (
    Arrays,
    FitT,
    KnowsStart,
    Model,
    TakesOver,
    Tangents,
    WindowLoss,
    approximate,
    gradient_of,
    knows_spread,
    learn_spread,
    predict_with_residuals,
    require_samples,
    step_gradients,
    thinned,
)
from streamridge.samples import Inputs, Samples

# A deviation below this share of the largest value counts as zero.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Standardized(Generic[FitT]):
    """A model of differences from the latest value, in units that do not depend on the sensor's.

    Blocks in the unit of the series are divided by the standard deviation of the latest values in
    the training set. In blocks with units of their own, each column is divided by its own standard
    deviation. Targets become differences from the latest value, divided by the standard deviation
    of these differences per horizon. Every refit computes the units anew, so that the kernel's
    hyperparameters keep their meaning.

    Parameters
    ----------
    model
        The model that is fitted; it sees only standardized samples.
    unit
        One constant unit for all values, without differences, as in the paper; None standardizes.
    """

    model: Model[FitT]
    unit: float | None = None

    @property
    def space(self) -> Space:
        """Return the model's hyperparameters."""
        return self.model.space

    def fit(
        self,
        samples: Samples,
        lam: Vector | None = None,
        before: StandardizedFit[FitT] | None = None,
    ) -> StandardizedFit[FitT]:
        """Return the model fitted to standardized samples, at its initial lam by default."""
        require_samples(samples)
        lam, units = self._lam(lam), self._units(samples)
        fit = self.model.fit(units.samples(samples), lam, before.held if before else None)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def approximate(
        self,
        samples: Samples,
        lam: Vector,
        tolerance: float,
        before: StandardizedFit[FitT] | None = None,
    ) -> StandardizedFit[FitT]:
        """Return the model fitted to standardized samples, approximately if it can be."""
        units = self._units(samples)
        held = before.held if before else None
        fit = approximate(self.model, units.samples(samples), lam, tolerance, held)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> StandardizedFit[FitT]:
        """Return the fit that `state` was taken from; its units follow from the samples."""
        units = self._units(samples)
        fit = self.model.resume(units.samples(samples), lam, state)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def thinned(self, share: int) -> Standardized[FitT]:
        """Return the model for a small part of the rows."""
        model = thinned(self.model, share)
        return self if model is self.model else replace(self, model=model)

    def starting_at(self, lam: Vector) -> Standardized[FitT]:
        if not isinstance(self.model, KnowsStart):
            raise InvalidInputError(
                f"the model must have a start that can be changed, got {self.model!r}."
            )
        return replace(self, model=self.model.starting_at(lam))

    def _lam(self, lam: Vector | None) -> Vector:
        return self.space.values if lam is None else lam

    def _units(self, samples: Samples) -> Units:
        return Units.of(samples) if self.unit is None else Units.constant(samples, self.unit)


@dataclass(frozen=True)
class Units:
    """The units of a training set.

    Parameters
    ----------
    x
        (p,), what the features are divided by.
    y
        (H,), what the targets are divided by.
    share
        The share of the latest value that is subtracted from the targets: one or zero.
    """

    x: Vector
    y: Vector
    share: float

    @classmethod
    def of(cls, samples: Samples) -> Units:
        """Return the units of a training set."""
        layout = samples.inputs.layout
        latest = _latest(samples.inputs)
        x = np.ones(samples.x.shape[1])
        for name, columns in layout.spans.items():
            if name in layout.own_unit:
                x[columns] = _deviation(samples.x[:, columns])
            elif name not in layout.unitless:
                x[columns] = _deviation(latest)
        return cls(x, _deviation(samples.y - latest), share=1.0)

    @classmethod
    def constant(cls, samples: Samples, unit: float) -> Units:
        """Return units that are the same for all values."""
        return cls(np.full(samples.x.shape[1], unit), np.full(samples.y.shape[1], unit), share=0.0)

    def baseline(self, inputs: Inputs) -> Matrix:
        """Return what is subtracted from the targets of each row, shape (n, 1)."""
        return self.share * _latest(inputs)

    def inputs(self, inputs: Inputs) -> Inputs:
        """Return inputs in these units."""
        return Inputs(inputs.t, inputs.x / self.x, inputs.layout)

    def samples(self, samples: Samples) -> Samples:
        """Return samples in these units."""
        differences = samples.y - self.baseline(samples.inputs)
        return Samples(self.inputs(samples.inputs), differences / self.y)

    def tangents(self, tangents: Tangents | None) -> Tangents | None:
        """Return tangents of rows in these units, which the numbers of rows must leave alone.

        Units follow from the latest values and from the columns with units of their own.
        """
        if tangents is None:
            return None
        return Tangents(tangents.training / self.x, tangents.window / self.x)


class StandardizedFit(Generic[FitT]):
    """A fit in the units of its training set that predicts in the units of the series."""

    def __init__(
        self, model: Model[FitT], samples: Samples, lam: Vector, units: Units, fit: FitT
    ) -> None:
        self.held: FitT | None = fit  # None after `release`, which keeps only its numbers
        self._numbers: Arrays = {}
        self._model = model
        self._samples = samples
        self._lam = lam
        self._units = units

    @property
    def fit(self) -> FitT:
        """Return the fit to standardized samples, rebuilt if it was released."""
        if self.held is None:
            samples = self._units.samples(self._samples)
            self.held = self._model.resume(samples, self._lam, self._numbers)
        return self.held

    def predict(self, inputs: Inputs) -> Matrix:
        """Return the predictions in the units of the series."""
        return self._in_series(inputs, self.fit.predict(self._units.inputs(inputs)))

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the predictions and the sizes of their errors in the units of the series."""
        fit, standardized = self.fit, self._units.inputs(inputs)
        if knows_spread(fit):
            differences, spreads = fit.predict_with_spread(standardized)
        else:
            samples = self._units.samples(self._samples)
            differences, spreads = predict_with_residuals(fit, samples, standardized)
        return self._in_series(inputs, differences), self._units.y * spreads

    def learn_spread(self) -> None:
        """Let the fit to standardized samples learn the size of its errors, if it can."""
        learn_spread(self.fit)

    def window_loss(self, window: Samples) -> float:
        """Return the sum of squared errors in standardized units."""
        return self.fit.window_loss(self._units.samples(window))

    def loss_and_gradient(self, window: Samples) -> tuple[float, Vector]:
        """Return the sum of squared errors in standardized units, and its gradient."""
        return self.fit.loss_and_gradient(self._units.samples(window))

    def gradient_of(
        self, window: Samples, tangents: Tangents | None = None, loss: WindowLoss | None = None
    ) -> Vector:
        """Return the gradient of a loss of the errors, in standardized units."""
        units = self._units
        loss = None if loss is None else loss.in_units(units.y)
        return gradient_of(self.fit, units.samples(window), units.tangents(tangents), loss)

    def step_gradients(self, window: Samples, tangents: Tangents | None = None) -> Matrix:
        """Return the gradient of each step in standardized units."""
        units = self._units
        return step_gradients(self.fit, units.samples(window), units.tangents(tangents))

    def take_over(self, before: StandardizedFit[FitT]) -> None:
        """Use the memory of a fit that is no longer needed."""
        if isinstance(self.fit, TakesOver) and before.held is not None:
            self.fit.take_over(before.held)

    def release(self) -> None:
        """Drop the fit and its standardized samples; keep its numbers."""
        self._numbers = self.state()
        self.held = None

    def state(self) -> Arrays:
        """Return the fit's state."""
        return self._numbers if self.held is None else self.held.state()

    def _in_series(self, inputs: Inputs, differences: Matrix) -> Matrix:
        return self._units.baseline(inputs) + self._units.y * differences


def _latest(inputs: Inputs) -> Matrix:
    """Return the latest value before each row, shape (n, 1)."""
    column = inputs.layout.latest
    return inputs.x[:, column : column + 1]


def _deviation(columns: Matrix) -> Vector:
    """Return the standard deviation of each column; one for a column constant up to rounding."""
    deviation = columns.std(axis=0)
    return np.where(deviation > ROUNDING * np.abs(columns).max(axis=0), deviation, 1.0)
