"""Seasons: the lengths of time after which a series tends to repeat itself."""

from __future__ import annotations

from streamridge.errors import InvalidInputError, shown
from streamridge.series.clock import DAY, YEAR, Length, amount, parse_length, step_name

# What the seasons that everyone knows are called.
NAMES: dict[Length, str] = {DAY: "day", 7 * DAY: "week", YEAR: "year"}
# A season has at least this many steps. More steps would take megabytes to remember.
FEWEST, MOST = 2, 20_160
# More seasons would say little that three do not.
AT_MOST = 3


def default_seasons(step: Length) -> tuple[Length, ...]:
    """Return those of day, week and year that suit a step; an index has none by itself.

    Examples
    --------
    >>> [season_name(season) for season in default_seasons(DAY / 96)]
    ['day', 'week']
    >>> [season_name(season) for season in default_seasons(DAY)]
    ['week', 'year']
    """
    if isinstance(step, int):
        return ()
    usual = (DAY, 7 * DAY) if step < DAY else (7 * DAY, YEAR)
    return tuple(season for season in usual if FEWEST <= season / step <= MOST)


def parse_seasons(seasons: object, step: Length) -> tuple[Length, ...]:
    """Return seasons in ascending order, None being those that suit the step.

    Parameters
    ----------
    seasons
        A tuple of times such as "1d", or of whole numbers where the step is one; () for none.
    step
        The step of the series, which each season holds at least twice.
    """
    if seasons is None:
        return default_seasons(step)
    if not isinstance(seasons, tuple | list):
        raise InvalidInputError(
            f"seasons must be a tuple of times such as ('1d', '7d'), got {shown(seasons)}."
        )
    lengths = [_season(season, step) for season in seasons]
    if len(set(lengths)) < len(lengths):
        raise InvalidInputError(f"seasons must be distinct, got {seasons!r}.")
    if len(lengths) > AT_MOST:
        raise InvalidInputError(f"seasons must be at most {AT_MOST}, got {len(lengths)}.")
    return tuple(sorted(lengths, key=amount))


def season_name(season: Length) -> str:
    """Return what a season is called: day, week or year, else its length.

    Examples
    --------
    >>> season_name(7 * DAY), season_name(DAY / 3), season_name(12)
    ('week', '8h', '12')
    """
    return NAMES.get(season, step_name(season))


def _season(given: object, step: Length) -> Length:
    season = parse_length("season", given)
    if isinstance(season, int) != isinstance(step, int):
        kind = "a whole number" if isinstance(step, int) else "a time such as 1d"
        raise InvalidInputError(
            f"season must be {kind}, as the step {step_name(step)} is, got {given!r}."
        )
    if not FEWEST <= amount(season) / amount(step) <= MOST:
        raise InvalidInputError(
            f"season must be {FEWEST} to {MOST} steps of {step_name(step)} long, got {given!r}."
        )
    return season
