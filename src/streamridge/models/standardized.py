"""Models around a model: `Standardized` changes its units, `Joint` adds feature parameters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Self

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.hyperparameters.space import Space, require_values
from streamridge.models.base import (
    Arrays,
    FitT,
    Model,
    ModelFit,
    Predictor,
    Tangents,
    WindowLoss,
    predict_with_residuals,
    require_samples,
)
from streamridge.samples import Inputs, Samples

# A deviation below this share of the largest value counts as zero.
ROUNDING = 1e-12


@dataclass(eq=False, repr=False)
class StandardizedFit(ModelFit, Generic[FitT]):
    """A fit in the units of its training set that predicts in the units of the series."""

    _model: Model[FitT]
    _samples: Samples
    _lam: Vector
    _units: Units
    held: FitT | None  # None after `release`, which keeps only its state
    _state: Arrays = field(default_factory=dict)

    @property
    def fit(self) -> FitT:
        """Return the fit to standardized samples, rebuilt if it was released."""
        if self.held is None:
            samples = self._units.samples(self._samples)
            self.held = self._model.resume(samples, self._lam, self._state)
        return self.held

    def predict(self, inputs: Inputs) -> Matrix:
        units = self._units
        return units.restored(inputs, self.fit.predict(units.inputs(inputs)))

    def predictor(self) -> Predictor:
        predictor = self.fit.predictor()
        return self if predictor is self.fit else StandardizedPredictor(self._units, predictor)

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        fit, units = self.fit, self._units
        standardized = units.inputs(inputs)
        known = fit.predict_with_spread(standardized)
        if known is None:
            known = predict_with_residuals(fit, units.samples(self._samples), standardized)
        differences, spreads = known
        return units.restored(inputs, differences), units.y * spreads

    def learn_spread(self) -> None:
        self.fit.learn_spread()

    def window_loss(self, window: Samples) -> float:
        return self.fit.window_loss(self._units.samples(window))

    def loss_and_gradient(
        self, window: Samples, tangents: Tangents | None = None, loss: WindowLoss | None = None
    ) -> tuple[float, Vector]:
        units = self._units
        loss = None if loss is None else loss.in_units(units.y)
        return self.fit.loss_and_gradient(units.samples(window), units.tangents(tangents), loss)

    def step_gradients(self, window: Samples, tangents: Tangents | None = None) -> Matrix:
        units = self._units
        return self.fit.step_gradients(units.samples(window), units.tangents(tangents))

    def take_over(self, before: Self) -> None:
        if before.held is not None:
            self.fit.take_over(before.held)

    def release(self) -> None:
        """Drop the fit and its standardized samples; keep its state."""
        self._state = self.state()
        self.held = None

    def state(self) -> Arrays:
        return self._state if self.held is None else self.held.state()


@dataclass(frozen=True)
class StandardizedPredictor:
    """The prediction of one input in the units of the series."""

    units: Units
    predictor: Predictor

    def predict(self, inputs: Inputs) -> Matrix:
        units = self.units
        return units.restored(inputs, self.predictor.predict(units.inputs(inputs)))

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix] | None:
        known = self.predictor.predict_with_spread(self.units.inputs(inputs))
        if known is None:
            return None
        return self.units.restored(inputs, known[0]), self.units.y * known[1]


@dataclass(frozen=True)
class Standardized(Model[StandardizedFit[FitT]], Generic[FitT]):
    """A model of differences from the latest value, in units that do not depend on the sensor's.

    Blocks in the unit of the series are divided by the standard deviation of the latest values in
    the training set. In blocks with units of their own, each column is divided by its own standard
    deviation. Targets become differences from the latest value, divided by the standard deviation
    of these differences per horizon. Every refit recomputes the units, so that the kernel's
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
        return self.model.space

    def fit(
        self,
        samples: Samples,
        lam: Vector | None = None,
        before: StandardizedFit[FitT] | None = None,
    ) -> StandardizedFit[FitT]:
        require_samples(samples)
        lam, units = self.space.values if lam is None else lam, Units.of(samples, self.unit)
        fit = self.model.fit(units.samples(samples), lam, before.held if before else None)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def approximate(
        self,
        samples: Samples,
        lam: Vector,
        tolerance: float,
        before: StandardizedFit[FitT] | None = None,
    ) -> StandardizedFit[FitT]:
        units = Units.of(samples, self.unit)
        held = before.held if before else None
        fit = self.model.approximate(units.samples(samples), lam, tolerance, held)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> StandardizedFit[FitT]:
        units = Units.of(samples, self.unit)
        fit = self.model.resume(units.samples(samples), lam, state)
        return StandardizedFit(self.model, samples, lam, units, fit)

    def thinned(self, share: int, landmarks: Vector) -> Standardized[FitT]:
        model = self.model.thinned(share, landmarks)
        return self if model is self.model else replace(self, model=model)

    def starting_at(self, lam: Vector) -> Self:
        return replace(self, model=self.model.starting_at(lam))


@dataclass(frozen=True)
class Units:
    """The units of a training set."""

    x: Vector  # (p,), the divisors of the features
    y: Vector  # (H,), the divisors of the targets
    share: float  # of the latest value that is subtracted from the targets: one or zero

    @classmethod
    def of(cls, samples: Samples, unit: float | None = None) -> Units:
        """Return the units of a training set, or one constant unit for all values."""
        inputs, y = samples.inputs, samples.y
        if unit is not None:
            width = inputs.x.shape[1]
            return cls(np.full(width, unit), np.full(y.shape[1], unit), share=0.0)
        layout, latest = inputs.layout, inputs.latest
        x = np.ones(inputs.x.shape[1])
        for name, columns in layout.spans.items():
            if name in layout.own_unit:
                x[columns] = _deviation(inputs.x[:, columns])
            elif name not in layout.unitless:
                x[columns] = _deviation(latest)
        return cls(x, _deviation(y - latest), share=1.0)

    def inputs(self, inputs: Inputs) -> Inputs:
        """Return inputs in these units."""
        return Inputs(inputs.t, inputs.x / self.x, inputs.layout)

    def restored(self, inputs: Inputs, differences: Matrix) -> Matrix:
        """Return predictions in the units of the series."""
        return self.share * inputs.latest + self.y * differences

    def samples(self, samples: Samples) -> Samples:
        """Return samples in these units."""
        inputs = samples.inputs
        differences = samples.y - self.share * inputs.latest
        return Samples(Inputs(inputs.t, inputs.x / self.x, inputs.layout), differences / self.y)

    def tangents(self, tangents: Tangents | None) -> Tangents | None:
        """Return the tangents of rows in these units, which do not depend on feature parameters."""
        if tangents is None:
            return None
        return Tangents(tangents.training / self.x, tangents.window / self.x)


def _deviation(columns: Matrix) -> Vector:
    """Return the standard deviation of each column; one for a column constant up to rounding."""
    deviation = columns.std(axis=0)
    return np.where(deviation > ROUNDING * np.abs(columns).max(axis=0), deviation, 1.0)


@dataclass(frozen=True)
class Joint(Model[FitT], Generic[FitT]):
    """A model whose last hyperparameters are the parameters of its features.

    The caller computes the rows with these parameters, so a fit needs only the others.
    """

    model: Model[FitT]
    parameters: Space  # of the features

    @cached_property
    def space(self) -> Space:
        return Space((*self.model.space.groups, *self.parameters.groups))

    def fit(self, samples: Samples, lam: Vector | None = None, before: FitT | None = None) -> FitT:
        return self.model.fit(samples, self._own(lam), before)

    def approximate(
        self, samples: Samples, lam: Vector, tolerance: float, before: FitT | None = None
    ) -> FitT:
        return self.model.approximate(samples, self._own(lam), tolerance, before)

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> FitT:
        return self.model.resume(samples, self._own(lam), state)

    def thinned(self, share: int, landmarks: Vector) -> Joint[FitT]:
        model = self.model.thinned(share, landmarks)
        return self if model is self.model else replace(self, model=model)

    def _own(self, lam: Vector | None) -> Vector:
        """Return the hyperparameters of the model, without the parameters of the features."""
        values = self.space.values if lam is None else require_values(lam, len(self.space.names))
        return values[: len(values) - len(self.parameters.names)]


def kind_of(model: Model[Any]) -> type:
    """Return the type of a model, which determines the type of its fits."""
    return type(model.model) if isinstance(model, Joint) else type(model)
