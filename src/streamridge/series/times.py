"""Times as users write them: parsed to microseconds in UTC, or to whole numbers of an index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, shown

Steps = NDArray[np.int64]
# datetime64, or the whole numbers of an index.
Times: TypeAlias = NDArray[Any]

EPOCH = np.datetime64("1970-01-01T00:00", "us")
TIME_EXAMPLE = "an ISO 8601 time such as 2021-06-13T08:15"
PEMS_TIME = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d)", re.ASCII)
# fromisoformat accepts any character between date and time: 2021061312345 would be 23:45.
_ISO_TIME = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{8})(?:[Tt ].+)?", re.ASCII)
_END_OF_DAY = re.compile(r"(?<=[Tt ])24(?=:00(?::00(?:\.0+)?)?(?![:.\d]))", re.ASCII)

# A time of an integer index is stored as that many microseconds after the start of year 1. No
# sensor has readings there.
_INDEX = re.compile(r"\d{1,7}", re.ASCII)
INDEX_ORIGIN = np.datetime64("0001-01-01T00:00:00", "us")
INDEX_END = INDEX_ORIGIN + np.timedelta64(10**7, "us")


def parse_time(time: object) -> tuple[np.datetime64, int | None]:
    """Return a time in microseconds, and its offset from UTC in seconds or None.

    Text is in ISO 8601 or in Caltrans' form (06/13/2021 08:15:00); 24:00 is the start of the next
    day. A time with an offset is converted to UTC; other times are not changed.

    >>> parse_time("2021-06-13T08:15+01:00")
    (np.datetime64('2021-06-13T07:15:00.000000'), 3600)
    >>> parse_time("2021-06-13 24:00")
    (np.datetime64('2021-06-14T00:00:00.000000'), None)
    """
    with suppress(ValueError, OverflowError):
        known = _from_text(time) if isinstance(time, str) else time
        offset = known.utcoffset() if isinstance(known, datetime) else None
        if isinstance(known, datetime) and offset is not None:
            utc = np.datetime64(known.astimezone(UTC).replace(tzinfo=None), "us")
            return utc, offset // timedelta(seconds=1)
        if isinstance(known, date):
            return np.datetime64(known, "us"), None
        if isinstance(known, np.datetime64):
            [stamp] = in_microseconds(np.array([known]))
            if not np.isnat(stamp):
                return stamp, None
    raise InvalidInputError(f"time must be {TIME_EXAMPLE}, got {shown(time)}.")


def time_text(time: np.datetime64 | np.int64, unit: Literal["m", "s"] = "s") -> str:
    """Return a time as text in minutes or seconds, or a whole number as text."""
    return str(time.astype(f"M8[{unit}]") if time.dtype.kind == "M" else time)


def parse_index(texts: Sequence[str | None]) -> Times | None:
    """Return whole numbers as the times that store them; None unless all texts are such."""
    written = [(text or "").strip() for text in texts]
    if not written or not all(map(_INDEX.fullmatch, written)):
        return None
    return INDEX_ORIGIN + np.array(written, dtype=np.int64) * np.timedelta64(1, "us")


def index_of(times: Any) -> Any:
    """Return the whole number that a time stores, or the numbers of an array of times."""
    return (times - INDEX_ORIGIN) // np.timedelta64(1, "us")


def require_kind(sensor: str, end: np.datetime64 | None, *, indexed: bool) -> None:
    """Raise unless the end of a span is a whole number where times are, and a time elsewhere."""
    if end is not None and (end < INDEX_END) != indexed:
        got = index_of(end) if end < INDEX_END else end
        wanted = "a whole number, as its times are" if indexed else TIME_EXAMPLE
        raise InvalidInputError(f"{sensor}: time must be {wanted}, got {got}.")


def in_microseconds(times: Times) -> Times:
    """Return the times as datetime64[us], NaT outside the years 1 to 9999."""
    years = times.astype("datetime64[Y]").astype(np.int64) + 1970
    within = (years >= 1) & (years <= 9999)
    return np.where(within, times, np.datetime64("NaT")).astype("datetime64[us]")


def is_offset(offset: timedelta) -> bool:
    """Return whether clocks somewhere may be ahead of UTC by this much, or behind it.

    An interval such as 07:00-07:15 ends in something that looks like an offset.

    >>> is_offset(timedelta(hours=5, minutes=45)), is_offset(-timedelta(hours=7, minutes=15))
    (True, False)
    """
    whole = offset % timedelta(minutes=30 if offset < timedelta(0) else 15) == timedelta(0)
    return whole and timedelta(hours=-12) <= offset <= timedelta(hours=14)


def _from_text(text: str) -> datetime:
    written = text.strip()
    pems = PEMS_TIME.fullmatch(written)
    iso = "{2}-{0}-{1} {3}".format(*pems.groups()) if pems else written
    if not _ISO_TIME.fullmatch(iso):
        raise ValueError(text)
    iso, ends_the_day = _END_OF_DAY.subn("00", iso)
    time = datetime.fromisoformat(iso)
    if not is_offset(time.utcoffset() or timedelta(0)):
        raise ValueError(text)
    return time + timedelta(days=ends_the_day)
