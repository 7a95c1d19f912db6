"""Times in text: forms that are no ISO 8601, such as 25/06/2021 8:15 PM, and counts since 1970."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from streamridge.errors import InvalidInputError
from streamridge.files.dialect import DAY_FIRST, EPOCHS, MONTH_FIRST
from streamridge.files.evidence import EITHER
from streamridge.series.readings import parse_stamp

# A time in UTC, or as it stands if its offset in seconds is NaN.
Stamp: TypeAlias = tuple[np.datetime64, float]

NO_TIME: Stamp = (np.datetime64("NaT"), np.nan)
MONTHS = 12

_DATE = r"(?P<first>\d{1,4})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)(?P<third>\d{1,4})"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second_>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: *(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_OFFSET = r"(?: *(?P<offset>[Zz]|UTC|GMT|[+-]\d\d:?\d\d))?"
_WRITTEN = re.compile(rf"{_DATE}(?:(?:,? +|[Tt]){_CLOCK}{_OFFSET})?", re.ASCII)
_COUNT = re.compile(r"\d{1,25}(?:\.\d*)?", re.ASCII)
# Seconds since 1970 from 2001 to 2030: no date without marks, such as 2021061308, looks like them.
LEAST_SECONDS, MOST_SECONDS = 1_000_000_000, 1_900_000_000


def order_of(text: str) -> str | None:
    """Return whether the day or the month comes first in a date, as far as it shows.

    Dates with dots are written with the day first everywhere. In 05/05/2021 it does not matter.

    Examples
    --------
    >>> order_of("25/06/2021"), order_of("06/25/2021"), order_of("05/06/2021 8:15 PM")
    ('dayfirst', 'monthfirst', 'either')
    >>> order_of("2021/06/05"), order_of("05.06.2021")
    (None, None)
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or len(found["third"]) != 4 or found["mark"] == ".":
        return None
    first, second = int(found["first"]), int(found["second"])
    if first == second:
        return None
    if max(first, second) <= MONTHS:
        return EITHER
    return DAY_FIRST if second <= MONTHS else MONTH_FIRST


def time_of(text: str, order: str) -> Stamp:
    """Return a time with its parts in another order than in ISO 8601, NaT if it cannot be read.

    Examples
    --------
    >>> time_of("05/06/2021 8:15 PM", "dayfirst")
    (np.datetime64('2021-06-05T20:15:00.000000'), nan)
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return NO_TIME
    try:
        return _stamp(_day(found, order) + _since_midnight(found))
    except (ValueError, OverflowError):
        return NO_TIME


def iso_time(text: str | None) -> Stamp:
    """Return a time in ISO 8601, NaT if it is none."""
    # To `parse_stamp`, 05/06/2021 08:15:00 is in May, as Caltrans writes it.
    if text is None or "/" in text:
        return NO_TIME
    try:
        return _stamp(text)
    except InvalidInputError:
        return NO_TIME


def has_dots(text: str) -> bool:
    """Return whether a time is written as 05.06.2021."""
    found = _WRITTEN.fullmatch(text.strip())
    return found is not None and found["mark"] == "." and len(found["third"]) == 4


def pattern_time(text: str | None, pattern: str) -> Stamp:
    """Return a time that is written by a pattern of strptime, NaT if it is not."""
    try:
        return _stamp(datetime.strptime((text or "").strip(), pattern))
    except (ValueError, OverflowError):
        return NO_TIME


def epoch_time(text: str | None, unit: str) -> Stamp:
    """Return a time that is counted since 1970 in UTC, in a unit such as "epoch-s"."""
    found = _COUNT.fullmatch((text or "").strip())
    if found is None:
        return NO_TIME
    try:
        since = timedelta(microseconds=int(Decimal(found[0]) * EPOCHS[unit]))
        return _stamp(datetime(1970, 1, 1, tzinfo=UTC) + since)
    except (OverflowError, InvalidInputError):
        return NO_TIME


def epoch_of(texts: Collection[str | None]) -> str | None:
    """Return the unit in which most of some cells count since 1970, None if there is no such."""
    units = Counter(map(_unit_of, texts)).most_common(1)
    return next((unit for unit, times in units if 2 * times > len(texts)), None)


def _stamp(time: object) -> Stamp:
    stamp, offset = parse_stamp(time)
    return stamp, np.nan if offset is None else offset


def _unit_of(text: str | None) -> str | None:
    if not _COUNT.fullmatch((text or "").strip()):
        return None
    since = float(text or "")
    within = (LEAST_SECONDS <= since * float(per) / 1e6 < MOST_SECONDS for per in EPOCHS.values())
    return next((unit for unit, fits in zip(EPOCHS, within, strict=True) if fits), None)


def _day(found: re.Match[str], order: str) -> datetime:
    """Return the midnight of a date, in the zone that it names."""
    parts = [found["first"], found["second"], found["third"]]
    if len(parts[0]) == 4:
        year, month, day = map(int, parts)
    elif len(parts[2]) == 4:
        first, second, year = map(int, parts)
        by_day = order == DAY_FIRST or found["mark"] == "."
        day, month = (first, second) if by_day else (second, first)
    else:
        raise ValueError("a year of two digits may stand at either end")
    return datetime(year, month, day, tzinfo=_zone(found["offset"]))


def _zone(offset: str | None) -> timezone | None:
    if offset is None:
        return None
    if offset.upper() in ("Z", "UTC", "GMT"):
        return UTC
    sign = -1 if offset[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:])))


def _since_midnight(found: re.Match[str]) -> timedelta:
    if found["hour"] is None:
        return timedelta(0)
    hour, minute = int(found["hour"]), int(found["minute"])
    second = float(f"{found['second_'] or 0}.{found['fraction'] or 0}")
    if found["half"] is not None:
        if not 1 <= hour <= 12:
            raise ValueError("hours before AM and PM go from 1 to 12")
        hour = hour % 12 + 12 * (found["half"] in "Pp")
    past = timedelta(hours=hour, minutes=minute, seconds=second)
    if minute > 59 or second >= 60 or past > timedelta(days=1):
        raise ValueError("24:00 is the end of a day")
    return past
