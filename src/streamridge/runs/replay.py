"""One forecaster over one series, in this process or on any engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, StreamRidgeError
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import method_of
from streamridge.runs.carrying import carry_out, parse_engine
from streamridge.runs.engines.base import Engine
from streamridge.runs.engines.work import content_of, forecaster_of
from streamridge.runs.run import Run, backend_of
from streamridge.runs.selection import WRITING, Selection, require_options
from streamridge.runs.sources import Source, one_series
from streamridge.runs.stepping import StepProgress, require_ahead, step_through
from streamridge.runs.tasks import Task, require_longer
from streamridge.series.clock import parse_zone, step_name
from streamridge.series.series import Series
from streamridge.series.spans import GivenSpan, spans_of

# Parts of a selection that the forecaster does not say itself.
READING = ("aggregate", "layout", "gap", "fold", "first", "last", *WRITING)


def replay(
    forecaster: Forecaster,
    series: Any,
    *,
    sensor: str | None = None,
    warmup: int | None = None,
    steps: int | None = None,
    exclude: Iterable[GivenSpan] = (),
    method: str | None = None,
    engine: str | Engine = "local",
    progress: StepProgress | None = None,
    **reading: Any,
) -> Run:
    """Return what a forecaster makes of a series, step by step.

    Parameters
    ----------
    forecaster
        It is moved along.
    series
        A `Series`, a pandas or polars frame or series, or the path of a file.
    sensor
        Which one, where there are several.
    warmup
        Steps before the first scored one; those before the first fit by default.
    steps
        How many are scored at most; all by default.
    exclude
        Spans such as "2021-06-13T08:00/2021-06-14", or pairs of times, that are forecast, but
        neither learned from nor scored: see `Forecaster.exclude`.
    method
        What the run is called; by its way of tuning by default, such as "ohl" or "fixed".
    engine
        "local" is this process. "dask", or an engine such as `DaskEngine("tls://...")`, sends the
        forecaster to a worker, and it comes back moved along.
    progress
        Called now and then with how many steps are done, of how many.
    reading
        How to read the series: `aggregate`, "sum", "mean" or "last", says how finer readings make
        a value of a step; `layout`, `gap`, `fold`, `first`, `last`, `date_format`, `decimal`,
        `missing`, `encoding` and `largest` are those of `Selection`.
        The step, the zone and extra columns are the forecaster's.

    Notes
    -----
    Linear algebra is limited to one thread meanwhile, so that results repeat to the last bit.
    Ctrl-C ends the run early with what there is; on Dask there is nothing then, and the forecaster
    stays as it was.

    Examples
    --------
    >>> import numpy as np
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=6)
    >>> run = replay(Forecaster(step="15min"), roads.frame())
    >>> len(run.times), bool(run.rmse < 100)
    (288, True)
    """
    settings = forecaster.settings
    require_options("replay", reading, READING)
    spans = spans_of(exclude, parse_zone(settings.tz))
    method = method or method_of(settings)
    regular = _series_for(forecaster, series, Selection(sensors=_listed(sensor), **reading))
    first = settings.warmup if warmup is None else require_count("warmup", warmup, least=0)
    if steps is not None:
        require_count("steps", steps)
    require_longer(regular.sensor, len(regular), first)
    require_ahead(forecaster, regular)
    if engine == "local":
        run = step_through(
            forecaster,
            regular,
            method=method,
            warmup=warmup,
            steps=steps,
            exclude=spans,
            progress=progress,
        )
    else:
        task = Task(Source.of(regular), settings, method, warmup, steps, exclude=spans)
        run = _sent(forecaster, task, parse_engine(engine), progress)
    return replace(run, backend=backend_of(series))


def _series_for(forecaster: Forecaster, given: Any, selection: Selection) -> Series:
    """Return a sensor's series on the forecaster's grid."""
    settings = forecaster.settings
    if not isinstance(given, Series):
        extras = settings.preset.features.extras
        selection = replace(selection, step=settings.step, tz=settings.tz, extras=extras)
    regular = one_series(given, selection)
    if regular.clock.step != settings.step:
        raise InvalidInputError(
            f"series must have the forecaster's step, {step_name(settings.step)}, "
            f"got {step_name(regular.clock.step)}."
        )
    return regular


def _sent(forecaster: Forecaster, task: Task, engine: Engine, progress: StepProgress | None) -> Run:
    """Return the run of a forecaster that is sent to a worker, and moves along once it is back."""
    sent = replace(task, begun=content_of(forecaster))

    def tell(number: int, done: int) -> None:
        if progress is not None:
            progress(done, task.length)

    with engine.started(1) as workers:
        outcomes = list(carry_out([sent], workers, tell))
    if not outcomes:
        raise KeyboardInterrupt  # stopped before anything was there
    run, content = outcomes[0].run, outcomes[0].checkpoint
    if run is None:
        raise StreamRidgeError(f"{task.source.sensor} ({task.method}): {outcomes[0].error}")
    if content is not None:
        vars(forecaster).update(vars(forecaster_of(content)))  # the caller's object itself
    return run


def _listed(sensor: str | None) -> list[str] | None:
    return None if sensor is None else [sensor]
