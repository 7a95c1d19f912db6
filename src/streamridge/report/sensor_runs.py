"""The runs of a report grouped by sensor, and the curves that are derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.features.base import feature_words
from streamridge.forecaster.forecast import Levels
from streamridge.forecaster.methods import needs_model
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.hyperparameters.space import GroupNames
from streamridge.metrics import coverage_window, recent_window, rolling_coverage, rolling_rmse
from streamridge.runs.run import BASELINE, Run, change
from streamridge.series.times import Times

# Marks of a hyperparameter at a bound.
BOUND_MARKS = {
    "lower": " \N{BLACK DOWN-POINTING TRIANGLE}",
    "upper": " \N{BLACK UP-POINTING TRIANGLE}",
}
# Labels of the experts; all other experts are named after a season.
EXPERTS = {"model": "model", "start": "smaller model, not tuned", "last": "last reading"}
# The name of a column of a seasonal profile, such as "day profile 2".
NAMED_SEASONS = ("day", "week", "year")


@dataclass(frozen=True)
class SensorRuns:
    """The runs of one sensor, each by a different method."""

    sensor: str
    runs: tuple[Run, ...]

    @property
    def main(self) -> Run:
        """Return the run to show first; it is the baseline only if there is no other."""
        scored = self.scored
        candidates = [run for run in scored if needs_model(run.method)] or scored or self.runs
        return next((run for run in candidates if run.method != BASELINE), candidates[0])

    @property
    def baseline(self) -> Run | None:
        """Return the run that the others are compared with, if there is one."""
        return next((run for run in self.runs if run.method == BASELINE), None)

    @property
    def with_model(self) -> tuple[Run, ...]:
        """Return the runs of methods with a model; all runs if there is none."""
        return tuple(run for run in self.runs if needs_model(run.method)) or self.runs

    @property
    def scored(self) -> tuple[Run, ...]:
        """Return the runs with at least one error."""
        return tuple(run for run in self.runs if run.errors().size)

    @property
    def with_bands(self) -> tuple[Run, ...]:
        """Return the scored runs whose forecasts have bands."""
        return tuple(run for run in self.scored if run.has_bands)

    @property
    def levels(self) -> Levels:
        """Return the distinct levels of the bands of all runs."""
        return tuple(dict.fromkeys(level for run in self.runs for level in run.levels))

    def change(self, run: Run) -> float:
        """Return the relative change of RMSE from the baseline; NaN if there is no baseline."""
        return np.nan if run is self.baseline else change(run, self.baseline)


@dataclass(frozen=True)
class NameGroups:
    """Names of hyperparameters, grouped by the figure that shows them."""

    weights: Mapping[str, tuple[str, ...]]  # weights of kernels, by the name of their mixture
    indexed: Mapping[str, tuple[str, ...]]  # one value per feature, by group
    others: tuple[str, ...]

    @classmethod
    def of(cls, groups: Sequence[GroupNames]) -> NameGroups:
        """Return the names of groups of hyperparameters."""
        weights = {each.name: each.names for each in groups if each.kind == "weight"}
        rest = [each for each in groups if each.kind != "weight"]
        indexed = {each.name: each.names for each in rest if each.names != (each.name,)}
        return cls(weights, indexed, tuple(each.name for each in rest if each.name not in indexed))


@dataclass(frozen=True)
class TuningPath:
    """The hyperparameters of a method at each refit."""

    method: str
    times: Times  # (n,), the times of the refits
    values: HyperparameterPath
    bounds: Mapping[str, str]  # "lower" or "upper", for hyperparameters that end at a bound

    @classmethod
    def of(cls, run: Run) -> TuningPath | None:
        """Return the path of a run; None if its hyperparameters never changed."""
        path = run.path
        if path is None or (path.values == path.values[:1]).all():
            return None
        return cls(run.method, run.refit_times, path, run.active_bounds)

    @property
    def groups(self) -> NameGroups:
        """Return the names of the hyperparameters, grouped by figure."""
        return NameGroups.of(self.values.groups)

    def marked(self, name: str, label: str) -> str:
        """Return a label, with a mark if the hyperparameter ends at a bound."""
        return label + BOUND_MARKS.get(self.bounds.get(name, ""), "")


def by_sensor(runs: Sequence[Run]) -> list[SensorRuns]:
    """Return runs grouped by sensor, together with the naive forecasts of the first run.

    A second run of the same method gets a number, as in "ohl (2)".
    """
    grouped: dict[str, dict[str, Run]] = {}
    for run in runs:
        methods = grouped.setdefault(run.sensor, {})
        name, number = run.method, 1
        while name in methods:
            number += 1
            name = f"{run.method} ({number})"
        methods[name] = replace(run, method=name)
    for methods in grouped.values():
        first = next(iter(methods.values()))
        for name in first.naive_forecasts:
            methods.setdefault(name, first.naive_run(name))
    return [SensorRuns(sensor, tuple(each.values())) for sensor, each in grouped.items()]


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
    """Return times, and the RMSE over the last days before each of them."""
    window = recent_window(len(run.times), run.day)
    return run.times[window - 1 :], rolling_rmse(run.errors_in_time, window)[window - 1 :]


def expert_weights(run: Run) -> dict[str, Vector]:
    """Return the weights of a run's experts over time by label; empty with fewer than two times."""
    path = run.expert_path
    if len(path.times) < 2:
        return {}
    return {expert_label(name): weights for name, weights in path.by_name().items()}


def expert_label(name: str) -> str:
    """Return the label of an expert.

    Examples
    --------
    >>> expert_label("start"), expert_label("week"), expert_label("8h"), expert_label("12")
    ('smaller model, not tuned', 'a week ago', '8h ago', '12 steps ago')
    """
    if name in EXPERTS:
        return EXPERTS[name]
    if name in NAMED_SEASONS:
        return f"a {name} ago"
    return f"{name} steps ago" if name.isdecimal() else f"{name} ago"


def short_name(name: str) -> str:
    """Return the part of a name after its last dot.

    Examples
    --------
    >>> short_name("weight.drifting"), short_name("matern.inverse_scales[3]")
    ('drifting', 'inverse_scales[3]')
    """
    return name.rpartition(".")[2]


def feature_labels(count: int, feature_names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of features; numbered names if the number of names does not match.

    Examples
    --------
    >>> feature_labels(2, ["lags 1", "rain"]), feature_labels(2, None)
    (('1 step ago', 'rain'), ('feature 1', 'feature 2'))
    """
    if feature_names is not None and len(feature_names) == count:
        return feature_words(feature_names)
    return tuple(f"feature {i + 1}" for i in range(count))
