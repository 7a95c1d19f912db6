"""What a run costs: the seconds of tuning, fitting and predicting, taken around any model.

They are seconds of the processor in the thread that asks, with linear algebra on one thread: what
else the machine does meanwhile does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import thread_time
from typing import Generic

from streamridge.arrays import Matrix, Vector
from streamridge.hyperparameters.space import Space
from streamridge.models.base import Arrays, FitT, Model
from streamridge.samples import Inputs, Samples


@dataclass
class Costs:
    """Counts the seconds spent on each kind of work."""

    tuning: float = 0.0
    fitting: float = 0.0
    predicting: float = 0.0

    def __post_init__(self) -> None:
        self._counting = False

    @property
    def total(self) -> float:
        """Return all seconds."""
        return self.tuning + self.fitting + self.predicting

    @contextmanager
    def spending(self, kind: str) -> Iterator[None]:
        """Count the seconds of the block as "tuning", "fitting" or "predicting".

        Within a block that is counted already they are that block's: a fit that tuning makes is
        tuning.
        """
        if self._counting:
            yield
            return
        self._counting = True
        start = thread_time()
        try:
            yield
        finally:
            self._counting = False
            setattr(self, kind, getattr(self, kind) + thread_time() - start)


@dataclass(frozen=True)
class TimedModel(Generic[FitT]):
    """Is a model whose work is timed; results are the model's own."""

    model: Model[FitT]
    costs: Costs = field(default_factory=Costs)

    @property
    def space(self) -> Space:
        """Return the model's hyperparameters."""
        return self.model.space

    def fit(
        self, samples: Samples, lam: Vector, retired: TimedFit[FitT] | None = None
    ) -> TimedFit[FitT]:
        """Return the model's fit, timed as fitting."""
        with self.costs.spending("fitting"):
            fit = self.model.fit(samples, lam, retired.fit if retired else None)
        return TimedFit(fit, self.costs)

    def approximate(
        self,
        samples: Samples,
        lam: Vector,
        tolerance: float,
        before: TimedFit[FitT] | None = None,
    ) -> TimedFit[FitT]:
        """Return the model's approximate fit, timed as fitting."""
        with self.costs.spending("fitting"):
            fit = self.model.approximate(samples, lam, tolerance, before.fit if before else None)
        return TimedFit(fit, self.costs)

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> TimedFit[FitT]:
        """Return the model's resumed fit, timed as fitting."""
        with self.costs.spending("fitting"):
            return TimedFit(self.model.resume(samples, lam, state), self.costs)


@dataclass(frozen=True)
class TimedFit(Generic[FitT]):
    """Is a fit whose predictions and gradients are timed."""

    fit: FitT
    costs: Costs

    def predict(self, inputs: Inputs) -> Matrix:
        """Return the fit's predictions, timed as predicting."""
        with self.costs.spending("predicting"):
            return self.fit.predict(inputs)

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the fit's predictions and spreads, timed as predicting."""
        with self.costs.spending("predicting"):
            return self.fit.predict_with_spread(inputs)

    def window_loss(self, window: Samples) -> float:
        """Return the fit's loss, timed as tuning."""
        with self.costs.spending("tuning"):
            return self.fit.window_loss(window)

    def loss_and_gradient(self, window: Samples) -> tuple[float, Vector]:
        """Return the fit's loss and gradient, timed as tuning."""
        with self.costs.spending("tuning"):
            return self.fit.loss_and_gradient(window)

    def step_gradients(self, window: Samples) -> Matrix:
        """Return the fit's gradients, timed as tuning."""
        with self.costs.spending("tuning"):
            return self.fit.step_gradients(window)

    def release(self) -> object:
        """Release the fit."""
        return self.fit.release()

    def state(self) -> Arrays:
        """Return the fit's state."""
        return self.fit.state()
