"""The contracts of learners and policies, the cost of learning, and a loop that drives a learner.

A learner refits a model along a stream. Its policy chooses the hyperparameters: Algorithm 2 moves
them along the gradient of the learner's own errors (`online.GradientPolicy`), Algorithm 1 searches
for them on the past (`rolling.SearchPolicy`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.models.base import Tangents, WindowLoss
from streamridge.samples import Samples

# The state of a learner: arrays and numbers by name.
State = Mapping[str, Matrix | float]


@dataclass(frozen=True)
class Tally:
    """The amount of tuning work: the number of searches, of their fits, and of gradients."""

    tunings: int = 0
    fits: int = 0
    gradients: int = 0

    def plus(self, other: Tally) -> Tally:
        """Return the sum of both."""
        return Tally(
            self.tunings + other.tunings,
            self.fits + other.fits,
            self.gradients + other.gradients,
        )


@dataclass
class Costs:
    """The processor seconds spent on each kind of work by the calling thread."""

    tuning: float = 0.0
    fitting: float = 0.0
    predicting: float = 0.0

    def __post_init__(self) -> None:
        self._is_counting = False

    @property
    def total(self) -> float:
        """Return the sum of all seconds."""
        return self.tuning + self.fitting + self.predicting

    @contextmanager
    def spending(self, kind: str) -> Iterator[None]:
        """Count the seconds of a `with` block as "tuning", "fitting" or "predicting".

        A block inside a counted block adds nothing: a fit made by tuning counts as tuning.
        """
        if self._is_counting:
            yield
            return
        start, self._is_counting = thread_time(), True
        try:
            yield
        finally:
            setattr(self, kind, getattr(self, kind) + thread_time() - start)
            self._is_counting = False


class IssuedForecasts(Protocol):
    """The forecasts of a model as they were issued, which may differ from what it predicted."""

    def loss(self, times: Vector) -> WindowLoss:
        """Return the loss of the forecasts issued for rows at these times."""


class Policy(Protocol):
    """A way to choose hyperparameters; it is frozen, so methods return the policy after them."""

    @property
    def lam(self) -> Vector:
        """Return the hyperparameters of the next fit, shape (d,)."""

    @property
    def held(self) -> Mask:
        """Return a mask of the coordinates that `hold` keeps constant, shape (d,)."""

    @property
    def tally(self) -> Tally:
        """Return the amount of tuning so far."""

    @property
    def skipped(self) -> int:
        """Return the number of moves that were skipped because their gradient was not finite."""

    @property
    def learns(self) -> bool:
        """Return whether the policy learns from the rows after a training set."""

    @property
    def look_back(self) -> int:
        """Return how many samples before the training set the policy needs."""

    @property
    def search_due(self) -> bool:
        """Return whether it is time for `searched`."""

    def searched(self, known: Samples) -> Self:
        """Return the policy after a search on known samples; unchanged if there are too few."""

    def observed(self) -> Self:
        """Return the policy after one more observation."""

    def learned(
        self,
        fit: Any,
        lam: Vector,
        window: Samples,
        # Derivatives of the rows with respect to the numbers they are built with, if any.
        tangents: Tangents | None,
        loss: WindowLoss | None,  # the loss of the errors; None for squared errors
    ) -> Self:
        """Return the policy after learning from rows that a fit at `lam` was not trained on."""

    def moved(self, windows: int = 1) -> Self:
        """Return the policy before a refit, given the number of windows since the last move."""

    def reported(self) -> Self:
        """Return the policy after it has passed gradients to its watcher, if it has one."""

    def moved_to(self, lam: Vector) -> Self:
        """Return the policy at other hyperparameters, without what was learned so far."""

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        """Return the policy that keeps the chosen coordinates at lam, the values in force."""

    def free(self, chosen: Mask) -> Self:
        """Return the policy that tunes the chosen coordinates again."""

    def state(self) -> dict[str, Matrix | float]:
        """Return everything that changes, as arrays and numbers for `restore`."""

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        """Return this policy with the state of another policy with the same settings."""


class Learner(Protocol):
    """A model that predicts a stream step by step, and learns from the values it observes."""

    def predict(self, time: float, x: ArrayLike) -> Vector:
        """Return the forecasts of the values at `time` and the steps after it, shape (H,)."""

    def observe(self, time: float, x: ArrayLike | None, y: float) -> None:
        """Learn from the value y at `time`, which had the features x."""


@dataclass(frozen=True)
class Step:
    """One step of a stream, with its forecast and its actual value.

    Parameters
    ----------
    time
        Time of the step.
    forecast
        (H,), made before the value was known.
    actual
        The value at `time`.
    """

    time: float
    forecast: Vector
    actual: float

    @property
    def error(self) -> float:
        """Return the actual value minus its forecast one step ahead."""
        return self.actual - float(self.forecast[0])


def run(learner: Learner, stream: Samples) -> Iterator[Step]:
    """Yield each step of a stream, after predicting and then observing it.

    Parameters
    ----------
    learner
        The learner, which moves along the stream.
    stream
        Rows after the learner's history, in order of time; the first target column is observed.
    """
    for t, x, y in zip(stream.t.tolist(), stream.x, stream.y[:, 0].tolist(), strict=True):
        forecast = learner.predict(t, x)
        learner.observe(t, x, y)
        yield Step(t, forecast, y)
