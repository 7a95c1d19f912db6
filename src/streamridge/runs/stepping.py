"""A forecaster driven over a series as if it were live: predict each step, then observe it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import repeat
from time import thread_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge.errors import InvalidInputError, about
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.forecaster.settings import Settings
from streamridge.learners.workspace import Workspace
from streamridge.runs.run import Run
from streamridge.runs.scoring import series_parts
from streamridge.series.clock import Steps, Times
from streamridge.series.series import Series
from streamridge.series.spans import Span, require_kind_of_spans

# Called after each step with how many are done, of how many.
StepProgress = Callable[[int, int], None]


def step_through(
    forecaster: Forecaster,
    series: Series,
    *,
    method: str,
    warmup: int | None = None,
    steps: int | None = None,
    exclude: Sequence[Span] = (),
    progress: StepProgress | None = None,
) -> Run:
    """Return what a forecaster makes of a series that is longer than the warm-up.

    It forecasts the spans to exclude, but does not learn from them, and they count in no score.
    Linear algebra is limited to one thread meanwhile, so that results repeat to the last bit.
    Ctrl-C ends the run early with what there is.
    """
    _exclude(forecaster, series, exclude)
    _join(forecaster, series)
    first = forecaster.settings.warmup if warmup is None else warmup
    end = len(series) if steps is None else min(len(series), first + steps)
    readings = zip(
        _stamps(series, series.times[:end]), series.values.tolist(), _known(series), strict=False
    )
    start, interrupted, forecasts = thread_time(), False, []
    path = _WholePath()
    path.follow(forecaster)
    try:
        with threadpool_limits(1), about(series.sensor), _held_memory(forecaster):
            for time, value, known in readings:
                forecast = forecaster.predict(known)
                forecaster.observe(time, value, known)
                forecasts.append(forecast)
                path.follow(forecaster)
                if progress is not None:
                    progress(len(forecasts), end)
    except KeyboardInterrupt:
        interrupted = True
    return _run_of(
        forecaster,
        series,
        forecasts,
        min(first, len(forecasts)),
        path=path.known,
        refit_times=series.clock.times(path.steps),
        method=method,
        seconds=thread_time() - start,
        interrupted=interrupted,
        excluded=tuple(exclude),
    )


class _WholePath:
    """The path of the hyperparameters in a run; a forecaster itself remembers its last refits."""

    def __init__(self) -> None:
        self.known: HyperparameterPath | None = None
        self._fits = 0

    @property
    def steps(self) -> Steps:
        """Return the steps of the refits."""
        return np.zeros(0, dtype=np.int64) if self.known is None else self.known.steps

    def follow(self, forecaster: Forecaster) -> None:
        """Add the latest refits, if there were some."""
        fits = forecaster.counts.get("fits", 0)
        if fits > self._fits:
            later, self._fits = forecaster.path, fits
            self.known = later if self.known is None else self.known.followed_by(later)


@contextmanager
def _held_memory(forecaster: Forecaster) -> Iterator[None]:
    """Let a forecaster hold the memory of its refits within the context, which is faster."""
    own = forecaster.workspace
    forecaster.workspace = own or Workspace()
    try:
        yield
    finally:
        forecaster.workspace = own


def require_ahead(forecaster: Forecaster, series: Series) -> None:
    """Raise unless a series begins where the forecaster is, or later."""
    first = series.times[0]
    if forecaster.has_readings and first < forecaster.next_time:
        raise InvalidInputError(
            f"{series.sensor}: the series must go on from {forecaster.next_time}, where the "
            f"forecaster is, got one from {first}."
        )


def _exclude(forecaster: Forecaster, series: Series, spans: Sequence[Span]) -> None:
    """Let a forecaster learn nothing from some spans."""
    require_kind_of_spans(series.sensor, series.clock.step, spans)
    with about(series.sensor):
        for span in spans:
            forecaster.exclude(*_stamps(series, np.array([span.start, span.end])))


def _join(forecaster: Forecaster, series: Series) -> None:
    """Let a forecaster that has lived before go on to the first step of a series."""
    if forecaster.has_readings and series.times[0] > forecaster.next_time:
        (before,) = _stamps(series, series.clock.times(np.array([series.start - 1])))
        with about(series.sensor):
            forecaster.observe(before, None)


def _stamps(series: Series, times: Times | Steps) -> list[datetime] | list[int]:
    """Return times of a series as the forecaster takes them: with UTC said where it is UTC."""
    if times.dtype.kind != "M":
        return times.tolist()
    # Not by astype(datetime): NumPy drops a Ctrl-C that comes while it looks at such a type.
    moments = times.astype("M8[us]").tolist()
    return moments if series.clock.zone is None else [each.replace(tzinfo=UTC) for each in moments]


def _known(series: Series) -> Iterable[dict[str, float] | None]:
    """Return what is known in advance of each step, by name; None where nothing ever is."""
    if not series.extras:
        return repeat(None, len(series))
    rows = np.column_stack(list(series.extras.values())).tolist()
    return (dict(zip(series.extras, row, strict=True)) for row in rows)


def _run_of(
    forecaster: Forecaster,
    series: Series,
    forecasts: Sequence[Forecast],
    first: int,
    **about: Any,
) -> Run:
    """Return the run of some forecasts, scored from `first` on; `about` are further parts of it."""
    scored = slice(first, len(forecasts))
    settings = forecaster.settings
    value, lower, upper = (
        np.array([getattr(each, part) for each in forecasts[scored]]).reshape(-1, *shape)
        for part, shape in _shapes(settings).items()
    )
    return Run(
        **series_parts(series, settings, first, len(forecasts)),
        value=value,
        lower=lower,
        upper=upper,
        by_model=np.array([each.source == "model" for each in forecasts[scored]], dtype=bool),
        hyperparameters=forecaster.hyperparameters,
        active_bounds=forecaster.active_bounds,
        costs=forecaster.costs,
        counts={**series.counts.found(), **forecaster.counts},
        **about,
    )


def _shapes(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Return the shape of each part of a forecast; levels have an axis if there are several."""
    horizon, levels = settings.horizon, len(settings.levels)
    ends = (horizon,) if levels == 1 else (horizon, levels)
    return {"value": (horizon,), "lower": ends, "upper": ends}
