"""Features relative to a typical course: how far off the latest values are, and what is next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamridge.arrays import Mask, Matrix, require_count
from streamridge.features.calendar import calendar_at
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

    Where holidays are known, they run like Sundays: their weekly course is that of the last
    Sundays, they are left out of the weekly course of other days, and so is their place in the
    calendar.

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
                ("calendar", 2 * len(self._periods)),
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

    def rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, and which of them use trusted readings only.

        What a row holds depends on its step alone, to the last bit, however many are made at once.
        """
        lags = max(self.lags, self.week_lags)
        windows = _Windows.of(steps, lags, self.ahead)
        recent = past.values(windows.steps)[windows.at[:, lags - 1 :: -1]]
        read = past.trusted(windows.steps)[windows.at[:, :lags]]
        (daily, known), (weekly, has_weeks) = self._courses(past, windows)
        weekly = np.where(has_weeks, weekly, daily)  # in the first week
        extras, given = past.extras(steps)
        x = np.hstack(
            [
                recent[:, :1],
                *self._against(daily, recent, self.lags),
                *self._against(weekly, recent, self.week_lags),
                calendar_at(past.local(steps) + past.clock.before_sunday(steps), self._periods),
                extras,
            ]
        )
        return x, read.all(axis=1) & known.all(axis=1) & given

    def _courses(self, past: Past, windows: _Windows) -> list[tuple[Matrix, Mask]]:
        """Return both typical courses around each row, (n, w), and where they are known."""
        at = past.ago(windows.steps, self._back_from(past, windows.steps))
        if not np.any(at + self.ahead >= windows.steps):
            courses = self._means(past.values(at), self._usable(past, at))
            return [(typical[windows.at], known[windows.at]) for typical, known in courses]
        # A course so far ahead must not look at the row's own step or later ones.
        at, now = at[:, windows.at], windows.rows[:, None]
        usable = self._usable(past, at) & (at < now)
        return self._means(past.values(np.minimum(at, now - 1)), usable)

    def _back_from(self, past: Past, steps: Steps) -> Steps:
        """Return how many steps before each step its days and weeks lie; of a holiday, Sundays."""
        back = self._back[:, None]
        if past.clock.holidays is None:
            return back
        return back - np.where(self._weekly[:, None], past.clock.before_sunday(steps), 0)

    def _usable(self, past: Past, at: Steps) -> Mask:
        """Return which steps courses are the mean of: not a holiday on the weekday of others."""
        trusted = past.trusted(at)
        if past.clock.holidays is not None:
            trusted[self._weekly] &= past.clock.before_sunday(at[self._weekly]) == 0
        return trusted

    def _means(self, values: Matrix, trusted: Mask) -> list[tuple[Matrix, Mask]]:
        """Return the mean over days and that over weeks, and where they are known."""
        parts = slice(self.days), slice(self.days, None)
        return [_mean(values[part], trusted[part]) for part in parts]

    def _against(self, course: Matrix, recent: Matrix, lags: int) -> tuple[Matrix, Matrix, Matrix]:
        """Return the deviations of the latest values, the typical value, and its changes."""
        now = recent.shape[1]  # the column of the step itself in `course`
        typical = course[:, now - lags : now][:, ::-1]
        changes = np.diff(course[:, now - 1 :], axis=1)
        return recent[:, :lags] - typical, course[:, now : now + 1], changes

    @cached_property
    def _back(self) -> Steps:
        """Return how many steps back the days and weeks lie that courses are the mean of."""
        days, weeks = np.arange(1, self.days + 1), np.arange(1, self.weeks + 1)
        return self.day * np.concatenate([days, 7 * weeks])

    @cached_property
    def _weekly(self) -> Mask:
        """Return which values of `_back` are those of the same weekday."""
        return np.arange(len(self._back)) >= self.days

    @property
    def _periods(self) -> tuple[float, ...]:
        return tuple(period for period in (self.day, 7 * self.day) if period > 1)


@dataclass(frozen=True)
class _Windows:
    """The steps around each row; those that a row shares with the one before are there once.

    Parameters
    ----------
    rows
        (n,), the steps of the rows.
    steps
        (s,), all steps around them.
    at
        (n, w), where the steps around each row stand in `steps`.
    """

    rows: Steps
    steps: Steps
    at: Steps

    @classmethod
    def of(cls, rows: Steps, behind: int, ahead: int) -> _Windows:
        """Return the windows that reach some steps behind and ahead of each row."""
        width = behind + 1 + ahead
        new = np.full(len(rows), width)  # of the steps of a window, those not in the one before
        new[1:] = rows[1:] - rows[:-1]
        new[(new < 0) | (new > width)] = width
        ends = np.cumsum(new)
        steps = np.repeat(rows + ahead + 1 - ends, new) + np.arange(new.sum())
        return cls(rows, steps, ends[:, None] + np.arange(-width, 0))


def _mean(values: Matrix, trusted: Mask) -> tuple[Matrix, Mask]:
    """Return the mean over the first axis of trusted values, and where there are any.

    It is summed one by one, so that it depends on its own values alone, to the last bit. Without a
    trusted value, the first value stands in.
    """
    total = np.zeros(values.shape[1:])
    for each in np.where(trusted, values, 0.0):
        total += each
    read = trusted.sum(axis=0)
    known = np.array(read > 0, dtype=bool)
    return np.where(known, total / np.maximum(read, 1), values[0]), known
