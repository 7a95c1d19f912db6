"""The state of one sensor: its summary, and helpers for its forecaster."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import msgspec
import numpy as np
import scipy
from threadpoolctl import threadpool_info

from streamridge import Box, Forecaster, Settings, Workspace
from streamridge.errors import FitError
from streamridge_service.ledger.records import RefitPoint
from streamridge_service.plan import NEVER
from streamridge_service.workers.error_scores import ErrorHistory, Scores


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
    score: float | None = None  # anomaly score of the last reading, if it was forecast
    outside: int = 0  # number of readings outside their bands in a row, up to the last one
    # Errors of its forecasts. Earlier versions stored other figures by the name "scores".
    scores: Scores = msgspec.field(default=Scores(), name="figures")
    errors: ErrorHistory = ErrorHistory()  # the sums behind them, which only workers need

    def after(self, time: int, value: float | None, *, doubted: bool) -> SensorSummary:
        """Return the summary after one more step."""
        first = time if self.first == NEVER else self.first
        if value is None:
            return msgspec.structs.replace(self, newest=time, first=first, doubted=False)
        equal = self.equal + 1 if value == self.value else 1
        return msgspec.structs.replace(
            self, newest=time, first=first, value=value, equal=equal, doubted=doubted, score=None
        )

    def scored(self, error: float, score: float | None, *, outside: bool) -> SensorSummary:
        """Return the summary with the error and the anomaly score of the last reading."""
        run = self.outside + 1 if outside else 0
        if self.doubted:  # an implausible reading does not count as an error
            return msgspec.structs.replace(self, score=score, outside=run)
        errors = self.errors.after(self.newest, error, outside=outside)
        return msgspec.structs.replace(
            self, score=score, outside=run, errors=errors, scores=errors.scores
        )

    @property
    def shown(self) -> SensorSummary:
        """Return the summary without the sums behind its scores."""
        return msgspec.structs.replace(self, errors=ErrorHistory())


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
