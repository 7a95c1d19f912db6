"""How large a model is, what it costs and how exact it is; and the best one for a budget.

The figures were measured by `benchmarks/bench_pareto.py`: docs/benchmarks.md has the machine, the
roads and the date. A budget is in processor seconds of that machine, so that a choice does not
depend on what else a machine is doing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from streamridge.errors import InvalidInputError, listed, shown
from streamridge.forecaster.cadence import default_update_every
from streamridge.forecaster.presets import (
    COURSES,
    Preset,
    default_preset,
    in_single,
    on_landmarks,
    usual_seasons,
)
from streamridge.series.clock import DAY, Length, parse_step, step_name
from streamridge.texts import counted

SizeName = Literal["default", "compact", "long"]

BUDGET = re.compile(r"(?P<amount>\d+(\.\d+)?|\.\d+)\s*(?P<unit>ms|s|min)(\s*/\s*sensor)?\s*/\s*day")
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}


@dataclass(frozen=True)
class Measured:
    """What was measured of a size.

    Parameters
    ----------
    error
        Its RMSE over that of the default size, a mean over twenty roads.
    refit, step
        Processor seconds of a refit with all that belongs to it, and of a step without one.
    kilobytes
        What a forecaster takes at rest.
    """

    error: float
    refit: float
    step: float
    kilobytes: float

    def worse_by(self, factor: float) -> Measured:
        """Return the same with an error that is larger by a factor."""
        return replace(self, error=factor * self.error)


@dataclass(frozen=True)
class Size:
    """A size of the default model.

    Parameters
    ----------
    train_size
        N, the rows of a fit.
    landmarks
        How many of them are landmarks; None fits the kernel of all rows.
    measured
        How exact it is, and what it costs.
    rates
        At what rates the kernel starts to forget, a memory for each; none is the default's.
    courses
        How many of the shortest season a typical value is the mean of, and of longer ones.
    every
        How many windows of the usual length there are between refits.
    single
        Whether large systems are solved in single precision.
    """

    train_size: int
    landmarks: int | None
    measured: Measured
    rates: tuple[float, ...] = ()
    courses: tuple[int, int] = COURSES
    every: int = 1
    single: bool = False

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
    ) -> Preset:
        """Return the default model of a sensor with these seasons, in this size."""
        own = usual_seasons(seasons, step, lags=lags, courses=self.courses)
        preset = default_preset(own, lags=lags, horizon=horizon, extras=extras)
        if self.landmarks is not None:
            return on_landmarks(preset, self.landmarks, self.rates)
        return in_single(preset) if self.single else preset

    def __str__(self) -> str:
        on = "exact" if self.landmarks is None else f"{self.landmarks} landmarks"
        return f"{self.train_size:,} rows, {on}{' in single precision' * self.single}"


# The memories of a large model, in steps: one of 35 days of 15 minutes, and one of three years.
MEMORIES = (3e-4, 1e-5)
# Typical values as means of four weeks of days, and of twelve weeks, or of five: each week is
# 6 kB more of readings to remember.
LONGER, SMALLER = (28, 12), (28, 5)
NAMED: Mapping[SizeName, Size] = {
    "default": Size(2880, None, Measured(1.0, 0.424, 0.00053, 75)),
    "compact": Size(1920, 150, Measured(1.003, 0.039, 0.00049, 35), courses=SMALLER),
    "long": Size(8640, 600, Measured(0.978, 0.6, 0.00055, 62), rates=MEMORIES, courses=LONGER),
}
SIZES = (
    Size(960, 100, Measured(1.007, 0.022, 0.00048, 32), courses=SMALLER),
    NAMED["compact"],
    Size(2880, 250, Measured(0.988, 0.076, 0.00049, 48), courses=LONGER),
    Size(2880, None, Measured(0.984, 0.196, 0.00053, 82), courses=LONGER, single=True),
    NAMED["default"],
    Size(5760, 400, Measured(0.984, 0.25, 0.00053, 56), rates=MEMORIES, courses=LONGER),
    NAMED["long"],
)
# What it does to the error when there are so many times as many windows between refits, as it was
# measured of the compact size.
RARER = {2: 1.01, 4: 1.024, 7: 1.035}


@dataclass(frozen=True)
class Choice:
    """What a budget pays for.

    Parameters
    ----------
    size
        The size of the model.
    update_every
        The readings between its refits.
    seconds
        What it takes of a processor a day.
    """

    size: Size
    update_every: int
    seconds: float

    @classmethod
    def of(cls, size: Size, step: Length, horizon: int) -> Choice:
        """Return what a size costs with readings at this step."""
        if isinstance(step, int):
            raise InvalidInputError(
                "budget must be left out where steps are those of an index, which has no days, got "
                f"a step of {step}."
            )
        update_every, measured = size.update_every(step, horizon), size.measured
        seconds = DAY / step * (measured.step + measured.refit / update_every)
        return cls(size, update_every, seconds)

    def __str__(self) -> str:
        return (
            f"{self.size}, a refit every {counted(self.update_every, 'reading')}: about "
            f"{self.seconds:.2g} s of a processor a day, "
            f"{self.size.measured.kilobytes:.0f} kB at rest, "
            f"{_compared(self.size.measured.error)}"
        )


def _compared(error: float) -> str:
    """Return an error over that of the default model in words.

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
    """Return a size by its name; raise if there is none."""
    for known, size in NAMED.items():
        if known == name:
            return size
    raise InvalidInputError(f"model must be one of {listed(NAMED)}, got {shown(name)}.")


def affordable(budget: str, step: str | int | timedelta = "15min", *, horizon: int = 1) -> Choice:
    """Return the most exact of the default model's sizes and cadences that a budget pays for.

    Parameters
    ----------
    budget
        Processor time of a sensor and day, such as "0.1s/sensor/day" or "80ms/sensor/day".
    step
        Time between readings.
    horizon
        H, how many steps are forecast; costs are those of one step ahead.

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
    """Return the processor seconds of a sensor and day that a text gives.

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
