"""One time in text: ISO 8601, other orders of day and month, counts since 1970, and patterns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import chain, product
from typing import NamedTuple, TypeAlias

import numpy as np

from streamridge.errors import InvalidInputError
from streamridge.files.evidence import EITHER
from streamridge.files.reading_options import DAY_FIRST, EPOCHS, MONTH_FIRST
from streamridge.series.times import is_offset, parse_index, parse_time

# A time in UTC and its offset in seconds. Without an offset, the time is as written, and the offset
# is NaN.
Stamp: TypeAlias = tuple[np.datetime64, float]

NO_TIME: Stamp = (np.datetime64("NaT"), np.nan)
# Counts since 1970 are recognized from September 2001 to the end of 2099, in seconds.
LEAST_SECONDS, MOST_SECONDS = 1_000_000_000, 4_102_444_800

_DATE = r"(?P<first>\d{1,4})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)(?P<third>\d{1,4})"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second_>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: *(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_OFFSET = r"(?: *(?P<offset>[Zz]|UTC|GMT|[+-]\d\d:?\d\d))?"
_WRITTEN = re.compile(rf"{_DATE}(?:(?:,? +|[Tt]){_CLOCK}{_OFFSET})?", re.ASCII)
_COUNT = re.compile(r"\d{1,25}(?:\.\d*)?", re.ASCII)
# Digits that may be a date without separators, such as 2021061308 (with the hour) or 2106130815
# (two digits of the year, with hour and minute). Few counts since 1970 look like one.
_MONTH_AND_DAY = r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-4])"
_DIGITS_OF_DATE = re.compile(
    rf"(?:1[89]|2[0-4])\d\d{_MONTH_AND_DAY}|\d\d{_MONTH_AND_DAY}[0-5]\d", re.ASCII
)
# Formats that messages suggest.
_DATE_PATTERNS = (
    *("%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y"),
    *("%b %d, %Y", "%b %d %Y", "%B %d, %Y", "%B %d %Y", "%a, %d %b %Y", "%a %d %b %Y"),
)
# Formats of a year and a month.
_MONTH_PATTERNS = ("%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%b %Y", "%B %Y", "%b-%Y", "%B-%Y")
_MONTH = re.compile(r"\d{4}[-/]\d{1,2}|\d{1,2}[-/]\d{4}|[A-Za-z]{3,9}[ -]\d{4}", re.ASCII)
_DIGIT_PATTERNS = ("%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S")
_CLOCK_PATTERNS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S %z")


# An interval: a time, and the time of day, or the whole time, at which it ends.
_OF_DAY = r"\d{1,2}:\d\d(?::\d\d)?"
_INTERVAL = re.compile(
    rf"(?P<start>.*\d[Tt ](?P<from>{_OF_DAY}))(?P<between> *(?:[-/\u2013\u2014]|to|until) *)"
    rf"(?:{_DATE}[Tt ])?(?P<to>{_OF_DAY})",
    re.ASCII,
)


class Interval(NamedTuple):
    """A cell that holds an interval, or a time with an offset that looks like its end."""

    start: str  # the time at which it begins
    end: str  # the time of day at which it ends
    seconds: int  # from the start to the end, within a day
    is_certain: bool  # whether it cannot be a time with an offset


def interval_of(text: str) -> Interval | None:
    """Return the interval in a cell, None if there is none.

    >>> interval_of("2021-06-01 07:00-07:15")
    Interval(start='2021-06-01 07:00', end='07:15', seconds=900, is_certain=True)
    >>> interval_of("2021-06-01 07:00-08:00").is_certain, interval_of("2021-06-01 07:00+01:00")
    (False, None)
    """
    found = _INTERVAL.fullmatch(text.strip())
    if found is None:
        return None
    begins, ends = (_seconds_of_day(found[name]) for name in ("from", "to"))
    may_be_offset = found["between"].strip() == "-" and not found["between"].endswith(" ")
    certain = not (may_be_offset and found["first"] is None and is_offset(-timedelta(seconds=ends)))
    return Interval(found["start"], found["to"], (ends - begins) % 86_400, certain)


def _seconds_of_day(text: str) -> int:
    hour, minute, *second = map(int, text.split(":"))
    return 3600 * hour + 60 * minute + sum(second)


def order_of(text: str) -> str | None:
    """Return whether the day or the month comes first in a date, as far as it shows.

    Dates with dots are written with the day first everywhere. In 05/05/2021 it does not matter.

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
    if max(first, second) <= 12:
        return EITHER
    return DAY_FIRST if second <= 12 else MONTH_FIRST


def parse_ordered(text: str, order: str) -> Stamp:
    """Return a time with its parts in another order than in ISO 8601, NaT if it cannot be read.

    >>> parse_ordered("05/06/2021 8:15 PM", "dayfirst")
    (np.datetime64('2021-06-05T20:15:00.000000'), nan)
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return NO_TIME
    try:
        return _stamp(_midnight(found, order) + _time_of_day(found))
    except (ValueError, OverflowError):
        return NO_TIME


def parse_iso(text: str | None) -> Stamp:
    """Return a time in ISO 8601, NaT if it is none."""
    # `parse_time` reads 05/06/2021 08:15:00 as a day of May, since Caltrans writes it so.
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


def parse_pattern(text: str | None, pattern: str) -> Stamp:
    """Return a time that is written by a pattern of strptime, NaT if it is not."""
    try:
        return _stamp(datetime.strptime((text or "").strip(), pattern))
    except (ValueError, OverflowError):
        return NO_TIME


def month_pattern(text: str | None) -> str | None:
    """Return the pattern of a year and a month, None if a cell holds something else.

    >>> month_pattern("01/2015"), month_pattern("Jan 2015"), month_pattern("13/2015")
    ('%m/%Y', '%b %Y', None)
    """
    cell = (text or "").strip()
    if not _MONTH.fullmatch(cell):
        return None
    fitting = (each for each in _MONTH_PATTERNS if parse_pattern(cell, each) is not NO_TIME)
    return next(fitting, None)


def parse_epoch(text: str | None, unit: str) -> Stamp:
    """Return a time that is counted since 1970 in UTC, in a unit such as "epoch-s"."""
    found = _COUNT.fullmatch((text or "").strip())
    if found is None:
        return NO_TIME
    try:
        since = timedelta(microseconds=int(Decimal(found[0]) * EPOCHS[unit]))
        return _stamp(datetime(1970, 1, 1, tzinfo=UTC) + since)
    except (OverflowError, InvalidInputError):
        return NO_TIME


def epoch_unit(texts: Collection[str | None]) -> str | None:
    """Return the unit in which most cells count since 1970, None if there is none.

    Cells that may be dates without separators, such as 2021061308, prove nothing.

    >>> epoch_unit(["1623571200"]), epoch_unit(["1923571200000"]), epoch_unit(["2021061308"])
    ('epoch-s', 'epoch-ms', None)
    """
    counts = [text for text in texts if text and not _DIGITS_OF_DATE.match(text.strip())]
    units = Counter(map(_unit_by_size, counts)).most_common(1)
    return next((unit for unit, times in units if 2 * times > len(texts)), None)


def suggested_format(text: str) -> str | None:
    """Return a pattern or word that reads a time, None if none of the usual ones does.

    >>> suggested_format("13 Jun 2021 8:15 PM"), suggested_format("30/02/21")
    ('%d %b %Y %I:%M %p', None)
    >>> suggested_format("1623542400"), suggested_format("2021061308")
    ('epoch-s', '%Y%m%d%H')
    """
    patterns = chain(_DIGIT_PATTERNS, map("".join, product(_DATE_PATTERNS, _CLOCK_PATTERNS)))
    fitting = (each for each in patterns if parse_pattern(text, each) is not NO_TIME)
    return epoch_unit([text]) or next(fitting, None)


def parse_index_cell(text: str | None) -> Stamp:
    """Return a whole number as the time that stores it, NaT if it is none."""
    index = parse_index([text])
    return NO_TIME if index is None else (index[0], np.nan)


def parse_similar_epoch(text: str | None, unit: str) -> Stamp:
    """Return a time that is counted since 1970, NaT if its size suggests another unit."""
    return parse_epoch(text, unit) if _unit_by_size(text) == unit else NO_TIME


def _stamp(time: object) -> Stamp:
    stamp, offset = parse_time(time)
    return stamp, np.nan if offset is None else offset


def _unit_by_size(text: str | None) -> str | None:
    """Return the unit in which a number is a time of this century, None if there is none."""
    if not _COUNT.fullmatch((text or "").strip()):
        return None
    since = float(text or "")
    within = (LEAST_SECONDS <= since * float(per) / 1e6 < MOST_SECONDS for per in EPOCHS.values())
    return next((unit for unit, fits in zip(EPOCHS, within, strict=True) if fits), None)


def _midnight(found: re.Match[str], order: str) -> datetime:
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
    ahead = sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:]))
    if not is_offset(ahead):
        raise ValueError("clocks nowhere have such an offset")
    return timezone(ahead)


def _time_of_day(found: re.Match[str]) -> timedelta:
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
