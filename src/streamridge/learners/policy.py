"""The contract of a policy: how a learner chooses its hyperparameters.

A learner refits a model as a stream flows, and asks its policy at which hyperparameters. Algorithm
2 moves them along the gradient of the learner's own errors (`online.Descending`). Algorithm 1
searches for them on the past (`rolling.Searching`).
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
    """The cost of tuning: the number of searches, of their fits, and of gradients."""

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
    def look_back(self) -> int:
        """Return how many samples before the training set the policy needs."""

    def start(self, known: Samples) -> Self:
        """Return the policy before the first fit, given the samples that are known."""

    def tune(self, known: Callable[[], Samples]) -> Self:
        """Return the policy after an observation; `known` gives the samples, if it needs them."""

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
