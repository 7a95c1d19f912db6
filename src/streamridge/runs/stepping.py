"""A forecaster driven over a series as if it were live: predict each step, then observe it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from time import thread_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, StreamRidgeError, about
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.inputs import LARGEST
from streamridge.forecaster.settings import Settings
from streamridge.learners.workspace import Workspace
from streamridge.runs.paths import ExpertTrail, WholePath
from streamridge.runs.run import Run
from streamridge.runs.scoring import series_parts
from streamridge.series.clock import Steps, Times
from streamridge.series.series import Series
from streamridge.series.spans import Span, require_kind_of_spans, within
from streamridge.series.writing import Writing
from streamridge.texts import option

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
    times = series.times[:end]
    with about(series.sensor):
        values = _usable(series, times, exclude)
    stamps, (in_time, late) = stamps_of(series, times), _arriving(series, values)
    readings = zip(stamps, in_time.tolist(), known_ahead(series), strict=False)
    start, interrupted = thread_time(), False
    made = _Forecasts(forecaster.settings, first, end)
    path, experts = WholePath(), ExpertTrail(forecaster.settings.day)
    path.follow(forecaster)
    try:
        with threadpool_limits(1), about(series.sensor), _held_memory(forecaster):
            for at, (time, value, known) in enumerate(readings):
                made.add(_step(forecaster, time, value, known))
                for before in late.get(at, ()):
                    forecaster.observe(stamps[before], float(values[before]))
                experts.follow(forecaster, at, refitted=path.follow(forecaster))
                if progress is not None:
                    progress(made.lived, end)
    except KeyboardInterrupt:
        interrupted = True
    if made.lived:
        experts.take(forecaster, made.lived - 1)
    return _run_of(
        forecaster,
        series,
        made,
        path=path.known,
        refit_times=series.clock.times(path.steps),
        expert_path=experts.path(times),
        method=method,
        seconds=thread_time() - start,
        interrupted=interrupted,
        excluded=tuple(exclude),
    )


def _step(
    forecaster: Forecaster, time: object, value: float, known: dict[str, float] | None
) -> Forecast:
    """Return the forecast of a step, after its value has become known; errors say the time."""
    try:
        forecast = forecaster.predict(known)
        forecaster.observe(time, value, known)
    except StreamRidgeError as error:
        error.args = (f"at {_text(time)}: {error.reason}",)
        raise
    return forecast


class _Forecasts:
    """The forecasts of a run: numbers of those that are scored, and how many there were.

    Parameters
    ----------
    settings
        Of the forecaster.
    first, end
        The first step that is scored, and how many steps there are.
    """

    def __init__(self, settings: Settings, first: int, end: int) -> None:
        self.lived = 0
        self._first, scored = first, max(0, end - first)
        # One array for all steps: a forecast as an object would take a kilobyte.
        self._parts = {
            name: np.empty((scored, *shape)) for name, shape in _shapes(settings).items()
        }
        self._by_model = np.zeros(scored, dtype=bool)

    def add(self, forecast: Forecast) -> None:
        """Take the forecast of the next step."""
        at = self.lived - self._first
        if at >= 0:
            for name, part in self._parts.items():
                part[at] = getattr(forecast, name)
            self._by_model[at] = forecast.source == "model"
        self.lived += 1

    @property
    def scored(self) -> slice:
        """Return which steps of the series are scored."""
        return slice(min(self._first, self.lived), self.lived)

    def parts(self) -> dict[str, Any]:
        """Return the numbers of the scored steps, as a run holds them."""
        count = max(0, self.lived - self._first)
        return {
            "by_model": self._by_model[:count],
            **{name: part[:count] for name, part in self._parts.items()},
        }


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
            forecaster.exclude(*stamps_of(series, np.array([span.start, span.end])))


def _join(forecaster: Forecaster, series: Series) -> None:
    """Let a forecaster that has lived before go on to the first step of a series."""
    if forecaster.has_readings and series.times[0] > forecaster.next_time:
        (before,) = stamps_of(series, series.clock.times(np.array([series.start - 1])))
        with about(series.sensor):
            forecaster.observe(before, None)


def stamps_of(series: Series, times: Times | Steps) -> list[Any]:
    """Return times of a series as the forecaster takes them: as written, and never ambiguous."""
    zone = series.clock.zone
    if zone is None or series.writing.zoned:
        return series.writing.stamps(times)
    return Writing(zoned=True, zone=zone.key).stamps(times)


def _arriving(series: Series, values: Vector) -> tuple[Vector, dict[int, list[int]]]:
    """Return the values that come in time, (T,), and which come late with which step."""
    if series.known_at is None:
        return values, {}
    own = np.arange(len(values))
    comes = series.known_at[: len(values)] - series.start
    is_late = (comes > own) & ~np.isnan(values)
    late: dict[int, list[int]] = {}
    for at in np.flatnonzero(is_late).tolist():
        late.setdefault(int(comes[at]), []).append(at)
    return np.where(is_late, np.nan, values), late


def _usable(series: Series, times: Times | Steps, exclude: Sequence[Span]) -> Vector:
    """Return the values of some times, or raise before any work where one is too large.

    Those that are excluded may be anything.
    """
    values = series.values[: len(times)]
    too_large = np.abs(values) > LARGEST
    values = np.where(too_large & within(exclude, times), np.nan, values)
    wrong = np.flatnonzero(np.abs(values) > LARGEST)[:1]
    for time, value in zip(stamps_of(series, times[wrong]), values[wrong].tolist(), strict=True):
        at = _text(time)
        raise InvalidInputError(
            f"at {at}: value must be at most {LARGEST:g} in size, got {value:g}. "
            f"Pass {option('exclude', f'{at}/{at}')} to pass over it."
        )
    return values


def _text(time: object) -> str:
    return str(time).replace(" ", "T")


def known_ahead(series: Series) -> Iterable[dict[str, float] | None]:
    """Return what is known in advance of each step, by name; None where nothing ever is."""
    if not series.extras:
        return repeat(None, len(series))
    rows = np.column_stack(list(series.extras.values())).tolist()
    return (dict(zip(series.extras, row, strict=True)) for row in rows)


def _run_of(forecaster: Forecaster, series: Series, forecasts: _Forecasts, **about: Any) -> Run:
    """Return the run of some forecasts; `about` are further parts of it."""
    scored, settings = forecasts.scored, forecaster.settings
    return Run(
        **series_parts(series, settings, scored.start, scored.stop),
        hyperparameters=forecaster.hyperparameters,
        active_bounds=forecaster.active_bounds,
        costs=forecaster.costs,
        counts={**series.counts.found(), **forecaster.counts},
        **forecasts.parts(),
        **about,
    )


def _shapes(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Return the shape of each part of a forecast; levels have an axis if there are several."""
    horizon, levels = settings.horizon, len(settings.levels)
    ends = (horizon,) if levels == 1 else (horizon, levels)
    return {"value": (horizon,), "lower": ends, "upper": ends}
