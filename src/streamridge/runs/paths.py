"""The paths that a run follows as it goes: of the hyperparameters, and of the experts' weights."""

from __future__ import annotations

import numpy as np

from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.runs.expert_path import ExpertPath
from streamridge.series.clock import Steps, Times


class WholePath:
    """The path of the hyperparameters in a run; a forecaster itself remembers its last refits."""

    def __init__(self) -> None:
        self.known: HyperparameterPath | None = None
        self._fits = 0

    @property
    def steps(self) -> Steps:
        """Return the steps of the refits."""
        return np.zeros(0, dtype=np.int64) if self.known is None else self.known.steps

    def follow(self, forecaster: Forecaster) -> bool:
        """Add the latest refits, and return whether there were some."""
        fits = forecaster.counts.get("fits", 0)
        if fits <= self._fits:
            return False
        later, self._fits = forecaster.path, fits
        self.known = later if self.known is None else self.known.followed_by(later)
        return True


class ExpertTrail:
    """The weights of the experts in a run, taken at each refit, once a day at least.

    Parameters
    ----------
    day
        The steps of a day, or what counts as one.
    """

    def __init__(self, day: int) -> None:
        self._day = day
        self._taken: dict[int, dict[str, float]] = {}
        self._latest = -day

    def follow(self, forecaster: Forecaster, at: int, *, refitted: bool) -> None:
        """Take the weights after the step `at` of the series, if it is time to."""
        if refitted or at - self._latest >= self._day:
            self.take(forecaster, at)

    def take(self, forecaster: Forecaster, at: int) -> None:
        """Take the weights after the step `at` of the series, if there are any."""
        self._latest, weights = at, forecaster.experts
        if weights:
            self._taken[at] = weights

    def path(self, times: Times) -> ExpertPath:
        """Return the weights that were taken, given the times of all steps of the series."""
        if not self._taken:
            return ExpertPath.empty()
        rows = list(self._taken.values())
        weights = np.array([list(row.values()) for row in rows])
        return ExpertPath(times[list(self._taken)], tuple(rows[0]), weights)
