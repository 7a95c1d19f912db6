"""Three simple forecasts of each of the next steps, from readings of earlier days and weeks.

They are the median of the last weeks at the same time, the same plus the deviation from it a day
ago, and the mean of the last days. Only trusted readings count. In the mean, the median replaces
missing days.
"""

from __future__ import annotations

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.features.base import Past
from streamridge.series.times import Steps

# The number of weeks that medians are taken of, the fewest that are enough, and the number of days
# that means are taken of.
WEEKS, LEAST_WEEKS, DAYS = 8, 3, 7
# Forecasts of up to this number of further steps are computed at once, which saves time.
FURTHER = 12


class SimpleForecasts:
    """The simple forecasts of L steps at a time, computed once for several steps.

    Parameters
    ----------
    seasons
        The day and the week, or two other seasons, in steps. They are longer than L steps.
    count
        L, the number of steps that are asked for.
    """

    def __init__(self, seasons: tuple[float, float], count: int) -> None:
        day, week = seasons
        weeks, days = week * np.arange(1, WEEKS + 1), day * np.arange(1, DAYS + 1)
        every = np.rint(np.concatenate((weeks, day + weeks, days)))
        self._back: Steps = every.astype(np.int64)
        self._count = count
        # Readings of the last half day must not matter: local time may shift by hours.
        further = min(FURTHER, int(day) // 2 - count)
        self._steps: Steps = np.arange(count + max(further, 0))[:, None]
        # The first step that is known, the revision of the timeline, and the forecasts.
        self._known: tuple[int, int, Matrix] = 0, -1, np.zeros((0, 3))

    def ahead(self, past: Past, step: int) -> Matrix:
        """Return the forecasts of L steps from a step on, (L, 3), NaN if too few weeks are known.

        All readings of the day before must be known.
        """
        first, revision, values = self._known
        start = step - first
        if revision != past.timeline.revision or not 0 <= start <= len(values) - self._count:
            start, values = 0, self._computed(past, step)
            self._known = step, past.timeline.revision, values
        return values[start : start + self._count]

    def _computed(self, past: Past, step: int) -> Matrix:
        """Return the forecasts of some steps from a step on."""
        # Of the weeks before each step, of the weeks before the day before it, and of the days.
        readings = past.timeline.trusted_values(past.ago(step + self._steps, self._back))
        weeks, days = readings[:, : 2 * WEEKS], readings[:, 2 * WEEKS :]
        usual, usual_yesterday = _medians(weeks.reshape(-1, WEEKS)).reshape(-1, 2).T
        deviations = np.nan_to_num(days[:, 0] - usual_yesterday)
        means = np.where(np.isnan(days), usual[:, None], days).mean(axis=1)
        means[np.isnan(usual)] = np.nan
        return np.column_stack((usual, usual + deviations, means))


def _medians(values: Matrix) -> Vector:
    """Return the median of the known values of each row, (n,); NaN if too few are known."""
    ordered = np.sort(values, axis=1)  # unknown values come last
    known, rows = (ordered == ordered).sum(axis=1), np.arange(len(values))
    middle = (ordered[rows, (known - 1) // 2] + ordered[rows, known // 2]) / 2
    return np.where(known < LEAST_WEEKS, np.nan, middle)
