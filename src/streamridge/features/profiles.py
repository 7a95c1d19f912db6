"""Features relative to a typical course: how far off the latest values are, and what is next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from streamridge.arrays import Mask, Matrix, require_count, require_positive
from streamridge.errors import InvalidInputError
from streamridge.features.base import enough_read
from streamridge.features.calendar import calendar_at
from streamridge.features.past import Past
from streamridge.samples import Layout
from streamridge.series.clock import Steps


@dataclass(frozen=True)
class Season:
    """A season as rows see it: after how many steps it comes again, and what they hold of it.

    Parameters
    ----------
    name
        It names the blocks of a row, such as day_lags.
    period
        Steps of a season, which may be a fraction: a day of seven minutes a step has 205.7. The
        step k seasons ago is the nearest one.
    count
        Number of seasons that a typical value is the mean of.
    lags
        Number of deviations of the latest values from their typical course.
    beside, apart
        How many steps on either side count with each, and how far they are apart.

    Examples
    --------
    >>> Season("day", 1440 / 7, count=3).back
    array([206, 411, 617])
    """

    name: str
    period: float
    count: int = 4
    lags: int = 4
    beside: int = 0
    apart: int = 1

    def __post_init__(self) -> None:
        require_positive("period", self.period)
        for name in ("count", "lags", "apart"):
            require_count(name, getattr(self, name))
        require_count("beside", self.beside, least=0)
        if self.back.min() < 1:
            raise InvalidInputError(
                f"beside must reach less than a season, got {self.beside} steps {self.apart} apart."
            )

    @cached_property
    def back(self) -> Steps:
        """Return how many steps back the values lie that a typical one is the mean of."""
        seasons = np.rint(self.period * np.arange(1, self.count + 1)).astype(np.int64)
        beside = self.apart * np.arange(-self.beside, self.beside + 1)
        return (seasons[:, None] + beside).ravel()


@dataclass(frozen=True)
class Profiles:
    """The blocks of a row that compares values with their typical courses.

    The typical course of a season is the mean at the same local time some seasons ago, such as of
    the last days, or of the same weekday in the last weeks. A row holds the latest value and the
    calendar. For each season it also holds how far the latest values were off their course, the
    typical value, and its changes up to and after the step. Where no season has been seen yet, the
    course of the next shorter one stands in. Without any season, a row holds the latest changes.

    A holiday runs like a Sunday: its weekly course is that of the last Sundays, so is its place in
    the week, and it is left out of the weekly course of its weekday.

    Parameters
    ----------
    seasons
        In ascending order.
    lags
        Number of the latest changes, where there is no season.
    ahead
        Number of changes of the typical value after the step.
    extras
        Names of further columns, which are known in advance.
    """

    seasons: tuple[Season, ...]
    lags: int = 16
    ahead: int = 1
    extras: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("lags", "ahead"):
            require_count(name, getattr(self, name))

    @cached_property
    def layout(self) -> Layout:
        """Return the names and widths of the blocks of a row."""
        widths = [("latest", 1), ("changes", 0 if self.seasons else self.lags)]
        for season in self.seasons:
            widths += [(f"{season.name}_lags", season.lags)]
            widths += [(f"{season.name}_profile", 2 + self.ahead)]
        widths += [("calendar", 2 * len(self._periods)), ("extras", len(self.extras))]
        blocks = tuple(block for block in widths if block[1])
        return Layout(blocks, own_unit=("extras",), unitless=("calendar",))

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the names of all columns but the latest value, which forecasts start from."""
        return self.layout.names[1:]

    @property
    def reach(self) -> int:
        """Return how many steps back a row looks."""
        return int(self._back.max(initial=0)) + self._behind

    @cached_property
    def _behind(self) -> int:
        """Return how many of the latest values a row cannot do without."""
        return max((season.lags for season in self.seasons), default=self.lags + 1)

    def rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, and which of them can be learned from.

        What a row holds depends on its step alone, to the last bit, however many are made at once.
        """
        lags = self._behind
        windows = _Windows.of(steps, lags, self.ahead)
        recent = past.values(windows.steps)[windows.at[:, lags - 1 :: -1]]
        behind = windows.at[:, :lags]
        trusted, sound = past.trusted(windows.steps)[behind], past.sound(windows.steps)[behind]
        courses, known = self._courses(past, windows)
        blocks = [recent[:, :1]]
        if not self.seasons:
            blocks.append(recent[:, :-1] - recent[:, 1:])
        for season, course in zip(self.seasons, courses, strict=True):
            blocks += self._against(course, recent, season.lags)
        extras, given = past.extras(steps)
        x = np.hstack([*blocks, self._calendar(past, steps), extras])
        return x, enough_read(trusted, sound) & known & given

    def _calendar(self, past: Past, steps: Steps) -> Matrix:
        """Return where in each season the steps lie; in a week, a holiday lies on its Sunday."""
        local = past.local(steps)
        calendar = calendar_at(local, self._periods)
        if past.clock.holidays is None:
            return calendar
        on_sunday = calendar_at(local + past.clock.before_sunday(steps), self._periods)
        is_week = [period == past.clock.week for period in self._periods]
        return np.where(2 * is_week, on_sunday, calendar)

    def _courses(self, past: Past, windows: _Windows) -> tuple[list[Matrix], Mask]:
        """Return the typical courses around each row, (n, w), and which can be learned from."""
        if not self.seasons:
            return [], np.ones(len(windows.rows), dtype=bool)
        at = past.ago(windows.steps, self._back_from(past, windows.steps))
        if np.any(at + self.ahead >= windows.steps):
            # A course so far ahead must not look at the row's own step or later ones.
            at, now = at[:, windows.at], windows.rows[:, None]
            before = np.minimum(at, now - 1)
            means = self._mean_of_each(past.values(before), self._usable(past, at) & (at < now))
            stands_in = past.sound(before[0])
        else:
            every = self._mean_of_each(past.values(at), self._usable(past, at))
            means = [(mean[windows.at], known[windows.at]) for mean, known in every]
            stands_in = past.sound(at[0])[windows.at]
        courses: list[Matrix] = []
        for typical, known in means:
            courses.append(np.where(known, typical, courses[-1]) if courses else typical)
        _, known = means[0]
        return courses, np.array((known | stands_in).all(axis=1), dtype=bool)

    def _back_from(self, past: Past, steps: Steps) -> Steps:
        """Return how many steps before each step its seasons lie; weeks of a holiday, Sundays."""
        back = self._back[:, None]
        if past.clock.holidays is None:
            return back
        weekly = self._weekly(past)[:, None]
        return back - np.where(weekly, past.clock.before_sunday(steps), 0)

    def _usable(self, past: Past, at: Steps) -> Mask:
        """Return which steps courses are the mean of: no holiday on the weekday of other days."""
        trusted = past.trusted(at)
        if past.clock.holidays is not None:
            weekly = self._weekly(past)
            trusted[weekly] &= past.clock.before_sunday(at[weekly]) == 0
        return trusted

    def _weekly(self, past: Past) -> Mask:
        """Return which values of `_back` are those of the same weekday."""
        is_week = [season.period == past.clock.week for season in self.seasons]
        return np.repeat(is_week, [len(season.back) for season in self.seasons])

    def _mean_of_each(self, values: Matrix, trusted: Mask) -> list[tuple[Matrix, Mask]]:
        """Return the mean over each season's part of the first axis, and where it is known."""
        return [_mean(values[part], trusted[part]) for part in self._parts]

    def _against(self, course: Matrix, recent: Matrix, lags: int) -> list[Matrix]:
        """Return the deviations of the latest values, the typical value, and its changes."""
        now = recent.shape[1]  # the column of the step itself in `course`
        typical = course[:, now - lags : now][:, ::-1]
        changes = np.diff(course[:, now - 1 :], axis=1)
        return [recent[:, :lags] - typical, course[:, now : now + 1], changes]

    @cached_property
    def _back(self) -> Steps:
        """Return how many steps back the values lie that all courses are the mean of."""
        none = np.array([], dtype=np.int64)
        return np.concatenate([none, *(season.back for season in self.seasons)])

    @cached_property
    def _parts(self) -> tuple[slice, ...]:
        """Return where each season stands in `_back`."""
        ends = accumulate((len(season.back) for season in self.seasons), initial=0)
        return tuple(slice(first, end) for first, end in pairwise(ends))

    @cached_property
    def _periods(self) -> tuple[float, ...]:
        return tuple(season.period for season in self.seasons if season.period > 1)


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
