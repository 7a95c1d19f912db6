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
        """Return which learned hyperparameters sit at their "lower" or "upper" bound."""

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that `freeze` holds where they are."""

    @property
    def refits(self) -> int:
        """Return how many fits have been made."""

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far: searches, their fits, and gradients."""

    @property
    def costs(self) -> Costs:
        """Return where the seconds of fitting and predicting are counted."""

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
        """Return the forecasts, and the size of error to expect of each; shape (H,) both."""

    def learn_spread(self) -> None:
        """Let the fit in force learn the size of its errors now, while its factor is there."""

    def observe(self, time: float, x: ArrayLike | None, y: float) -> None:
        """Learn from the value y at `time`, which had the features x.

        Without x the value is a label of the rows before it and makes no row of its own. After an
        error nothing has changed.
        """

    def pass_over(self, time: float) -> None:
        """Let a step go by that has no value, or none to learn from."""

    def admit(self, samples: Samples) -> None:
        """Take samples of the past that were not known in time into the next training set."""

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name, and refit at once; other weights of a simplex give way."""

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters where they are; one weight of a simplex holds all of them."""

    def unfreeze(self, *names: str) -> None:
        """Learn hyperparameters again that were frozen."""

    def postpone_refit(self) -> None:
        """Keep the fit in force for another window.

        A refit that fails raises a `FitError` at its window's end, and would at every observation
        after: catch the error, postpone, observe again.
        """

    def release(self) -> None:
        """Drop what can be made again; the next window's end takes a factorization longer."""

    def state(self) -> State:
        """Return all that changes as arrays and numbers, for `restore`."""

    def restore(self, state: State) -> None:
        """Go on from a state taken from a learner of the same model and settings, bit for bit."""


@dataclass(frozen=True)
class Step:
    """One step of a stream as it was lived through.

    Parameters
    ----------
    time
        When.
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
        """Return the actual value less its forecast one step ahead."""
        return self.actual - float(self.forecast[0])


def run(learner: Learner, stream: Samples) -> Iterator[Step]:
    """Yield each step of a stream: predict, then observe.

    Parameters
    ----------
    learner
        It is moved along.
    stream
        Rows after the learner's history, in order; the first target column is what is observed.
    """
    for t, x, y in zip(stream.t.tolist(), stream.x, stream.y[:, 0].tolist(), strict=True):
        forecast = learner.predict(t, x)
        learner.observe(t, x, y)
        yield Step(t, forecast, y)
