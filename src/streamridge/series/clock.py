"""The regular clock of a sensor: times to whole steps and back, and local time."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError
from streamridge.series.holidays import Holidays

Steps = NDArray[np.int64]
Times = NDArray[np.datetime64]

DAY = timedelta(days=1)
# Zones change their offset at half hours of UTC only; they are looked up some days at a time.
HALF_HOUR, STRETCH = 1800, 512
EPOCH = np.datetime64("1970-01-01T00:00", "us")
UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": DAY,
}


def parse_step(step: str | timedelta | np.timedelta64) -> timedelta:
    """Return the length of a step; raise unless it divides a day.

    Examples
    --------
    >>> parse_step("15min")
    datetime.timedelta(seconds=900)
    >>> parse_step("7min")
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: step must divide a day, got '7min'.
    """
    length = _length(step)
    if length <= timedelta(0) or DAY % length:
        raise InvalidInputError(f"step must divide a day, got {step!r}.")
    if length % UNITS["s"]:
        raise InvalidInputError(f"step must be a whole number of seconds, got {step!r}.")
    return length


def _length(step: str | timedelta | np.timedelta64) -> timedelta:
    if isinstance(step, timedelta):
        return step
    if isinstance(step, np.timedelta64) and not np.isnat(step):
        with suppress(TypeError):  # months and years have no length
            return timedelta(microseconds=int(step / np.timedelta64(1, "us")))
    match = (
        re.fullmatch(r"(\d{0,6})\s*(s|min|h|d)", step.lower()) if isinstance(step, str) else None
    )
    if match is None:
        raise InvalidInputError(f"step must be a time such as 15min, 1h or 30s, got {step!r}.")
    return int(match[1] or 1) * UNITS[match[2]]


def step_name(step: timedelta) -> str:
    """Return the text of a step, as `parse_step` takes it.

    Examples
    --------
    >>> step_name(timedelta(minutes=15)), step_name(timedelta(days=1))
    ('15min', '1d')
    """
    for name, unit in reversed(UNITS.items()):
        if not step % unit:
            return f"{step // unit}{name}"
    return f"{step.total_seconds():g}s"


def parse_zone(tz: str | None) -> ZoneInfo | None:
    """Return the time zone of that name; raise if there is none."""
    if tz is None:
        return None
    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInputError(
            f"tz must be the name of a time zone such as Europe/London, got {tz!r}."
        ) from None


def require_local_step(step: timedelta, zone: ZoneInfo | None) -> None:
    """Raise if steps are too long to follow the one-hour changes of local time."""
    if zone is not None and step > UNITS["h"]:
        raise InvalidInputError(
            f"step must be at most 1h with tz, got {step_name(step)}. Take a shorter step or no tz."
        )


@dataclass(frozen=True)
class Clock:
    """A clock that counts time in whole steps from a fixed origin.

    Parameters
    ----------
    step
        Length of a step.
    phase
        Offset of the sensor's stamps within a step.
    zone
        The sensor's time zone, if its days follow local time; times are then UTC.
    holidays
        The days that run like the Sunday of their week, if they are known.

    Examples
    --------
    >>> clock = Clock(timedelta(minutes=15))
    >>> t = clock.steps(np.array(["1970-01-01T01:07"], "M8[us]"))
    >>> t, clock.times(t)
    (array([4]), array(['1970-01-01T01:00:00.000000'], dtype='datetime64[us]'))
    """

    step: timedelta
    phase: timedelta = timedelta(0)
    zone: ZoneInfo | None = None
    holidays: Holidays | None = None

    @property
    def day(self) -> int:
        """Return the number of steps in a day."""
        return DAY // self.step

    def steps(self, times: Times) -> Steps:
        """Return the steps nearest to some times."""
        return np.rint((times - self._origin) / np.timedelta64(self.step)).astype(np.int64)

    def times(self, steps: Steps) -> Times:
        """Return the times of some steps."""
        return self._origin + steps * np.timedelta64(self.step)

    def shifts(self, steps: Steps) -> Steps:
        """Return by how many steps local time is ahead of the clock; zero without a zone."""
        if self.zone is None or not steps.size:
            return np.zeros_like(steps)
        seconds = self.step // UNITS["s"] * steps + self.phase // UNITS["s"]
        halves = seconds // HALF_HOUR
        stretches, within = halves // STRETCH, halves % STRETCH
        first = int(stretches.min())
        touched = np.bincount((stretches - first).ravel()) > 0
        shifts = [
            _shifts(first + at, self.step, self.zone) for at in np.flatnonzero(touched).tolist()
        ]
        which = np.cumsum(touched) - 1
        return np.array(shifts)[which[stretches - first], within]

    def before_sunday(self, steps: Steps) -> Steps:
        """Return by how many steps those of a holiday come before the same time on Sunday; else 0.

        A week before that time on Sunday lies the last Sunday.
        """
        if self.holidays is None:
            return np.zeros_like(steps)
        step, phase = (length // UNITS["s"] for length in (self.step, self.phase))
        days = (step * (steps + self.shifts(steps)) + phase) // (DAY // UNITS["s"])
        return np.rint(self.holidays.before_sunday(days) * (DAY / self.step)).astype(np.int64)

    @property
    def _origin(self) -> np.datetime64:
        return EPOCH + np.timedelta64(self.phase)


@lru_cache(maxsize=256)  # every step looks back at the same times in the last weeks
def _shifts(stretch: int, step: timedelta, zone: ZoneInfo) -> Steps:
    """Return by how many steps local time is ahead, for every half hour of a stretch."""
    halves = EPOCH + np.timedelta64(HALF_HOUR, "s") * (stretch * STRETCH + np.arange(STRETCH))
    return np.rint([_offset(half, zone) / step for half in halves.tolist()]).astype(np.int64)


def _offset(utc: datetime, zone: ZoneInfo) -> timedelta:
    return utc.replace(tzinfo=UTC).astimezone(zone).utcoffset() or timedelta(0)
