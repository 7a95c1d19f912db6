"""Holidays from a list of dates or of a country, which are like Sundays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import LONGEST, InvalidInputError, MissingExtraError, option, shown

# The holidays that a user gives: a country's code, or dates of any kind.
GivenHolidays: TypeAlias = str | Iterable[object]
# The holidays as plain values: a country's code, or dates as ISO text, in order.
PlainHolidays: TypeAlias = "str | tuple[str, ...]"
# Days since 1970-01-01.
Days: TypeAlias = NDArray[np.int64]

EXPECTED = "holidays must be a country's code such as DE or GB-ENG, or dates such as 2024-12-25"
DATES = (str, date, np.datetime64)
# 1970-01-01 was a Thursday, three days after a Monday.
SINCE_MONDAY, SUNDAY = 3, 6
# The days that are looked up together and cached, since rows need the same weeks repeatedly.
STRETCH = 1024


def parse_holidays(given: GivenHolidays) -> PlainHolidays:
    """Return holidays as plain values; raise if a country or a date is not known.

    >>> parse_holidays(["2024-12-26", date(2024, 12, 25)])
    ('2024-12-25', '2024-12-26')
    """
    if isinstance(given, str):
        return _known_code(given)
    if not np.iterable(given):
        raise InvalidInputError(f"{EXPECTED}, got {shown(given)}.")
    return tuple(sorted({parse_date(each) for each in given}))


def parse_date(given: object) -> str:
    """Return the day of a date or time as ISO text."""
    text = given.isoformat() if isinstance(given, date) else str(given).strip()
    try:
        if not isinstance(given, DATES) or text[10:11] not in ("", " ", "T"):
            raise ValueError(text)
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        raise InvalidInputError(f"{EXPECTED}, got {shown(given)}.") from None


@dataclass(frozen=True)
class Holidays:
    """The holidays of a sensor.

    >>> christmas = np.array(["2024-12-24", "2024-12-25"], "M8[D]").astype(np.int64)
    >>> Holidays(("2024-12-25",)).before_sunday(christmas)  # a Wednesday
    array([0, 4])
    """

    plain: PlainHolidays  # from `parse_holidays`

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
    """Return the value of `before_sunday` for every day of a stretch."""
    days = stretch * STRETCH + np.arange(STRETCH)
    free = np.isin(days, holidays.within(int(days[0]), int(days[-1])))
    return np.where(free, SUNDAY - (days + SINCE_MONDAY) % 7, 0)


def _known_code(code: str) -> str:
    """Return the code of a country, or of a part of it, in its usual case."""
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
            f"the package holidays must be installed for holidays of a country, got {code!r}. "
            "Install it with: pip install 'streamridge[holidays]', or give a list of dates."
        ) from None
    return package.country_holidays(country, subdiv=part or None, years=years)


def read_dates(path: Path) -> tuple[str, ...]:
    """Return the dates of a file, at least one; each line has a date, and maybe a # comment."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"holidays must be a country's code such as DE, or a text file of dates, "
            f"got {str(path)!r} ({error})."
        ) from None
    dates = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        try:
            dates += [parse_date(text)] if text else []
        except InvalidInputError:
            raise InvalidInputError(
                f"{path} line {number}: a holiday must be a date such as 2024-12-25, got {text!r}."
            ) from None
    if not dates:
        raise InvalidInputError(
            f"{path} must hold at least one date such as 2024-12-25, got none. "
            f"Leave {option('holidays')} out if there are none."
        )
    return tuple(dates)
