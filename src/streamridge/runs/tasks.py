"""Tasks: the replays of sensors and methods, what they store, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, counted, listed, option
from streamridge.files.atomic import replacing
from streamridge.files.reading import LeftOut, ReadResult
from streamridge.files.reading_arguments import ReadingArguments
from streamridge.forecaster.arguments import SharedArguments
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import starting_at, tuned_by
from streamridge.forecaster.settings import Settings
from streamridge.forecaster.sizes import default_warmup, parse_budget
from streamridge.runs.run import Run
from streamridge.runs.run_files import read_stored_run, write_run
from streamridge.series.holidays import parse_holidays
from streamridge.series.lengths import Length
from streamridge.series.series import Series
from streamridge.series.spans import Span, spans_of_sensor

# The default model by size, and the paper's model.
ModelName = Literal["default", "compact", "long", "paper", "paper-prototype"]
MODELS: tuple[ModelName, ...] = get_args(ModelName)
# Functions from the time between readings to settings, by the name of a method.
Methods: TypeAlias = Mapping[str, Callable[[Length], Settings]]


@dataclass(frozen=True)
class TaskOutcome:
    """The result of a task."""

    number: int  # the number of the task
    run: Run | None = None
    forecaster: bytes | None = None  # its bytes after the run, if they were asked for
    error: str | None = None  # why there is no result, or why it could not be stored
    forecast: Forecast | None = None  # the result of a task that forecasts the next steps only
    notes: tuple[str, ...] = ()  # what a user should know about the result

    @property
    def is_interrupted(self) -> bool:
        """Return whether there is a run that was interrupted before its end."""
        return self.run is not None and self.run.interrupted

    @property
    def steps_done(self) -> int:
        """Return the number of steps that the task has done; a forecast counts as one."""
        return int(self.forecast is not None) if self.run is None else self.run.steps_done


@dataclass(frozen=True)
class Task:
    """The replay of one sensor by one method."""

    series: Series
    settings: Settings
    method: str
    warmup: int | None = None  # steps before the first scored step
    steps: int | None = None  # the most steps to score
    save_to: Path | None = None  # the file for the forecaster of a complete run
    keep_in: Path | None = None  # the file for a complete run
    forecaster: bytes | None = None  # the bytes of a forecaster that continues
    exclude: tuple[Span, ...] = ()  # forecast, but neither learned from nor scored
    last_steps: int | None = None  # score only this many steps at the end of the series

    @property
    def first(self) -> int:
        """Return the number of steps before the first scored step."""
        warmup = self.settings.warmup if self.warmup is None else self.warmup
        return max(warmup, len(self.series) - self.last_steps) if self.last_steps else warmup

    @property
    def length(self) -> int:
        """Return the number of steps of the run, with the warm-up."""
        every = len(self.series)
        return every if self.steps is None else min(every, self.first + self.steps)

    @property
    def is_long_enough(self) -> bool:
        """Return whether the series is longer than the warm-up, so that something is scored."""
        return len(self.series) > self.first

    @property
    def is_done(self) -> bool:
        """Return whether the run is stored already, with its forecaster if that is to be saved."""
        if self.keep_in is None or not self.keep_in.exists():
            return False
        return self.save_to is None or self.keep_in.with_suffix(".sr").exists()

    def store(self, outcome: TaskOutcome) -> None:
        """Write the run and its forecaster where they are wanted, unless it was interrupted."""
        if outcome.run is None or outcome.run.interrupted:
            return
        if self.save_to is not None and outcome.forecaster is not None:
            write_bytes(self.save_to, outcome.forecaster)
            if self.keep_in is not None:
                write_bytes(self.keep_in.with_suffix(".sr"), outcome.forecaster)
        if self.keep_in is not None:
            write_run(self.keep_in, outcome.run)

    def stored(self, number: int) -> TaskOutcome | None:
        """Return the outcome of a task that is done, and save its forecaster again; else None."""
        if self.keep_in is None or not self.is_done:
            return None
        if self.save_to is not None:
            write_bytes(self.save_to, self.keep_in.with_suffix(".sr").read_bytes())
        return TaskOutcome(number, read_stored_run(self.keep_in))


class AnyTask(Protocol):
    """Work on one sensor, and what it stores."""

    @property
    def is_done(self) -> bool:
        """Return whether the result is stored already."""

    def store(self, outcome: TaskOutcome) -> None:
        """Write the result where it is wanted."""

    def stored(self, number: int) -> TaskOutcome | None:
        """Return the outcome of a task that is done, else None."""


def make_tasks(
    read: ReadResult,
    methods: Methods,
    *,
    warmup: int | None = None,
    steps: int | None = None,
    last_steps: int | None = None,
    exclude: tuple[Span, ...] = (),
) -> tuple[tuple[Task, ...], tuple[LeftOut, ...]]:
    """Return a task for each sensor and method, sensor by sensor, and the sensors left out.

    A series that is not longer than its warm-up is left out; if none is longer, that is an error.
    The first fit is made by the end of the warm-up, so that a model makes every scored forecast.
    """
    require_scored_part(warmup, steps, last_steps)
    require_one_kind_of_time(read.series.values())
    spans = {
        name: spans_of_sensor(name, series.clock.step, series.time_format, exclude)
        for name, series in read.series.items()
    }
    shared = {
        method: cache(partial(fitted_in_time, settings_of, warmup))
        for method, settings_of in methods.items()
    }
    every = [
        Task(
            series,
            settings_of(series.clock.step),
            method,
            warmup,
            steps,
            exclude=spans[name],
            last_steps=last_steps,
        )
        for name, series in read.series.items()
        for method, settings_of in shared.items()
    ]
    ready = tuple(task for task in every if task.is_long_enough)
    if not ready:
        require_longer(every[0].series.sensor, len(every[0].series), every[0].first)
    return ready, (*read.left_out, *_too_short(every))


def require_scored_part(warmup: int | None, steps: int | None, last_steps: int | None) -> None:
    """Raise unless the numbers that choose the scored steps are counts, and do not contradict."""
    if warmup is not None:
        require_count("warmup", warmup, least=0)
    if steps is not None:
        require_count("steps", steps)
    if last_steps is None:
        return
    require_count("last_steps", last_steps)
    if steps is not None:
        raise InvalidInputError(
            f"{option('last_steps')} must be left out with {option('steps')}, which counts from "
            f"the end of the warm-up, got {last_steps} and {steps}."
        )


def require_longer(sensor: str, steps: int, warmup: int) -> None:
    """Raise unless a series is longer than its warm-up."""
    if steps <= warmup:
        raise InvalidInputError(
            f"{sensor}: the series must have more than the {counted(warmup, 'step')} of the "
            f"warm-up, got {steps}. Pass a smaller {option('warmup')}, or a longer series."
        )


def fitted_in_time(
    settings_of: Callable[[Length], Settings], warmup: int | None, step: Length
) -> Settings:
    """Return settings whose first fit is made by the end of the warm-up.

    A model may have a longer warm-up than the user gives, as the paper's model has. Then the
    shorter one counts, but never less than the warm-up of the default model.
    """
    settings = settings_of(step)
    if warmup is None or warmup >= settings.warmup:
        return settings
    least = default_warmup(settings.step, settings.periods)
    return replace(settings, warmup=min(settings.warmup, max(warmup, least)))


def require_one_kind_of_time(every: Iterable[Series]) -> None:
    """Raise unless the times of all sensors have the same kind, as a table needs.

    They are dates with offsets, dates without, or whole numbers.
    """
    kinds = {isinstance(series.clock.step, int): series.sensor for series in every}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"times must be dates for all sensors, or whole numbers for all, got dates for "
            f"{kinds[False]!r} and whole numbers for {kinds[True]!r}. Run them separately."
        )
    offsets = {series.time_format.zoned: series.sensor for series in every}
    if len(offsets) > 1:
        raise InvalidInputError(
            f"times must have an offset for all sensors, or for none, got one for "
            f"{offsets[True]!r} and none for {offsets[False]!r}. Run them separately with "
            f"{option('sensor')}."
        )


def _too_short(tasks: Sequence[Task]) -> list[LeftOut]:
    """Return the sensors whose series are not longer than the warm-up, each once."""
    reasons = {
        task.series.sensor: f"{counted(len(task.series), 'step')} "
        f"{'is' if len(task.series) == 1 else 'are'} not more than the {task.first} of the warm-up"
        for task in tasks
        if not task.is_long_enough
    }
    return [LeftOut(sensor, reason) for sensor, reason in reasons.items()]


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, complete or not at all."""
    with replacing(path) as file:
        file.write(content)


def named_methods(
    model: ModelName,
    methods: Sequence[str],
    hyperparameters: Mapping[str, float] | None = None,
    **settings: Any,
) -> Methods:
    """Return tuning methods of a named model, by name.

    `hyperparameters` are initial values; the others start where the model starts. `settings` are
    settings of `Forecaster`; None keeps the default.
    """
    if model not in MODELS:
        raise InvalidInputError(f"model must be one of {listed(MODELS)}, got {model!r}.")
    if settings.get("budget") is not None:  # raise before files are read
        parse_budget(settings["budget"])
    if settings.get("holidays") is not None:
        settings["holidays"] = parse_holidays(settings["holidays"])

    def settings_for(method: str, step: Length) -> Settings:
        own = model_settings(model, step, **settings)
        return tuned_by(method, starting_at(hyperparameters or {}, own))

    return {name: partial(settings_for, name) for name in methods}


def model_settings(model: ModelName, step: Length, **settings: Any) -> Settings:
    """Return the settings of a named model; settings that are None keep their default."""
    given = {name: value for name, value in settings.items() if value is not None}
    if model == "paper" or model == "paper-prototype":
        return Forecaster.paper(step, prototype=model == "paper-prototype", **given).settings
    return Forecaster(step, model=model, **given).settings


# The settings of a named model that all sensors can share.
SHARED_SETTINGS = (
    *(each for each in signature(Forecaster).parameters if each not in ("step", "sensor", "model")),
    "hyperparameters",
)


class RunArguments(SharedArguments, ReadingArguments, total=False):
    """The reading options and settings that `compare` and `forecast` share."""

    hyperparameters: Mapping[str, float] | None
