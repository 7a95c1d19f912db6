"""A small fit beside a learner's, at the hyperparameters that it started from.

It is made to the last rows of the learner's training set, as these are, and forecasts what the
learner forecasts. So it knows less of the past, and tells by its errors whether less is more, and
whether tuning has gone astray.
"""

from __future__ import annotations

from typing import Generic

from streamridge.arrays import Matrix, Vector
from streamridge.errors import FitError
from streamridge.learners.base import State
from streamridge.learners.fitted import Fitted
from streamridge.learners.packing import pack_fit
from streamridge.learners.state import part
from streamridge.learners.stream import StreamLearner
from streamridge.models.base import FitT
from streamridge.samples import Inputs

# It sees the last quarter of a training set, a sixteenth of its kernel.
SHARE = 4
NAME = "start"


class Companion(Generic[FitT]):
    """The small fit beside a learner, which is renewed after each of its refits.

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
        self._fitted: Fitted[FitT] | None = None

    def renew(self) -> None:
        """Fit the last rows of the learner's training set; if that fails, there is no fit."""
        count = max(1, len(self._learner.training) // SHARE)
        try:
            self._fitted = self._learner.companion(self._start, count)
        except FitError:  # the learner may fail in the same way, and reports it
            self._fitted = None
        self.rest()  # its matrices are not needed again

    @property
    def is_fitted(self) -> bool:
        """Return whether there is a fit."""
        return self._fitted is not None

    def predict(self, inputs: Inputs) -> Vector | None:
        """Return what it forecasts for one input, (H,); None without a fit."""
        return None if self._fitted is None else self._fitted.fit.predict(inputs)[0]

    def rest(self) -> None:
        """Drop all that can be made again."""
        if self._fitted is not None:
            self._fitted.release()

    def state(self) -> dict[str, Matrix | float]:
        """Return everything that changes, for `restore`."""
        return {} if self._fitted is None else pack_fit(NAME, self._fitted)

    def restore(self, state: State) -> None:
        """Continue from a state; the learner must have been restored before."""
        self._fitted = self._learner.companion_of(NAME, state) if part(state, NAME) else None
