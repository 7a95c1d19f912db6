"""Features relative to a typical course: how far off the latest values are, and what is next."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import (
    Mask,
    Matrix,
    Vector,
    require_count,
    require_number,
    require_positive,
)
from streamridge.errors import InvalidInputError
from streamridge.features.base import enough_read
from streamridge.features.calendar import calendar_at, calendar_of
from streamridge.features.courses import Seen
from streamridge.features.past import Past
from streamridge.hyperparameters.groups import (
    Bounds,
    Group,
    positive_group,
    require_values,
    require_within,
)
from streamridge.hyperparameters.space import Space
from streamridge.samples import Layout
from streamridge.series.clock import Steps

# Steps of the longest season: 30 years of seconds.
LONGEST = 10**9


@dataclass(frozen=True)
class Season:
    """A season as rows see it: after how many steps it comes again, and what they hold of it.

    A typical value is a mean over some seasons, in which the k-th season back has the weight
    exp(-forgetting (k - 1)).

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
    forgetting
        The rate at which seasons count less, the farther back they are. Zero forgets nothing, and
        is no number to learn.
    forgetting_bounds
        Interval in which it is learned; None keeps it constant.

    Examples
    --------
    >>> Season("day", 1440 / 7, count=3).back
    array([206, 411, 617])
    >>> Season("day", 96, count=3, forgetting=0.1).weights.round(3)
    array([1.   , 0.905, 0.819])
    """

    name: str
    period: float
    count: int = 4
    lags: int = 4
    beside: int = 0
    apart: int = 1
    forgetting: float = 0.0
    forgetting_bounds: Bounds = None

    def __post_init__(self) -> None:
        require_positive("period", self.period)
        if self.period > LONGEST:
            raise InvalidInputError(
                f"period must be at most {LONGEST:,} steps, got {self.period:g}."
            )
        require_number("forgetting", self.forgetting)
        if self.forgets:
            require_within("forgetting", self.forgetting, self.forgetting_bounds)
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

    @property
    def forgets(self) -> bool:
        """Return whether earlier seasons count less, at a rate that may be learned."""
        return self.forgetting != 0

    @property
    def group(self) -> Group:
        """Return the rate as a hyperparameter, such as day_forgetting."""
        name = f"{self.name}_forgetting"
        return positive_group(name, "rate", self.forgetting, self.forgetting_bounds)

    def at(self, rate: float) -> Season:
        """Return the season at another rate of forgetting, which is not checked."""
        changed = copy(self)  # with all that does not depend on the rate
        changed.__dict__.pop("weights", None)
        object.__setattr__(changed, "forgetting", rate)
        return changed

    @cached_property
    def weights(self) -> Vector:
        """Return the weight of each value that a typical one is the mean of."""
        return np.exp(-self.forgetting * self._ages)

    @property
    def slopes(self) -> Vector:
        """Return how each weight moves with the rate of forgetting."""
        return -self._ages * self.weights

    @property
    def _ages(self) -> Vector:
        """Return by how many seasons each value is farther back than the last season."""
        return np.repeat(np.arange(float(self.count)), 2 * self.beside + 1)


@dataclass(frozen=True)
class Profiles:
    """The blocks of a row that compares values with their typical courses.

    The typical course of a season is a mean at the same local time some seasons ago, such as of
    the last days, or of the same weekday in the last weeks; how fast it forgets is learned. A row
    holds the latest value and the calendar. For each season it also holds how far the latest values
    were off their course, the typical value, and its changes up to and after the step. Where no
    season has been seen yet, the course of the next shorter one stands in. Without any season, a
    row holds the latest changes.

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

    @cached_property
    def space(self) -> Space:
        """Return the rates at which courses forget, as far as they forget at all."""
        return Space(tuple(season.group for season in self.seasons if season.forgets))

    def at(self, numbers: Vector) -> Profiles:
        """Return the features at other rates of forgetting, shape (q,)."""
        return _at_rates(self, tuple(require_values(numbers, len(self.space.names)).tolist()))

    @cached_property
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
        courses, known = self._courses(self._seen(past, windows), len(steps))
        blocks = [recent[:, :1]]
        if not self.seasons:
            blocks.append(recent[:, :-1] - recent[:, 1:])
        for season, course in zip(self.seasons, courses, strict=True):
            blocks += self._against(course, recent, season.lags)
        extras, given = past.extras(steps)
        x = np.hstack([*blocks, self._calendar(past, steps), extras])
        return x, enough_read(trusted, sound) & known & given

    def row(self, past: Past, step: int) -> Vector:
        """Return the row at one step, which is that of `rows` to the last bit, in less time.

        Where holidays are known, or a course may look at the row's own step, `rows` makes it.
        """
        around = self._around(past, step)
        if around is None:
            return self.rows(past, np.array([step]))[0][0]
        recent, values, trusted = around
        if trusted is None:
            courses = self._means_of_all(values)
        else:
            courses = self._means(Seen(values, trusted, trusted[0]))
        x, (*starts, calendar, extras) = np.empty(self.layout.width), self._columns
        x[0] = recent[0]
        for season, course, start in zip(self.seasons, courses, starts, strict=True):
            self._write_against(x[start:], course, recent[: season.lags])
        x[calendar:extras] = calendar_of(step + past.clock.shift(step), self._periods)
        if self.extras:
            x[extras:] = past.extras(np.array([step]))[0][0]
        return x

    def _around(self, past: Past, step: int) -> tuple[Vector, Matrix, Mask | None] | None:
        """Return the latest values before a step, and those that its courses are the means of.

        The last is which of these are trusted, (b, w); None if all of them are. None at all if
        they are not found by this shorter way.
        """
        if past.clock.holidays is not None or not self._looks_behind:
            return None
        first, lags, timeline = step - self.reach, self._behind, past.timeline
        if past.clock.is_steady(first, step + self.ahead) and timeline.holds(first, step):
            recent = timeline.stretch(step - lags, step)[::-1]
            return recent, *timeline.recalled(step, self._offsets)
        window = step + self._window
        at = past.ago(window, self._back[:, None])
        if (at + self.ahead >= window).any():
            return None
        return past.values(window[lags - 1 :: -1]), past.values(at), past.trusted(at)

    def _write_against(self, x: Vector, course: Vector, recent: Vector) -> None:
        """Write the deviations of the latest values, the typical value, and its changes."""
        lags, now = len(recent), self._behind
        np.subtract(recent, course[now - lags : now][::-1], out=x[:lags])
        x[lags] = course[now]
        np.subtract(course[now:], course[now - 1 : -1], out=x[lags + 1 : lags + 2 + self.ahead])

    def _calendar(self, past: Past, steps: Steps) -> Matrix:
        """Return where in each season the steps lie; in a week, a holiday lies on its Sunday."""
        local = past.local(steps)
        calendar = calendar_at(local, self._periods)
        if past.clock.holidays is None:
            return calendar
        on_sunday = calendar_at(local + past.clock.before_sunday(steps), self._periods)
        is_week = [period == past.clock.week for period in self._periods]
        return np.where(2 * is_week, on_sunday, calendar)

    def tangents(self, past: Past, steps: Steps) -> NDArray[np.float64]:
        """Return how the rows at some steps move with each rate of forgetting, (q, n, p)."""
        windows = _Windows.of(steps, self._behind, self.ahead)
        moving = self._moving(self._seen(past, windows))
        still, spans = np.zeros((len(steps), self._behind)), self.layout.spans
        tangents = np.zeros((len(self.space.names), len(steps), self.layout.width))
        for tangent, courses in zip(tangents, moving, strict=True):
            for season, course in zip(self.seasons, courses, strict=True):
                lags, *profile = self._against(course, still, season.lags)
                tangent[:, spans[f"{season.name}_lags"]] = lags
                tangent[:, spans[f"{season.name}_profile"]] = np.hstack(profile)
        return tangents

    def _courses(self, seen: Seen | None, rows: int) -> tuple[list[Matrix], Mask]:
        """Return the typical courses around each row, (n, w), and which can be learned from."""
        if seen is None:
            return [], np.ones(rows, dtype=bool)
        known = seen.part(self._parts[0]).known
        sound = known | seen.around(seen.stands_in)
        return self._means(seen), np.array(sound.all(axis=1), dtype=bool)

    def _means(self, seen: Seen) -> list[Matrix]:
        """Return the typical courses; where a season is not known, that of the next shorter one."""
        each = [seen.part(part) for part in self._parts]
        pairs = zip(self.seasons, each, strict=True)
        means = [part.mean(season.weights) for season, part in pairs]
        return _or_shorter(means, each)

    def _means_of_all(self, values: Matrix) -> list[Vector]:
        """Return the typical courses around one row, whose values can all be used."""
        weights, totals = self._weighing
        counted = weights * values  # summed one by one, as those of `Seen` are
        pairs = zip(self._parts, totals, strict=True)
        return [np.add.accumulate(counted[part], axis=0)[-1] / total for part, total in pairs]

    @cached_property
    def _weighing(self) -> tuple[Matrix, list[float]]:
        """Return the weights of the values around one row, (b, w), and their sum of each season.

        They are as many as the values: NumPy takes three times as long to stretch a column.
        """
        each = [season.weights for season in self.seasons]
        columns = np.repeat(np.concatenate(each)[:, None], self._offsets.shape[1], axis=1)
        return columns, [float(np.add.accumulate(weights)[-1]) for weights in each]

    def _moving(self, seen: Seen | None) -> list[list[Matrix]]:
        """Return how the courses of all seasons move, for each season that forgets."""
        if seen is None:
            return []
        each = [seen.part(part) for part in self._parts]
        moving = []
        for i, season in enumerate(self.seasons):
            if season.forgets:
                own = each[i].tangent(season.weights, season.slopes)
                still = np.zeros_like(own)
                means = [own if j == i else still for j in range(len(each))]
                moving.append(_or_shorter(means, each))
        return moving

    def _seen(self, past: Past, windows: _Windows) -> Seen | None:
        """Return the values that the courses around each row are the means of, if there are any."""
        if not self.seasons:
            return None
        at = past.ago(windows.steps, self._back_from(past, windows.steps))
        if np.any(at + self.ahead >= windows.steps):
            # A course so far ahead must not look at the row's own step or later ones.
            at, now = at[:, windows.at], windows.rows[:, None]
            before = np.minimum(at, now - 1)
            usable = self._usable(past, at) & (at < now)
            return Seen(past.values(before), usable, past.sound(before[0]))
        return Seen(past.values(at), self._usable(past, at), past.sound(at[0]), windows.at)

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
    def _offsets(self) -> Steps:
        """Return where the values lie that the courses around a row are the mean of, (b, w)."""
        return self._window - self._back[:, None]

    @cached_property
    def _window(self) -> Steps:
        """Return where the steps around a row lie, (w,)."""
        return np.arange(-self._behind, 1 + self.ahead)

    @cached_property
    def _looks_behind(self) -> bool:
        """Return whether all seasons reach so far back that no course looks at the row's step."""
        return bool(self.seasons) and int(self._back.min()) > self.ahead

    @cached_property
    def _columns(self) -> tuple[int, ...]:
        """Return the first column of each season, of the calendar, and of further columns."""
        widths = [season.lags + 2 + self.ahead for season in self.seasons]
        return tuple(accumulate([1, *widths, 2 * len(self._periods)]))

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


@lru_cache(maxsize=64)  # a fit and the next row share one object, and so do fits at their start
def _at_rates(features: Profiles, rates: tuple[float, ...]) -> Profiles:
    """Return the features at other rates, with all that does not depend on these."""
    changed, left = copy(features), iter(rates)
    for name in ("space", "_weighing"):
        changed.__dict__.pop(name, None)
    seasons = tuple(each.at(next(left)) if each.forgets else each for each in features.seasons)
    object.__setattr__(changed, "seasons", seasons)
    return changed


def _or_shorter(means: list[Matrix], seen: list[Seen]) -> list[Matrix]:
    """Return the courses of all seasons: where one is not known, that of the next shorter one."""
    courses = means[:1]
    for mean, each in zip(means[1:], seen[1:], strict=True):
        courses.append(np.where(each.known, mean, courses[-1]))
    return courses
