"""The contract of a learner, the record of one step, and the loop that all protocols share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from streamridge.arrays import Vector
from streamridge.samples import Samples


class Learner(Protocol):
    """Predicts a stream one step at a time and learns from what it then observes."""

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force, by name."""

    @property
    def refits(self) -> int:
        """Return how many fits have been made."""

    def predict(self, time: float, x: ArrayLike) -> Vector:
        """Return the forecasts of the values at `time` and the steps after it, shape (H,)."""

    def observe(self, time: float, x: ArrayLike, y: float) -> None:
        """Learn from the value y at `time`; after an error nothing has changed."""


@dataclass(frozen=True)
class Step:
    """Is one step of a stream as it was lived through.

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
