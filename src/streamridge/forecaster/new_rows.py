"""New readings of one sensor in a frame: read and checked before anything is learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError, listed, option
from streamridge.features.base import steps_ahead
from streamridge.files.layouts import VALUE
from streamridge.files.reading import read_one_sensor
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.sensor_history import SensorHistory
from streamridge.forecaster.settings import Settings, require_readings
from streamridge.series.lengths import Length, amount, step_name
from streamridge.series.series import Readings, Series, datetimes_of
from streamridge.series.step_detection import (
    DRIFT,
    JITTER,
    WINDOW,
    length_of,
    rates_of,
    stands_for,
)
from streamridge.series.time_format import TimeFormat
from streamridge.series.times import index_of

# A time, a value, and the extra columns of its step and of steps after it, (A, E), if any.
NewRow: TypeAlias = tuple[object, float, Matrix | None]
# The fewest rows whose distances show a rate.
LEAST_ROWS = 3


def new_rows(given: Any, settings: Settings, history: SensorHistory) -> Iterator[NewRow]:
    """Return the rows of a frame, in order; raise if one of them cannot be observed.

    If there are extra columns, rows after the last value only hold extras of the steps ahead.
    """
    times, values, extras = _columns(given, settings)
    require_readings("value", values)
    steps = _steps(times, values, history)
    rows = _rows(times, values, steps, extras, steps_ahead(settings.preset.features))
    if extras is None:
        return rows
    return islice(rows, int(np.flatnonzero(~np.isnan(values)).max(initial=-1)) + 1)


def choose_sensor(names: Sequence[str], own: str | None, requested: str | None = None) -> str:
    """Return the column of a sensor among the names of a source.

    A single column of another name counts only if it says what it holds, such as "value".
    """
    name = requested or own
    if name in names:
        return str(name)
    if len(names) == 1 and requested is None and (own is None or names[0].lower() in VALUE):
        return names[0]
    raise InvalidInputError(
        f"the readings must have a column {name!r}, got {listed(names)}. "
        f"Rename the column, or pass its name with {option('sensor')}."
        if name is not None
        else f"the readings must have one sensor, got {listed(names)}. "
        f"Pass one of them with {option('sensor')}."
    )


def _columns(given: Any, settings: Settings) -> tuple[list[Any], Vector, Matrix | None]:
    """Return the times, the values and the extra columns of new readings."""
    names = settings.preset.features.extras
    if isinstance(given, str):
        raise InvalidInputError(f"value must be given with a time, got the time {given!r} alone.")
    source: Series | Readings
    if isinstance(given, Series):
        source, times = given, datetimes_of(given, given.times)
        _require_step(given.clock.step, settings.step)
    else:
        options = ReadingOptions(tz=settings.tz, extras=names)
        source = read_one_sensor(given, options, partial(choose_sensor, own=settings.sensor))
        times = row_times(source)
        require_rate(source, settings)
    missing = [name for name in names if name not in source.extras]
    if missing:
        raise InvalidInputError(
            f"readings must have the extra column {missing[0]!r}, got {listed(source.extras)}."
        )
    extras = np.column_stack([source.extras[name] for name in names]) if names else None
    for at, name in enumerate(names):
        require_readings(name, np.asarray(extras)[:, at])
    return times, source.values, extras


def require_rate(readings: Readings, settings: Settings) -> None:
    """Raise if the rows come at another rate than the step of the forecaster.

    Few rows may be further apart than a step, since others may be missing.
    """
    if readings.indexed != isinstance(settings.step, int):
        return  # the clock refuses such times
    known = readings.part(~np.isnan(readings.values))
    if len(known.times) < LEAST_ROWS:
        return
    calendar = TimeFormat(zone=settings.tz) if settings.tz else readings.time_format
    for segment in rates_of(known, calendar):
        step = None if segment.step is None else length_of(known, segment.step)
        rare = step is not None and amount(step) > amount(settings.step)
        if step is not None and (not rare or len(known.times) > WINDOW):
            _require_step(step, settings.step)


def _require_step(step: Length, own: Length) -> None:
    """Raise unless readings have the step of the forecaster, apart from drifting clocks."""
    if stands_for(step, own) or 1 - JITTER <= amount(step) / amount(own) <= 1 + DRIFT:
        return
    finer = amount(step) < amount(own)
    remedy = "Aggregate the rows first." if finer else "Start a forecaster of that step."
    raise InvalidInputError(
        f"readings must be {step_name(own)} apart, the step of the forecaster, got rows "
        f"{step_name(step)} apart. {remedy}"
    )


def row_times(readings: Readings) -> list[Any]:
    """Return the times of readings in their own format; an index has whole numbers."""
    if readings.indexed:
        return index_of(readings.times).tolist()
    return readings.time_format.datetimes(readings.times)


def _steps(times: Sequence[Any], values: Vector, history: SensorHistory) -> list[int]:
    """Return the step of each row; raise at a time that the forecaster would refuse."""
    clock = copy(history.clock)
    newest = history.timeline.newest if history.has_readings else None
    steps = []
    for time, value in zip(times, values.tolist(), strict=True):
        step, _ = clock.place(time, newest)
        if newest is not None or not np.isnan(value):
            newest = step if newest is None else max(newest, step)
        steps.append(step)
    return steps


def _rows(
    times: Sequence[Any],
    values: Vector,
    steps: Sequence[int],
    extras: Matrix | None,
    ahead: int,
) -> Iterator[NewRow]:
    """Yield the rows, with the extra columns that the frame has for the steps after each."""
    if extras is None:
        yield from ((time, value, None) for time, value in zip(times, values.tolist(), strict=True))
        return
    first = min(steps)
    known = np.full((max(steps) - first + ahead, extras.shape[1]), np.nan)
    known[np.array(steps) - first] = extras
    for time, value, step in zip(times, values.tolist(), steps, strict=True):
        yield time, value, known[step - first : step - first + ahead]
