"""Features relative to a typical course: how far off the latest values are, and what is next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamridge.arrays import Mask, Matrix, require_count
from streamridge.features.lags import Features
from streamridge.features.past import Past
from streamridge.samples import Layout
from streamridge.series.clock import Steps


@dataclass(frozen=True)
class Profiles:
    """The blocks of a row that compares values with their typical course.

    There are two typical courses: the mean at the same local time of the last days, and that of the
    same weekday in the last weeks. A row holds the latest value and the calendar. For each course
    it also holds how far the latest values were off, the typical value, and its changes up to and
    after the step.

    Parameters
    ----------
    day
        Number of steps in a day.
    lags, week_lags
        Number of deviations from the daily and from the weekly course.
    days, weeks
        Number of days and weeks that a typical value is the mean of.
    ahead
        Number of changes of the typical value after the step.
    extras
        Names of further columns, which are known in advance.
    """

    day: int
    lags: int = 16
    week_lags: int = 4
    days: int = 7
    weeks: int = 4
    ahead: int = 1
    extras: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("day", "lags", "week_lags", "days", "weeks", "ahead"):
            require_count(name, getattr(self, name))

    @cached_property
    def layout(self) -> Layout:
        """Return the names and widths of the blocks of a row."""
        return Layout(
            (
                ("latest", 1),
                ("day_lags", self.lags),
                ("day_profile", 2 + self.ahead),
                ("week_lags", self.week_lags),
                ("week_profile", 2 + self.ahead),
                ("calendar", self._calendar.layout.width - 1),
                *((("extras", len(self.extras)),) if self.extras else ()),
            ),
            own_unit=("extras",),
            unitless=("calendar",),
        )

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the names of all columns but the latest value, which forecasts start from."""
        return self.layout.names[1:]

    @property
    def reach(self) -> int:
        """Return how many steps back a row looks."""
        return max(self.days, 7 * self.weeks) * self.day + max(self.lags, self.week_lags)

    @property
    def behind(self) -> tuple[int, ...]:
        """Return how many steps back the values lie that a row cannot do without."""
        return tuple(range(1, max(self.lags, self.week_lags) + 1))

    def rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, and which of them use trusted readings only."""
        lags = np.arange(1, max(self.lags, self.week_lags) + 1)
        at = steps[:, None] - lags
        recent = past.values(at)
        around = steps[:, None] + np.arange(-len(lags), self.ahead + 1)
        now = steps[:, None]
        daily, known = past.profile(around, self.day, self.days, before=now)
        weekly, has_weeks = past.profile(around, 7 * self.day, self.weeks, before=now)
        weekly = np.where(has_weeks, weekly, daily)  # in the first week
        extras, given = past.extras(steps)
        x = np.hstack(
            [
                recent[:, :1],
                *self._against(daily, recent, self.lags),
                *self._against(weekly, recent, self.week_lags),
                self._calendar.calendar_at(past.local(steps)),
                extras,
            ]
        )
        return x, past.trusted(at).all(axis=1) & known.all(axis=1) & given

    def _against(self, course: Matrix, recent: Matrix, lags: int) -> tuple[Matrix, Matrix, Matrix]:
        """Return the deviations of the latest values, the typical value, and its changes."""
        now = recent.shape[1]  # the column of the step itself in `course`
        typical = course[:, now - lags : now][:, ::-1]
        changes = np.diff(course[:, now - 1 :], axis=1)
        return recent[:, :lags] - typical, course[:, now : now + 1], changes

    @cached_property
    def _calendar(self) -> Features:
        periods = tuple(period for period in (self.day, 7 * self.day) if period > 1)
        return Features(lags=1, calendar=periods)
