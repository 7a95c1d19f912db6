"""Features relative to seasonal profiles: recent deviations from them, and their next changes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_count
from streamridge.features.base import Past, enough_read
from streamridge.features.seasons import (
    Season,
    calendar_at,
    calendar_of,
    weighted_means,
)
from streamridge.hyperparameters.space import Space, require_values
from streamridge.samples import Layout
from streamridge.series.times import Steps

# The most values of profiles that are in memory at once: 32 MB.
MOST_VALUES = 4_000_000


@dataclass(frozen=True)
class Profiles:
    """The blocks of a row that compares values with their seasonal profiles.

    A seasonal profile is a mean at the same local time some seasons ago: of the last days, or of
    the same weekday in the last weeks. Its rate of forgetting is learned. A row holds the latest
    value and the calendar. For each season it also holds the deviations of the latest values from
    the profile, the typical value, and the changes of the profile up to and after the step. Before
    a season has been seen, the profile of the next shorter season replaces it. Without any season,
    a row holds the latest changes.

    A holiday counts as a Sunday, in its weekly profile and in the calendar. It is left out of the
    weekly profile of its weekday.

    Parameters
    ----------
    seasons
        Seasons in ascending order.
    lags
        Number of the latest changes, if there is no season.
    ahead
        Number of changes of the typical value after the step.
    extras
        Names of extra columns, which are known in advance.
    extras_ahead
        Number of steps whose extra columns a row holds: its own step, and the steps after it.
    """

    seasons: tuple[Season, ...]
    lags: int = 16
    ahead: int = 1
    extras: tuple[str, ...] = ()
    extras_ahead: int = 1

    def __post_init__(self) -> None:
        for name in ("lags", "ahead", "extras_ahead"):
            require_count(name, getattr(self, name))

    @cached_property
    def layout(self) -> Layout:
        """Return the names and widths of the blocks of a row."""
        widths = [("latest", 1), ("changes", 0 if self.seasons else self.lags)]
        for season in self.seasons:
            widths += [(f"{season.name}_lags", season.lags)]
            widths += [(f"{season.name}_profile", 2 + self.ahead)]
        widths += [("calendar", 2 * len(self._periods))]
        widths += [("extras", self.extras_ahead * len(self.extras))]
        blocks = tuple(block for block in widths if block[1])
        return Layout(blocks, own_unit=("extras",), unitless=("calendar",))

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the names of all columns but the latest value, which forecasts start from."""
        return self.layout.names[1:]

    @cached_property
    def space(self) -> Space:
        """Return the rates of forgetting of all seasons that forget."""
        return Space(tuple(season.group for season in self.seasons if season.forgetting))

    def at(self, lam: Vector) -> Profiles:
        """Return the features with the last q of lam as their rates of forgetting."""
        count = sum([season.forgetting != 0 for season in self.seasons])
        rates = iter(require_values(lam[len(lam) - count :], count).tolist())
        changed = copy(self)  # including cached values that do not depend on the rates
        for name in ("space", "_weighing"):
            changed.__dict__.pop(name, None)
        seasons = [each.at(next(rates)) if each.forgetting else each for each in self.seasons]
        object.__setattr__(changed, "seasons", tuple(seasons))
        return changed

    @cached_property
    def reach(self) -> int:
        """Return how many steps a row looks back."""
        return int(self._back.max(initial=0)) + self._recent

    @cached_property
    def _recent(self) -> int:
        """Return how many of the latest values a row needs."""
        return max((season.lags for season in self.seasons), default=self.lags + 1)

    def rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, and a mask of the rows that can be learned from.

        The bits of a row depend only on its step, not on the other rows. Profiles that look at the
        row's own step need values for every step ahead of every row. All rows of a long horizon
        together would then take gigabytes.
        """
        if self._looks_behind or not self.seasons:
            return self._rows(past, steps)
        count = max(1, MOST_VALUES // self._offsets.size)
        starts = range(0, max(1, len(steps)), count)
        parts = [self._rows(past, steps[at : at + count]) for at in starts]
        rows, complete = zip(*parts, strict=True)
        return np.concatenate(rows), np.concatenate(complete)

    def _rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, made together, and a mask as in `rows`."""
        lags, timeline = self._recent, past.timeline
        windows = _Windows.of(steps, lags, self.ahead)
        recent = past.values(windows.steps)[windows.at[:, lags - 1 :: -1]]
        behind = windows.at[:, :lags]
        trusted, sound = timeline.trusted(windows.steps), timeline.sound(windows.steps)
        blocks, read, filled = [recent[:, :1]], trusted[behind], sound[behind]
        if self.seasons:
            values, usable, before, at = self._seen(past, windows)
            profiles, known = self._means(values, usable, at)
            sound = timeline.sound(before[0])
            sound = sound if at is None else sound[at]
            # A time of day that is never read is part of the season, and no lost reading.
            read = read | (sound & ~known)[:, :lags]
            complete = enough_read(read, filled) & (known | sound).all(axis=1)
            for season, profile in zip(self.seasons, profiles, strict=True):
                blocks += self._against(profile, recent, season.lags)
        else:
            complete = enough_read(read, filled)
            blocks.append(recent[:, :-1] - recent[:, 1:])
        blocks.append(self._calendar(past, steps))
        if self.extras:
            extras, given = past.extras_ahead(steps, self.extras_ahead)
            blocks.append(extras)
            complete &= given
        return np.hstack(blocks), complete

    def row(self, past: Past, step: int) -> Vector:
        """Return the row at one step, with the bits of `rows`, in less time.

        `rows` computes it if there are holidays, or if a profile may look at the row's own step.
        """
        around = self._around(past, step)
        if around is None:
            return self.rows(past, np.array([step]))[0][0]
        recent, values, trusted = around
        if trusted is None:
            profiles = self._means_of_all(values)
        else:
            profiles, _ = self._means(values, trusted)
        x, (*starts, calendar, extras) = np.empty(self.layout.width), self._columns
        x[0], now = recent[0], self._recent
        for season, profile, start in zip(self.seasons, profiles, starts, strict=True):
            # Deviations of the latest values, the typical value, and its changes, as in `_against`.
            typical = start + season.lags
            latest = profile[now - season.lags : now][::-1]
            np.subtract(recent[: season.lags], latest, out=x[start:typical])
            x[typical] = profile[now]
            changes = x[typical + 1 : typical + 2 + self.ahead]
            np.subtract(profile[now:], profile[now - 1 : -1], out=changes)
        x[calendar:extras] = calendar_of(step + past.clock.shift(step), self._periods)
        if self.extras:
            x[extras:] = past.extras_ahead(np.array([step]), self.extras_ahead)[0][0]
        return x

    def _around(self, past: Past, step: int) -> tuple[Vector, Matrix, Mask | None] | None:
        """Return the latest values before a step, and the values of its seasonal profiles.

        The mask of trusted values is None if all are. All is None if only `rows` finds the values.
        """
        if past.clock.holidays is not None or not self._looks_behind:
            return None
        first, lags, timeline = step - self.reach, self._recent, past.timeline
        if past.clock.is_steady(first, step + self.ahead) and timeline.holds(first, step):
            recent = timeline.values_between(step - lags, step)[::-1]
            return recent, *timeline.values_around(step, self._offsets)
        window = step + self._window
        at = past.ago(window, self._back[:, None])
        if (at + self.ahead >= window).any():
            return None
        return past.values(window[lags - 1 :: -1]), past.values(at), timeline.trusted(at)

    def _calendar(self, past: Past, steps: Steps) -> Matrix:
        """Return the position of the steps in each season; in a week, holidays are Sundays."""
        local = steps + past.clock.shifts(steps)
        calendar = calendar_at(local, self._periods)
        if past.clock.holidays is None:
            return calendar
        on_sunday = calendar_at(local + past.clock.before_sunday(steps), self._periods)
        is_week = [period == past.clock.week for period in self._periods]
        return np.where(2 * is_week, on_sunday, calendar)

    def tangents(self, past: Past, steps: Steps) -> NDArray[np.float64]:
        """Return the derivatives of the rows in each rate of forgetting, (q, n, p)."""
        count = sum([season.forgetting != 0 for season in self.seasons])
        tangents = np.zeros((count, len(steps), self.layout.width))
        if not count:
            return tangents
        values, usable, _, at = self._seen(past, _Windows.of(steps, self._recent, self.ahead))
        still, spans = np.zeros((len(steps), self._recent)), self.layout.spans
        moving = self._mean_tangents(values, usable, at)
        for tangent, profiles in zip(tangents, moving, strict=True):
            for season, profile in zip(self.seasons, profiles, strict=True):
                lags, *changes = self._against(profile, still, season.lags)
                tangent[:, spans[f"{season.name}_lags"]] = lags
                tangent[:, spans[f"{season.name}_profile"]] = np.hstack(changes)
        return tangents

    def _means(
        self, values: Matrix, usable: Mask, at: Steps | None = None
    ) -> tuple[list[Matrix], Mask]:
        """Return the profile of each season, (n, w), and a mask of the known first profile."""
        profiles: list[Matrix] = []
        for season, part in zip(self.seasons, self._parts, strict=True):
            mean, known = weighted_means(season.weights, values[part], usable[part])
            if at is not None:
                mean, known = mean[at], known[at]
            if profiles:  # the next shorter season replaces unknown values
                profiles.append(np.where(known, mean, profiles[-1]))
            else:
                profiles, first_known = [mean], known
        return profiles, first_known

    def _mean_tangents(self, values: Matrix, usable: Mask, at: Steps | None) -> list[list[Matrix]]:
        """Return the derivatives of all profiles, for each rate of forgetting."""
        own, known = [], []
        for season, part in zip(self.seasons, self._parts, strict=True):
            tangent, is_known = season.mean_tangent(values[part], usable[part])
            own.append(tangent if at is None else tangent[at])
            known.append(is_known if at is None else is_known[at])
        tangents = []
        for i, season in enumerate(self.seasons):
            if season.forgetting:
                profiles: list[Matrix] = []
                for j, is_known in enumerate(known):
                    tangent = own[i] if j == i else np.zeros_like(own[i])
                    tangent = np.where(is_known, tangent, profiles[-1]) if profiles else tangent
                    profiles.append(tangent)
                tangents.append(profiles)
        return tangents

    def _means_of_all(self, values: Matrix) -> list[Vector]:
        """Return the profiles around one row, all of whose values can be used."""
        weights, totals = self._weighing
        counted = weights * values  # added one by one, as in `weighted_means`
        pairs = zip(self._parts, totals, strict=True)
        return [np.add.accumulate(counted[part], axis=0)[-1] / total for part, total in pairs]

    @cached_property
    def _weighing(self) -> tuple[Matrix, list[float]]:
        """Return the weights of the values around one row, (b, w), and their sum per season."""
        each = [season.weights for season in self.seasons]
        # Broadcasting a column instead of repeated weights takes NumPy three times as long.
        columns = np.repeat(np.concatenate(each)[:, None], self._offsets.shape[1], axis=1)
        return columns, [float(np.add.accumulate(weights)[-1]) for weights in each]

    def _seen(self, past: Past, windows: _Windows) -> tuple[Matrix, Mask, Steps, Steps | None]:
        """Return the values that profiles average, a mask of the values that count, and steps.

        These are (b, ...). The fourth item has the places in them of the steps around each row,
        (n, w); it is None if the arrays have one place for each of these steps.
        """
        back, holidays = self._back[:, None], past.clock.holidays is not None
        if holidays:  # the weeks before a holiday are counted from its Sunday
            weekly = self._weekly(past)[:, None]
            back = back - np.where(weekly, past.clock.before_sunday(windows.steps), 0)
        at = before = past.ago(windows.steps, back)
        places: Steps | None = windows.at
        usable: Mask | None = None
        if np.any(at + self.ahead >= windows.steps):
            # A profile that reaches ahead must not look at the row's own step or later ones.
            at, now, places = at[:, windows.at], windows.rows[:, None], None
            before, usable = np.minimum(at, now - 1), at < now
        trusted = past.timeline.trusted(at)
        if holidays:  # holidays do not count for the profile of their weekday
            is_week = self._weekly(past)
            trusted[is_week] &= past.clock.before_sunday(at[is_week]) == 0
        trusted = trusted if usable is None else trusted & usable
        return past.values(before), trusted, before, places

    def _weekly(self, past: Past) -> Mask:
        """Return a mask of the values in `_back` that are weeks ago."""
        is_week = [season.period == past.clock.week for season in self.seasons]
        return np.repeat(is_week, [len(season.back) for season in self.seasons])

    def _against(self, profile: Matrix, recent: Matrix, lags: int) -> list[Matrix]:
        """Return the deviations of the latest values, the typical value, and its changes."""
        now = recent.shape[1]  # the column of the step itself in `profile`
        typical = profile[:, now - lags : now][:, ::-1]
        changes = np.diff(profile[:, now - 1 :], axis=1)
        return [recent[:, :lags] - typical, profile[:, now : now + 1], changes]

    @cached_property
    def _back(self) -> Steps:
        """Return how many steps ago the values of all profiles are."""
        none = np.array([], dtype=np.int64)
        return np.concatenate([none, *(season.back for season in self.seasons)])

    @cached_property
    def _offsets(self) -> Steps:
        """Return the offsets of the values of the profiles around a row, (b, w)."""
        return self._window - self._back[:, None]

    @cached_property
    def _window(self) -> Steps:
        """Return the offsets of the steps around a row, (w,)."""
        return np.arange(-self._recent, 1 + self.ahead)

    @cached_property
    def _looks_behind(self) -> bool:
        """Return whether all seasons are so long that no profile looks at the row's step."""
        return bool(self.seasons) and int(self._back.min()) > self.ahead

    @cached_property
    def _columns(self) -> tuple[int, ...]:
        """Return the first column of each season, of the calendar, and of extra columns."""
        widths = [season.lags + 2 + self.ahead for season in self.seasons]
        return tuple(accumulate([1, *widths, 2 * len(self._periods)]))

    @cached_property
    def _parts(self) -> tuple[slice, ...]:
        """Return the slice of each season in `_back`."""
        ends = accumulate((len(season.back) for season in self.seasons), initial=0)
        return tuple(slice(first, end) for first, end in pairwise(ends))

    @cached_property
    def _periods(self) -> tuple[float, ...]:
        return tuple(season.period for season in self.seasons if season.period > 1)


@dataclass(frozen=True)
class _Windows:
    """The steps around each row, without the steps that a row shares with the row before."""

    rows: Steps  # (n,), the steps of the rows
    steps: Steps  # (s,), all steps around them
    at: Steps  # (n, w), the places in `steps` of the steps around each row

    @classmethod
    def of(cls, rows: Steps, behind: int, ahead: int) -> _Windows:
        """Return the windows of `behind` steps before and `ahead` steps after each row."""
        width = behind + 1 + ahead
        new = np.full(len(rows), width)  # number of steps that are not in the window before
        new[1:] = rows[1:] - rows[:-1]
        new[(new < 0) | (new > width)] = width
        ends = np.cumsum(new)
        steps = np.repeat(rows + ahead + 1 - ends, new) + np.arange(new.sum())
        return cls(rows, steps, ends[:, None] + np.arange(-width, 0))
