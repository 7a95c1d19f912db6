"""Times as clients write them, to whole microseconds since 1970 in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from streamridge.service.bodies.fields import FieldError, brief

ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]"
    r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# Years 1800 to 2500: what lies outside is a mistake, and would not fit into nanoseconds.
FIRST = (datetime(1800, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
LAST = (datetime(2501, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND - 1
YEARS = "in the years 1800 to 2500"
# Microseconds of so many ticks, by the unit of the ticks.
UNITS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}

# How a format writes times: from the value sent to microseconds; raises FieldError.
Moment = Callable[[object], int]


def moment_of_text(time: object) -> int:
    """Return the moment of a text in ISO 8601 that has an offset from UTC.

    Digits after the microsecond are dropped.

    Examples
    --------
    >>> moment_of_text("1970-01-01T01:00:00.25+01:00")
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


def moment_of_ticks(ticks: object, unit: str) -> int:
    """Return the moment so many ticks of a unit (s, ms, us or ns) after 1970 began in UTC.

    Examples
    --------
    >>> moment_of_ticks(1999, "ns"), moment_of_ticks(-1, "s")
    (1, -1000000)
    """
    times, over = UNITS[unit]
    moment = ticks * times // over if isinstance(ticks, int) else LAST + 1
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
