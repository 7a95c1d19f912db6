"""The history that a forecaster starts with, from whatever holds it."""

from __future__ import annotations

from typing import Any

from streamridge.errors import InvalidInputError, listed
from streamridge.files.reading import stored_readings
from streamridge.series.clock import parse_step, parse_zone
from streamridge.series.grid import to_series
from streamridge.series.series import Series


def read_history(
    given: Any,
    *,
    step: Any = None,
    tz: str | None = None,
    extras: tuple[str, ...] = (),
    sensor: str | None = None,
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
    """
    if not isinstance(given, Series):
        return _read(given, step, tz, extras, sensor)
    _require_same("step", None if step is None else parse_step(step), given.clock.step)
    _require_same("tz", parse_zone(tz), given.clock.zone)
    if not set(extras) <= set(given.extras):
        raise InvalidInputError(
            f"series must have the extras {listed(extras)}, got {listed(given.extras)}."
        )
    return given


def _require_same(name: str, asked: object, own: object) -> None:
    """Raise if something else was asked for than a series has."""
    if asked is not None and asked != own:
        raise InvalidInputError(f"{name} must be that of the series, {own!s}, got {asked!s}.")


def _read(
    given: Any, step: Any, tz: str | None, extras: tuple[str, ...], sensor: str | None
) -> Series:
    length = None if step is None else parse_step(step)
    with stored_readings(given, extras=extras) as store:
        names = store.names
        if len(names) > 1 and sensor not in names:
            raise InvalidInputError(
                f"sensor must be one of {listed(names)}, got {sensor!r}. Pass it as sensor=."
            )
        readings = store.readings(names[0] if len(names) == 1 else str(sensor))
        return to_series(readings, step=length, zone=parse_zone(tz))
