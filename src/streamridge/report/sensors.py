"""The runs of a report by sensor, and what the report shows of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.forecaster.levels import Levels
from streamridge.forecaster.methods import needs_model
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.metrics import coverage_window, recent_window, rolling_coverage, rolling_rmse
from streamridge.plots.tuning import BOUND_MARKS
from streamridge.runs.run import BASELINE, Run, change
from streamridge.series.clock import Times


@dataclass(frozen=True)
class SensorRuns:
    """The runs of one sensor; no two have the same method.

    Parameters
    ----------
    sensor
        Its name, as it was given.
    runs
        One per method.
    """

    sensor: str
    runs: tuple[Run, ...]

    @property
    def lead(self) -> Run:
        """Return the run to show first; it is the baseline only if there is no other."""
        scored = self.scored
        candidates = [run for run in scored if needs_model(run.method)] or scored or self.runs
        return next((run for run in candidates if run.method != BASELINE), candidates[0])

    @property
    def baseline(self) -> Run | None:
        """Return the run that the others are compared with, if there is one."""
        return next((run for run in self.runs if run.method == BASELINE), None)

    @property
    def modelled(self) -> tuple[Run, ...]:
        """Return the runs of forecasters; all runs if there is none."""
        return tuple(run for run in self.runs if needs_model(run.method)) or self.runs

    @property
    def banded(self) -> tuple[Run, ...]:
        """Return the scored runs whose forecasts have bands."""
        return tuple(run for run in self.scored if run.has_bands)

    @property
    def levels(self) -> Levels:
        """Return the levels of the bands of all runs, each once."""
        return tuple(dict.fromkeys(level for run in self.runs for level in run.levels))

    @property
    def scored(self) -> tuple[Run, ...]:
        """Return the runs with at least one error."""
        return tuple(run for run in self.runs if run.errors().size)

    def change(self, run: Run) -> float:
        """Return the relative change of RMSE from the baseline's; NaN if there is no baseline."""
        return np.nan if run is self.baseline else change(run, self.baseline)


@dataclass(frozen=True)
class Moves:
    """The hyperparameters of a method over time, refit by refit.

    Parameters
    ----------
    method
        Its name.
    times
        (n,), the times of the refits.
    path
        The values at each refit.
    bounds
        Which hyperparameters are at their "lower" or "upper" bound at the end.
    """

    method: str
    times: Times
    path: HyperparameterPath
    bounds: Mapping[str, str]

    def marked(self, name: str, label: str) -> str:
        """Return a label, with a mark if the hyperparameter is at a bound."""
        return label + BOUND_MARKS.get(self.bounds.get(name, ""), "")


def by_sensor(runs: Sequence[Run]) -> list[SensorRuns]:
    """Return the runs grouped by sensor, in the order of the first run of each."""
    grouped: dict[str, dict[str, Run]] = {}
    for run in runs:
        methods = grouped.setdefault(run.sensor, {})
        name, times = run.method, 1
        while name in methods:
            times += 1
            name = f"{run.method} ({times})"
        methods[name] = replace(run, method=name)
    return [SensorRuns(sensor, _with_yardsticks(each)) for sensor, each in grouped.items()]


def _with_yardsticks(runs: dict[str, Run]) -> tuple[Run, ...]:
    """Return runs by method, and those of forecasts without a model that are not there yet."""
    first = next(iter(runs.values()))
    beside = {name: first.yardstick(name) for name in first.yardsticks}
    return tuple({**runs, **{n: run for n, run in beside.items() if n not in runs}}.values())


def coverage_in_time(run: Run) -> Matrix:
    """Return the share of values within their band over the week before each step, (T, L)."""
    window = coverage_window(len(run.times), run.day)
    return np.column_stack(
        [
            rolling_coverage(run.scored, band.lower[:, 0], band.upper[:, 0], window)
            for band in run.bands
        ]
    )


def recent_rmse(run: Run) -> tuple[Times, Vector]:
    """Return times, and the RMSE over the last days before each, from the first whole one on."""
    window = recent_window(len(run.times), run.day)
    return run.times[window - 1 :], rolling_rmse(run.errors_in_time, window)[window - 1 :]


def moves_of(run: Run) -> Moves | None:
    """Return the hyperparameters over time, or None if they never moved."""
    path = run.path
    if path is None or (path.values == path.values[:1]).all():
        return None
    return Moves(run.method, run.refit_times, path, run.active_bounds)
