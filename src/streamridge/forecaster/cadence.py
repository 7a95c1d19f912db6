"""How often a forecaster fits and searches by default, and how long a model outlives readings."""

from __future__ import annotations

from dataclasses import dataclass

from streamridge.series.clock import DAY, Length

# A first fit should have two days of rows, but these at least and at most.
FEWEST_ROWS, MOST_ROWS = 48, 576
# Refits are a day apart, but these at least, and at most these or a quarter of the training set.
SELDOM, OFTEN = 96, 288
# A silent sensor's model is asked for a day, but for these steps at most.
PATIENCE = 1440
# Series of days, weeks and months, and of an index, are short: rows of a first fit, readings
# between refits, and steps for which the model of a silent sensor is asked.
SHORT_ROWS, SHORT_UPDATE, SHORT_PATIENCE = 32, 24, 8


@dataclass(frozen=True)
class Cadence:
    """The steps before a first fit, and the readings between refits and between searches."""

    warmup: int
    update_every: int
    tune_every: int


def default_cadence(
    step: Length, periods: tuple[float, ...], horizon: int, train_size: int
) -> Cadence:
    """Return the cadence that suits a step, with its seasons in steps."""
    return Cadence(
        default_warmup(step, periods),
        default_update_every(step, horizon, train_size),
        default_tune_every(step, train_size),
    )


def default_warmup(step: Length, periods: tuple[float, ...]) -> int:
    """Return the steps before a first fit: a season of past behind the first row, and rows."""
    season = round(min(periods, default=0))
    if is_short(step):
        return season + SHORT_ROWS
    return season + min(max(2 * season, FEWEST_ROWS), MOST_ROWS)


def default_update_every(step: Length, horizon: int, train_size: int) -> int:
    """Return the readings between refits."""
    return max(SHORT_UPDATE if is_short(step) else SELDOM, _day(step, train_size), horizon)


def default_tune_every(step: Length, train_size: int) -> int:
    """Return the readings between searches: those of a week."""
    return 7 * max(SHORT_UPDATE if is_short(step) else 1, _day(step, train_size))


def default_patience(step: Length, periods: tuple[float, ...]) -> int:
    """Return how many steps without a reading a model is asked for: a season of them."""
    if is_short(step) or not periods:
        return SHORT_PATIENCE
    return min(round(periods[0]), PATIENCE)


def is_short(step: Length) -> bool:
    """Return whether series of such steps tend to be short: of days or more, or of an index."""
    return isinstance(step, int) or step >= DAY


def _day(step: Length, train_size: int) -> int:
    """Return the readings of a day, as far as they are not too many for a training set."""
    return 1 if isinstance(step, int) else min(DAY // step, max(OFTEN, train_size // 4))
