"""Replays to be made: the one way to build them, what they leave, and which cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeAlias

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, listed
from streamridge.files.atomic import replacing
from streamridge.forecaster.cadence import default_warmup
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import starting_at, tuned_by
from streamridge.forecaster.settings import Settings
from streamridge.forecaster.sizes import parse_budget
from streamridge.runs.engines.work import Job, Outcome
from streamridge.runs.run import Run
from streamridge.runs.run_files import read_kept, write_run
from streamridge.runs.sources import LeftOut, Source, Sources
from streamridge.series.clock import Length
from streamridge.series.holidays import parse_holidays
from streamridge.series.spans import Span, require_kind_of_spans
from streamridge.texts import counted, option

ModelName = Literal["default", "compact", "long", "paper", "paper-prototype"]
MAKERS: Mapping[ModelName, Callable[..., Forecaster]] = {
    "default": Forecaster,
    "compact": Forecaster.compact,
    "long": Forecaster.long,
    "paper": Forecaster.paper,
    "paper-prototype": Forecaster.prototype,
}
# By the name of a method: from the time between readings to how it forecasts.
Methods: TypeAlias = Mapping[str, Callable[[Length], Settings]]


@dataclass(frozen=True)
class Task:
    """A replay to be made.

    Parameters
    ----------
    source
        What to forecast.
    settings
        Of the forecaster.
    method
        What the run is called.
    warmup, steps
        Steps before the first scored one, and how many are scored at most.
    save_to
        Where the forecaster of a whole run is saved afterwards, if anywhere.
    keep_in
        The file that keeps the run itself once it is whole, if any.
    begun
        A forecaster to go on with, as the content of its file; a new one by default.
    exclude
        Spans that are forecast, but neither learned from nor scored.
    """

    source: Source
    settings: Settings
    method: str
    warmup: int | None = None
    steps: int | None = None
    save_to: Path | None = None
    keep_in: Path | None = None
    begun: bytes | None = None
    exclude: tuple[Span, ...] = ()

    @property
    def first(self) -> int:
        """Return how many steps come before the first scored one."""
        return self.settings.warmup if self.warmup is None else self.warmup

    @property
    def length(self) -> int:
        """Return how many steps are lived through."""
        every = len(self.source)
        return every if self.steps is None else min(every, self.first + self.steps)

    @property
    def is_long_enough(self) -> bool:
        """Return whether the series is longer than the warm-up, so that something is scored."""
        return len(self.source) > self.first

    @property
    def is_done(self) -> bool:
        """Return whether the run is kept already, and its forecaster where one is to be saved."""
        if self.keep_in is None or not self.keep_in.exists():
            return False
        return self.save_to is None or self._forecaster_file(self.keep_in).exists()

    def job(self) -> Job:
        """Return the task as it is sent to a worker, its series loaded."""
        return Job(
            self.source.load(),
            self.begun or self.settings,
            self.method,
            self.warmup,
            self.steps,
            self.exclude,
            returns_forecaster=bool(self.begun or self.save_to),
        )

    def keep(self, outcome: Outcome) -> None:
        """Write what the task shall leave behind; a run that was stopped leaves nothing."""
        if outcome.run is None or outcome.run.interrupted:
            return
        if self.save_to is not None and outcome.checkpoint is not None:
            _write(self.save_to, outcome.checkpoint)
            if self.keep_in is not None:
                _write(self._forecaster_file(self.keep_in), outcome.checkpoint)
        if self.keep_in is not None:
            write_run(self.keep_in, outcome.run)

    def kept(self) -> Run | None:
        """Return the run of a task that is done, with its forecaster saved again; else None."""
        if self.keep_in is None or not self.is_done:
            return None
        if self.save_to is not None:
            _write(self.save_to, self._forecaster_file(self.keep_in).read_bytes())
        return read_kept(self.keep_in)

    @staticmethod
    def _forecaster_file(keep_in: Path) -> Path:
        """Return the file beside a kept run that keeps its forecaster."""
        return keep_in.with_suffix(".sr")


@dataclass(frozen=True)
class Tasks:
    """The tasks that can be carried out, and the sensors that are left out."""

    ready: tuple[Task, ...]
    left_out: tuple[LeftOut, ...] = ()


def make_tasks(
    sources: Sources,
    methods: Methods,
    *,
    warmup: int | None = None,
    steps: int | None = None,
    exclude: tuple[Span, ...] = (),
) -> Tasks:
    """Return a task for each sensor and method, sensor by sensor.

    A series that is not longer than its warm-up is left out; if none is longer, that is an error.
    The first fit is made by the end of the warm-up, so that a model makes every scored forecast.
    """
    if warmup is not None:
        require_count("warmup", warmup, least=0)
    if steps is not None:
        require_count("steps", steps)
    _require_one_kind_of_time(sources.found)
    for source in sources.found:
        require_kind_of_spans(source.sensor, source.step, exclude)
    shared = {
        method: cache(partial(_fitted_in_time, settings_of, warmup))
        for method, settings_of in methods.items()
    }
    every = [
        Task(source, settings_of(source.step), method, warmup, steps, exclude=exclude)
        for source in sources.found
        for method, settings_of in shared.items()
    ]
    ready = tuple(task for task in every if task.is_long_enough)
    if not ready:
        require_longer(every[0].source.sensor, len(every[0].source), every[0].first)
    return Tasks(ready, (*sources.left_out, *_too_short(every)))


def require_longer(sensor: str, steps: int, warmup: int) -> None:
    """Raise unless a series is longer than its warm-up."""
    if steps <= warmup:
        raise InvalidInputError(
            f"{sensor}: the series must have more than the {counted(warmup, 'step')} of the "
            f"warm-up, got {steps}. Pass a smaller {option('warmup')}, or a longer series."
        )


def ready_made(
    model: ModelName,
    methods: Sequence[str],
    hyperparameters: Mapping[str, float] | None = None,
    **choices: Any,
) -> Methods:
    """Return ways of tuning a ready-made model by name; choices are settings of `Forecaster`.

    All of them start at the given hyperparameters, and for the others where the model starts.
    """
    if choices.get("budget") is not None:  # what cannot be read is found at once
        parse_budget(choices["budget"])
    if choices.get("holidays") is not None:  # a country that is not known is found at once
        choices["holidays"] = parse_holidays(choices["holidays"])
    return {name: partial(_tuned, name, model, hyperparameters or {}, choices) for name in methods}


def settings_of(model: ModelName) -> tuple[str, ...]:
    """Return the names of the settings that a ready-made model takes for every sensor."""
    own = dict.fromkeys([*signature(Forecaster).parameters, *signature(_maker(model)).parameters])
    taken = tuple(name for name in own if name not in ("step", "settings", "sensor", "model"))
    return (*taken, "hyperparameters")


def _maker(model: ModelName) -> Callable[..., Forecaster]:
    if model not in MAKERS:
        raise InvalidInputError(f"model must be one of {listed(MAKERS)}, got {model!r}.")
    return MAKERS[model]


def model_settings(model: ModelName, step: Length, **choices: Any) -> Settings:
    """Return the settings of a ready-made model; those that are None keep their default."""
    make = _maker(model)
    given = {name: value for name, value in choices.items() if value is not None}
    return make(step, **given).settings


def _tuned(
    method: str,
    model: ModelName,
    hyperparameters: Mapping[str, float],
    choices: Mapping[str, Any],
    step: Length,
) -> Settings:
    return tuned_by(method, starting_at(hyperparameters, model_settings(model, step, **choices)))


def _fitted_in_time(
    settings_of: Callable[[Length], Settings], warmup: int | None, step: Length
) -> Settings:
    """Return settings whose first fit is made by the end of the warm-up.

    A model may want more steps before its first fit than the user gives it, as the paper's does.
    Then it makes do with these, but not with fewer than the default model.
    """
    settings = settings_of(step)
    if warmup is None or warmup >= settings.warmup:
        return settings
    least = default_warmup(settings.step, settings.periods)
    return replace(settings, warmup=min(settings.warmup, max(warmup, least)))


def _require_one_kind_of_time(sources: Sequence[Source]) -> None:
    """Raise unless all times are dates, with offsets or without, or all are whole numbers.

    A table or a page has times of one kind.
    """
    kinds = {isinstance(source.step, int): source.sensor for source in sources}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"times must be dates for all sensors, or whole numbers for all, got dates for "
            f"{kinds[False]!r} and whole numbers for {kinds[True]!r}. Run them apart."
        )
    offsets = {source.zoned: source.sensor for source in sources}
    if len(offsets) > 1:
        raise InvalidInputError(
            f"times must have an offset for all sensors, or for none, got one for "
            f"{offsets[True]!r} and none for {offsets[False]!r}. Run them apart with "
            f"{option('sensors')}."
        )


def _too_short(tasks: Sequence[Task]) -> list[LeftOut]:
    """Return the sensors whose series are not longer than their warm-up, each once."""
    reasons = {
        task.source.sensor: f"{counted(len(task.source), 'step')} "
        f"{'is' if len(task.source) == 1 else 'are'} not more than the {task.first} of the warm-up"
        for task in tasks
        if not task.is_long_enough
    }
    return [LeftOut(sensor, reason) for sensor, reason in reasons.items()]


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
