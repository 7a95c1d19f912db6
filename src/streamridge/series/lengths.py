"""Lengths of time and of an integer index: steps, and the seasons after which series repeat."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias

import numpy as np

from streamridge.errors import InvalidInputError, shown

# A length of time, or a number of units of an integer index.
Length: TypeAlias = timedelta | int

DAY, MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
YEAR = 365.25 * DAY
# The longest length, in seconds or in units of an index: the gaps of such steps still fit a clock.
LONGEST = 100 * (YEAR // timedelta(seconds=1))
UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": DAY,
    "mo": YEAR / 12,
}
# Other names of units: "15m" and "1w", as polars writes them.
ALIASES = {"m": UNITS["min"], "w": 7 * DAY}
# The names of common seasons.
SEASON_NAMES: dict[Length, str] = {DAY: "day", 7 * DAY: "week", YEAR: "year"}
# The fewest and the most steps of a season. A longer season would need megabytes of memory.
FEWEST_STEPS, MOST_STEPS = 2, 20_160
MOST_SEASONS = 3


def parse_step(step: str | int | timedelta | np.timedelta64) -> Length:
    """Return the length of a step: a time of whole seconds, or a number of units of an index.

    >>> parse_step("15min"), parse_step("1mo"), parse_step(1)
    (datetime.timedelta(seconds=900), datetime.timedelta(days=30, seconds=37800), 1)
    >>> parse_step("15m"), parse_step("1w")
    (datetime.timedelta(seconds=900), datetime.timedelta(days=7))
    >>> parse_step("0min")
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: step must be positive, got '0min'.
    """
    return parse_length("step", step)


def parse_length(name: str, given: object) -> Length:
    """Return a length of time in whole seconds, or a number of units of an index."""
    length = _length(name, given)
    if isinstance(length, timedelta) and length % UNITS["s"]:
        raise InvalidInputError(f"{name} must be a whole number of seconds, got {given!r}.")
    if amount(length) <= 0:
        raise InvalidInputError(f"{name} must be positive, got {given!r}.")
    if amount(length) > LONGEST:
        raise InvalidInputError(
            f"{name} must be at most 100 years, or {LONGEST} units of an index, got {shown(given)}."
        )
    return length


def amount(length: Length) -> int:
    """Return the seconds of a length of time, or the units of an index."""
    return length if isinstance(length, int) else length // UNITS["s"]


def _length(name: str, given: object) -> Length:
    if isinstance(given, timedelta):
        return given
    if isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64):
        return int(given)
    if isinstance(given, np.timedelta64) and not np.isnat(given):
        with suppress(TypeError):  # months and years have no length
            return timedelta(microseconds=int(given / np.timedelta64(1, "us")))
    text = given.strip() if isinstance(given, str) else ""
    if re.fullmatch(r"\d{1,7}", text, re.ASCII):
        return int(text)
    match = re.fullmatch(r"(\d{0,6})\s*(s|min|h|d|mo|m|w)", text.lower(), re.ASCII)
    if match is None or text.endswith("M"):  # pandas writes months as M
        minutes_or_months = " M may mean minutes or months." if text.endswith("M") else ""
        raise InvalidInputError(
            f"{name} must be a time such as 15min, 1h, 7d or 1mo, or a whole number for an index, "
            f"got {shown(given)}.{minutes_or_months}"
        )
    return int(match[1] or 1) * (UNITS | ALIASES)[match[2]]


def step_name(step: Length) -> str:
    """Return the text of a step, as `parse_step` takes it.

    Examples
    --------
    >>> step_name(timedelta(minutes=15)), step_name(timedelta(days=7))
    ('15min', '7d')
    """
    if isinstance(step, int):
        return str(step)
    for name, unit in reversed(UNITS.items()):
        if not step % unit:
            return f"{step // unit}{name}"
    return f"{step.total_seconds():g}s"


def plain_length(length: Length) -> str | int:
    """Return a length as plain JSON, as `parse_length` takes it."""
    return length if isinstance(length, int) else step_name(length)


def default_seasons(step: Length) -> tuple[Length, ...]:
    """Return the seasons of day, week and year that suit a step; none for an index.

    >>> [season_name(season) for season in default_seasons(DAY / 96)]
    ['day', 'week']
    >>> [season_name(season) for season in default_seasons(DAY)]
    ['week', 'year']
    """
    if isinstance(step, int):
        return ()
    usual = (DAY, 7 * DAY) if step < DAY else (7 * DAY, YEAR)
    return tuple(season for season in usual if FEWEST_STEPS <= season / step <= MOST_STEPS)


def parse_seasons(seasons: object, step: Length) -> tuple[Length, ...]:
    """Return seasons in ascending order; None stands for the default seasons of the step."""
    if seasons is None:
        return default_seasons(step)
    if not isinstance(seasons, tuple | list):
        raise InvalidInputError(
            f"seasons must be a tuple of times such as ('1d', '7d'), got {shown(seasons)}."
        )
    lengths = [_season(season, step) for season in seasons]
    if len(set(lengths)) < len(lengths):
        raise InvalidInputError(f"seasons must be distinct, got {seasons!r}.")
    if len(lengths) > MOST_SEASONS:
        raise InvalidInputError(f"seasons must be at most {MOST_SEASONS}, got {len(lengths)}.")
    return tuple(sorted(lengths, key=amount))


def season_name(season: Length) -> str:
    """Return the name of a season: day, week or year, or its length.

    >>> season_name(7 * DAY), season_name(DAY / 3), season_name(12)
    ('week', '8h', '12')
    """
    return SEASON_NAMES.get(season, step_name(season))


def _season(given: object, step: Length) -> Length:
    season = parse_length("season", given)
    if isinstance(season, int) != isinstance(step, int):
        kind = "a whole number" if isinstance(step, int) else "a time such as 1d"
        raise InvalidInputError(
            f"season must be {kind}, as the step {step_name(step)} is, got {given!r}."
        )
    if not FEWEST_STEPS <= amount(season) / amount(step) <= MOST_STEPS:
        raise InvalidInputError(
            f"season must be {FEWEST_STEPS} to {MOST_STEPS} steps of {step_name(step)} long, "
            f"got {given!r}."
        )
    return season
