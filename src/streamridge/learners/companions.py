"""Small fits beside a learner's: at its own hyperparameters, and at those that it started from.

They are made to the last rows of the learner's training set, and forecast what it forecasts. So
they know less of the past, and tell by their errors whether less is more, and whether tuning has
gone astray.
"""

from __future__ import annotations

from typing import Generic

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import FitError
from streamridge.learners.base import State
from streamridge.learners.fitted import Fitted
from streamridge.learners.packing import pack_fit
from streamridge.learners.state import part
from streamridge.learners.stream import StreamLearner
from streamridge.models.base import FitT
from streamridge.samples import Inputs, Samples

# They see the last quarter of a training set, a sixteenth of its kernel each.
SHARE = 4
NAMES = ("short", "start")


class Companions(Generic[FitT]):
    """The small fits beside a learner, which are renewed after each of its refits.

    Parameters
    ----------
    learner
        The learner.
    start
        (d,), the hyperparameters that it started from.
    """

    def __init__(self, learner: StreamLearner[FitT], start: Vector) -> None:
        self._learner = learner
        self._start = start
        self._fits: tuple[Fitted[FitT], ...] = ()

    def renew(self) -> None:
        """Fit the last rows of the learner's training set; if that fails, there are none."""
        count = max(1, len(self._learner.training) // SHARE)
        try:
            self._fits = tuple(
                self._learner.companion(lam, count) for lam in (self._learner.lam, self._start)
            )
        except FitError:  # the learner may fail in the same way, and reports it
            self._fits = ()
        self.rest()  # their matrices are not needed again

    @property
    def are_fitted(self) -> bool:
        """Return whether there are fits."""
        return bool(self._fits)

    def predict(self, inputs: Inputs) -> list[Vector]:
        """Return what each forecasts for one input, (H,); nothing without fits."""
        return [fitted.fit.predict(inputs)[0] for fitted in self._fits]

    def losses(self) -> Vector | None:
        """Return their mean squared errors, (2,), in rows that the learner has gained since.

        None without fits, or without such rows.
        """
        times = self._learner.training.t
        if not self._fits or self._fits[0].last >= times[-1]:
            return None
        tuned = self._fits[0]
        since = times[int(np.searchsorted(times, tuned.last, side="right")) :]
        window = self._learner.rows_at(since, tuned.lam)
        return np.array([_squared_error(fitted.fit, window) for fitted in self._fits])

    def rest(self) -> None:
        """Drop all that can be made again."""
        for fitted in self._fits:
            fitted.release()

    def state(self) -> dict[str, Matrix | float]:
        """Return everything that changes, for `restore`."""
        packed = (pack_fit(*named) for named in zip(NAMES, self._fits, strict=False))
        return {key: value for each in packed for key, value in each.items()}

    def restore(self, state: State) -> None:
        """Continue from a state; the learner must have been restored before."""
        names = [name for name in NAMES if part(state, name)]
        self._fits = tuple(self._learner.companion_of(name, state) for name in names)


def _squared_error(fit: FitT, window: Samples) -> float:
    return float(np.mean((window.y - fit.predict(window.inputs)) ** 2))
