"""Special days: dates on which a sensor was unlike the days around it, such as holidays.

A day is compared with the same weekday in the weeks before it. Days that were unusual a year ago
are likely to be unusual again: most holidays fall on the same date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_shape

# Days since 1970-01-01.
Days: TypeAlias = NDArray[np.int64]

YEAR, WEEK = 365, 7
# A day is compared with the median of this many weeks before it; fewer than half are too few.
WEEKS = 8
# Days that are kept: a year, the steps ahead, and the weeks that the oldest are compared with.
KEPT = YEAR + 2 * WEEKS * WEEK
# Changes by which a day is usual are known after this many days.
LEAST_DAYS = 60
# The smallest change that counts as usual, and the largest change.
LEAST_CHANGE, MOST_CHANGE = 0.01, 3.0


def year_before(days: Days) -> Days:
    """Return the same dates a year before; 29 February is 1 March there.

    >>> days = np.array(["2024-02-28", "2024-12-25"], "M8[D]").astype(np.int64)
    >>> year_before(days).astype("M8[D]").astype(str).tolist()
    ['2023-02-28', '2023-12-25']
    """
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    return ((months - 12).astype("M8[D]") + (dates - months.astype("M8[D]"))).astype(np.int64)


def days_to_sunday(days: Days) -> Days:
    """Return the number of days to the Sunday of the same week; weeks begin on Monday.

    >>> days_to_sunday(np.array(["2024-12-25", "2024-12-29"], "M8[D]").astype(np.int64))
    array([4, 0])
    """
    return 6 - (days + 3) % WEEK  # 1970-01-01 was a Thursday


@dataclass(frozen=True)
class SpecialDays:
    """The mean values of the last days, and how unusual each day was.

    >>> means = np.tile([5.0, 5, 5, 5, 5, 2, 1], 57)
    >>> means[20] = 4.0
    >>> days = SpecialDays(newest=398, means=means)
    """

    newest: int = 0  # the last day
    # (n,), the mean value of each day; NaN for a day without any.
    means: Vector = field(default_factory=lambda: np.empty(0))

    def after(self, day: int, mean: float) -> SpecialDays:
        """Return the days with another one, whose mean is NaN if there was no reading."""
        skipped = day - self.newest - 1 if len(self.means) else 0
        gap = np.full(min(max(skipped, 0), KEPT), np.nan)
        return SpecialDays(day, np.concatenate([self.means, gap, [mean]])[-KEPT:])

    def a_year_ago(self, days: Days) -> tuple[Vector, Vector]:
        """Return the relative change of each date a year ago, and its strength.

        The strength is the change in units of the usual change. Both are zero where nothing is
        known.
        """
        at = year_before(days) - (self.newest - len(self.means) + 1)
        known = (at >= 0) & (at < len(self.means))
        change = (
            np.where(known, self._changes[np.where(known, at, 0)], 0.0)
            if known.any()
            else (np.zeros(len(days)))
        )
        return change, change / self._usual

    @cached_property
    def _changes(self) -> Vector:
        """Return the relative change of each day from the same weekday before; zero if unknown."""
        means = self.means
        before = np.full((WEEKS, len(means)), np.nan)
        for week in range(WEEKS):
            back = WEEK * (week + 1)
            before[week, back:] = means[:-back]
        counts = (~np.isnan(before)).sum(axis=0)
        few = counts < WEEKS // 2
        typical = np.where(few, np.nan, np.nanmedian(np.where(few, 0.0, before), axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = means / typical - 1
        usable = np.isfinite(changes) & (typical > 0)
        return np.where(usable, np.clip(changes, -1.0, MOST_CHANGE), 0.0)

    @cached_property
    def _usual(self) -> float:
        """Return the usual size of a change; infinite while few days are known."""
        sizes = np.abs(self._changes[self._changes != 0])
        if len(sizes) < LEAST_DAYS:
            return np.inf
        return max(1.4826 * float(np.median(sizes)), LEAST_CHANGE)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return {"newest": np.array(self.newest), "means": self.means}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> SpecialDays:
        """Return the days with a saved state."""
        means = np.asarray(state["means"], dtype=np.float64)
        require_shape("means", means, (None,))
        return SpecialDays(int(state["newest"]), means)
