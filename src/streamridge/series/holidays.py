"""Holidays: those of a list of dates, or of a country, each of which runs like a Sunday."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import LONGEST, InvalidInputError, MissingExtraError, shown

# As they are given: a country's code, or dates of any kind.
GivenHolidays: TypeAlias = "str | Iterable[object]"
# As they are kept: a country's code, or dates as ISO text, in order.
PlainHolidays: TypeAlias = "str | tuple[str, ...]"
# Days since 1970-01-01.
Days: TypeAlias = NDArray[np.int64]

EXPECTED = "holidays must be a country's code such as DE or GB-ENG, or dates such as 2024-12-25"
DATES = (str, date, np.datetime64)
# 1970-01-01 was a Thursday, three days after a Monday.
SINCE_MONDAY, SUNDAY = 3, 6
# Days that are looked up at a time and kept: rows look at the same weeks over and over.
STRETCH = 1024


def parse_holidays(given: GivenHolidays) -> PlainHolidays:
    """Return holidays as plain values; raise if a country or a date is not known.

    Parameters
    ----------
    given
        The code of a country, such as "DE", or of a part of it, such as "GB-ENG"; or dates: ISO
        texts, dates, datetimes or values of numpy.datetime64.

    Examples
    --------
    >>> parse_holidays(["2024-12-26", date(2024, 12, 25)])
    ('2024-12-25', '2024-12-26')
    """
    if isinstance(given, str):
        return _known_code(given)
    if not np.iterable(given):
        raise InvalidInputError(f"{EXPECTED}, got {shown(given)}.")
    return tuple(sorted({parse_date(each) for each in given}))


def parse_date(given: object) -> str:
    """Return a day as ISO text; of a time it is the day that the time names."""
    text = given.isoformat() if isinstance(given, date) else str(given).strip()
    try:
        if not isinstance(given, DATES) or text[10:11] not in ("", " ", "T"):
            raise ValueError(text)
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        raise InvalidInputError(f"{EXPECTED}, got {shown(given)}.") from None


@dataclass(frozen=True)
class Holidays:
    """The holidays that a sensor's days are looked up in.

    Parameters
    ----------
    plain
        What `parse_holidays` returned.

    Examples
    --------
    >>> christmas = np.array(["2024-12-24", "2024-12-25"], "M8[D]").astype(np.int64)
    >>> Holidays(("2024-12-25",)).before_sunday(christmas)  # a Wednesday
    array([0, 4])
    """

    plain: PlainHolidays

    def before_sunday(self, days: Days) -> Days:
        """Return how many days each holiday comes before the Sunday of its week; else 0."""
        stretches, within = np.divmod(days, STRETCH)
        if days.size and stretches.min() == stretches.max():
            return _stretch(self, int(stretches.flat[0]))[within]
        found = np.zeros_like(days)
        for stretch in np.unique(stretches).tolist():
            inside = stretches == stretch
            found[inside] = _stretch(self, stretch)[within[inside]]
        return found

    def within(self, first: int, last: int) -> Days:
        """Return the holidays from one day to another."""
        if isinstance(self.plain, str):
            years = np.array([first, last]).astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970
            begin, end = np.clip(years, MINYEAR, MAXYEAR).tolist()
            dates = sorted(_country(self.plain, range(begin, end + 1)))
        else:
            dates = list(self.plain)
        days = np.array(dates, dtype="M8[D]").astype(np.int64)
        return days[(first <= days) & (days <= last)]


@lru_cache(maxsize=256)
def _stretch(holidays: Holidays, stretch: int) -> Days:
    """Return what `before_sunday` says of every day of a stretch."""
    days = stretch * STRETCH + np.arange(STRETCH)
    free = np.isin(days, holidays.within(int(days[0]), int(days[-1])))
    return np.where(free, SUNDAY - (days + SINCE_MONDAY) % 7, 0)


def _known_code(code: str) -> str:
    """Return the code of a country, or of a part of it, as it is known."""
    country, dash, part = code.strip().partition("-")
    as_written, in_capitals = f"{country.upper()}{dash}{part}", code.strip().upper()
    try:
        _country(as_written, ())
    except NotImplementedError as error:
        if in_capitals != as_written:
            return _known_code(in_capitals)
        raise InvalidInputError(
            f"{EXPECTED}, got {shown(code)} ({str(error)[:LONGEST]})."
        ) from None
    return as_written


def _country(code: str, years: Iterable[int]) -> Any:
    country, _, part = code.partition("-")
    try:
        package = import_module("holidays")
    except ImportError:
        raise MissingExtraError(
            f"holidays must be installed for those of a country, got {code!r}. "
            "Install it with: pip install 'streamridge[holidays]', or give a list of dates."
        ) from None
    return package.country_holidays(country, subdiv=part or None, years=years)
