"""What a learner does about its hyperparameters, as a value that is handed to it.

A learner refits a model as a stream flows, and asks its policy where: Algorithm 2 moves the
hyperparameters along the gradient of its own errors (`online.Descending`), Algorithm 1 searches for
them on the past (`rolling.Searching`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.models.base import FitT
from streamridge.samples import Samples


@dataclass(frozen=True)
class Tally:
    """What tuning has cost: how many searches there were, their fits, and gradients."""

    tunings: int = 0
    fits: int = 0
    gradients: int = 0

    def after(self, fits: int, gradients: int) -> Tally:
        """Return the tally after one more search."""
        return Tally(self.tunings + 1, self.fits + fits, self.gradients + gradients)


@dataclass(frozen=True)
class Fitted(Generic[FitT]):
    """A fit with its training set and the hyperparameters it was made at."""

    samples: Samples
    lam: Vector
    fit: FitT


class Policy(Protocol):
    """A way to treat hyperparameters; every method gives the policy after it."""

    @property
    def lam(self) -> Vector:
        """Return the hyperparameters of the next fit, shape (d,)."""

    @property
    def held(self) -> Mask:
        """Mark the coordinates that `hold` keeps where they are, shape (d,)."""

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far."""

    @property
    def skipped(self) -> int:
        """Return how many moves were left out because their gradient was not finite."""

    @property
    def look_back(self) -> int:
        """Return how many samples before the training set the policy wants to look back on."""

    def start(self, known: Samples) -> Self:
        """Return the policy before the first fit, when so much is known."""

    def tune(self, known: Callable[[], Samples]) -> Self:
        """Return the policy after an observation; what is known then is asked for if needed."""

    def absorb(self, fitted: Fitted[Any], window: Samples) -> Self:
        """Return the policy with what is learned from samples that `fitted` predicted."""

    def move(self) -> Self:
        """Return the policy at a window's end, before the refit."""

    def settle(self) -> Self:
        """Return the policy once an observation has been taken for good: nothing can fail now."""

    def put(self, lam: Vector) -> Self:
        """Return the policy at other hyperparameters, with what was learned so far forgotten."""

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        """Return the policy that keeps the chosen coordinates where they are in force, at lam."""

    def free(self, chosen: Mask) -> Self:
        """Return the policy that tunes the chosen coordinates again."""

    def state(self) -> dict[str, Matrix | float]:
        """Return all that changes, as arrays and numbers."""

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        """Return this policy at a state taken from one like it."""
