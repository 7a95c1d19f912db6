"""Checks of the fields of a reading: sensor, time and value.

Times become whole microseconds since 1970 in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite

from streamridge.errors import LONGEST, listed, shown
from streamridge_service.limits import LARGEST, NAME_RULE, SENSOR_NAME

FIELDS = ("sensor", "time", "value")
# `$` alone would accept a line break at the end of a name; fullmatch does not.
is_name = re.compile(SENSOR_NAME).fullmatch
ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]"
    r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# Times outside these years are mistakes.
FIRST = (datetime(1000, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
LAST = (datetime(2501, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND - 1
YEARS = "in the years 1000 to 2500"
# Units of integer times: microseconds = ticks * multiplier // divisor.
UNITS = {
    "h": (3_600_000_000, 1),
    "m": (60_000_000, 1),
    "s": (1_000_000, 1),
    "ms": (1_000, 1),
    "us": (1, 1),
    "ns": (1, 1_000),
}

# Converts a received time to microseconds, or raises FieldError.
ParseTime = Callable[[object], int]


class FieldError(Exception):
    """The reason to refuse one row: the code of the problem, the detail and the wrong field."""

    def __init__(self, code: str, detail: str, column: str | None = None) -> None:
        super().__init__(detail)
        self.code, self.detail, self.column = code, detail, column


def brief(value: object) -> str:
    """Return a value as messages show it; long strings are cut before they are formatted."""
    return shown(value[: LONGEST + 1] if isinstance(value, str) else value)


def name_of(sensor: object) -> str:
    """Return a valid sensor name, or raise.

    Examples
    --------
    >>> name_of("A2:ramp-7")
    'A2:ramp-7'
    """
    if isinstance(sensor, str) and is_name(sensor):
        return sensor
    raise FieldError("sr-bad-name", f"sensor must be {NAME_RULE}, got {brief(sensor)}.", "sensor")


def number_of(value: object) -> float | None:
    """Return a value as a finite float within the limit; None stays None.

    Examples
    --------
    >>> number_of(-0.0), number_of(None)
    (0.0, None)
    """
    if value is None:
        return None
    # bool is a subclass of int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise FieldError(
            "sr-not-a-number",
            f"value must be a finite number or null, got {brief(value)}.",
            "value",
        )
    if abs(value) > LARGEST:
        raise FieldError(
            "sr-out-of-range", f"value must be within {LARGEST:g} of zero, got {value!r}.", "value"
        )
    return value + 0.0  # -0.0 becomes 0.0


def require_fields(names: Sequence[str]) -> None:
    """Raise unless a row has exactly the three fields of a reading."""
    if sorted(names) != sorted(FIELDS):
        raise FieldError(
            "sr-bad-row",
            f"a row must have sensor, time and value, each once and nothing else, "
            f"got {listed(names)}.",
        )


def parse_iso_time(time: object) -> int:
    """Return the microseconds since 1970 of an ISO 8601 text with a UTC offset.

    Digits after the microsecond are dropped.

    Examples
    --------
    >>> parse_iso_time("1970-01-01T01:00:00.25+01:00")
    250000
    """
    match = ISO.fullmatch(time) if isinstance(time, str) else None
    if match is None:
        raise _bad_text(time)
    try:
        moment = datetime.fromisoformat(match[0])
    except ValueError:  # a day or a second that does not exist
        raise _bad_text(time) from None
    if match[1] is None:
        raise FieldError(
            "sr-no-offset", f"time must end with Z or an offset, got {brief(time)}.", "time"
        )
    since = (moment - EPOCH) // MICROSECOND
    if not FIRST <= since <= LAST:
        raise _bad_text(time)
    return since


def parse_ticks(ticks: object, unit: str) -> int:
    """Return the microseconds since 1970 of a whole number of a unit, such as s or ns.

    Examples
    --------
    >>> parse_ticks(1999, "ns"), parse_ticks(-1, "s")
    (1, -1000000)
    """
    multiplier, divisor = UNITS[unit]
    moment = ticks * multiplier // divisor if isinstance(ticks, int) else LAST + 1
    if not FIRST <= moment <= LAST:
        raise FieldError(
            "sr-bad-time",
            f"time must be a whole number of {unit} since 1970, {YEARS}, got {brief(ticks)}.",
            "time",
        )
    return moment


def _bad_text(time: object) -> FieldError:
    return FieldError(
        "sr-bad-time",
        f"time must be ISO 8601 such as 2026-06-13T08:15:00+02:00, {YEARS}, got {brief(time)}.",
        "time",
    )
