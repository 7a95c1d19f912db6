"""What all runs of a series share, whatever forecast it; and the runs that need no forecaster."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamridge.arrays import Vector
from streamridge.forecaster.bounds import Bounds
from streamridge.forecaster.levels import one_or_all
from streamridge.forecaster.settings import Settings
from streamridge.learners.costs import Costs
from streamridge.runs.implausible import implausible_readings
from streamridge.runs.run import Run
from streamridge.runs.yardsticks import yardsticks
from streamridge.series.series import Series
from streamridge.series.spans import Span


def series_parts(series: Series, settings: Settings, first: int, end: int) -> dict[str, Any]:
    """Return the parts of a run that only the series and the settings decide.

    Parameters
    ----------
    series
        What is forecast.
    settings
        Of the forecaster.
    first, end
        The steps `first` to `end - 1` are scored.
    """
    scored = slice(first, end)
    readings = _possible(series.values[:end], settings)
    implausible = implausible_readings(readings, settings.warmup)
    plausible = np.where(implausible, np.nan, readings)
    naive = yardsticks(plausible, series.clock, series.start, settings)
    return {
        "sensor": series.sensor,
        "step": _step_of(series),
        "times": series.times[scored],
        "local_times": series.local_times[scored],
        "writing": series.writing,
        "actual": readings[scored],
        "implausible": implausible[scored],
        "yardsticks": {name: values[scored] for name, values in naive.items()},
        "lived": end,
        "level": one_or_all(settings.levels),
    }


def yardstick_run(
    series: Series,
    settings: Settings,
    *,
    method: str,
    warmup: int | None = None,
    steps: int | None = None,
    exclude: tuple[Span, ...] = (),
) -> Run:
    """Return the run of a forecast that needs no model, such as "last", over the usual steps."""
    first = settings.warmup if warmup is None else warmup
    end = len(series) if steps is None else min(len(series), first + steps)
    unknown = np.full((end - first, settings.horizon), np.nan)
    ends = unknown if len(settings.levels) == 1 else np.stack([unknown] * len(settings.levels), -1)
    run = Run(
        **series_parts(series, settings, first, end),
        method=method,
        value=unknown,
        lower=ends,
        upper=ends,
        by_model=np.zeros(end - first, dtype=bool),
        path=None,
        refit_times=series.times[:0],
        hyperparameters={},
        active_bounds={},
        costs=Costs(),
        seconds=0.0,
        counts=series.counts.found(),
        excluded=exclude,
    )
    return run.yardstick(method)


def _step_of(series: Series) -> np.timedelta64 | np.int64:
    step = series.clock.step
    return np.int64(step) if isinstance(step, int) else np.timedelta64(step)


def _possible(values: Vector, settings: Settings) -> Vector:
    """Return readings with NaN for those outside the known bounds: no forecast could be right."""
    bounds = Bounds.of(settings.bounds)
    return np.where((values < bounds.lower) | (values > bounds.upper), np.nan, values)
