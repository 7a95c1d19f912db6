"""The regular clock of a sensor: times to whole steps and back, and local time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import ClassVar, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.errors import InvalidInputError
from streamridge.series.holidays import Holidays
from streamridge.series.lengths import DAY, MICROSECOND, UNITS, Length, step_name
from streamridge.series.times import EPOCH, Steps, Times
from streamridge.series.zones import PERIOD, offset_at, offsets_at, offsets_in


def require_local_step(step: Length, zone: ZoneInfo | None) -> None:
    """Raise if steps are longer than an hour, the usual change of local time."""
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

    >>> clock = Clock(timedelta(minutes=15))
    >>> t = clock.steps(np.array(["1970-01-01T01:07"], "M8[us]"))
    >>> t, clock.times(t)
    (array([4]), array(['1970-01-01T01:00:00.000000'], dtype='datetime64[us]'))
    """

    step: timedelta
    phase: timedelta = timedelta(0)  # offset of the sensor's stamps within a step
    zone: ZoneInfo | None = None  # if days follow local time; times are then UTC
    holidays: Holidays | None = None  # days that are like the Sunday of their week

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
        """Return the step nearest to a moment, in microseconds since 1970, and whether it is exact.

        The step is the same as with `steps`: half a step is rounded to an even number.
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
        step, phase = self._seconds
        offsets = offsets_at(step * steps + phase, self.zone)
        return np.rint(offsets / step).astype(np.int64)

    def shift(self, step: int) -> int:
        """Return by how many steps local time is ahead of the clock at one step."""
        if self.zone is None:
            return 0
        length, phase = self._seconds
        return round(offset_at(length * step + phase, self.zone) / length)

    def is_steady(self, first: int, last: int) -> bool:
        """Return whether the offset of local time is constant from one step to another.

        Whole periods of some days are looked at, so that a change shortly before or after counts.
        """
        if self.zone is None:
            return True
        length, phase = self._seconds
        periods = ((length * step + phase) // PERIOD for step in (first, last))
        return _is_steady(*periods, self.zone)

    @cached_property
    def _seconds(self) -> tuple[int, int]:
        """Return the seconds of a step and of the phase."""
        return self.step // UNITS["s"], self.phase // UNITS["s"]

    def before_sunday(self, steps: Steps) -> Steps:
        """Return how many steps a holiday comes before the same time on Sunday; otherwise 0."""
        if self.holidays is None:
            return np.zeros_like(steps)
        days = self.holidays.before_sunday(self.days(steps))
        return np.rint(days * (DAY / self.step)).astype(np.int64)

    def days(self, steps: Steps) -> Steps:
        """Return the local days of some steps, counted from 1970-01-01."""
        step, phase = self._seconds
        return (step * (steps + self.shifts(steps)) + phase) // (DAY // UNITS["s"])

    @cached_property
    def _origin(self) -> np.datetime64:
        return EPOCH + np.timedelta64(self.phase)

    @cached_property
    def _length(self) -> np.timedelta64:
        return np.timedelta64(self.step)


@dataclass(frozen=True)
class IndexClock:
    """A clock that counts the units of an integer index; its times are whole numbers.

    >>> clock = IndexClock(10, phase=3)
    >>> clock.steps(np.array([13, 21])), clock.times(np.array([1, 2]))
    (array([1, 2]), array([13, 23]))
    """

    step: int
    phase: int = 0  # offset of the sensor's readings within a step
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

    before_sunday = shifts  # zeros as well: an index has no holidays


AnyClock: TypeAlias = Clock | IndexClock


@lru_cache(maxsize=256)
def _is_steady(first: int, last: int, zone: ZoneInfo) -> bool:
    """Return whether a zone has one offset in some periods of days."""
    found = {each for at in range(first, last + 1) for each in offsets_in(at, zone)[1]}
    return len(found) == 1
