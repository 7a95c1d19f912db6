"""How large a model is, what it costs and how exact it is; and the best one for a budget.

The figures were measured by `benchmarks/bench_pareto.py`: docs/benchmarks.md has the machine, the
roads and the date. A budget is in processor seconds of that machine, so that a choice does not
depend on what else a machine is doing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from streamridge.errors import InvalidInputError, listed, shown
from streamridge.forecaster.cadence import default_update_every
from streamridge.forecaster.presets import Preset, on_landmarks
from streamridge.forecaster.published import steps_a_day
from streamridge.series.clock import Length, parse_step, step_name
from streamridge.texts import counted

SizeName = Literal["default", "compact", "long"]

BUDGET = re.compile(r"(?P<amount>\d+(\.\d+)?|\.\d+)\s*(?P<unit>ms|s|min)(\s*/\s*sensor)?\s*/\s*day")
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}


@dataclass(frozen=True)
class Size:
    """A size of the default model, with what was measured of it.

    Parameters
    ----------
    train_size
        N, the rows of a fit.
    landmarks
        How many of them are landmarks; None fits the kernel of all rows.
    rates
        At what rates the kernel starts to forget, a memory for each; none is the default's.
    error
        Its RMSE over that of the default size, a mean over twenty roads.
    refit, step
        Processor seconds of a refit with all that belongs to it, and of a step without one.
    kilobytes
        What a forecaster takes at rest.
    """

    train_size: int
    landmarks: int | None
    rates: tuple[float, ...]
    error: float
    refit: float
    step: float
    kilobytes: float

    def sized(self, preset: Preset) -> Preset:
        """Return the default model in this size."""
        if self.landmarks is None:
            return preset
        return on_landmarks(preset, self.landmarks, self.rates)

    def __str__(self) -> str:
        on = "exact" if self.landmarks is None else f"{self.landmarks} landmarks"
        return f"{self.train_size:,} rows, {on}"


# The memories of a large model, in steps: one of 35 days of 15 minutes, and one of three years.
MEMORIES = (3e-4, 1e-5)
NAMED: Mapping[SizeName, Size] = {
    "default": Size(2880, None, (), 1.0, 0.45, 0.0006, 124),
    "compact": Size(2880, 250, (), 1.004, 0.080, 0.0003, 80),
    "long": Size(8640, 700, MEMORIES, 0.99, 0.70, 0.0004, 170),
}
SIZES = (
    Size(960, 120, (), 1.05, 0.03, 0.0003, 50),
    Size(1440, 150, (), 1.03, 0.04, 0.0003, 60),
    Size(2880, 150, (), 1.01, 0.05, 0.0003, 70),
    NAMED["compact"],
    Size(2880, 500, (), 1.002, 0.15, 0.0003, 90),
    Size(960, None, (), 1.03, 0.1, 0.0006, 60),
    NAMED["default"],
    Size(5760, 500, MEMORIES, 0.995, 0.3, 0.0003, 120),
    NAMED["long"],
    Size(11520, 1000, MEMORIES, 0.985, 1.5, 0.0003, 200),
)
# Windows between refits that a budget chooses among, and what each does to the error.
SELDOM = {1: 1.0, 2: 1.003, 4: 1.01, 7: 1.02}


@dataclass(frozen=True)
class Choice:
    """What a budget pays for.

    Parameters
    ----------
    size
        The size of the model.
    update_every
        The readings between its refits.
    error
        The RMSE to expect over that of the default model.
    seconds
        What it takes of a processor a day.
    """

    size: Size
    update_every: int
    error: float
    seconds: float

    def __str__(self) -> str:
        more = 100 * (self.error - 1)
        change = "as exact as" if abs(more) < 0.05 else f"{abs(more):.1f} % {_word(more)}"
        than = "the default model" if abs(more) < 0.05 else "RMSE than the default model"
        return (
            f"{self.size}, a refit every {counted(self.update_every, 'reading')}: about "
            f"{self.seconds:.2g} s of a processor a day, {self.size.kilobytes:.0f} kB at rest, "
            f"{change} {than}"
        )


def _word(more: float) -> str:
    return "more" if more > 0 else "less"


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
        H, how many steps are forecast.

    Examples
    --------
    >>> affordable("0.15s/sensor/day").size == NAMED["compact"]
    True
    """
    seconds, length = parse_budget(budget), parse_step(step)
    choices = [_choice(size, windows, length, horizon) for size in SIZES for windows in SELDOM]
    within = [choice for choice in choices if choice.seconds <= seconds]
    if not within:
        least = min(choice.seconds for choice in choices)
        raise InvalidInputError(
            f"budget must be at least {math.ceil(1e3 * least)}ms/sensor/day for steps of "
            f"{step_name(length)}, got {budget!r}."
        )
    return min(within, key=lambda choice: (choice.error, choice.seconds))


def _choice(size: Size, windows: int, step: Length, horizon: int) -> Choice:
    """Return what a size costs that is refitted every so many windows of the usual length."""
    update_every = windows * default_update_every(step, horizon, size.train_size)
    steps = steps_a_day(step)
    seconds = steps * (size.step + size.refit / update_every)
    return Choice(size, update_every, size.error * SELDOM[windows], seconds)


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
