"""Simulated road traffic: vehicle counts of detectors along one corridor.

Every detector has a daily profile with two peaks on weekdays and one broad hump on weekends. Its
level drifts within the day and over days, weeks and months, partly together with the whole
corridor. Incidents reduce the flow of neighbouring detectors for about an hour, followed by a
surge. Counts vary more than Poisson counts. Roadworks may start on some day: the mainline then has
fewer lanes, so that queues flatten its peaks, and drivers leave by the ramps.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_count, require_number
from streamridge.errors import InvalidInputError

MINUTES_A_DAY = 1440
EVERY_NTH_IS_A_RAMP = 3
# The capacity of the mainline during roadworks, relative to its busiest flow. The share of a queue
# that still waits after a quarter of an hour; the others take a ramp. The relative increase of ramp
# flow per relative decrease of mainline flow.
LANES_LEFT, PATIENCE, DIVERTED = 0.6, 0.9, 1.2
# The relative deviation of a queue's flow from step to step.
UNSTEADY = 0.03
BUSIEST = 0.99


@dataclass(frozen=True)
class Roads:
    """Simulated counts of some detectors.

    Parameters
    ----------
    names
        One per detector, such as "mainline-1" or "ramp-3".
    times
        (T,), the start of each step.
    flows
        (T, detectors), vehicles per step.
    """

    names: tuple[str, ...]
    times: NDArray[np.datetime64]
    flows: Matrix

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a wide frame with a time column and one column per detector."""
        time = self.times.astype("datetime64[ms]")  # the coarsest unit of polars
        columns = {"time": time} | dict(zip(self.names, self.flows.T, strict=True))
        return nw.from_dict(columns, backend=backend).to_native()


def simulate_roads(
    rng: np.random.Generator,
    *,
    detectors: int = 13,
    days: int = 136,
    step_minutes: int = 15,
    start: str = "2017-01-01",
    works: int | None = None,
    waves: float = 0.0,
) -> Roads:
    """Return the counts of some detectors for some days.

    Parameters
    ----------
    rng
        Source of all randomness: the same seed gives the same roads.
    detectors
        Number of detectors; every third one is on a ramp, the others are on the mainline.
    days
        Number of whole days.
    step_minutes
        Length of a step, which divides a day.
    start
        The first day.
    works
        The first day of roadworks, counted from 0; None for no roadworks. Earlier days do not
        depend on it.
    waves
        The relative deviation of waves of traffic, which pass one detector per step. A detector
        cannot foresee them, but the detector before it shows them one step earlier.

    Examples
    --------
    >>> roads = simulate_roads(np.random.default_rng(1), detectors=2, days=7)
    >>> roads.names, roads.flows.shape, str(roads.times[1])
    (('mainline-1', 'mainline-2'), (672, 2), '2017-01-01T00:15')
    """
    require_count("detectors", detectors)
    require_count("days", days)
    require_count("step_minutes", step_minutes)
    if MINUTES_A_DAY % step_minutes:
        raise InvalidInputError(
            f"step_minutes must divide 1440, the minutes of a day, got {step_minutes}."
        )
    try:
        first = date.fromisoformat(start)
    except ValueError:
        raise InvalidInputError(
            f"start must be a date such as 2017-01-01, got {start!r}."
        ) from None
    if works is not None:
        require_count("works", works, least=0)
    calendar = _Calendar.starting(first, days, MINUTES_A_DAY // step_minutes)
    ramps = np.arange(1, detectors + 1) % EVERY_NTH_IS_A_RAMP == 0
    expected = np.column_stack([_expected_flow(rng, calendar, ramp) for ramp in ramps])
    expected *= step_minutes / 15 * _incidents(rng, calendar, detectors)
    expected *= np.exp(_drift(rng, calendar, 1) + 0.6 * _drift(rng, calendar, detectors))
    if require_number("waves", waves) > 0:
        expected *= _waves(rng, waves, expected.shape)
    names = tuple(f"{'ramp' if ramp else 'mainline'}-{i}" for i, ramp in enumerate(ramps, 1))
    times = np.datetime64(first, "m") + step_minutes * np.arange(calendar.steps)
    flows = _count(rng, expected, np.where(ramps, 40.0, 250.0))
    if works is not None:
        begin = works * calendar.steps_a_day
        flows[begin:] = _with_works(rng, flows, ramps, step_minutes)[begin:]
    return Roads(names, times, flows)


@dataclass(frozen=True)
class _Calendar:
    """The hour and the weekday of every step."""

    hour: Vector
    weekday: NDArray[np.intp]
    steps_a_day: int

    @property
    def steps(self) -> int:
        return len(self.hour)

    @classmethod
    def starting(cls, start: date, days: int, steps_a_day: int) -> _Calendar:
        hour = np.tile(24 * np.arange(steps_a_day) / steps_a_day, days)
        first = np.datetime64(start, "D").astype(int) + 3  # the epoch was a Thursday
        weekday = np.repeat((first + np.arange(days)) % 7, steps_a_day)
        return cls(hour, weekday, steps_a_day)


def _bump(hour: Vector, center: float, width: float) -> Vector:
    """Return a smooth bump of height one around an hour of the day, periodic at midnight."""
    return np.exp((np.cos(2 * np.pi * (hour - center) / 24) - 1) * (24 / (2 * np.pi * width)) ** 2)


def _expected_flow(rng: np.random.Generator, calendar: _Calendar, ramp: bool) -> Vector:
    """Return the expected count per quarter of an hour, shape (T,)."""
    level = rng.uniform(40, 160) if ramp else rng.uniform(350, 900)
    morning = rng.uniform(0.3, 1.0) * _bump(calendar.hour, rng.normal(7.7, 0.4), rng.uniform(1, 2))
    evening = rng.uniform(0.3, 1.0) * _bump(
        calendar.hour, rng.normal(17.2, 0.4), rng.uniform(1.2, 2.5)
    )
    midday = rng.uniform(0.4, 0.7) * _bump(calendar.hour, 13.5, 5)
    friday = 1 + 0.15 * (calendar.weekday == 4)
    workday = morning + friday * evening + midday
    restday = rng.uniform(0.6, 0.9) * _bump(calendar.hour, rng.normal(14.5, 0.7), 4.5)
    sunday = np.where(calendar.weekday == 6, 0.85, 1.0)
    shape = np.where(calendar.weekday < 5, workday, sunday * restday)
    season = rng.uniform(-0.15, 0.15) * np.linspace(0, 1, calendar.steps)
    return level * (0.04 + shape) * np.exp(season)


def _drift(rng: np.random.Generator, calendar: _Calendar, columns: int) -> Matrix:
    """Return log-levels that drift within hours, days and weeks, shape (T, columns)."""
    total = np.zeros((calendar.steps, columns))
    for memory_in_days, deviation in ((0.08, 0.05), (1.0, 0.04), (20.0, 0.06)):
        keep = np.exp(-1 / (memory_in_days * calendar.steps_a_day))
        shocks = deviation * np.sqrt(1 - keep**2) * rng.standard_normal((calendar.steps, columns))
        shocks[0] = deviation * rng.standard_normal(columns)
        for t in range(1, calendar.steps):
            shocks[t] += keep * shocks[t - 1]
        total += shocks
    return total


def _incidents(rng: np.random.Generator, calendar: _Calendar, detectors: int) -> Matrix:
    """Return the factors of flow in incidents, (T, detectors), one every 8 days on average."""
    factors = np.ones((calendar.steps, detectors))
    hour = calendar.steps_a_day / 24
    for _ in range(rng.poisson(calendar.steps / calendar.steps_a_day / 8)):
        begin = rng.integers(calendar.steps)
        end = begin + max(1, round(hour * rng.uniform(0.5, 2.5)))
        surge = end + max(1, round(hour))
        first = rng.integers(detectors)
        where = slice(first, first + rng.integers(1, 5))
        factors[begin:end, where] *= rng.uniform(0.25, 0.7)
        factors[end:surge, where] *= 1.12
    return factors


def _waves(rng: np.random.Generator, deviation: float, shape: tuple[int, ...]) -> Matrix:
    """Return factors of flow that pass from each detector to the next in one step."""
    steps, detectors = shape
    shocks = deviation * rng.standard_normal(steps + detectors)
    passed = np.arange(steps)[:, None] - np.arange(detectors) + detectors
    return np.exp(shocks[passed] - deviation**2 / 2)


def _with_works(rng: np.random.Generator, flows: Matrix, ramps: Mask, step_minutes: int) -> Matrix:
    """Return counts during roadworks, (T, detectors): queues on the mainline, fuller ramps."""
    lanes = LANES_LEFT * np.quantile(flows, BUSIEST, axis=0)
    room = lanes * (1 + UNSTEADY * rng.standard_normal(flows.shape))
    stays = PATIENCE ** (step_minutes / 15)
    through, queue = flows.copy(), np.zeros(flows.shape[1])
    for t, arriving in enumerate(flows):
        through[t] = np.minimum(arriving + queue, room[t])
        queue = stays * (arriving + queue - through[t])
    busy = flows[:, ~ramps].sum(axis=1, keepdims=True)
    diverted = np.maximum(busy - through[:, ~ramps].sum(axis=1, keepdims=True), 0) / (busy + 1)
    through[:, ramps] = flows[:, ramps] * (1 + DIVERTED * diverted)
    return np.rint(through)


def _count(rng: np.random.Generator, expected: Matrix, dispersion: Vector) -> Matrix:
    """Return random counts with mean mu and variance mu + mu^2 / dispersion, as floats."""
    chance = dispersion / (dispersion + expected)
    return rng.negative_binomial(np.broadcast_to(dispersion, expected.shape), chance).astype(float)
