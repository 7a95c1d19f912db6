"""The result of a replay: forecasts, readings, scores, and how they can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, SameContent, Vector
from streamridge.errors import InvalidInputError, about, html_table
from streamridge.files.frames import BACKENDS, make_frame
from streamridge.forecaster.forecast import (
    Levels,
    band_columns,
    band_words,
    by_level,
    named,
    require_levels,
)
from streamridge.forecaster.relevance import Relevance, relevance_of
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.learners.base import Costs
from streamridge.metrics import coverage, errors_ahead, finite_or_none, made_ahead, mae, rmse
from streamridge.plots.axes import new_figure, plain
from streamridge.plots.figures import plot_band, plot_running_rmse
from streamridge.runs.scores import Score
from streamridge.series.clock_fitting import times_ahead
from streamridge.series.lengths import parse_length
from streamridge.series.series import Counts
from streamridge.series.spans import Span, within
from streamridge.series.time_format import NAIVE, TimeFormat, time_columns
from streamridge.series.times import Times

# The method that other methods are compared with.
BASELINE = "fixed"
DAY = np.timedelta64(1, "D")
# Names of the counts that do not depend on the method.
SERIES_COUNTS = tuple(part.name for part in fields(Counts))


@dataclass(frozen=True, eq=False)
class Band(SameContent):
    """The bands of one level around the forecasts of a run."""

    level: float  # the share of values that the bands should hold
    lower: Matrix  # (T, H), like `upper`
    upper: Matrix


@dataclass(frozen=True, eq=False)
class ExpertPath(SameContent):
    """The weights of the experts in the course of a run: after each refit, and at least daily."""

    times: Times  # (n,), the steps after which the weights were recorded
    names: tuple[str, ...]  # (K,), the names of the experts
    weights: Matrix  # (n, K), the weights in the next forecast; each row sums to one

    @classmethod
    def empty(cls) -> ExpertPath:
        """Return the path of a run without experts."""
        return cls(np.zeros(0, dtype=np.int64), (), np.zeros((0, 0)))

    @property
    def last(self) -> dict[str, float]:
        """Return the weights at the end by name; empty without experts."""
        return {name: float(each[-1]) for name, each in self.by_name().items()}

    def by_name(self) -> Mapping[str, Vector]:
        """Return the weights of each expert over time, (n,) each."""
        return dict(zip(self.names, self.weights.T, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Run(SameContent):
    """The forecasts of a series, for T scored steps and H steps ahead of each.

    Two runs are equal if all fields but the seconds are equal.

    Parameters
    ----------
    sensor, method, step
        The names of the sensor and of the tuning method, and the time between readings.
    times, local_times
        (T,), the scored steps, in UTC if the sensor has a zone, and in its local time. An index has
        whole numbers.
    actual
        (T,), the readings; NaN if one is missing or outside the known bounds.
    value
        (T, H); row i was made before `actual[i]` was known, column h is for the step i + h.
    lower, upper, level
        (T, H) with one level, (T, H, L) with several; see `bands`.
    by_model
        (T,), whether the model made most of the forecast; otherwise a naive forecast did.
    steps_done, interrupted
        The number of steps, including the warm-up, and whether the run was stopped before its end.
    path, refit_times, hyperparameters, active_bounds
        The hyperparameters after each refit, the times of refits, (n,), the last values, and the
        bounds that they reach.
    costs, seconds
        Processor seconds by kind of work, and in total.
    counts
        Readings that were dropped, filled, doubted or conflicting, and the number of fits.
    backend, time_format
        The library of the frame that the series came from, and the format of its times.
    excluded
        Spans that were neither learned from nor scored.
    implausible
        (T,), readings that scores leave out, see `implausible_readings`; None for no such reading.
    naive_forecasts
        The naive forecasts "last" and, with a season, "week"; (T, H) each, as `value`.
    expert_path
        The weights of the experts over time; empty without experts.
    feature_names
        The features by which the model compares rows; see `relevance`.
    neighbours
        The sensors whose errors correct the forecasts, and how much; empty without corrections.
    """

    sensor: str
    method: str
    step: np.timedelta64 | np.int64
    times: Times
    local_times: Times
    actual: Vector
    value: Matrix
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    by_model: NDArray[np.bool_]
    steps_done: int
    path: HyperparameterPath | None
    refit_times: Times
    hyperparameters: Mapping[str, float]
    active_bounds: Mapping[str, str]
    costs: Costs = field(compare=False)
    seconds: float = field(compare=False)
    counts: Mapping[str, int]
    level: float | Levels
    interrupted: bool = False
    backend: str | None = field(default=None, compare=False)
    excluded: tuple[Span, ...] = ()
    time_format: TimeFormat = NAIVE
    implausible: Mask | None = None
    naive_forecasts: Mapping[str, Matrix] = field(default_factory=dict)
    expert_path: ExpertPath = field(default_factory=ExpertPath.empty)
    feature_names: tuple[str, ...] = ()
    neighbours: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Run({', '.join(f'{name}={text}' for name, text in self._summary().items())})"

    def _repr_html_(self) -> str:
        summary = self._summary()
        return html_table(list(summary), [list(summary.values())])

    def _summary(self) -> dict[str, str]:
        return {
            "sensor": repr(self.sensor),
            "method": repr(self.method),
            "scored": str(_count(self.scored)),
            "rmse": f"{self.rmse:.4g}",
            "coverage": f"{self.coverage:.3g}",
            **({"interrupted": "True"} if self.interrupted else {}),
        }

    @property
    def horizon(self) -> int:
        """Return H."""
        return self.value.shape[1]

    @property
    def zone(self) -> str | None:
        """Return the zone of the written times, such as UTC+02:00; None without any."""
        return self.time_format.name

    @property
    def day(self) -> int:
        """Return the number of steps of a day; 24 for steps of a day and longer."""
        return round(1 / self._days) if self.has_hours else 24

    @property
    def has_hours(self) -> bool:
        """Return whether steps are shorter than a day, so that errors can depend on the hour."""
        return self._days < 1

    @property
    def has_weekdays(self) -> bool:
        """Return whether steps are at most a day, so that errors can depend on the weekday."""
        return self._days <= 1

    @property
    def _days(self) -> float:
        """Return the length of a step in days; infinite for an index."""
        return float(self.step / DAY) if isinstance(self.step, np.timedelta64) else np.inf

    @property
    def scored_span(self) -> tuple[str, str] | None:
        """Return the times of the first and the last scored step as text; None without any step."""
        if not len(self.times):
            return None
        first, last = self.time_format.texts(self.times[[0, -1]], "auto")
        return first, last

    @property
    def scored(self) -> Vector:
        """Return the readings that are scored, shape (T,); NaN at all other steps."""
        if self.implausible is None:
            return self._not_excluded
        return np.where(self.implausible, np.nan, self._not_excluded)

    @property
    def _not_excluded(self) -> Vector:
        """Return the readings that are not excluded, with the implausible ones, shape (T,)."""
        return np.where(within(self.excluded, self.times), np.nan, self.actual)

    @property
    def implausible_count(self) -> int:
        """Return the number of implausible readings, which scores leave out."""
        return _count(self._not_excluded) - _count(self.scored)

    @property
    def rmse(self) -> float:
        """Return the root mean squared error one step ahead."""
        return rmse(self.errors())

    @property
    def rmse_all(self) -> float:
        """Return the root mean squared error one step ahead, with implausible readings."""
        return rmse(self._errors_all)

    @property
    def mae_all(self) -> float:
        """Return the mean absolute error one step ahead, with implausible readings."""
        return mae(self._errors_all)

    @property
    def _errors_all(self) -> Vector:
        return _known(errors_ahead(self._not_excluded, self.value, 1))

    @property
    def mae(self) -> float:
        """Return the mean absolute error one step ahead."""
        return mae(self.errors())

    @property
    def rmse_relative(self) -> float:
        """Return the RMSE divided by the RMSE of the naive forecast of a season ago."""
        return self.score(1).relative

    def score(self, ahead: int) -> Score:
        """Return the errors of the forecasts some steps ahead."""
        errors = self._errors_in_time(ahead)
        naive = {
            name: errors_ahead(self.scored, values, ahead)[~np.isnan(errors)]
            for name, values in self.naive_forecasts.items()
        }
        return Score(
            ahead,
            rmse=rmse(_known(errors)),
            mae=mae(_known(errors)),
            coverages={
                band.level: coverage(
                    self.scored[ahead - 1 :],
                    made_ahead(band.lower, ahead),
                    made_ahead(band.upper, ahead),
                )
                for band in self.bands
            },
            naive={name: rmse(_known(each)) for name, each in naive.items()},
        )

    @property
    def horizons(self) -> list[Score]:
        """Return the score of every number of steps ahead."""
        return [self.score(ahead) for ahead in range(1, self.horizon + 1)]

    @property
    def share_by_model(self) -> float:
        """Return the share of scored steps whose forecast the model made."""
        known = ~np.isnan(self.scored)
        return float(self.by_model[known].mean()) if known.any() else np.nan

    @property
    def levels(self) -> Levels:
        """Return the levels of the bands, one or more, in the order given."""
        return require_levels(self.level)

    @property
    def bands(self) -> tuple[Band, ...]:
        """Return the bands of each level, in the order given."""
        lower, upper = (by_level(ends, self.levels) for ends in (self.lower, self.upper))
        return tuple(map(Band, self.levels, lower, upper))

    @property
    def has_bands(self) -> bool:
        """Return whether there is any band; naive forecasts have none."""
        return not bool(np.isnan(self.lower).all())

    @property
    def coverages(self) -> dict[float, float]:
        """Return the share of values within their band one step ahead, by level."""
        return dict(self.score(1).coverages)

    @property
    def coverage(self) -> float:
        """Return the share of values within their band one step ahead, at the first level."""
        return self.coverages[self.levels[0]]

    def errors(self, ahead: int = 1) -> Vector:
        """Return the scored readings minus their forecasts, made `ahead` steps before."""
        return _known(self._errors_in_time(ahead))

    @property
    def errors_in_time(self) -> Vector:
        """Return reading minus forecast one step ahead, shape (T,); NaN where nothing is scored."""
        return self._errors_in_time(1)

    def _errors_in_time(self, ahead: int) -> Vector:
        if not 1 <= ahead <= self.horizon:
            raise InvalidInputError(f"ahead must lie between 1 and {self.horizon}, got {ahead}.")
        return errors_ahead(self.scored, self.value, ahead)

    def rmse_until(self, steps: int | None) -> float:
        """Return RMSE(t) after the first `steps` scored steps, or after all."""
        return rmse(_known(self.errors_in_time[:steps]))

    def relevance(self) -> Relevance:
        """Return which features and neighbours the forecasts use at the end of the run."""
        with about(self.sensor):
            features = relevance_of(self.hyperparameters, self.feature_names)
        return replace(features, neighbours=self.neighbours)

    def naive_run(self, name: str) -> Run:
        """Return the run of a naive forecast over the same steps; it has no bands."""
        no_band = np.full(self.lower.shape, np.nan)
        return replace(
            self,
            method=name,
            value=self.naive_forecasts[name],
            lower=no_band,
            upper=no_band,
            by_model=np.zeros(len(self.times), dtype=bool),
            path=None,
            refit_times=self.times[:0],
            expert_path=ExpertPath.empty(),
            hyperparameters={},
            active_bounds={},
            costs=Costs(),
            seconds=0.0,
            counts={name: n for name, n in self.counts.items() if name in SERIES_COUNTS},
        )

    def record(self) -> dict[str, Any]:
        """Return the results of the run as plain values, with None for NaN.

        Each of several levels has a coverage, such as "coverage_80" and "coverage_95".
        "experts" holds the last weights by name; it is None without experts. "neighbours" is the
        field of that name, or None.
        """
        read, scored, score = _count(self.actual), _count(self.scored), self.score(1)
        first, last = self.scored_span or (None, None)
        figures = {
            "rmse": score.rmse,
            "rmse_relative": score.relative,
            "mae": score.mae,
            **named("coverage", self.levels, list(score.coverages.values())),
            "rmse_all": self.rmse_all,
            "mae_all": self.mae_all,
            **{f"rmse_{name}": each for name, each in score.naive.items()},
            "by_model": self.share_by_model,
        }
        return {
            "sensor": self.sensor,
            "method": self.method,
            "steps": self.steps_done,
            "scored": scored,
            "scored_from": first,
            "scored_to": last,
            "missing": len(self.actual) - read,
            "excluded": read - scored - self.implausible_count,
            "implausible": self.implausible_count,
            "interrupted": self.interrupted,
            **{name: finite_or_none(figure) for name, figure in figures.items()},
            "horizons": [each.record() for each in self.horizons],
            "seconds_total": self.seconds,
            "seconds_tuning": self.costs.tuning,
            "seconds_fitting": self.costs.fitting,
            "seconds_predicting": self.costs.predicting,
            "fits": self.counts.get("fits", 0) + self.counts.get("tuning_fits", 0),
            "gradients": self.counts.get("gradients", 0),
            "hyperparameters": dict(self.hyperparameters),
            "active_bounds": dict(self.active_bounds),
            "experts": self.expert_path.last or None,
            "neighbours": dict(self.neighbours) or None,
            "counts": dict(self.counts),
        }

    def columns(self) -> dict[str, Any]:
        """Return a row for each forecast: sensor, method, time, horizon, actual, value, band.

        Times have the format of the readings: the same zone or offset, as `ZonedTimes`, or the same
        local time. Local times occur twice when clocks are set back, so `utc` is a further column.
        The band is "lower" and "upper"; with several levels there are two columns for each, such as
        "lower_80", "upper_80", "lower_95" and "upper_95".
        """
        rows, horizon = self.value.shape
        ahead = np.arange(horizon)
        at = np.arange(rows)[:, None] + ahead
        actual = np.append(self.actual, np.nan)[np.minimum(at, rows)]
        ends_by_name = band_columns(self.levels, self.lower, self.upper)
        times = times_ahead(self.times, parse_length("step", self.step), horizon, self.time_format)
        return {
            "sensor": np.full(rows * horizon, self.sensor),
            "method": np.full(rows * horizon, self.method),
            **time_columns(times.ravel(), self.time_format),
            "horizon": np.tile(1 + ahead, rows),
            "actual": actual.ravel(),
            "value": self.value.ravel(),
            **{name: ends.ravel() for name, ends in ends_by_name.items()},
        }

    def frame(self, backend: str | None = None) -> Any:
        """Return `columns` as a frame of the library that the series came from, or of another.

        A column has one zone: times with different offsets and no zone are in UTC.
        """
        return make_frame(self.columns(), backend or self.backend)

    def in_local_time(self) -> Run:
        """Return the run with all times as clocks show them where its readings were written."""
        local = self.time_format.local
        spans = [local(np.array([span.start, span.end])) for span in self.excluded]
        return replace(
            self,
            times=local(self.times),
            refit_times=local(self.refit_times),
            expert_path=replace(self.expert_path, times=local(self.expert_path.times)),
            excluded=tuple(Span(*ends) for ends in spans),
            time_format=NAIVE,
        )

    def seconds_by_kind(self) -> dict[str, float]:
        """Return the seconds by kind of work."""
        costs = self.costs
        return {
            "tuning": costs.tuning,
            "fitting": costs.fitting,
            "predicting": costs.predicting,
            "all else": max(0.0, self.seconds - costs.total),
        }

    def plot(self, days: float = 3.0) -> Any:
        """Return a figure of the last days with their band, and of RMSE(t)."""
        figure = new_figure(2)
        above, below = figure.axes
        last = slice(-max(2, round(days * self.day)), None)
        plot_band(
            above,
            self.times[last],
            self.actual[last],
            *(ends[last, 0] for ends in (self.value, self.lower, self.upper)),
            levels=self.levels,
            method=self.method,
        )
        above.set(title=f"{plain(self.sensor)}, one step ahead, with {band_words(self.levels)}")
        runs = [self, *map(self.naive_run, self.naive_forecasts)]
        errors = {run.method: run.errors_in_time for run in runs}
        plot_running_rmse(below, errors, steps_a_day=self.day, in_days=self.has_hours)
        return figure


def change(run: Run, baseline: Run | None, steps: int | None = None) -> float:
    """Return the relative change of a run's RMSE from a baseline, over their common scored steps.

    At most `steps` of them count. It is NaN without a baseline, or if its RMSE is zero.
    """
    if baseline is None:
        return np.nan
    shared = min(len(run.times), len(baseline.times), steps or len(run.times))
    base = baseline.rmse_until(shared)
    return run.rmse_until(shared) / base - 1 if base > 0 else np.nan


def backend_of(source: Any) -> str | None:
    """Return the library of a frame or series; None for another source."""
    module = type(source).__module__.partition(".")[0]
    return module if module in BACKENDS else None


def _known(errors: Vector) -> Vector:
    return errors[~np.isnan(errors)]


def _count(readings: Vector) -> int:
    return int((~np.isnan(readings)).sum())
