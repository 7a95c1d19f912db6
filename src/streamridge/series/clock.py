"""The regular clock of a sensor: times to whole steps and back, and local time."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, shown
from streamridge.series.holidays import Holidays

Steps = NDArray[np.int64]
# datetime64, or the whole numbers of an index.
Times: TypeAlias = NDArray[Any]
# A length of time, or a number of units of an integer index.
Length: TypeAlias = timedelta | int

DAY, MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
YEAR = 365.25 * DAY
# Zones change their offset at half hours of UTC only; they are looked up some days at a time.
HALF_HOUR, STRETCH = 1800, 512
# The longest length, in seconds or in units of an index: the gaps of such steps still fit a clock.
LONGEST = 100 * (YEAR // timedelta(seconds=1))
EPOCH = np.datetime64("1970-01-01T00:00", "us")
UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": DAY,
    "mo": YEAR / 12,
}


def parse_step(step: str | int | timedelta | np.timedelta64) -> Length:
    """Return the length of a step: a time of whole seconds, or a number of units of an index.

    Examples
    --------
    >>> parse_step("15min"), parse_step("1mo"), parse_step(1)
    (datetime.timedelta(seconds=900), datetime.timedelta(days=30, seconds=37800), 1)
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
    text = given.strip().lower() if isinstance(given, str) else ""
    if re.fullmatch(r"\d{1,7}", text, re.ASCII):
        return int(text)
    match = re.fullmatch(r"(\d{0,6})\s*(s|min|h|d|mo)", text, re.ASCII)
    if match is None:
        raise InvalidInputError(
            f"{name} must be a time such as 15min, 1h, 7d or 1mo, or a whole number for an index, "
            f"got {shown(given)}."
        )
    return int(match[1] or 1) * UNITS[match[2]]


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


def parse_zone(tz: str | None) -> ZoneInfo | None:
    """Return the time zone of that name; raise if there is none."""
    if tz is None:
        return None
    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInputError(
            f"tz must be the name of a time zone such as Europe/London, got {shown(tz)}."
        ) from None


def require_local_step(step: Length, zone: ZoneInfo | None) -> None:
    """Raise if steps are too long to follow the one-hour changes of local time."""
    if zone is None:
        return
    if isinstance(step, int):
        raise InvalidInputError(f"tz must be left out with an integer index, got {zone.key!r}.")
    if step > UNITS["h"]:
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

    @cached_property
    def week(self) -> float:
        """Return the steps of a week, which may be a fraction."""
        return 7 * DAY / self.step

    def steps(self, times: Times) -> Steps:
        """Return the steps nearest to some times."""
        return np.rint((times - self._origin) / self._length).astype(np.int64)

    def times(self, steps: Steps) -> Times:
        """Return the times of some steps."""
        return self._origin + steps * self._length

    def nearest(self, moment: int) -> tuple[int, bool]:
        """Return the step nearest to a moment, in microseconds since 1970, and whether it is at it.

        It is the one of `steps`: half a step is rounded to the even one.
        """
        length, phase = self._microseconds
        step = round((moment - phase) / length)
        return step, step * length + phase == moment

    @cached_property
    def _microseconds(self) -> tuple[int, int]:
        """Return the microseconds of a step and of the phase."""
        return self.step // MICROSECOND, self.phase // MICROSECOND

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

    def shift(self, step: int) -> int:
        """Return by how many steps local time is ahead of the clock at one step."""
        if self.zone is None:
            return 0
        stretch, within = divmod(self._half_hour(step), STRETCH)
        return int(_shifts(stretch, self.step, self.zone)[within])

    def is_steady(self, first: int, last: int) -> bool:
        """Return whether local clocks stay as they are from one step to another."""
        if self.zone is None:
            return True
        stretches = (self._half_hour(step) // STRETCH for step in (first, last))
        return _is_steady(*stretches, self.step, self.zone)

    def _half_hour(self, step: int) -> int:
        """Return the half hour since 1970 that a step lies in."""
        seconds = self._seconds
        return (seconds[0] * step + seconds[1]) // HALF_HOUR

    @cached_property
    def _seconds(self) -> tuple[int, int]:
        """Return the seconds of a step and of the phase."""
        return self.step // UNITS["s"], self.phase // UNITS["s"]

    def before_sunday(self, steps: Steps) -> Steps:
        """Return by how many steps those of a holiday come before the same time on Sunday; else 0.

        A week before that time on Sunday lies the last Sunday.
        """
        if self.holidays is None:
            return np.zeros_like(steps)
        step, phase = (length // UNITS["s"] for length in (self.step, self.phase))
        days = (step * (steps + self.shifts(steps)) + phase) // (DAY // UNITS["s"])
        return np.rint(self.holidays.before_sunday(days) * (DAY / self.step)).astype(np.int64)

    @cached_property
    def _origin(self) -> np.datetime64:
        return EPOCH + np.timedelta64(self.phase)

    @cached_property
    def _length(self) -> np.timedelta64:
        return np.timedelta64(self.step)


@dataclass(frozen=True)
class IndexClock:
    """A clock that counts the units of an integer index; its times are whole numbers.

    Parameters
    ----------
    step
        Units of a step.
    phase
        Where within a step the sensor's readings lie.

    Examples
    --------
    >>> clock = IndexClock(10, phase=3)
    >>> clock.steps(np.array([13, 21])), clock.times(np.array([1, 2]))
    (array([1, 2]), array([13, 23]))
    """

    step: int
    phase: int = 0
    zone: ClassVar[None] = None
    holidays: ClassVar[None] = None
    week: ClassVar[None] = None

    def steps(self, times: Steps) -> Steps:
        """Return the steps nearest to some whole numbers."""
        return np.rint((times - self.phase) / self.step).astype(np.int64)

    def times(self, steps: Steps) -> Steps:
        """Return the whole numbers of some steps."""
        return self.phase + steps * self.step

    def shifts(self, steps: Steps) -> Steps:
        """Return zeros: an index has no local time."""
        return np.zeros_like(steps)

    def shift(self, step: int) -> int:
        """Return zero: an index has no local time."""
        return 0

    def is_steady(self, first: int, last: int) -> bool:
        """Return True: an index has no local time."""
        return True

    def before_sunday(self, steps: Steps) -> Steps:
        """Return zeros: an index has no holidays."""
        return np.zeros_like(steps)


AnyClock: TypeAlias = Clock | IndexClock


def time_text(time: np.datetime64 | np.int64, unit: Literal["m", "s"] = "s") -> str:
    """Return a time as text, in minutes or seconds; a whole number as it is."""
    return str(time.astype(f"M8[{unit}]") if time.dtype.kind == "M" else time)


@lru_cache(maxsize=256)  # every step looks back at the same times in the last weeks
def _shifts(stretch: int, step: timedelta, zone: ZoneInfo) -> Steps:
    """Return by how many steps local time is ahead, for every half hour of a stretch."""
    halves = EPOCH + np.timedelta64(HALF_HOUR, "s") * (stretch * STRETCH + np.arange(STRETCH))
    return np.rint([_offset(half, zone) / step for half in halves.tolist()]).astype(np.int64)


@lru_cache(maxsize=256)
def _is_steady(first: int, last: int, step: timedelta, zone: ZoneInfo) -> bool:
    """Return whether local time is ahead by the same number of steps in some stretches."""
    shifts = np.concatenate([_shifts(each, step, zone) for each in range(first, last + 1)])
    return bool((shifts == shifts[0]).all())


def _offset(utc: datetime, zone: ZoneInfo) -> timedelta:
    return utc.replace(tzinfo=UTC).astimezone(zone).utcoffset() or timedelta(0)
