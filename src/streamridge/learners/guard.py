"""A guard over self-tuning, which goes back to the start when tuning has failed.

A small fit forecasts every window beside the model, at the hyperparameters that tuning started
from. The model knows several times as much of the past. When it has been worse all the same, for
long enough, tuning may have gone astray, or only a short memory may be good for now. So a backtest
decides between the two settings, on equal terms: if the start is better in it, it is put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite, require_shape
from streamridge.errors import FitError
from streamridge.learners.base import Learner
from streamridge.models.base import Model
from streamridge.tuners.backtest import Backtest, split

# Tuning is worse when its recent squared errors exceed those of the small fit by this share.
MARGIN = 0.02
# Tuning is put to the test when it was worse in this many windows in a row.
PATIENCE = 5
# Of a training set, the last part is forecast in the test, by fits to a larger part before it.
FORECAST_PART, FITTED_PART = 8, 4
# Discount of squared errors per window: they count half after three windows.
MEMORY = 0.8


@dataclass(frozen=True)
class Comparison:
    """How tuning has done so far, compared with its start.

    Parameters
    ----------
    losses
        (2,), discounted squared errors of the tuned model, and of the small fit at the start.
    worse
        Windows in a row in which the model was worse.
    """

    losses: Vector = field(default_factory=lambda: np.zeros(2))
    worse: int = 0

    def judged(self, losses: Vector) -> Comparison:
        """Return the comparison after a window with these squared errors."""
        total = MEMORY * self.losses + losses
        worse = self.worse + 1 if total[0] > (1 + MARGIN) * total[1] else 0
        return replace(self, losses=total, worse=worse)

    @property
    def is_doubtful(self) -> bool:
        """Return whether tuning must be put to the test."""
        return self.worse >= PATIENCE


class Guard:
    """A watch over a learner that puts its start back when tuning was worse.

    Parameters
    ----------
    learner
        The learner to watch.
    model
        The model that it fits.
    start
        (d,), the hyperparameters that it started from.
    """

    def __init__(self, learner: Learner, model: Model[Any], start: Vector) -> None:
        self._learner = learner
        self._model = model
        self._start = start
        self._comparison = Comparison()

    def watch(self, losses: Vector) -> bool:
        """Judge a window by its squared errors, and return whether tuning was rolled back."""
        self._comparison = self._comparison.judged(losses)
        if not self._comparison.is_doubtful:
            return False
        fails = self._fails()
        rolls_back = fails and put_in_force(self._learner, self._start)
        if rolls_back or not fails:
            self.trust()
        return rolls_back

    def _fails(self) -> bool:
        """Return whether the hyperparameters in force are worse than the start in a backtest."""
        known = self._learner.training
        if len(known) < FORECAST_PART + known.y.shape[1]:
            return False
        parts = len(known) // FITTED_PART, len(known) // FORECAST_PART
        backtest = Backtest(self._model, *split(known, *parts))
        return backtest.loss(self._learner.lam) > (1 + MARGIN) * backtest.loss(self._start)

    def trust(self) -> None:
        """Start a new comparison."""
        self._comparison = Comparison()

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that changes, for `restore`."""
        return {"losses": self._comparison.losses, "worse": np.array(self._comparison.worse)}

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from a state."""
        losses = require_finite("losses", state["losses"])
        require_shape("losses", losses, (2,))
        self._comparison = Comparison(losses, int(state["worse"]))


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
