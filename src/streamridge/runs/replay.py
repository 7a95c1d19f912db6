"""Drive a forecaster over a series as if it were live: predict each step, then observe it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from time import thread_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError
from streamridge.files.reading import read_readings
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import method_of
from streamridge.runs.run import BACKENDS, Run
from streamridge.series.clock import Times, parse_zone, step_name
from streamridge.series.grid import to_series
from streamridge.series.readings import Aggregate
from streamridge.series.series import Series

# Called after each step with how many are done, of how many.
Progress = Callable[[int, int], None]


def replay(
    forecaster: Forecaster,
    series: Any,
    *,
    sensor: str | None = None,
    warmup: int | None = None,
    steps: int | None = None,
    method: str | None = None,
    aggregate: Aggregate | None = None,
    progress: Progress | None = None,
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
    method
        How the run is called; by its way of tuning by default, such as "ohl" or "fixed".
    aggregate
        How finer readings make a value of a step: "sum", "mean" or "last".
    progress
        Called after each step.

    Notes
    -----
    Linear algebra is limited to one thread meanwhile, so that results repeat to the last bit.
    Ctrl-C ends the run early with what there is.

    Examples
    --------
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=6)
    >>> run = replay(Forecaster(step="15min"), roads.frame())
    >>> len(run.times), bool(run.rmse < 100)
    (288, True)
    """
    settings = forecaster.settings
    regular = as_series(series, forecaster, sensor=sensor, aggregate=aggregate)
    _join(forecaster, regular)
    first = settings.warmup if warmup is None else require_count("warmup", warmup, least=0)
    end = (
        len(regular) if steps is None else min(len(regular), first + require_count("steps", steps))
    )
    if end <= first:
        raise InvalidInputError(
            f"{regular.sensor}: the series must have more than the {first} steps of the warm-up, "
            f"got {len(regular)}."
        )
    start = thread_time()
    forecasts: list[Forecast] = []
    with threadpool_limits(1):
        interrupted = _live_through(forecaster, regular, end, forecasts, progress)
    module = type(series).__module__.partition(".")[0]
    return _run(
        forecaster,
        regular,
        forecasts,
        min(first, len(forecasts)),
        method=method or method_of(settings),
        seconds=thread_time() - start,
        interrupted=interrupted,
        backend=module if module in BACKENDS else None,
    )


def as_series(
    source: Any,
    forecaster: Forecaster,
    *,
    sensor: str | None = None,
    aggregate: Aggregate | None = None,
) -> Series:
    """Return a sensor's readings on the forecaster's grid."""
    settings = forecaster.settings
    if isinstance(source, Series):
        if source.clock.step != settings.step:
            raise InvalidInputError(
                f"series must have the forecaster's step, {step_name(settings.step)}, "
                f"got {step_name(source.clock.step)}."
            )
        return source
    readings = read_readings(
        source,
        sensors=None if sensor is None else [sensor],
        extras=settings.preset.features.extras,
    )
    if len(readings) > 1:
        names = ", ".join(each.sensor for each in readings[:10])
        raise InvalidInputError(f"sensor must be one of {names}, got none. Pass sensor=.")
    zone = parse_zone(settings.tz)
    return to_series(readings[0], step=settings.step, zone=zone, aggregate=aggregate)


def _join(forecaster: Forecaster, series: Series) -> None:
    """Let a forecaster that has lived before go on to the first step of a series."""
    if not forecaster.has_readings:
        return
    upcoming = forecaster.next_time
    first = series.times[0]
    if first < upcoming:
        raise InvalidInputError(
            f"{series.sensor}: the series must go on from {upcoming}, where the forecaster is, "
            f"got one from {first}."
        )
    if first > upcoming:
        (before,) = _stamps(series, series.times[:1] - np.timedelta64(series.clock.step))
        forecaster.observe(before, None)


def _stamps(series: Series, times: Times) -> list[datetime]:
    """Return times of a series as the forecaster takes them: with UTC said where it is UTC."""
    # Not by astype(datetime): NumPy drops a Ctrl-C that comes while it looks at such a type.
    moments = times.astype("M8[us]").tolist()
    return moments if series.clock.zone is None else [each.replace(tzinfo=UTC) for each in moments]


def _live_through(
    forecaster: Forecaster,
    series: Series,
    end: int,
    forecasts: list[Forecast],
    progress: Progress | None,
) -> bool:
    """Predict and observe the steps up to `end`, and return whether Ctrl-C cut it short."""
    names = list(series.extras)
    times = _stamps(series, series.times[:end])
    columns = np.column_stack([series.extras[name] for name in names]) if names else None
    try:
        for i, (time, value) in enumerate(zip(times, series.values.tolist(), strict=False)):
            known = None if columns is None else dict(zip(names, columns[i].tolist(), strict=True))
            forecast = forecaster.predict(known)
            forecaster.observe(time, value, known)
            forecasts.append(forecast)
            if progress is not None:
                progress(i + 1, end)
    except KeyboardInterrupt:
        return True
    return False


def _run(
    forecaster: Forecaster,
    series: Series,
    forecasts: list[Forecast],
    first: int,
    *,
    method: str,
    seconds: float,
    interrupted: bool,
    backend: str | None,
) -> Run:
    scored = slice(first, len(forecasts))
    value, lower, upper = (
        np.array([getattr(each, part) for each in forecasts[scored]]).reshape(
            -1, forecaster.settings.horizon
        )
        for part in ("value", "lower", "upper")
    )
    path = forecaster.path if forecaster.has_model else None
    return Run(
        sensor=series.sensor,
        method=method,
        step=np.timedelta64(series.clock.step),
        times=series.times[scored],
        local_times=series.local_times[scored],
        actual=series.values[scored],
        value=value,
        lower=lower,
        upper=upper,
        by_model=np.array([each.source == "model" for each in forecasts[scored]], dtype=bool),
        lived=len(forecasts),
        path=path,
        refit_times=forecaster.refit_times if path else series.times[:0],
        hyperparameters=forecaster.hyperparameters,
        active_bounds=forecaster.active_bounds,
        costs=forecaster.costs,
        seconds=seconds,
        counts={**series.counts.found(), **forecaster.counts},
        level=forecaster.settings.level,
        interrupted=interrupted,
        backend=backend,
    )
