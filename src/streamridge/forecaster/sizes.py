"""Sizes of the default model, the best size for a budget, and the default cadence of refits.

The figures were measured by `benchmarks/bench_pareto.py`: docs/benchmarks.md has the machine, the
roads and the date. A budget is in processor seconds of that machine, so a choice does not depend on
the load of the machine in use.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from streamridge.errors import InvalidInputError, counted, listed, shown
from streamridge.forecaster.presets import (
    PROFILE_SEASONS,
    Preset,
    default_preset,
    on_landmarks,
    seasonal_features,
)
from streamridge.series.lengths import DAY, Length, parse_step, step_name

SizeName = Literal["default", "compact", "long"]

BUDGET = re.compile(r"(?P<amount>\d+(\.\d+)?|\.\d+)\s*(?P<unit>ms|s|min)(\s*/\s*sensor)?\s*/\s*day")
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}

# A first fit should have two days of rows, within these limits.
FEWEST_ROWS, MOST_ROWS = 48, 576
# Refits are a day apart, but at least 96 readings, and at most 288 or a quarter of the rows.
SELDOM, OFTEN = 96, 288
# Without readings, the model makes forecasts for a season, but at most for this number of steps.
PATIENCE = 1440
# Series of days, weeks and months, and of an index, are short: rows of a first fit, readings
# between refits, and steps without a reading for which the model makes forecasts.
SHORT_ROWS, SHORT_UPDATE, SHORT_PATIENCE = 32, 24, 8


@dataclass(frozen=True)
class Measured:
    """The measured figures of a size."""

    error: float  # its RMSE divided by the RMSE of the default size, a mean over twelve roads
    refit: float  # processor seconds of a whole refit
    step: float  # processor seconds of a step without a refit
    kilobytes: float  # the size of a saved forecaster

    def worse_by(self, factor: float) -> Measured:
        """Return the figures with an error that is larger by a factor."""
        return replace(self, error=factor * self.error)


@dataclass(frozen=True)
class Size:
    """A size of the default model."""

    train_size: int  # N, the rows of a fit
    landmarks: int  # the number of landmarks among them
    measured: Measured  # its accuracy and its cost
    # Initial rates of forgetting, one per memory of the kernel; () for the default kernel.
    rates: tuple[float, ...] = ()
    # Past seasons in a seasonal profile: of the shortest season, and of longer seasons.
    profile_seasons: tuple[int, int] = PROFILE_SEASONS
    every: int = 1  # the time between refits, in default windows

    def update_every(self, step: Length, horizon: int) -> int:
        """Return the readings between refits."""
        return self.every * default_update_every(step, horizon, self.train_size)

    def preset(
        self,
        seasons: tuple[Length, ...],
        step: Length,
        *,
        lags: int = 16,
        horizon: int = 1,
        extras: tuple[str, ...] = (),
        train_size: int | None = None,
    ) -> Preset:
        """Return the default model of a sensor with these seasons, in this size.

        Another number of training rows may be given. With no more rows than landmarks, the model
        is fitted to all rows.
        """
        own = seasonal_features(seasons, step, lags=lags, counts=self.profile_seasons)
        preset = default_preset(own, lags=lags, horizon=horizon, extras=extras)
        if (train_size or self.train_size) <= self.landmarks:
            return preset
        return on_landmarks(preset, self.landmarks, self.rates)

    def __str__(self) -> str:
        return f"{self.train_size:,} rows, {self.landmarks} landmarks"


# Rates of forgetting of a large model: memories of 35 days and of three years, at 15 minutes.
MEMORIES = (3e-4, 1e-5)
# Seasons in a profile of a small model: 28 days and 5 weeks. Each week takes 6 kB of readings.
FEWER_SEASONS = (28, 5)
NAMED: Mapping[SizeName, Size] = {
    "default": Size(5760, 400, Measured(1.0, 0.097, 0.0003, 48), rates=MEMORIES),
    "compact": Size(2880, 250, Measured(1.004, 0.057, 0.0003, 46)),
    "long": Size(8640, 600, Measured(0.995, 0.218, 0.0003, 54), rates=MEMORIES),
}
SIZES = (
    Size(960, 100, Measured(1.028, 0.015, 0.0003, 31), profile_seasons=FEWER_SEASONS),
    Size(1920, 150, Measured(1.021, 0.028, 0.0003, 34), profile_seasons=FEWER_SEASONS),
    NAMED["compact"],
    NAMED["default"],
    NAMED["long"],
)
# The factor of the error if refits are 2, 4 or 7 times rarer, measured with 1,920 rows on 150
# landmarks.
RARER = {2: 1.01, 4: 1.024, 7: 1.035}


@dataclass(frozen=True)
class Choice:
    """The size and the cadence that a budget allows."""

    size: Size
    update_every: int  # the readings between its refits
    seconds: float  # processor seconds per day

    @classmethod
    def of(cls, size: Size, step: Length, horizon: int) -> Choice:
        """Return the cost of a size with readings at this step."""
        if isinstance(step, int):
            raise InvalidInputError(
                f"budget must be left out for an integer index, which has no days, got step {step}."
            )
        update_every, measured = size.update_every(step, horizon), size.measured
        seconds = DAY / step * (measured.step + measured.refit / update_every)
        return cls(size, update_every, seconds)

    def __str__(self) -> str:
        return (
            f"{self.size}, a refit every {counted(self.update_every, 'reading')}: about "
            f"{self.seconds:.2g} s of a processor a day, "
            f"{self.size.measured.kilobytes:.0f} kB when saved, "
            f"{_compared(self.size.measured.error)}"
        )


def _compared(error: float) -> str:
    """Return an error relative to the default model in words.

    Examples
    --------
    >>> _compared(1.004), _compared(0.985), _compared(1.0)
    ('0.4 % more RMSE than the default model', '1.5 % less RMSE than the default model', \
'the RMSE of the default model')
    """
    percent = round(100 * (error - 1), 1)
    if not percent:
        return "the RMSE of the default model"
    return f"{abs(percent):g} % {'more' if percent > 0 else 'less'} RMSE than the default model"


def size_of(name: str) -> Size:
    """Return a size by its name; raise if it is unknown."""
    for known, size in NAMED.items():
        if known == name:
            return size
    raise InvalidInputError(f"model must be one of {listed(NAMED)}, got {shown(name)}.")


def affordable(budget: str, step: str | int | timedelta = "15min", *, horizon: int = 1) -> Choice:
    """Return the most accurate size and cadence of the default model within a budget.

    Parameters
    ----------
    budget
        Processor time per sensor and day, such as "0.1s/sensor/day" or "80ms/sensor/day".
    step
        Time between readings.
    horizon
        H, the number of steps to forecast; costs were measured for one step.

    Examples
    --------
    >>> str(affordable("1s/sensor/day"))[:46]
    '8,640 rows, 600 landmarks, a refit every 96 re'
    """
    seconds, length = parse_budget(budget), parse_step(step)
    rarer = [
        replace(size, every=times * size.every, measured=size.measured.worse_by(more))
        for size in SIZES
        for times, more in RARER.items()
    ]
    every = [Choice.of(size, length, horizon) for size in (*SIZES, *rarer)]
    choices = [choice for choice in every if choice.update_every <= choice.size.train_size]
    within = [choice for choice in choices if choice.seconds <= seconds]
    if not within:
        least = min(choice.seconds for choice in choices)
        raise InvalidInputError(
            f"budget must be at least {math.ceil(1e3 * least)}ms/sensor/day for steps of "
            f"{step_name(length)}, got {budget!r}."
        )
    return min(within, key=lambda choice: (choice.size.measured.error, choice.seconds))


def parse_budget(budget: str) -> float:
    """Return the processor seconds per sensor and day of a text such as "80ms/sensor/day".

    Examples
    --------
    >>> parse_budget("0.1s/sensor/day"), parse_budget("80 ms / sensor / day")
    (0.1, 0.08)
    """
    found = BUDGET.fullmatch(budget.strip()) if isinstance(budget, str) else None
    if found is None or not float(found["amount"]) > 0:
        raise InvalidInputError(
            f"budget must be processor time such as '0.1s/sensor/day', got {shown(budget)}."
        )
    return float(found["amount"]) * UNITS[found["unit"]]


def default_warmup(step: Length, periods: tuple[float, ...]) -> int:
    """Return the steps before a first fit: a season before the first row, and enough rows."""
    season = round(min(periods, default=0))
    if is_short(step):
        return season + SHORT_ROWS
    return season + min(max(2 * season, FEWEST_ROWS), MOST_ROWS)


def default_update_every(step: Length, horizon: int, train_size: int) -> int:
    """Return the readings between refits."""
    return max(SHORT_UPDATE if is_short(step) else SELDOM, _day(step, train_size), horizon)


def default_tune_every(step: Length, train_size: int) -> int:
    """Return the readings between searches: a week."""
    return 7 * max(SHORT_UPDATE if is_short(step) else 1, _day(step, train_size))


def default_patience(step: Length, periods: tuple[float, ...]) -> int:
    """Return the number of steps without a reading for which the model makes forecasts."""
    if is_short(step) or not periods:
        return SHORT_PATIENCE
    return min(round(periods[0]), PATIENCE)


def is_short(step: Length) -> bool:
    """Return whether series with this step tend to be short: days or longer, or an index."""
    return isinstance(step, int) or step >= DAY


def _day(step: Length, train_size: int) -> int:
    """Return the readings of a day, limited by the size of the training set."""
    return 1 if isinstance(step, int) else min(DAY // step, max(OFTEN, train_size // 4))
