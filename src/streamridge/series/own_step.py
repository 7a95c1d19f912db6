"""The step that readings have of their own, and where within a step they lie."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.series.clock import DAY, EPOCH, UNITS, Length, Steps, Times, amount, step_name
from streamridge.series.rates import JITTER, WINDOW, Ruler, Stretch
from streamridge.series.readings import Readings, index_of
from streamridge.texts import option

# Usual steps of sensors, in seconds; a step found from readings becomes the nearest of these.
USUAL = (1, 5, 10, 15, 20, 30, 60, 120, 180, 300, 360, 600, 720, 900, 1200, 1800)
MONTH = UNITS["mo"]
USUAL_STEPS = [
    *(timedelta(seconds=s) for s in (*USUAL, 3600, 7200, 10800, 14400, 21600, 43200, 86400)),
    *(7 * DAY, MONTH, 3 * MONTH, 12 * MONTH),
]
SECOND = 1_000_000  # in microseconds, in which times are counted
OF_TIMES = Ruler([amount(step) * SECOND for step in USUAL_STEPS], SECOND)
OF_AN_INDEX = Ruler((), 1)
# Readings may be this share further apart than the step asked for: loggers' clocks drift.
DRIFT = 0.02
# Where this share of the steps asked for would surely be empty, readings come more rarely.
EMPTY = 0.9


def counted(readings: Readings, times: Times) -> Steps:
    """Return times in microseconds since 1970, or as the whole numbers of an index."""
    return index_of(times) if readings.indexed else times.astype("M8[us]").astype(np.int64)


def distances(readings: Readings) -> Steps:
    """Return how far apart readings are in time, in microseconds or units of an index."""
    times: Steps = np.unique(counted(readings, readings.times))
    return times[1:] - times[:-1]


def rates_of(readings: Readings) -> list[Stretch]:
    """Return the parts of a sensor's readings that come at different rates; at least one."""
    times = np.unique(counted(readings, readings.times))
    if not readings.indexed and _are_months(np.diff(times)):
        return [Stretch(int(times[0]), None, amount(MONTH) * SECOND)]
    ruler = OF_AN_INDEX if readings.indexed else OF_TIMES
    return ruler.stretches(times)


def length_of(readings: Readings, units: int) -> Length:
    """Return a distance as a length of time, or as a number of units of an index."""
    return units if readings.indexed else timedelta(microseconds=units)


def own_step(readings: Readings, asked: Length | None, found: Length | None) -> Length | None:
    """Return the step of readings that come at one rate: that asked for, unless they are finer.

    None stands for readings that have no step of their own.

    Parameters
    ----------
    readings
        At least one.
    asked
        The step asked for, if any.
    found
        What their distances are multiples of, if they are.
    """
    apart = distances(readings)
    if not apart.size:
        if asked is None and not readings.indexed:
            raise InvalidInputError(
                f"{readings.sensor}: step must be given for a single reading, got none. "
                f"Pass it, such as {option('step', '15min')}."
            )
        return asked or 1
    if asked is not None:
        if stands_for(found, asked):
            return found
        _require_as_rare(readings, asked, found, apart)
        typical = found or length_of(readings, int(np.median(apart)))
        if amount(typical) >= (1 - JITTER) * amount(asked):
            return asked
    return found or _usual(readings, apart)


def stands_for(own: Length | None, asked: Length) -> bool:
    """Return whether readings have the step asked for; 28 to 31 days also mean a month."""
    return own == asked or (own == MONTH and 28 <= amount(asked) / amount(DAY) <= 31)


def require_kind_of_step(readings: Readings, asked: Length) -> None:
    """Raise unless the step is a whole number where times are, and a time where they are not."""
    if isinstance(asked, int) != readings.indexed:
        kind = "a whole number" if readings.indexed else "a time such as 15min"
        raise InvalidInputError(
            f"{readings.sensor}: step must be {kind}, as its times are, got {step_name(asked)}."
        )


def phase_of_readings(times: Times, step: timedelta) -> timedelta:
    """Return the offset within a step that most stamps share, or else the middle of long steps.

    Stamps that share none, such as the first days of months, would be ambiguous at other offsets.
    """
    within = (times - EPOCH) % np.timedelta64(step)
    shared = shared_offset(within)
    if shared is not None:
        return shared.astype("m8[us]").astype(timedelta)
    if step <= DAY:
        return timedelta(0)
    half = np.timedelta64(step) // 2
    around = (within - within[0] + half) % np.timedelta64(step) - half
    middle = np.sort(around)[len(around) // 2]
    return ((within[0] + middle) % np.timedelta64(step)).astype("m8[us]").astype(timedelta)


def shared_offset(within: NDArray[Any]) -> Any:
    """Return the offset within a step that most readings have, None if there is no such."""
    offsets, counts = np.unique(within, return_counts=True)
    most = int(counts.argmax())
    return offsets[most] if counts[most] > len(within) / 2 else None


def rarer(readings: Readings) -> Length:
    """Return a usual step that is not shorter than most distances between readings."""
    median = int(np.median(distances(readings)))
    if readings.indexed:
        return median
    longer = [step for step in USUAL_STEPS if (1 + JITTER) * amount(step) * SECOND >= median]
    return min(longer, default=12 * MONTH)


def _require_as_rare(readings: Readings, asked: Length, found: Length | None, apart: Steps) -> None:
    """Raise if readings come more rarely than in the steps asked for, most of which were empty."""
    units = amount(asked) * (1 if readings.indexed else SECOND)
    if len(apart) < WINDOW or (found is not None and amount(found) <= (1 + DRIFT) * amount(asked)):
        return
    if found is None and np.mean(apart > 1.5 * units) < EMPTY:
        return
    own = found or rarer(readings)
    raise InvalidInputError(
        f"{readings.sensor}: step must not be shorter than the time between readings, "
        f"{step_name(own)}, got {step_name(asked)}. Pass {option('step', step_name(own))}."
    )


def _usual(readings: Readings, apart: Steps) -> Length | None:
    """Return the usual step that most distances are about; None if there is no such."""
    median = int(np.median(apart))
    if readings.indexed:
        return median
    nearest = min(OF_TIMES.usual, key=lambda usual: abs(np.log(usual / median)))
    return length_of(readings, nearest) if abs(nearest / median - 1) <= JITTER else None


def _are_months(apart: Steps) -> bool:
    """Return whether stamps are mostly one month apart, given their distances in microseconds."""
    days: Vector = apart / (DAY / timedelta(microseconds=1))
    of_a_month = (days >= 28) & (days <= 31)
    return bool(apart.size and of_a_month.mean() > 0.5 and len(set(days[of_a_month].tolist())) > 1)
