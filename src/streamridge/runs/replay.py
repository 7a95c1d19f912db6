"""One forecaster over one series, in this process or on any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, StreamRidgeError, shown
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.inputs import require_names
from streamridge.forecaster.methods import method_of
from streamridge.forecaster.settings import Settings
from streamridge.runs.carrying import carry_out, parse_engine
from streamridge.runs.engines.base import Engine
from streamridge.runs.engines.work import content_of, forecaster_of
from streamridge.runs.run import Run, backend_of
from streamridge.runs.selection import SELECTING, Selection, require_options, selection_of
from streamridge.runs.sources import Source, one_series
from streamridge.runs.stepping import StepProgress, require_ahead, step_through
from streamridge.runs.tasks import Task, require_longer
from streamridge.series.clock import parse_step, parse_zone, step_name
from streamridge.series.series import Series
from streamridge.series.spans import GivenSpan, spans_of


def replay(
    forecaster: Forecaster,
    series: Any,
    *,
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
        What to read, and how: `sensor`, where there are several; `from_` and `to`, the first and
        the last time; `aggregate`, "sum", "mean" or "last", how finer readings make a value of a
        step; `missing`, `decimal`, `date_format`, `fold`, `layout`, `gap`, `arrival_order` and the
        other parts of `Selection`. The `step`, the `tz` and the `extras` are the forecaster's, and
        need not be given.

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
    if not isinstance(forecaster, Forecaster):
        raise InvalidInputError(
            f"forecaster must be one such as Forecaster('15min'), got {shown(forecaster)}."
        )
    settings = forecaster.settings
    require_options("replay", reading, SELECTING)
    _require_own(settings, reading)
    spans = spans_of(exclude, parse_zone(settings.tz))
    method = method or method_of(settings)
    regular = _series_for(forecaster, series, selection_of(reading))
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


def _require_own(settings: Settings, reading: Mapping[str, Any]) -> None:
    """Raise if what the forecaster decides is given otherwise."""
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


def _series_for(forecaster: Forecaster, given: Any, selection: Selection) -> Series:
    """Return a sensor's series on the forecaster's grid."""
    settings = forecaster.settings
    step = None if isinstance(given, Series) else settings.step  # a series has its own
    extras = settings.preset.features.extras
    selection = replace(selection, step=step, tz=settings.tz, extras=extras)
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
