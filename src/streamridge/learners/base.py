"""The contract of a learner, the record of one step, and the loop that drives any learner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from streamridge.arrays import Matrix, Vector
from streamridge.learners.costs import Costs
from streamridge.learners.policy import Tally
from streamridge.samples import Samples

# A learner's state: arrays and numbers by name.
State = Mapping[str, Matrix | float]


class Learner(Protocol):
    """A model that predicts a stream step by step, and learns from what it then observes."""

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force, by name."""

    @property
    def lam(self) -> Vector:
        """Return the hyperparameters in force as one vector, shape (d,)."""

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return the learned hyperparameters at a bound, each with "lower" or "upper"."""

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that `freeze` keeps constant."""

    @property
    def refits(self) -> int:
        """Return how many fits have been made."""

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far: searches, their fits, and gradients."""

    @property
    def costs(self) -> Costs:
        """Return the seconds spent so far on tuning, fitting and predicting."""

    @property
    def skipped_moves(self) -> int:
        """Return how many moves were left out because their gradient was not finite."""

    @property
    def newest(self) -> float:
        """Return the time of the newest value."""

    @property
    def training(self) -> Samples:
        """Return the samples of the fit in force."""

    def named(self, lam: Vector) -> dict[str, float]:
        """Return the coordinates of lam by name."""

    def predict(self, time: float, x: ArrayLike) -> Vector:
        """Return the forecasts of the values at `time` and the steps after it, shape (H,)."""

    def predict_with_spread(self, time: float, x: ArrayLike) -> tuple[Vector, Vector]:
        """Return the forecasts and the expected size of their errors, shape (H,) each."""

    def learn_spread(self) -> None:
        """Let the fit in force learn the size of its errors now, while its factor is in memory."""

    def observe(self, time: float, x: ArrayLike | None, y: float) -> None:
        """Learn from the value y at `time`, which had the features x.

        Without x, the value only labels earlier rows and makes no row of its own. If an error is
        raised, nothing has changed.
        """

    def pass_over(self, time: float) -> None:
        """Skip a step that has no value, or none to learn from."""

    def admit(self, samples: Samples) -> None:
        """Add samples of the past that became known late to the next training set."""

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name and refit; other weights of a simplex share what is left."""

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters constant; naming one weight of a simplex freezes them all."""

    def unfreeze(self, *names: str) -> None:
        """Learn frozen hyperparameters again."""

    def postpone_refit(self) -> None:
        """Keep the fit in force for another window.

        A failing refit raises a `FitError` at the end of its window, and again at every observation
        after it. So catch the error, postpone the refit, and observe again.
        """

    def release(self) -> None:
        """Drop what can be recomputed, at the cost of a factorization at the next window's end."""

    def state(self) -> State:
        """Return everything that changes, as arrays and numbers for `restore`."""


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
