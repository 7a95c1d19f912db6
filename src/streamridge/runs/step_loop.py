"""The loop over a series as if it were live: predict each step, then observe its reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from time import thread_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError, StreamRidgeError, about, option
from streamridge.features.base import steps_ahead
from streamridge.forecaster.extra_columns import ExtraValues, filled_forward
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import needs_model
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.forecaster.settings import LARGEST_VALUE, Settings
from streamridge.learners.base import Costs
from streamridge.learners.workspace import Workspace
from streamridge.runs.run import ExpertPath, Run
from streamridge.runs.scores import scored_part
from streamridge.runs.tasks import Task, TaskOutcome
from streamridge.series.series import Series, datetimes_of
from streamridge.series.spans import Span, within
from streamridge.series.times import Steps, Times

# Called after each step with the number of steps that are done, and of all steps.
StepProgress = Callable[[int, int], None]


def run_task(number: int, task: Task, progress: StepProgress | None = None) -> TaskOutcome:
    """Return the outcome of a task, which has a number; an error is an outcome too."""
    try:
        if task.forecaster is not None:
            forecaster = Forecaster.from_bytes(task.forecaster)
        elif needs_model(task.method):
            settings = replace(task.settings, sensor=task.series.sensor or None)
            forecaster = Forecaster.from_settings(settings)
        else:
            return TaskOutcome(number, naive_run(task, progress))
        run = replay_series(forecaster, task, progress)
        has_forecaster = bool(task.forecaster or task.save_to) and not run.interrupted
        return TaskOutcome(number, run, forecaster.to_bytes() if has_forecaster else None)
    except Exception as error:
        return TaskOutcome(number, error=reason_of(error))


def reason_of(error: BaseException) -> str:
    """Return the text of an error without the sensor, with its type unless it is one of ours."""
    known = isinstance(error, StreamRidgeError) and error.reason
    return known or f"{type(error).__name__}: {error}"


def replay_series(forecaster: Forecaster, task: Task, progress: StepProgress | None = None) -> Run:
    """Return the run of a forecaster over the series of a task, which is longer than the warm-up.

    Excluded spans are forecast, but neither learned from nor scored. Linear algebra uses one thread
    meanwhile, so that results repeat bit for bit. Ctrl-C ends the run early.
    """
    series, times = task.series, task.series.times[: task.length]
    _exclude(forecaster, series, task.exclude)
    _skip_to_start(forecaster, series)
    with about(series.sensor):
        values = _checked_values(series, times, task.exclude)
    datetimes, (in_time, late) = datetimes_of(series, times), _late_readings(series, values)
    extras = extras_of(series, forecaster.settings)
    readings = zip(datetimes, in_time.tolist(), extras, strict=False)
    forecasts, paths = _Forecasts(task), PathRecorder(forecaster)
    start, interrupted = thread_time(), False
    try:
        with threadpool_limits(1), about(series.sensor), _kept_memory(forecaster):
            for at, (time, value, (filled, known)) in enumerate(readings):
                try:
                    forecasts.add(forecaster.predict(filled))
                    forecaster.observe(time, value, known)
                except StreamRidgeError as error:
                    error.args = (f"at {_text(time)}: {error.reason}",)
                    raise
                forecasts.steps_done += 1
                for before in late.get(at, ()):
                    forecaster.observe(datetimes[before], float(values[before]))
                paths.record(at)
                if progress is not None:
                    progress(forecasts.steps_done, task.length)
    except KeyboardInterrupt:
        interrupted = True
    if forecasts.steps_done:
        paths.record_weights(forecasts.steps_done - 1)
    return Run(
        **forecasts.fields(),
        **_tuning_fields(forecaster, paths, series),
        seconds=thread_time() - start,
        interrupted=interrupted,
    )


def _tuning_fields(forecaster: Forecaster, paths: PathRecorder, series: Series) -> dict[str, Any]:
    """Return the fields of a run that tell how a forecaster was tuned."""
    return {
        "path": paths.hyperparameters,
        "refit_times": series.clock.times(paths.refits),
        "expert_path": paths.expert_path(series.times),
        "hyperparameters": forecaster.hyperparameters,
        "active_bounds": forecaster.tuning.active_bounds,
        "costs": forecaster.tuning.costs,
        "counts": {**series.counts.found(), **forecaster.counts},
        "feature_names": forecaster.settings.preset.features.compared,
    }


def naive_run(task: Task, progress: StepProgress | None = None) -> Run:
    """Return the run of a task whose method is a naive forecast, "last" or "week"."""
    forecasts = _Forecasts(task)
    forecasts.steps_done = task.length
    run = Run(
        **forecasts.fields(),
        path=None,
        refit_times=task.series.times[:0],
        hyperparameters={},
        active_bounds={},
        costs=Costs(),
        seconds=0.0,
        counts=task.series.counts.found(),
    )
    if progress is not None:
        progress(task.length, task.length)
    return run.naive_run(task.method)


class _Forecasts:
    """The forecasts of the scored steps of a task, in one array for each field.

    A forecast as an object would take a kilobyte.
    """

    def __init__(self, task: Task) -> None:
        self._task, settings = task, task.settings
        self.steps_done = 0
        shape = (max(0, task.length - task.first), settings.horizon)
        ends = shape if len(settings.levels) == 1 else (*shape, len(settings.levels))
        self._fields = {
            "value": np.full(shape, np.nan),
            "lower": np.full(ends, np.nan),
            "upper": np.full(ends, np.nan),
            "by_model": np.zeros(shape[0], dtype=bool),
        }

    def add(self, forecast: Forecast) -> None:
        """Add the forecast of the next step."""
        at = self.steps_done - self._task.first
        if at >= 0:
            for name in ("value", "lower", "upper"):
                self._fields[name][at] = getattr(forecast, name)
            self._fields["by_model"][at] = forecast.source == "model"

    def fields(self) -> dict[str, Any]:
        """Return the fields of a run that do not depend on the forecaster's state."""
        task, end = self._task, self.steps_done
        first = min(task.first, end)
        return {
            **scored_part(task.series, task.settings, first, end),
            **{name: values[: end - first] for name, values in self._fields.items()},
            "method": task.method,
            "excluded": tuple(task.exclude),
        }


class PathRecorder:
    """Records the paths of a forecaster, which itself remembers its last refits only."""

    def __init__(self, forecaster: Forecaster) -> None:
        self._forecaster = forecaster
        self._day = forecaster.settings.day
        self.hyperparameters: HyperparameterPath | None = None
        self._fits = 0
        self._weights: dict[int, dict[str, float]] = {}
        self._last = -self._day
        self._has_refits()

    @property
    def refits(self) -> Steps:
        """Return the steps of the refits, (n,)."""
        path = self.hyperparameters
        return np.zeros(0, dtype=np.int64) if path is None else path.steps

    def record(self, at: int) -> None:
        """Record what is new after the step `at` of the series."""
        if self._has_refits() or at - self._last >= self._day:
            self.record_weights(at)

    def record_weights(self, at: int) -> None:
        """Record the weights of the experts after the step `at` of the series."""
        self._last, weights = at, self._forecaster.tuning.experts
        if weights:
            self._weights[at] = weights

    def expert_path(self, times: Times) -> ExpertPath:
        """Return the recorded weights, given the times of all steps of the series."""
        if not self._weights:
            return ExpertPath.empty()
        rows = list(self._weights.values())
        weights = np.array([list(row.values()) for row in rows])
        return ExpertPath(times[list(self._weights)], tuple(rows[0]), weights)

    def _has_refits(self) -> bool:
        """Record new refits; return whether there were any."""
        fits = self._forecaster.counts.get("fits", 0)
        if fits <= self._fits:
            return False
        later, self._fits = self._forecaster.tuning.path, fits
        path = self.hyperparameters
        self.hyperparameters = later if path is None else path.followed_by(later)
        return True


@contextmanager
def _kept_memory(forecaster: Forecaster) -> Iterator[None]:
    """Let a forecaster keep the memory of its refits meanwhile, which is faster."""
    own = forecaster.workspace
    forecaster.workspace = own or Workspace()
    try:
        yield
    finally:
        forecaster.workspace = own


def require_ahead(forecaster: Forecaster, series: Series) -> None:
    """Raise unless a series begins at the next step of the forecaster, or later."""
    first = series.times[0]
    if forecaster.next_time is not None and first < forecaster.next_time:
        raise InvalidInputError(
            f"{series.sensor}: the series must continue from {forecaster.next_time}, the next step "
            f"of the forecaster, got one from {first}."
        )


def _exclude(forecaster: Forecaster, series: Series, spans: Sequence[Span]) -> None:
    with about(series.sensor):
        for span in spans:
            forecaster.exclude(*datetimes_of(series, np.array([span.start, span.end])))


def _skip_to_start(forecaster: Forecaster, series: Series) -> None:
    """Let a forecaster that has readings skip the steps before the first step of a series."""
    if forecaster.next_time is not None and series.times[0] > forecaster.next_time:
        (before,) = datetimes_of(series, series.clock.times(np.array([series.start - 1])))
        with about(series.sensor):
            forecaster.observe(before, None)


def extras_of(
    series: Series, settings: Settings
) -> Iterable[tuple[ExtraValues | None, ExtraValues | None]]:
    """Return the extras of each step and of the steps after it, with and without filled values.

    The last known value fills unknown ones. Both are None without extras.
    """
    names, ahead = settings.preset.features.extras, steps_ahead(settings.preset.features)
    if not names:
        return repeat((None, None), len(series))
    known = np.full((len(series) + ahead - 1, len(names)), np.nan)
    for at, name in enumerate(names):
        column = np.concatenate([series.extras[name], series.upcoming.get(name, ())])
        known[: len(column), at] = column[: len(known)]
    filled = filled_forward(known, np.zeros(len(names)))

    def window(columns: Matrix, at: int) -> ExtraValues:
        return dict(zip(names, columns[at : at + ahead].T, strict=True))

    return ((window(filled, at), window(known, at)) for at in range(len(series)))


def _late_readings(series: Series, values: Vector) -> tuple[Vector, dict[int, list[int]]]:
    """Return the readings that arrive in time, (T,), and the late ones by the step they arrive."""
    if series.known_at is None:
        return values, {}
    own = np.arange(len(values))
    arrives = series.known_at[: len(values)] - series.start
    is_late = (arrives > own) & ~np.isnan(values)
    late: dict[int, list[int]] = {}
    for at in np.flatnonzero(is_late).tolist():
        late.setdefault(int(arrives[at]), []).append(at)
    return np.where(is_late, np.nan, values), late


def _checked_values(series: Series, times: Times | Steps, exclude: Sequence[Span]) -> Vector:
    """Return the values at some times; raise if one is too large and not excluded."""
    values = series.values[: len(times)]
    too_large = np.abs(values) > LARGEST_VALUE
    values = np.where(too_large & within(exclude, times), np.nan, values)
    wrong = np.flatnonzero(np.abs(values) > LARGEST_VALUE)[:1]
    for time, value in zip(datetimes_of(series, times[wrong]), values[wrong].tolist(), strict=True):
        at = _text(time)
        raise InvalidInputError(
            f"at {at}: value must be at most {LARGEST_VALUE:g} in size, got {value:g}. "
            f"Pass {option('exclude', f'{at}/{at}')} to skip it."
        )
    return values


def _text(time: object) -> str:
    return str(time).replace(" ", "T")
