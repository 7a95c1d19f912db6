"""The state of one sensor: its summary, its error scores, and helpers for its forecaster."""

from __future__ import annotations

import platform
from functools import cache
from math import sqrt
from typing import Any

import msgspec
import numpy as np
import scipy
from threadpoolctl import threadpool_info

from streamridge import Box, Forecaster, Settings, Workspace
from streamridge.errors import FitError
from streamridge_service.ledger.records import RefitPoint

# Earlier than any reading.
NEVER = -(1 << 60)
# Days over which errors are averaged: for the last day, for the trend, and for comparison.
LATELY, TREND, USUALLY = 1, 3, 28
# The relative change of errors that counts as a trend.
CHANGED = 0.15


class Scores(msgspec.Struct, frozen=True):
    """Moving averages of squared errors over three spans, and the share of readings outside bands.

    Before a span is full, its average is the plain mean of all errors so far.
    """

    count: int = 0
    lately: float = 0.0
    trend: float = 0.0
    usually: float = 0.0
    outside: float = 0.0

    def after(self, error: float, *, outside: bool, day: int) -> Scores:
        """Return the scores after one more error; `day` is the number of steps a day."""
        count, square = self.count + 1, error * error
        return Scores(
            count,
            self._moved(self.lately, square, LATELY * day),
            self._moved(self.trend, square, TREND * day),
            self._moved(self.usually, square, USUALLY * day),
            self._moved(self.outside, float(outside), LATELY * day),
        )

    def _moved(self, mean: float, value: float, span: int) -> float:
        return mean + (value - mean) / min(self.count + 1, span)

    @property
    def error(self) -> float | None:
        """Return the root mean square error of the last day."""
        return sqrt(self.lately) if self.count else None

    @property
    def ratio(self) -> float | None:
        """Return the error of the last day divided by the error of the last four weeks."""
        return sqrt(self.lately / self.usually) if self.usually else None

    @property
    def direction(self) -> str:
        """Return the trend of errors: "up", "down" or "flat"."""
        if self.lately > (1 + CHANGED) ** 2 * self.trend:
            return "up"
        return "down" if self.lately < (1 - CHANGED) ** 2 * self.trend else "flat"


class SensorSummary(msgspec.Struct, frozen=True):
    """The state of a sensor outside its forecaster; stored with each snapshot as JSON."""

    # Times of the newest and of the first processed step.
    newest: int = NEVER
    first: int = NEVER
    value: float | None = None  # the last reading
    equal: int = 0  # number of equal readings in a row, up to the last one
    doubted: bool = False  # whether the last reading was implausible
    fitted: bool = False  # whether there is a model
    failed: str | None = None  # why the last refit failed, if it did
    rebuilt: bool = False  # whether the state was rebuilt from the readings since the last refit
    scores: Scores = Scores()  # errors of its forecasts

    def after(
        self, time: int, value: float | None, scores: Scores, *, doubted: bool
    ) -> SensorSummary:
        """Return the summary after one more step."""
        first = time if self.first == NEVER else self.first
        if value is None:
            return msgspec.structs.replace(self, newest=time, first=first, doubted=False)
        equal = self.equal + 1 if value == self.value else 1
        return msgspec.structs.replace(
            self, newest=time, first=first, value=value, equal=equal, doubted=doubted, scores=scores
        )


class SavedState(msgspec.Struct, frozen=True):
    """The state of a sensor at a refit point, before the refit."""

    point: RefitPoint
    state: bytes
    summary: SensorSummary


def refit_or_raise(forecaster: Forecaster, workspace: Workspace | None = None) -> None:
    """Refit, or raise a `FitError`; a forecaster alone only counts a failure."""
    failures = forecaster.counts.get("failed_refits", 0)
    forecaster.refit(workspace)
    if forecaster.counts.get("failed_refits", 0) > failures:
        raise FitError("the equations could not be solved")


def reproducible_bytes(forecaster: Forecaster) -> bytes:
    """Return the bytes of a forecaster after setting its running times to zero.

    Running times differ from run to run; all other bytes depend on the log alone.
    """
    costs = forecaster.tuning.costs
    costs.tuning = costs.fitting = costs.predicting = 0.0
    return forecaster.to_bytes()


def tuning_of(forecaster: Forecaster) -> dict[str, Any]:
    """Return hyperparameters, those at a bound, frozen ones, and the weights of experts."""
    return {
        "values": forecaster.hyperparameters,
        "experts": forecaster.tuning.experts,
        "at_bound": forecaster.tuning.active_bounds,
        "frozen": list(forecaster.tuning.frozen),
    }


def hyperparameter_bounds(settings: Settings) -> dict[str, tuple[float, float]]:
    """Return the least and the greatest value of every hyperparameter by name."""
    bounds: dict[str, tuple[float, float]] = {}
    for group in settings.model.space.groups:
        feasible = group.feasible
        if isinstance(feasible, Box):
            pairs = list(zip(feasible.low.tolist(), feasible.high.tolist(), strict=True))
        else:
            pairs = [(0.0, 1.0)] * feasible.size  # weights
        bounds |= dict(zip(group.names, pairs, strict=True))
    return bounds


@cache
def fingerprint() -> str:
    """Return the processor and the library versions, on which the last bits of numbers depend."""
    blas = sorted(
        f"{each.get('internal_api')}-{each.get('version')}-{each.get('architecture', '')}"
        for each in threadpool_info()
        if each.get("user_api") == "blas"
    )
    return "|".join([platform.machine(), np.__version__, scipy.__version__, *blas, "1 thread"])
