"""Columns for forecasts any number of steps ahead, relative to a seasonal reference.

The reference of a step is the median of the values at the same time of the last seasons, such as
up to eight weeks. The columns tell how a forecast should differ from it: by the latest
deviations from the reference, by the same time on the last days, by other profiles, and by what
happened on the same date a year ago. Deviations are clipped, so that an unusual day affects the
days after it less.

A row belongs to an origin, the last step whose value is known, and to a lead, the number of steps
from there to the step that is forecast. It depends only on values up to its origin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.features.base import Past
from streamridge.features.special_days import SpecialDays, days_to_sunday
from streamridge.series.clock import Clock
from streamridge.series.times import Steps

# The number of past seasons in the reference, and in the mean that is compared with it.
SEASONS, RECENT_SEASONS = 8, 4
# The number of last days that are compared, and of the latest of them.
DAYS, LATEST_DAYS = 7, 3
# A deviation fades by a factor of e within these numbers of days; the last one never fades.
HOUR_FADES, UNIT_FADES = (0.02, 0.08, 0.33, 1.3), (0.33, 1.3, np.inf)
# The number of columns about special days.
SPECIAL = 4
# A column below this share of its reference counts as zero.
ROUNDING = 1e-9
# Deviations count up to this multiple of their usual size.
LARGEST = 2.0


@dataclass(frozen=True)
class Deviations:
    """The latest deviations of a series from its reference, and their usual size."""

    newest: int  # the step of the last deviation
    values: Vector  # (L,), NaN where there was no reading or no reference
    size: float = np.inf  # the usual size; infinite before it is known

    @cached_property
    def clipped(self) -> Vector:
        """Return the deviations without extremes, shape (L,); zero where they are not known."""
        most = LARGEST * self.size
        return np.nan_to_num(np.clip(self.values, -most, most))

    @cached_property
    def _sums(self) -> Matrix:
        """Return sums of deviations, of their sizes, and of known ones, shape (3, L + 1)."""
        each = np.stack([self.clipped, np.abs(self.clipped), ~np.isnan(self.values)])
        return np.hstack([np.zeros((3, 1)), np.add.accumulate(each, axis=1)])

    def at(self, steps: Steps) -> Vector:
        """Return the clipped deviations at some steps, zero where they are not known."""
        places = self._places(steps)
        inside = (places >= 0) & (places < len(self.values))
        return np.where(inside, self.clipped[np.where(inside, places, 0)], 0.0)

    def means(self, first: Steps, end: Steps) -> Vector:
        """Return the mean deviations from `first` up to, not including, `end`; zero for none."""
        low, high = self._ends(first, end)
        return (self._sums[0, high] - self._sums[0, low]) / np.maximum(high - low, 1)

    def mean_sizes(self, first: Steps, end: Steps) -> Vector:
        """Return the mean sizes of the known deviations of such spans; NaN if none is known."""
        low, high = self._ends(first, end)
        _, sizes, known = self._sums[:, high] - self._sums[:, low]
        return np.where(known > 0, sizes / np.maximum(known, 1), np.nan)

    def _ends(self, first: Steps, end: Steps) -> tuple[Steps, Steps]:
        low, high = (np.clip(self._places(each), 0, len(self.values)) for each in (first, end))
        return low, np.maximum(low, high)

    def after(self, new: Vector) -> Deviations:
        """Return the deviations with those of the next steps."""
        values = np.concatenate([self.values, new])[-len(self.values) :]
        return Deviations(self.newest + len(new), values, self.size)

    def after_gap(self, steps: int) -> Deviations:
        """Return the deviations after steps that are not known."""
        unknown = self.after(np.full(min(steps, len(self.values)), np.nan))
        return replace(unknown, newest=self.newest + steps)

    def _places(self, steps: Steps) -> Steps:
        return steps - (self.newest - len(self.values) + 1)


@dataclass(frozen=True)
class SeasonalRows:
    """The rows of n pairs of origin and lead."""

    reference: Vector  # (n,), NaN where nothing is known
    columns: Matrix  # (n, p), zero where nothing is known
    seasons: Matrix  # (8, n), the values that the reference is the median of; NaN if not known
    days: Matrix  # (7, n), the values on the last days; NaN if not known, empty without days
    sizes: Vector  # (n,), mean size of the latest deviations about this time of day; NaN for none

    def __getitem__(self, some: slice) -> SeasonalRows:
        parts = self.reference, self.columns.T, self.seasons, self.days, self.sizes
        reference, columns, seasons, days, sizes = (each[..., some] for each in parts)
        return SeasonalRows(reference, columns.T, seasons, days, sizes)

    @property
    def profiles(self) -> Matrix:
        """Return other forecasts: reference, mean of the last seasons, last season, last day."""
        profiles = [self.reference, mean(self.seasons[:RECENT_SEASONS]), self.seasons[0]]
        return np.stack([*profiles, *self.days[:1]])


@dataclass(frozen=True)
class SeasonalColumns:
    """A description of the columns, which computes references and rows.

    Parameters
    ----------
    season
        Period of the reference in steps, such as a week.
    day
        A shorter period in steps, such as a day, or None.
    """

    season: float
    day: float | None = None

    @cached_property
    def unit(self) -> float:
        """Return the steps that fades are measured in: a day, or a season without days."""
        return self.season if self.day is None else self.day

    @cached_property
    def hour(self) -> int:
        """Return the steps of an hour, at least one; in general a part of 24 of the unit."""
        return max(1, round(self.unit / 24))

    def remembered(self, horizon: int) -> int:
        """Return how many deviations rows need whose origins are at most a unit old."""
        return round(self.season + 2 * self.unit) + horizon + 2 * self.hour

    def reference(self, past: Past, origins: Steps, leads: Steps) -> tuple[Vector, Matrix]:
        """Return the reference of each row, and the values that it is the median of, (8, n).

        Both are NaN where nothing is known.
        """
        clock, steps = past.clock, origins + leads
        if clock.holidays is None or self.season != clock.week:
            seasons, _ = _ago(past, origins, leads, self.season, SEASONS)
        else:  # a holiday is like the last Sundays, and does not count for its weekday
            seasons, at = _ago(
                past, origins, leads, self.season, SEASONS, later=clock.before_sunday(steps)
            )
            seasons[clock.before_sunday(at) > 0] = np.nan
        return median(seasons), seasons

    def rows(
        self,
        past: Past,
        deviations: Deviations,
        special: SpecialDays,
        origins: Steps,
        leads: Steps,
    ) -> SeasonalRows:
        """Return the rows of some origins and leads."""
        reference, seasons = self.reference(past, origins, leads)
        days, sizes = np.empty((0, len(leads))), deviations.mean_sizes(*self._season(origins))
        if self.day is not None:
            days, at = _ago(past, origins, leads, self.day, DAYS)
            if past.clock.holidays is not None:  # working days say nothing about holidays
                free, of_target = (
                    past.clock.before_sunday(each) > 0 for each in (at, origins + leads)
                )
                days[free != of_target] = np.nan
        ahead, now = (leads - 1) / self.unit, origins + 1
        of_hour = deviations.means(now - self.hour, now)
        of_unit = deviations.means(now - round(self.unit), now)
        columns = [
            *(of_hour * np.exp(-ahead / fade) for fade in HOUR_FADES),
            *(of_unit * np.exp(-ahead / fade) for fade in UNIT_FADES),
            deviations.means(*self._season(origins)),
            deviations.at(_latest(past, origins, leads, self.season)),
            mean(seasons[:RECENT_SEASONS]) - reference,
            seasons[0] - reference,
        ]
        if self.day is not None:
            latest = _latest(past, origins, leads, self.day)
            columns += self._days(deviations, origins, latest, days, reference)
            sizes = mean(deviations.mean_sizes(*self._around(latest - self._back, origins)))
        if isinstance(past.clock, Clock) and self.season == past.clock.week:
            dates = past.clock.days(origins + leads)
            columns += self._special_days(past, special, dates, origins, leads, reference)
        stacked = np.nan_to_num(np.stack(columns, axis=1))
        # Differences that are only rounding would be scaled up.
        stacked[np.abs(stacked) <= ROUNDING * np.abs(reference)[:, None]] = 0.0
        return SeasonalRows(reference, stacked, seasons, days, sizes)

    def _days(
        self,
        deviations: Deviations,
        origins: Steps,
        latest: Steps,  # the last known steps at the same time of day
        days: Matrix,
        reference: Vector,
    ) -> list[Vector]:
        """Return the columns of the same time on the last days."""
        same = deviations.at(latest - self._back)
        return [
            same[0],
            mean(same[:LATEST_DAYS]),
            mean(same),
            deviations.means(*self._around(latest, origins)),
            days[0] - reference,
            median(days[:LATEST_DAYS]) - reference,
            median(days) - reference,
        ]

    @cached_property
    def _back(self) -> Steps:
        """Return the steps of the last days before the latest one, (7, 1)."""
        return np.rint(self.unit * np.arange(DAYS)).astype(np.int64)[:, None]

    def _around(self, steps: Steps, origins: Steps) -> tuple[Steps, Steps]:
        """Return the spans from an hour before to an hour after some steps, up to the origins."""
        return steps - self.hour, np.minimum(steps + self.hour, origins) + 1

    def _season(self, origins: Steps) -> tuple[Steps, Steps]:
        """Return the spans of the season that ends at each origin."""
        return origins + 1 - round(self.season), origins + 1

    def _special_days(
        self,
        past: Past,
        special: SpecialDays,
        days: Steps,
        origins: Steps,
        leads: Steps,
        reference: Vector,
    ) -> list[Vector]:
        """Return the columns of what happened on the same date a year ago."""
        change, strength = special.a_year_ago(days)
        if not strength.any():
            return [np.zeros(len(days))] * SPECIAL
        later = np.rint(days_to_sunday(days) * self.season / 7)
        sundays, _ = _ago(past, origins, leads, self.season, SEASONS, later.astype(np.int64))
        to_sunday = median(sundays) - reference
        share = np.clip((np.abs(strength) - 2) / 2, 0.0, 1.0)
        quiet = share * (strength < 0)
        return [
            reference * change,
            reference * change * share,
            to_sunday * quiet,
            to_sunday * quiet * np.clip(-strength / 6, 0.0, 1.5),
        ]


def _ago(
    past: Past, origins: Steps, leads: Steps, period: float, count: int, later: Steps | int = 0
) -> tuple[Matrix, Steps]:
    """Return the readings at the same time of the last seasons, (count, n), and their steps.

    They are the last ones that are known at the origins; NaN where there is no trusted reading.
    `later` steps after the same time are looked at instead.
    """
    first = np.maximum(np.ceil((leads + later) / period), 1.0)
    back = np.rint(period * (first + np.arange(count)[:, None])).astype(np.int64) - later
    at = past.ago(origins + leads, back)
    usable = past.timeline.trusted(at) & (at <= origins)
    return np.where(usable, past.timeline.values(at), np.nan), at


def _latest(past: Past, origins: Steps, leads: Steps, period: float) -> Steps:
    """Return the last steps at the same time of a season that are not after the origins."""
    first = np.ceil(leads / period)
    at, before = (
        past.ago(origins + leads, np.rint(period * each).astype(np.int64))
        for each in (first, first + 1)
    )
    return np.where(at > origins, before, at)  # clocks may have gone forward in between


def median(values: Matrix) -> Vector:
    """Return the median of each column, without NaN; NaN for a column without numbers.

    >>> median(np.array([[1.0, np.nan], [4.0, np.nan], [2.0, np.nan], [np.nan, np.nan]]))
    array([ 2., nan])
    """
    ordered = np.sort(values, axis=0)  # NaN comes last
    known = np.add.reduce(~np.isnan(values), axis=0)
    low, high = (np.maximum(known - 1, 0) // 2)[None], (known // 2)[None]
    both = np.take_along_axis(ordered, low, 0) + np.take_along_axis(
        ordered, np.minimum(high, len(values) - 1), 0
    )
    return np.where(known > 0, both[0] / 2, np.nan)


def mean(values: Matrix) -> Vector:
    """Return the mean of each column, without NaN; NaN for a column without numbers.

    >>> mean(np.array([[1.0, np.nan], [4.0, np.nan]]))
    array([2.5, nan])
    """
    known = ~np.isnan(values)
    count = np.add.reduce(known, axis=0)
    sums = np.add.reduce(np.where(known, values, 0.0), axis=0)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)
