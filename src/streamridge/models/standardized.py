"""A model in units of its own training set: differences from the latest value, in deviations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.hyperparameters.space import Space
from streamridge.models.base import Arrays, FitT, Model
from streamridge.samples import Inputs, Layout, Samples

# Blocks that do not hold values of the series, which share one unit so that differences last.
OTHERS = ("calendar", "extras")
# A deviation below this share of the values themselves is none.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Standardized(Generic[FitT]):
    """Fits a model to differences from the latest value, in units free of the sensor's own.

    Values are measured in deviations of the latest values of the training set, other columns but
    the calendar in their own, and targets in deviations of their differences, per horizon. With
    every refit the units follow the series; the kernel's hyperparameters keep their meaning.

    Parameters
    ----------
    model
        What is fitted; it sees standardized samples only.
    unit
        One constant unit for all values instead, without differences, as the paper has it.
    """

    model: Model[FitT]
    unit: float | None = None

    @property
    def space(self) -> Space:
        """Return the model's hyperparameters."""
        return self.model.space

    def fit(
        self, samples: Samples, lam: Vector, retired: StandardizedFit[FitT] | None = None
    ) -> StandardizedFit[FitT]:
        """Return the model fitted to standardized samples."""
        units = self._units(samples)
        before = retired._fit if retired else None
        fit = self.model.fit(units.samples(samples), lam, before)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def approximate(
        self,
        samples: Samples,
        lam: Vector,
        tolerance: float,
        before: StandardizedFit[FitT] | None = None,
    ) -> StandardizedFit[FitT]:
        """Return the model fitted approximately to standardized samples."""
        units = self._units(samples)
        inner = before._fit if before else None
        fit = self.model.approximate(units.samples(samples), lam, tolerance, inner)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> StandardizedFit[FitT]:
        """Return the fit whose state was taken; its units follow from the samples."""
        units = self._units(samples)
        fit = self.model.resume(units.samples(samples), lam, state)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def _units(self, samples: Samples) -> Units:
        return Units.of(samples) if self.unit is None else Units.constant(samples, self.unit)


@dataclass(frozen=True)
class Units:
    """Are the units of a training set.

    Parameters
    ----------
    x
        (p,), what the features are divided by.
    y
        (H,), what the targets are divided by.
    share
        The share of the latest value that is taken off the targets: all or nothing of it.
    """

    x: Vector
    y: Vector
    share: float

    @classmethod
    def of(cls, samples: Samples) -> Units:
        """Return the units of a training set."""
        x = np.ones(samples.x.shape[1])
        for columns, unit in _column_units(samples.x, samples.inputs.layout):
            x[columns] = unit
        return cls(x, _deviation(samples.y - _latest(samples.inputs)), share=1.0)

    @classmethod
    def constant(cls, samples: Samples, unit: float) -> Units:
        """Return one unit for all values."""
        return cls(np.full(samples.x.shape[1], unit), np.full(samples.y.shape[1], unit), share=0.0)

    def baseline(self, inputs: Inputs) -> Matrix:
        """Return what is taken off the targets of each row, shape (n, 1)."""
        return self.share * _latest(inputs)

    def inputs(self, inputs: Inputs) -> Inputs:
        """Return inputs in these units."""
        return Inputs(inputs.t, inputs.x / self.x, inputs.layout)

    def samples(self, samples: Samples) -> Samples:
        """Return samples in these units."""
        differences = samples.y - self.baseline(samples.inputs)
        return Samples(self.inputs(samples.inputs), differences / self.y)


class StandardizedFit(Generic[FitT]):
    """Is a fit in units of its training set."""

    def __init__(
        self, model: Model[FitT], samples: Samples, lam: Vector, units: Units, fit: FitT
    ) -> None:
        self._model = model
        self._samples = samples
        self._lam = lam
        self._units = units
        self._fit: FitT | None = fit
        self._weights: Arrays = {}  # the fit's own numbers, while it is dropped

    @property
    def fit(self) -> FitT:
        """Return the fit to standardized samples, made again when it was dropped."""
        if self._fit is None:
            samples = self._units.samples(self._samples)
            self._fit = self._model.resume(samples, self._lam, self._weights)
        return self._fit

    def predict(self, inputs: Inputs) -> Matrix:
        """Return the predictions in the units of the series."""
        return self._in_series(inputs, self.fit.predict(self._units.inputs(inputs)))

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the predictions and the sizes of their errors in the units of the series."""
        differences, spreads = self.fit.predict_with_spread(self._units.inputs(inputs))
        return self._in_series(inputs, differences), self._units.y * spreads

    def window_loss(self, window: Samples) -> float:
        """Return the squared errors in standardized units, free of the sensor's."""
        return self.fit.window_loss(self._units.samples(window))

    def loss_and_gradient(self, window: Samples) -> tuple[float, Vector]:
        """Return the squared errors in standardized units, and their gradient."""
        return self.fit.loss_and_gradient(self._units.samples(window))

    def step_gradients(self, window: Samples) -> Matrix:
        """Return the gradient of each step in standardized units."""
        return self.fit.step_gradients(self._units.samples(window))

    def release(self) -> None:
        """Drop the fit with its standardized samples; the weights stay."""
        self._weights = self.state()
        self._fit = None

    def state(self) -> Arrays:
        """Return the fit's state."""
        return self._weights if self._fit is None else self._fit.state()

    def _in_series(self, inputs: Inputs, differences: Matrix) -> Matrix:
        return self._units.baseline(inputs) + self._units.y * differences


def _latest(inputs: Inputs) -> Matrix:
    """Return the latest value before each row, its first column; shape (n, 1)."""
    return inputs.x[:, :1]


def _column_units(x: Matrix, layout: Layout) -> Iterator[tuple[slice, Vector]]:
    """Yield what to divide the columns of each block by; the calendar stays as it is."""
    start = 0
    for name, width in layout.blocks:
        columns = slice(start, start + width)
        if name not in OTHERS:
            yield columns, _deviation(x[:, :1])
        elif name == "extras":
            yield columns, _deviation(x[:, columns])
        start += width


def _deviation(columns: Matrix) -> Vector:
    """Return the standard deviation of each column; one where it varies by roundings at most."""
    deviation = columns.std(axis=0)
    return np.where(deviation > ROUNDING * np.abs(columns).max(axis=0), deviation, 1.0)
