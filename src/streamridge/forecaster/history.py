"""The history that a forecaster starts with, from whatever holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, listed
from streamridge.files.dialect import Dialect
from streamridge.files.reading import stored_readings
from streamridge.series.clock import parse_step, parse_zone
from streamridge.series.grid import to_series
from streamridge.series.local_time import Fold
from streamridge.series.readings import Aggregate
from streamridge.series.series import Series
from streamridge.series.spans import span_to_take
from streamridge.texts import option

# Options that say how to read a history: those of the grid and of files, and how these are written.
WRITTEN = tuple(part.name for part in fields(Dialect))
READING = ("from_", "to", "fold", "aggregate", "layout", "gap", *WRITTEN)


def read_history(
    given: Any,
    *,
    step: Any = None,
    tz: str | None = None,
    extras: tuple[str, ...] = (),
    sensor: str | None = None,
    from_: object = None,
    to: object = None,
    fold: Fold = "infer",
    aggregate: Aggregate | None = None,
    **reading: Any,
) -> Series:
    """Return the history of one sensor on a regular grid.

    Parameters
    ----------
    given
        A `Series`, a frame or series of pandas, polars or pyarrow, or the path of a file.
    step
        Time between readings; found by default.
    tz
        Zone of local times.
    extras
        Names of further columns.
    sensor
        Which one, where there are several; else it is only a name.
    from_, to
        The first and the last time to take; local times where there is a zone.
    fold, aggregate
        See `to_series`.
    reading
        `layout` and `gap` of `stored_readings`, and the parts of `Dialect`.
    """
    if isinstance(given, Series):
        zone = given.clock.zone
        _require_same("step", None if step is None else parse_step(step), given.clock.step)
        _require_same("tz", parse_zone(tz), zone)
        return _part(given, extras, *span_to_take(from_, to, zone))
    dialect = Dialect(**{name: reading.pop(name) for name in WRITTEN if name in reading})
    with stored_readings(given, extras=extras, dialect=dialect, **reading) as store:
        readings = store.readings(_chosen(store.names, sensor))
    zone = parse_zone(tz)
    first, last = span_to_take(from_, to, zone)
    return to_series(
        readings,
        step=None if step is None else parse_step(step),
        zone=zone,
        fold=fold,
        aggregate=aggregate,
        skip=reading.get("gap") == "skip",
        first=first,
        last=last,
    )


def _part(
    series: Series,
    extras: tuple[str, ...],
    first: np.datetime64 | None,
    last: np.datetime64 | None,
) -> Series:
    """Return a series from a first to a last time; raise unless it has the extras."""
    if not set(extras) <= set(series.extras):
        raise InvalidInputError(
            f"series must have the extras {listed(extras)}, got {listed(series.extras)}."
        )
    return series if first is None and last is None else series.between(first, last)


def _require_same(name: str, asked: object, own: object) -> None:
    """Raise if something else was asked for than a series has."""
    if asked is not None and asked != own:
        raise InvalidInputError(f"{name} must be that of the series, {own!s}, got {asked!s}.")


def _chosen(names: Sequence[str], sensor: str | None) -> str:
    """Return the name of the sensor that is meant; of a single one, its own."""
    if len(names) > 1 and sensor not in names:
        raise InvalidInputError(
            f"sensor must be one of {listed(names)}, got {sensor!r}. Pass {option('sensor')}."
        )
    return names[0] if len(names) == 1 else str(sensor)
