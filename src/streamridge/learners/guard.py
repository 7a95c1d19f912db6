"""A guard over self-tuning: a shadow with the hyperparameters of a while ago, and the way back.

At every window's end two small fits are made on the end of the training set before it: one at the
hyperparameters that were in force, one at those of a while ago. Both forecast the window. When
tuning has lost to its own past for long enough, the hyperparameters of that past are put back.
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
from streamridge.samples import Samples

# The share of a training set that the small fits see: a sixteenth of its kernel each.
SHARE = 4
# A shadow is this many windows old before tuning may leave it behind.
RENEW_AFTER = 7
# Tuning is worse when its squared errors of late exceed the shadow's by this share,
MARGIN = 0.02
# and gives way after so many windows in a row in which it was.
PATIENCE = 5
# How fast squared errors of earlier windows are forgotten: by a half in three windows.
MEMORY = 0.8


@dataclass(frozen=True)
class Shadow:
    """What the guard remembers from window to window.

    Parameters
    ----------
    lam
        Hyperparameters of a while ago.
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
        """Tell whether tuning has to give way."""
        return self.worse >= PATIENCE

    @property
    def is_outdated(self) -> bool:
        """Tell whether tuning has earned to be the next shadow."""
        return self.age >= RENEW_AFTER and not self.worse


class Guard(Generic[FitT]):
    """A watch over a learner that puts back its hyperparameters when they have gone astray.

    Parameters
    ----------
    model
        The learner's model.
    learner
        Whom to watch; `watch` must be called after each of its refits.
    """

    _shadow: Shadow
    _tuned: Vector
    _end: float

    def __init__(self, model: Model[FitT], learner: Learner) -> None:
        self._model = model
        self._learner = learner
        self.trust()

    def watch(self) -> bool:
        """Judge the window that has just ended, and return whether the learner was rolled back."""
        self._shadow = self._shadow.judged(self._losses())
        rolls_back = self._shadow.wins
        if rolls_back:
            before = self._learner.named(self._shadow.lam)
            frozen = set(self._learner.frozen)
            self._learner.assign({name: before[name] for name in before if name not in frozen})
        if rolls_back or self._shadow.is_outdated:
            self._shadow = Shadow(self._learner.lam)
        self._remember()
        return rolls_back

    def trust(self) -> None:
        """Take the hyperparameters in force for the shadow's: nothing speaks against them yet."""
        self._shadow = Shadow(self._learner.lam)
        self._remember()

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return all that changes."""
        shadow = self._shadow
        return {
            "lam": shadow.lam,
            "losses": shadow.losses,
            "windows": np.array([shadow.age, shadow.worse]),
            "tuned": self._tuned,
            "end": np.array(self._end),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Go on from a state, after the learner has been restored."""
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
        """Keep what the next window is to be judged by."""
        self._tuned = self._learner.lam
        self._end = float(self._learner.training.t[-1])

    def _losses(self) -> Vector:
        """Return the squared errors of the two small fits in the window that has just ended."""
        training = self._learner.training
        split = int(np.searchsorted(training.t, self._end, side="right"))
        before, window = training[:split], training[split:]
        recent = before[-max(1, len(training) // SHARE) :]
        if not len(recent) or not len(window):
            return np.zeros(2)
        try:
            tuned = self._model.fit(recent, self._tuned)
            shadow = self._model.fit(recent, self._shadow.lam)
        except FitError:  # the learner meets it itself, and it is reported there
            return np.zeros(2)
        return np.array([_squared_error(tuned, window), _squared_error(shadow, window)])


def _squared_error(fit: FitT, window: Samples) -> float:
    return float(np.sum((window.y - fit.predict(window.inputs)) ** 2))
