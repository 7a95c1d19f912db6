"""The contracts of a learner and its policy, the record of one step, and the loop that drives any.

A learner refits a model as a stream flows. Its policy, a value that is handed to it, decides about
the hyperparameters: Algorithm 2 moves them along the gradient of the learner's own errors
(`online.Descending`), Algorithm 1 searches for them on the past (`rolling.Searching`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.learners.costs import Costs
from streamridge.learners.fitted import Fitted
from streamridge.learners.workspace import Workspace
from streamridge.samples import Samples

# A learner's state: arrays and numbers by name.
State = Mapping[str, Matrix | float]


@dataclass(frozen=True)
class Tally:
    """The cost of tuning: the number of searches, of their fits, and of gradients."""

    tunings: int = 0
    fits: int = 0
    gradients: int = 0

    def after(self, fits: int, gradients: int) -> Tally:
        """Return the tally after one more search."""
        return self.plus(Tally(1, fits, gradients))

    def plus(self, other: Tally) -> Tally:
        """Return the tally of both."""
        return Tally(
            self.tunings + other.tunings,
            self.fits + other.fits,
            self.gradients + other.gradients,
        )


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
        """Return what tuning has cost so far."""

    @property
    def skipped(self) -> int:
        """Return how many moves were left out because their gradient was not finite."""

    @property
    def learns(self) -> bool:
        """Return whether the policy learns from the windows of fits, by `absorb`."""

    @property
    def look_back(self) -> int:
        """Return how many samples before the training set the policy needs."""

    def start(self, known: Samples) -> Self:
        """Return the policy before the first fit, given the samples that are known."""

    def waited(self) -> Self:
        """Return the policy after one more observation."""

    def tune(self, known: Callable[[], Samples]) -> Self:
        """Return the policy after a search, if one is due; `known` gives the samples for it."""

    def absorb(self, fitted: Fitted[Any], window: Samples) -> Self:
        """Return the policy after learning from samples that `fitted` predicted."""

    def move(self) -> Self:
        """Return the policy at a window's end, before the refit."""

    def settle(self) -> Self:
        """Return the policy after an observation that is complete and can no longer fail."""

    def put(self, lam: Vector) -> Self:
        """Return the policy at other hyperparameters, without what was learned so far."""

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        """Return the policy that keeps the chosen coordinates at lam, the values in force."""

    def free(self, chosen: Mask) -> Self:
        """Return the policy that tunes the chosen coordinates again."""

    def state(self) -> dict[str, Matrix | float]:
        """Return everything that changes, as arrays and numbers for `restore`."""

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        """Return this policy with the state of another one of the same settings."""


class Learner(Protocol):
    """A model that predicts a stream step by step, and learns from what it then observes."""

    workspace: Workspace | None

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

    @property
    def refit_due(self) -> bool:
        """Return whether the window has ended, and its refit has not been made yet."""

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

    def refit(self) -> None:
        """Learn from the window, and refit on all that is known now.

        A `FitError` leaves everything as it was.
        """

    def pass_over(self, time: float, steps: int = 1) -> None:
        """Skip steps up to `time` that have no value, or none to learn from."""

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

    def rest(self) -> None:
        """Drop the training set and the fit; they are made again when they are needed."""

    def release(self) -> None:
        """Drop all that can be recomputed, at the cost of a factorization at the next refit."""

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
