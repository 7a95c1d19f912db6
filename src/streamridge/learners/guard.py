"""A guard over self-tuning, which goes back to earlier hyperparameters when tuning has failed.

At the end of every window, two small fits are made to the last samples before the window: one at
the hyperparameters that were in force, one at earlier ones, the shadow. Both forecast the window.
When tuning has been worse than its shadow for long enough, the shadow's hyperparameters are put
back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite, require_shape
from streamridge.errors import FitError
from streamridge.learners.base import Learner
from streamridge.models.base import FitT, Model

# The small fits see the last quarter of a training set, a sixteenth of its kernel each.
SHARE = 4
# A shadow is at least this many windows old when better hyperparameters replace it.
RENEW_AFTER = 7
# Tuning is worse when its recent squared errors exceed the shadow's by this share.
MARGIN = 0.02
# Tuning is rolled back when it was worse in this many windows in a row.
PATIENCE = 5
# Discount of squared errors per window: they count half after three windows.
MEMORY = 0.8


@dataclass(frozen=True)
class Shadow:
    """The earlier hyperparameters that tuning is compared with, and the comparison so far.

    Parameters
    ----------
    lam
        The earlier hyperparameters.
    losses
        (2,), discounted squared errors of the small fits: tuned, and at lam.
    age
        Windows since lam was taken.
    worse
        Windows in a row in which tuning was worse.
    """

    lam: Vector
    losses: Vector = field(default_factory=lambda: np.zeros(2))
    age: int = 0
    worse: int = 0

    def judged(self, losses: Vector) -> Shadow:
        """Return the shadow after a window with these squared errors."""
        total = MEMORY * self.losses + losses
        worse = self.worse + 1 if total[0] > (1 + MARGIN) * total[1] else 0
        return replace(self, losses=total, age=self.age + 1, worse=worse)

    @property
    def wins(self) -> bool:
        """Return whether tuning must be rolled back."""
        return self.worse >= PATIENCE

    @property
    def is_outdated(self) -> bool:
        """Return whether the tuned hyperparameters should be the next shadow."""
        return self.age >= RENEW_AFTER and not self.worse


class Guard(Generic[FitT]):
    """A watch over a learner that restores earlier hyperparameters when tuning was worse.

    Parameters
    ----------
    model
        The learner's model.
    learner
        The learner to watch; call `watch` after each of its refits.
    """

    _shadow: Shadow
    _tuned: Vector
    _end: float

    def __init__(self, model: Model[FitT], learner: Learner) -> None:
        self.error = np.nan  # mean squared error of the tuned small fit in the last window
        self._model = model
        self._learner = learner
        self.trust()

    def watch(self) -> bool:
        """Judge the window that has just ended, and return whether the learner was rolled back."""
        self._shadow = self._shadow.judged(self._losses())
        rolls_back = self._shadow.wins and put_in_force(self._learner, self._shadow.lam)
        if rolls_back or self._shadow.is_outdated:
            self._shadow = Shadow(self._learner.lam)
        self._remember()
        return rolls_back

    def trust(self) -> None:
        """Make the hyperparameters in force the shadow, and start a new comparison."""
        self._shadow = Shadow(self._learner.lam)
        self._remember()

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that changes, for `restore`."""
        shadow = self._shadow
        return {
            "lam": shadow.lam,
            "losses": shadow.losses,
            "windows": np.array([shadow.age, shadow.worse]),
            "tuned": self._tuned,
            "end": np.array(self._end),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from a state; the learner must have been restored before."""
        lam, tuned, losses = (
            require_finite(name, state[name]) for name in ("lam", "tuned", "losses")
        )
        for name, vector, like in (
            ("lam", lam, self._shadow.lam),
            ("tuned", tuned, self._tuned),
            ("losses", losses, self._shadow.losses),
        ):
            require_shape(name, vector, like.shape)
        age, worse = (int(windows) for windows in state["windows"])
        self._shadow = Shadow(lam, losses, age, worse)
        self._tuned, self._end = tuned, float(state["end"])

    def _remember(self) -> None:
        """Remember what the next window will be judged by."""
        self._tuned = self._learner.lam
        self._end = self._learner.trained_until

    def _losses(self) -> Vector:
        """Return the squared errors of the two small fits in the window that has just ended."""
        self.error = np.nan
        times = self._learner.training.t
        split = int(np.searchsorted(times, self._end, side="right"))
        recent = min(split, max(1, len(times) // SHARE))
        if not recent or split == len(times):
            return np.zeros(2)
        times = times[split - recent :]
        try:
            losses = [self._loss(times, recent, lam) for lam in (self._tuned, self._shadow.lam)]
        except FitError:  # the learner fails in the same way, and reports it
            return np.zeros(2)
        self.error = losses[0] / (len(times) - recent)
        return np.array(losses)

    def _loss(self, times: Vector, recent: int, lam: Vector) -> float:
        """Return the squared error of a fit to the first rows at some times in the others."""
        rows = self._learner.rows_at(times, lam)
        window = rows[recent:]
        fit = self._model.fit(rows[:recent], lam)
        return float(np.sum((window.y - fit.predict(window.inputs)) ** 2))


def put_in_force(learner: Learner, lam: Vector) -> bool:
    """Give a learner hyperparameters, but for frozen ones, and return whether a fit exists there.

    If it does not, the fit in force stays.
    """
    values, frozen = learner.named(lam), set(learner.frozen)
    try:
        learner.assign({name: values[name] for name in values if name not in frozen})
    except FitError:
        return False
    return True
