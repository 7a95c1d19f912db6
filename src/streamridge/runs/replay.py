"""The replay of one series by one forecaster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Unpack

from streamridge.errors import InvalidInputError, StreamRidgeError, shown
from streamridge.files.reading import read_one_series
from streamridge.files.reading_arguments import ReadingArguments
from streamridge.files.reading_options import (
    OPTION_NAMES,
    ReadingOptions,
    reading_arguments,
    require_options,
)
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import method_of
from streamridge.forecaster.settings import Settings, require_names
from streamridge.runs.engines import Engine
from streamridge.runs.run import Run, backend_of
from streamridge.runs.run_tasks import parse_engine, run_tasks
from streamridge.runs.step_loop import StepProgress, replay_series, require_ahead
from streamridge.runs.tasks import Task, require_longer, require_scored_part
from streamridge.series.lengths import parse_step, step_name
from streamridge.series.series import Series
from streamridge.series.spans import GivenSpan, parse_spans, spans_of_sensor
from streamridge.series.zones import parse_zone


@reading_arguments()
def replay(
    forecaster: Forecaster,
    series: Any,
    *,
    warmup: int | None = None,
    steps: int | None = None,
    last_steps: int | None = None,
    exclude: Iterable[GivenSpan] = (),
    method: str | None = None,
    engine: str | Engine | Executor = "local",
    progress: StepProgress | None = None,
    **reading: Unpack[ReadingArguments],
) -> Run:
    """Return the run of a forecaster over a series, step by step.

    Parameters
    ----------
    forecaster
        The forecaster, which learns from the series.
    series
        A `Series`, a pandas or polars frame or series, or the path of a file.
    warmup
        The number of steps before the first scored step; the steps before the first fit by default.
    steps
        The most steps to score; all by default.
    last_steps
        Score only this many steps at the end of the series. All steps before are the warm-up.
    exclude
        Spans such as "2021-06-13T08:00/2021-06-14", or pairs of times, that are forecast, but
        neither learned from nor scored: see `Forecaster.exclude`.
    method
        The name of the run; by default the name of the tuning method, such as "ohl" or "fixed".
    engine
        "local" is this process. "dask", an engine such as `DaskEngine("tls://...")`, or any
        `concurrent.futures.Executor` sends the forecaster to a worker and takes its state back.
    progress
        Called with the number of steps that are done, and of all steps.
    reading
        The reading options: see `ReadingOptions`. `sensor` names the sensor if there are several.
        The `step`, the `tz` and the `extras` come from the forecaster.

    Notes
    -----
    Linear algebra uses one thread meanwhile, so that results repeat bit for bit. Ctrl-C ends the
    run early; on Dask there is no run then, and the forecaster does not change. Decisions about the
    format of the series that you may want to check are warnings.

    Examples
    --------
    >>> import numpy as np
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=6)
    >>> run = replay(Forecaster(step="15min"), roads.frame())
    >>> len(run.times), bool(run.rmse < 100)
    (288, True)
    """
    if not isinstance(forecaster, Forecaster):
        raise InvalidInputError(
            f"forecaster must be one such as Forecaster('15min'), got {shown(forecaster)}."
        )
    settings = forecaster.settings
    require_options("replay", reading, OPTION_NAMES)
    _require_own(settings, reading)
    spans = parse_spans(exclude, parse_zone(settings.tz))
    regular = _series_for(forecaster, series, ReadingOptions.of(reading))
    require_scored_part(warmup, steps, last_steps)
    spans = spans_of_sensor(regular.sensor, regular.clock.step, regular.time_format, spans)
    task = Task(
        regular,
        settings,
        method or method_of(settings),
        warmup,
        steps,
        exclude=spans,
        last_steps=last_steps,
    )
    require_longer(regular.sensor, len(regular), task.first)
    require_ahead(forecaster, regular)
    if engine == "local":
        run = replay_series(forecaster, task, progress)
    else:
        run = _replay_on(parse_engine(engine), forecaster, task, progress)
    return replace(run, backend=backend_of(series))


def _require_own(settings: Settings, reading: Mapping[str, Any]) -> None:
    """Raise if a reading option contradicts the forecaster."""
    decided: dict[str, tuple[Callable[[Any], object], object]] = {
        "step": (lambda given: step_name(parse_step(given)), step_name(settings.step)),
        "tz": (str, settings.tz),
        "extras": (require_names, settings.preset.features.extras),
    }
    for name, (read, own) in decided.items():
        given = reading.get(name)
        if given is not None and read(given) != own:
            raise InvalidInputError(
                f"{name} must be the forecaster's, {own!r}, or be left out, got {shown(given)}. "
                f"Or make the forecaster with {name}={given!r}."
            )


def _series_for(forecaster: Forecaster, given: Any, options: ReadingOptions) -> Series:
    """Return the series of one sensor; raise unless it has the forecaster's step."""
    settings = forecaster.settings
    step = None if isinstance(given, Series) else settings.step  # a series has its own
    extras = settings.preset.features.extras
    own = replace(options, step=step, tz=settings.tz, extras=extras)
    regular = read_one_series(given, own)
    if regular.clock.step != settings.step:
        raise InvalidInputError(
            f"series must have the forecaster's step, {step_name(settings.step)}, "
            f"got {step_name(regular.clock.step)}."
        )
    return regular


def _replay_on(
    engine: Engine | Executor, forecaster: Forecaster, task: Task, progress: StepProgress | None
) -> Run:
    """Return the run of a forecaster on a worker, and continue from the state that comes back."""
    sent = replace(task, forecaster=forecaster.to_bytes())

    def report(number: int, done: int) -> None:
        if progress is not None:
            progress(done, task.length)

    outcomes = list(run_tasks([sent], engine, report))
    if not outcomes:
        raise KeyboardInterrupt  # interrupted before there was a result
    run, content = outcomes[0].run, outcomes[0].forecaster
    if run is None:
        raise StreamRidgeError(f"{task.series.sensor} ({task.method}): {outcomes[0].error}")
    if content is not None:
        forecaster.__setstate__(content)
    return run
