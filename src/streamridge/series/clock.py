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
from streamridge.series.time_format import NAIVE, TimeFormat
from streamridge.series.times import EPOCH, Steps, Times
from streamridge.series.zones import PERIOD, offset_at, offsets_at, offsets_in

MONTH = UNITS["mo"]
# A stamp lies less than this after the start of its month. Phases of months count the whole months
# in front of it by this length.
LONGEST_MONTH = 31 * DAY


def follows_days(step: timedelta) -> bool:
    """Return whether steps begin at the same local times every day, week or month.

    Shorter steps, and steps that do not divide a day, count elapsed time: local time changes by an
    hour, which is half of two hours.
    """
    return step > 2 * UNITS["h"] and not (DAY % step and step % DAY and step % MONTH)


def require_local_step(step: Length, zone: ZoneInfo | None) -> None:
    """Raise if steps can follow neither elapsed time nor the days of a zone."""
    if zone is None:
        return
    if isinstance(step, int):
        raise InvalidInputError(f"tz must be left out with an integer index, got {zone.key!r}.")
    if step > UNITS["h"] and not follows_days(step):
        raise InvalidInputError(
            "step must be at most 1h with tz, or 3h, 4h, 6h, 8h, 12h, days or months, "
            f"got {step_name(step)}. Take such a step or no tz."
        )


@dataclass(frozen=True)
class Clock:
    """A clock that counts time in whole steps from a fixed origin.

    Steps of months are calendar months. Their phase is the time within a month; a month that is too
    short ends with its last day.

    >>> clock = Clock(timedelta(minutes=15))
    >>> t = clock.steps(np.array(["1970-01-01T01:07"], "M8[us]"))
    >>> t, clock.times(t)
    (array([4]), array(['1970-01-01T01:00:00.000000'], dtype='datetime64[us]'))
    """

    step: timedelta
    phase: timedelta = timedelta(0)  # offset of the sensor's stamps within a step
    zone: ZoneInfo | None = None  # if days follow local time; times are then UTC
    holidays: Holidays | None = None  # days that are like the Sunday of their week
    # The local time that steps of several hours, days and months follow; times are then UTC.
    calendar: TimeFormat = NAIVE
    even: bool = False  # whether a month is a twelfth of a year, as on the grid of the service

    @cached_property
    def week(self) -> float:
        """Return the steps of a week, which may be a fraction."""
        return 7 * DAY / self.step

    def steps(self, times: Times) -> Steps:
        """Return the steps nearest to some times."""
        local = self.calendar.local(times)
        if self._months:
            return self._nearest_months(local)
        return np.rint((local - self._origin) / self.length).astype(np.int64)

    def times(self, steps: Steps) -> Times:
        """Return the times of some steps."""
        local = self._month_times(steps) if self._months else self._origin + steps * self.length
        return self.calendar.utc(local)

    def nearest(self, moment: int) -> tuple[int, bool]:
        """Return the step nearest to a moment, in microseconds since 1970, and whether it is exact.

        The step is the same as with `steps`: half a step is rounded to an even number.
        """
        if self._microseconds is None:
            time = np.array([moment]).astype("M8[us]")
            steps = self.steps(time)
            return int(steps[0]), bool(self.times(steps)[0] == time[0])
        length, phase = self._microseconds
        step = round((moment - phase) / length)
        return step, step * length + phase == moment

    @property
    def follows_calendar(self) -> bool:
        """Return whether steps follow local time, so that its changes do not move them."""
        return self.calendar != NAIVE

    @property
    def _months(self) -> int:
        """Return the calendar months of a step, 0 if it is no number of them."""
        return 0 if self.even or self.step % MONTH else self.step // MONTH

    def _month_times(self, steps: Steps) -> Times:
        """Return the local times of steps of calendar months."""
        before, within = divmod(self.phase, LONGEST_MONTH)
        months = (steps * self._months + before).astype("M8[M]")
        day, rest = divmod(within, DAY)
        last = (months + 1).astype("M8[D]") - 1
        days = np.minimum(months.astype("M8[D]") + day, last)
        return days.astype("M8[us]") + np.timedelta64(rest)

    def _nearest_months(self, local: Times) -> Steps:
        months = local.astype("M8[M]").astype(np.int64)
        about = (months - self.phase // LONGEST_MONTH) // self._months + np.array([[-1], [0], [1]])
        nearest = np.abs(self._month_times(about) - local).argmin(axis=0)
        return about[nearest, np.arange(len(local))]

    @cached_property
    def _microseconds(self) -> tuple[int, int] | None:
        """Return the microseconds of a step and of the phase; None if a calendar sets the steps."""
        if self._months or self.follows_calendar:
            return None
        return self.step // MICROSECOND, self.phase // MICROSECOND

    def shifts(self, steps: Steps) -> Steps:
        """Return by how many steps local time is ahead of the clock; zero without a zone."""
        if self.zone is None or self.follows_calendar or not steps.size:
            return np.zeros_like(steps)
        step, phase = self._seconds
        offsets = offsets_at(step * steps + phase, self.zone)
        return np.rint(offsets / step).astype(np.int64)

    def shift(self, step: int) -> int:
        """Return by how many steps local time is ahead of the clock at one step."""
        if self.zone is None or self.follows_calendar:
            return 0
        length, phase = self._seconds
        return round(offset_at(length * step + phase, self.zone) / length)

    def is_steady(self, first: int, last: int) -> bool:
        """Return whether the offset of local time is constant from one step to another.

        Whole periods of some days are looked at, so that a change shortly before or after counts.
        """
        if self.zone is None or self.follows_calendar:
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
    def length(self) -> np.timedelta64:
        """Return the length of a step."""
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


def containing(clock: AnyClock, times: Times) -> Steps:
    """Return the steps whose spans contain some times: the last that do not begin later."""
    steps = clock.steps(times)
    return steps - (clock.times(steps) > times)


@lru_cache(maxsize=256)
def _is_steady(first: int, last: int, zone: ZoneInfo) -> bool:
    """Return whether a zone has one offset in some periods of days."""
    found = {each for at in range(first, last + 1) for each in offsets_in(at, zone)[1]}
    return len(found) == 1
