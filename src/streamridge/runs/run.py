"""What a forecaster made of a series, and what can be read off it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, SameContent, Vector
from streamridge.errors import InvalidInputError
from streamridge.files.framing import BACKENDS, framed
from streamridge.forecaster.levels import (
    Levels,
    band_columns,
    band_words,
    by_level,
    named,
    require_levels,
)
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.learners.costs import Costs
from streamridge.metrics import coverage, errors_ahead, finite_or_none, made_ahead, mae, rmse
from streamridge.plots.axes import new_figure, plain
from streamridge.plots.figures import plot_band, plot_running_rmse
from streamridge.runs.expert_path import ExpertPath
from streamridge.runs.scores import Score
from streamridge.series.clock import Times
from streamridge.series.series import Counts
from streamridge.series.spans import Span, within
from streamridge.series.writing import AS_IS, Writing, time_columns
from streamridge.texts import html_table

# The method that the others are held against.
BASELINE = "fixed"
DAY = np.timedelta64(1, "D")
# Counts of what was read, whatever the method made of it.
READ = tuple(part.name for part in fields(Counts))


@dataclass(frozen=True, eq=False)
class Band(SameContent):
    """The bands of one level around the forecasts of a run.

    Parameters
    ----------
    level
        The share of values that they should hold.
    lower, upper
        (T, H), their ends.
    """

    level: float
    lower: Matrix
    upper: Matrix


@dataclass(frozen=True, eq=False, repr=False)
class Run(SameContent):
    """What a forecaster made of a series; T steps were scored, H steps ahead each.

    Two runs are equal if all but their seconds is: the machine has no part in what a run says.

    Parameters
    ----------
    sensor, method
        Names: whose series, and how it was tuned.
    step
        Time between readings.
    times
        (T,), of the scored steps; in UTC where the sensor has a zone. Whole numbers for an index.
    local_times
        (T,), the same on the sensor's own clock.
    actual
        (T,), NaN where there was no reading, or one outside the known bounds.
    value
        (T, H); row i was made before `actual[i]` was known, column h is for the step i + h.
    lower, upper
        (T, H) with one level, (T, H, L) with several; see `bands`.
    by_model
        (T,), whether a model made the forecast, or a naive one stood in for it.
    lived
        How many steps were lived through, the warm-up included.
    path, active_bounds, hyperparameters
        Where the hyperparameters have been, the bounds they sit at, and where they are.
    refit_times
        (n,), the times of the path.
    costs, seconds
        Processor seconds by kind of work, and in all: what else the machine did does not count.
    counts
        What was dropped, filled, doubted or conflicting, and how many fits were made.
    level
        Of the bands: a number, or several in the order given.
    interrupted
        Whether it was stopped before its end.
    backend
        The kind of frame that the series came in.
    excluded
        Spans that were not learned from; they count in no score.
    writing
        How the times of the readings were written; `columns` and `frame` write theirs the same way.
    implausible
        (T,), readings that are scored apart, see `implausible_readings`; None stands for no such
        reading.
    yardsticks
        What forecasts that need no model say, by name: "last" and, where there is a season, "week";
        (T, H) each, as `value`.
    expert_path
        How far each expert was trusted; empty where nothing is mixed.
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
    lived: int
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
    writing: Writing = AS_IS
    implausible: Mask | None = None
    yardsticks: Mapping[str, Matrix] = field(default_factory=dict)
    expert_path: ExpertPath = field(default_factory=ExpertPath.empty)

    def __repr__(self) -> str:
        return f"Run({', '.join(f'{name}={text}' for name, text in self._summary().items())})"

    def _repr_html_(self) -> str:
        figures = self._summary()
        return html_table(list(figures), [list(figures.values())])

    def _summary(self) -> dict[str, str]:
        """Return what the run is and how good it was, in a few words each."""
        scored = int((~np.isnan(self.scored)).sum())
        return {
            "sensor": repr(self.sensor),
            "method": repr(self.method),
            "scored": str(scored),
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
        """Return the zone in which times are written, such as UTC+02:00; None without any."""
        return self.writing.name

    @property
    def day(self) -> int:
        """Return the steps of a day, of which figures show some; 24 where a step is not shorter."""
        return round(1 / self._days) if self.has_hours else 24

    @property
    def has_hours(self) -> bool:
        """Return whether steps are shorter than a day, so that errors can depend on the hour."""
        return self._days < 1

    @property
    def has_weekdays(self) -> bool:
        """Return whether steps are not longer than a day, so that errors can depend on the day."""
        return self._days <= 1

    @property
    def _days(self) -> float:
        """Return the days of a step; infinite for an index, which has no days."""
        return float(self.step / DAY) if isinstance(self.step, np.timedelta64) else np.inf

    @property
    def scored(self) -> Vector:
        """Return the readings that scores count, shape (T,); NaN at all other steps.

        They are neither excluded nor implausible.
        """
        apart = np.zeros(1, dtype=bool) if self.implausible is None else self.implausible
        return _without(self.scored_all, apart)

    @property
    def scored_all(self) -> Vector:
        """Return the readings that are not excluded, the implausible ones among them, (T,)."""
        return _without(self.actual, within(self.excluded, self.times))

    @property
    def scored_apart(self) -> int:
        """Return how many implausible readings the scores leave out."""
        return int(np.isnan(self.scored).sum() - np.isnan(self.scored_all).sum())

    @property
    def rmse(self) -> float:
        """Return the root mean squared error one step ahead; NaN if nothing was scored."""
        return rmse(self.errors())

    @property
    def rmse_all(self) -> float:
        """Return the root mean squared error one step ahead, implausible readings included."""
        return rmse(_known(errors_ahead(self.scored_all, self.value, 1)))

    @property
    def mae(self) -> float:
        """Return the mean absolute error one step ahead."""
        return mae(self.errors())

    @property
    def mae_all(self) -> float:
        """Return the mean absolute error one step ahead, implausible readings included."""
        return mae(_known(errors_ahead(self.scored_all, self.value, 1)))

    @property
    def rmse_relative(self) -> float:
        """Return the RMSE over that of the season ago; below one is better than no model."""
        return self.score(1).relative

    def score(self, ahead: int) -> Score:
        """Return how good the forecasts made some steps ahead were."""
        errors = self._errors_in_time(ahead)
        beside = {
            name: _known(np.where(np.isnan(errors), np.nan, self._off(naive, ahead)))
            for name, naive in self.yardsticks.items()
        }
        return Score(
            ahead,
            rmse=rmse(_known(errors)),
            mae=mae(_known(errors)),
            coverages=self._coverages(ahead),
            yardsticks={name: rmse(each) for name, each in beside.items()},
        )

    @property
    def horizons(self) -> list[Score]:
        """Return the scores of every number of steps ahead."""
        return [self.score(ahead) for ahead in range(1, self.horizon + 1)]

    @property
    def share_by_model(self) -> float:
        """Return the share of scored steps whose forecast a fitted model made."""
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
        """Return whether there is any band; the forecasts of yardsticks have none."""
        return not bool(np.isnan(self.lower).all())

    @property
    def coverages(self) -> dict[float, float]:
        """Return the share of values within their band, one step ahead, by level."""
        return self._coverages(1)

    @property
    def coverage(self) -> float:
        """Return the share of values within their band, one step ahead; of the first level."""
        return self.coverages[self.levels[0]]

    def errors(self, ahead: int = 1) -> Vector:
        """Return actual less forecast, made `ahead` steps before, of the readings that count."""
        return _known(self._errors_in_time(ahead))

    @property
    def errors_in_time(self) -> Vector:
        """Return actual less forecast, one step ahead, shape (T,); NaN where nothing is scored."""
        return self._errors_in_time(1)

    def _errors_in_time(self, ahead: int) -> Vector:
        if not 1 <= ahead <= self.horizon:
            raise InvalidInputError(f"ahead must lie between 1 and {self.horizon}, got {ahead}.")
        return self._off(self.value, ahead)

    def _off(self, forecasts: Matrix, ahead: int) -> Vector:
        """Return the scored readings less their forecasts of some steps before."""
        return errors_ahead(self.scored, forecasts, ahead)

    def _coverages(self, ahead: int) -> dict[float, float]:
        ends = {band.level: (band.lower, band.upper) for band in self.bands}
        return {
            level: coverage(
                self.scored[ahead - 1 :], made_ahead(lower, ahead), made_ahead(upper, ahead)
            )
            for level, (lower, upper) in ends.items()
        }

    def yardstick(self, name: str) -> Run:
        """Return the run of a forecast that needs no model, over the same steps; it has no band."""
        no_band = np.full(self.lower.shape, np.nan)
        return replace(
            self,
            method=name,
            value=self.yardsticks[name],
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
            counts={name: each for name, each in self.counts.items() if name in READ},
        )

    def rmse_until(self, steps: int | None) -> float:
        """Return RMSE(t) after some of the scored steps, or all."""
        errors = self.errors_in_time[:steps]
        return rmse(errors[~np.isnan(errors)])

    def record(self) -> dict[str, Any]:
        """Return the figures of the run as plain values, NaN as None.

        With several levels there is a coverage for each, such as "coverage_80" and "coverage_95".
        "experts" has their weights at the end by name; it is None where nothing is mixed.
        """
        read, scored = (int((~np.isnan(each)).sum()) for each in (self.actual, self.scored))
        score = self.score(1)
        figures = {
            "rmse": score.rmse,
            "rmse_relative": score.relative,
            "mae": score.mae,
            **named("coverage", self.levels, list(score.coverages.values())),
            "rmse_all": self.rmse_all,
            "mae_all": self.mae_all,
            **{f"rmse_{name}": each for name, each in score.yardsticks.items()},
            "by_model": self.share_by_model,
        }
        return {
            "sensor": self.sensor,
            "method": self.method,
            "steps": self.lived,
            "scored": scored,
            "missing": len(self.actual) - read,
            "excluded": read - scored - self.scored_apart,
            "implausible": self.scored_apart,
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
            "counts": dict(self.counts),
        }

    def columns(self) -> dict[str, Any]:
        """Return every forecast as a row: sensor, method, time, horizon, actual, value, band.

        Times are written as those of the readings were: with the same zone or offset, as
        `ZonedTimes`, or in the same local time. Then `utc` is a further column, since a local time
        occurs twice when clocks are set back.

        The band is "lower" and "upper". With several levels there are two columns for each, such as
        "lower_80", "upper_80", "lower_95" and "upper_95".
        """
        rows, horizon = self.value.shape
        ahead = np.arange(horizon)
        at = np.arange(rows)[:, None] + ahead
        actual = np.append(self.actual, np.nan)[np.minimum(at, rows)]
        ends_by_name = band_columns(self.levels, self.lower, self.upper)
        return {
            "sensor": np.full(rows * horizon, self.sensor),
            "method": np.full(rows * horizon, self.method),
            **time_columns((self.times[:, None] + ahead * self.step).ravel(), self.writing),
            "horizon": np.tile(1 + ahead, rows),
            "actual": actual.ravel(),
            "value": self.value.ravel(),
            **{name: ends.ravel() for name, ends in ends_by_name.items()},
        }

    def frame(self, backend: str | None = None) -> Any:
        """Return `columns` as a frame of the kind that the series came in, or of another.

        A column has one zone: of readings whose offsets differ, without a zone, it is in UTC.
        """
        return framed(self.columns(), backend or self.backend)

    def on_the_clock(self) -> Run:
        """Return the run with all times as clocks show them where its readings were written."""
        shown = self.writing.on_the_clock
        experts = self.expert_path
        spans = [shown(np.array([span.start, span.end])) for span in self.excluded]
        return replace(
            self,
            times=shown(self.times),
            refit_times=shown(self.refit_times),
            expert_path=replace(experts, times=shown(experts.times)),
            excluded=tuple(Span(*ends) for ends in spans),
            writing=AS_IS,
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
        day = self.day
        last = slice(-max(2, round(days * day)), None)
        plot_band(
            above,
            self.times[last],
            self.actual[last],
            self.value[last, 0],
            self.lower[last, 0],
            self.upper[last, 0],
            levels=self.levels,
            method=self.method,
        )
        above.set(title=f"{plain(self.sensor)}, one step ahead, with {band_words(self.levels)}")
        errors = {self.method: self.errors_in_time}
        errors |= {name: self.yardstick(name).errors_in_time for name in self.yardsticks}
        plot_running_rmse(below, errors, steps_a_day=day, in_days=self.has_hours)
        return figure


def change(run: Run, baseline: Run | None, steps: int | None = None) -> float:
    """Return by which share a run's RMSE differs from another's, over the steps that both scored.

    At most `steps` of them count. NaN stands for no baseline, or one that is never wrong, such as
    that of a dead sensor.
    """
    if baseline is None:
        return np.nan
    shared = min(len(run.times), len(baseline.times), steps or len(run.times))
    base = baseline.rmse_until(shared)
    return run.rmse_until(shared) / base - 1 if base > 0 else np.nan


def _known(errors: Vector) -> Vector:
    return errors[~np.isnan(errors)]


def _without(readings: Vector, left_out: Mask) -> Vector:
    return np.where(left_out, np.nan, readings)


def backend_of(source: Any) -> str | None:
    """Return the library whose frame or series a source is, if it is one."""
    module = type(source).__module__.partition(".")[0]
    return module if module in BACKENDS else None
