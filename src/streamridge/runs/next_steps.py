"""The next steps of many sensors, from their readings or from saved forecasters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from streamridge.errors import InvalidInputError, StreamRidgeError, counted, option, warn
from streamridge.features.base import steps_ahead
from streamridge.files.frames import make_frame
from streamridge.files.reading import listed_sources, read_series
from streamridge.files.reading_options import (
    OPTION_NAMES,
    ReadingOptions,
    reading_arguments,
    require_options,
)
from streamridge.forecaster.extra_columns import LAST_KNOWN, GivenExtras
from streamridge.forecaster.forecast import Forecast, Levels
from streamridge.forecaster.forecast_table import forecast_columns, kind_of_times
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import starting_at
from streamridge.forecaster.settings import Settings
from streamridge.runs.engines import Engine
from streamridge.runs.new_readings import learned_text
from streamridge.runs.run import backend_of
from streamridge.runs.run_tasks import TaskProgress, parse_engine, run_tasks
from streamridge.runs.step_loop import StepProgress, reason_of
from streamridge.runs.tasks import (
    SHARED_SETTINGS,
    ModelName,
    RunArguments,
    TaskOutcome,
    fitted_in_time,
    model_settings,
    require_one_kind_of_time,
    write_bytes,
)
from streamridge.series.lengths import Length
from streamridge.series.series import Series
from streamridge.series.times import Times, time_text


@dataclass(frozen=True)
class ForecastTask:
    """The forecast of the next steps of one sensor.

    A new forecaster starts with the series as its history. A saved one learns from the series.
    """

    sensor: str
    series: Series | None = None
    settings: Settings | None = None  # of a new forecaster
    saved: bytes | None = None  # the bytes of a saved forecaster
    levels: Levels | None = None  # of the intervals; the forecaster's own by default
    fills: Mapping[str, float] = field(default_factory=dict)  # extras of steps that no row tells
    save_to: Path | None = None  # the file for the forecaster
    is_done = False  # it is never stored

    def store(self, outcome: TaskOutcome) -> None:
        """Write the forecaster to its file if that is wanted."""
        if self.save_to is not None and outcome.forecaster is not None:
            write_bytes(self.save_to, outcome.forecaster)

    def stored(self, number: int) -> TaskOutcome | None:
        """Return None: a forecast is never stored."""
        return None


class ForecastArguments(RunArguments, total=False):
    """The reading options and settings that `forecast` accepts."""

    warmup: int | None


@reading_arguments()
def forecast(
    data: Any,
    horizon: int = 1,
    *,
    model: ModelName = "default",
    jobs: int = 1,
    engine: str | Engine | Executor = "local",
    progress: TaskProgress | None = None,
    **options: Unpack[ForecastArguments],
) -> Any:
    """Return the forecast of the next steps of every sensor, as one frame.

    Each sensor gets a forecaster of its own, which is fitted to all of its readings. This takes
    little longer than one fit per sensor.

    Parameters
    ----------
    data
        The readings of one sensor or several: a frame or series of pandas, polars or pyarrow, a
        `Series`, the path of a file, a list of these, or a dict of series.
    horizon
        H, the number of steps to forecast: 96 is a day of 15 minutes.
    model
        The "default" model, the "compact" or the "long" one, or the model of the "paper".
    jobs, engine
        The number of processes, or an engine: see `compare`. The results do not depend on them.
    progress
        Called with the number of a sensor, and 1 when its forecast is done.
    options
        The reading options: see `ReadingOptions`. All others are settings of `Forecaster`, such as
        `level`, `bounds` and `holidays`. The rows after the last reading tell the `extras` of the
        steps ahead; "rain=0" names the column rain, and the value of steps without a row.

    Returns
    -------
    frame
        A frame of the library that the data came from, with the columns "sensor", "time", "value",
        "lower" and "upper". Several levels have two columns each, such as "lower_80". Times have
        the format of the readings; with `tz` there is a column "utc" as well.

    Notes
    -----
    A sensor that fails does not stop the others: a warning names it, and the frame lacks it. A
    series that is too short for a model has a naive forecast, and a warning says so. Decisions
    about the format of the data that you may want to check are warnings as well.

    Examples
    --------
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=2, days=6)
    >>> tomorrow = forecast(roads.frame(), horizon=96, train_size=192)
    >>> tomorrow.shape, list(tomorrow.columns)
    ((192, 5), ['sensor', 'time', 'value', 'lower', 'upper'])
    """
    require_options("forecast", options, (*OPTION_NAMES, *SHARED_SETTINGS))
    chosen = parse_engine(engine, jobs=jobs)
    given = dict[str, Any](options)
    reading = {name: given.pop(name) for name in OPTION_NAMES if name in given}
    reading["extras"], fills = parse_extras(reading.get("extras") or ())
    shared = {name: reading[name] for name in ("tz", "extras") if name in reading}
    settings_of = forecast_settings(model, horizon=horizon, **given, **shared)
    sources = listed_sources(data)
    read = read_series(sources, ReadingOptions.of(reading))
    tasks = new_tasks(read.series, settings_of, fills=fills)
    outcomes = list(run_tasks(tasks, chosen, progress, forecast_task))
    if len(outcomes) < len(tasks):
        raise KeyboardInterrupt
    failed = [f"{tasks[each.number].sensor}: {each.error}" for each in outcomes if each.error]
    made = [outcome.forecast for outcome in outcomes if outcome.forecast is not None]
    if not made:
        raise StreamRidgeError(f"every forecast failed, the first one: {failed[0]}")
    warn((*map(str, read.left_out), *failed), RuntimeWarning)
    notes = [note for outcome in outcomes for note in outcome.notes]
    warn((*read.notes, *notes, *stopped_notes(made)))
    return make_frame(forecast_columns(made), backend_of(sources[0]))


def parse_extras(given: str | Iterable[str]) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return the names of extra columns, and the numbers of texts such as NAME=NUMBER.

    Examples
    --------
    >>> parse_extras(["rain=0.5", "holiday"])
    (('rain', 'holiday'), {'rain': 0.5})
    """
    names, fills = [], {}
    for text in [given] if isinstance(given, str) else given:
        name, equals, number = str(text).rpartition("=")
        try:
            value = float(number) if equals else np.nan
        except ValueError:
            value = np.nan
        if np.isfinite(value):
            fills[name] = value
        names.append(name if np.isfinite(value) else str(text))
    return tuple(names), fills


def forecast_settings(
    model: ModelName, hyperparameters: Mapping[str, float] | None = None, **settings: Any
) -> Callable[[Length], Settings]:
    """Return a function from the time between readings to the settings of a named model.

    `hyperparameters` are initial values. Settings that are None keep their default. Sensors with
    the same step share one object.
    """

    def settings_of(step: Length) -> Settings:
        return starting_at(hyperparameters or {}, model_settings(model, step, **settings))

    # A forecast needs no steps to score: the first fit is made as early as the default model's.
    return cache(partial(fitted_in_time, settings_of, 0))


def new_tasks(
    series: Mapping[str, Series],
    settings_of: Callable[[Length], Settings],
    **shared: Any,
) -> list[ForecastTask]:
    """Return a task for each series, with a new forecaster; `shared` are fields of all tasks."""
    require_one_kind_of_time(series.values())
    return [
        ForecastTask(name, each, settings_of(each.clock.step), **shared)
        for name, each in series.items()
    ]


def forecast_task(
    number: int, task: ForecastTask, progress: StepProgress | None = None
) -> TaskOutcome:
    """Return the forecast of a task, which has a number; an error is an outcome too."""
    try:
        forecaster, notes = _started(task)
        made = forecaster.predict(_extras(task, forecaster), task.levels)
        content = None if task.save_to is None else forecaster.to_bytes()
        if progress is not None:
            progress(1, 1)
        return TaskOutcome(number, forecaster=content, forecast=made, notes=tuple(notes))
    except Exception as error:
        return TaskOutcome(number, error=reason_of(error))


def stopped_notes(forecasts: Iterable[Forecast]) -> list[str]:
    """Return a note for each sensor whose forecast begins before the last reading of another."""
    last = [(each, _last_reading(each)) for each in forecasts]
    known = [(each, time) for each, time in last if len(time)]
    newest: dict[str, Any] = {}
    for each, time in known:
        kind = kind_of_times(each)
        newest[kind] = max(time[0], newest.get(kind, time[0]))
    return [
        f"{each.sensor}: its last reading is of {each.time_format.texts(time, 'minutes')[0]}. "
        "The forecast starts there, before the last reading of other sensors"
        for each, time in known
        if each.time[0] < newest[kind_of_times(each)]
    ]


def _last_reading(forecast: Forecast) -> Times:
    """Return the time of the last reading before a forecast, (1,), or (0,) if none is known."""
    if forecast.recent is None:
        return forecast.time[:0]
    return forecast.recent.times[~np.isnan(forecast.recent.values)][-1:]


def _started(task: ForecastTask) -> tuple[Forecaster, list[str]]:
    """Return the forecaster of a task after it has learned, and what a user should know."""
    if task.saved is not None:
        forecaster = Forecaster.from_bytes(task.saved)
        learned = [] if task.series is None else [_learn(forecaster, task.sensor, task.series)]
        return forecaster, [*learned, *naive_note(task.sensor, forecaster)]
    if task.settings is None or task.series is None:
        raise InvalidInputError("a task must have a saved forecaster, or settings and a series.")
    settings = replace(task.settings, sensor=task.sensor or None)
    forecaster = Forecaster.from_settings(settings, task.series)
    return forecaster, [*naive_note(task.sensor, forecaster), *_offset_note(task.series)]


def _offset_note(series: Series) -> list[str]:
    """Return that the last offset is kept, if offsets change and suggest no zone."""
    written = series.time_format
    if not written.has_changes or written.zone is not None:
        return []
    return [
        f"{series.sensor}: the offsets of its times fit no time zone, or several that differ "
        f"later. Forecasts keep the last offset; pass {option('tz')} to follow a zone"
    ]


def naive_note(name: str, forecaster: Forecaster) -> list[str]:
    """Return why a forecast is naive, if the history is too short for a model."""
    if forecaster.tuning.has_model:
        return []
    needed = counted(forecaster.settings.warmup, "step")
    return [
        f"{name}: the history is too short for a model, which needs {needed}; "
        "this is a naive forecast"
    ]


def _learn(forecaster: Forecaster, name: str, series: Series) -> str:
    """Let a saved forecaster learn from a series; return the effect in words."""
    expected, before = forecaster.next_time, forecaster.counts
    forecaster.observe(series)
    known = 0 if expected is None else int(np.searchsorted(series.times, expected - _half(series)))
    return learned_text(name, len(series) - known, known, before, forecaster.counts)


def _half(series: Series) -> Any:
    """Return half a step of a series: a time belongs to the nearest step."""
    step = series.clock.step
    return step // 2 if isinstance(step, int) else np.timedelta64(step) // 2


def _extras(task: ForecastTask, forecaster: Forecaster) -> GivenExtras | None:
    """Return the extras of the steps ahead, from the rows after the last reading or as given."""
    features = forecaster.settings.preset.features
    if not features.extras:
        return None
    if forecaster.next_time is None:
        return LAST_KNOWN
    ahead = steps_ahead(features)
    return {name: _known_ahead(task, forecaster, name, ahead) for name in features.extras}


def _known_ahead(task: ForecastTask, forecaster: Forecaster, name: str, ahead: int) -> Any:
    """Return the values of one extra column at the steps ahead; raise if one is unknown."""
    values = np.full(ahead, task.fills.get(name, np.nan))
    series = task.series
    if series is not None and len(series.upcoming.get(name, ())):
        after = series.start + len(series)
        at = series.clock.steps(np.array([forecaster.next_time]))[0] - after
        rows = series.upcoming[name][max(int(at), 0) :][:ahead]
        values[: len(rows)] = np.where(np.isnan(rows), values[: len(rows)], rows)
    unknown = np.flatnonzero(np.isnan(values))
    if len(unknown):
        step = forecaster.settings.step
        length = step if isinstance(step, int) else np.timedelta64(step)
        time = time_text(forecaster.next_time + unknown[0] * length)
        where = "at the next step" if ahead == 1 else "at every step ahead"
        raise InvalidInputError(
            f"{name} must be known {where}, got none for {time}. Add rows after the last reading, "
            f"whose value is empty, or pass {option('extras', f'{name}=NUMBER')} for such steps."
        )
    return values
