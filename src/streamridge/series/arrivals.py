"""Readings in the order in which they arrived, as a live stream would have brought them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamridge.series.clock import DAY, Steps, amount
from streamridge.series.own_step import SECOND, counted, distances
from streamridge.series.rates import JITTER, WINDOW
from streamridge.series.readings import Readings, index_of
from streamridge.series.series import Series

# The step is found from so many days of a stream, or from so many of its first readings.
FIRST_DAYS, FIRST_READINGS = 3, 4 * WINDOW


def first_days(readings: Readings) -> Readings:
    """Return the readings that arrived up to the first one of the fourth day."""
    times = counted(readings, readings.times)
    later = np.flatnonzero(times - times[0] >= FIRST_DAYS * amount(DAY) * SECOND)
    early = slice(0, max(int(later[0]) if later.size else len(times), FIRST_READINGS))
    extras = {name: column[early] for name, column in readings.extras.items()}
    return replace(
        readings, times=readings.times[early], values=readings.values[early], extras=extras
    )


def arrivals(series: Series, readings: Readings) -> Steps:
    """Return the step at which each value of a series was known, shape (T,).

    A reading arrives together with the newest one before it. A step that is made of several
    readings is known once the last of them is there; else the first reading of its value counts.

    Parameters
    ----------
    series
        The readings on a grid.
    readings
        In the order in which they arrived.
    """
    times = index_of(readings.times) if readings.indexed else readings.times
    clock = series.clock
    steps = clock.steps(times)
    units = amount(clock.step) * (1 if readings.indexed else SECOND)
    apart = distances(readings)
    several = bool(apart.size and np.median(apart) < (1 - JITTER) * units)
    if several:
        steps = steps - (clock.times(steps) > times)
    newest, at = np.maximum.accumulate(steps), steps - series.start
    own = series.start + np.arange(len(series))
    counts = (at >= 0) & (at < len(series)) & ~np.isnan(readings.values)
    counts[counts] &= several | (readings.values[counts] == series.values[at[counts]])
    never = np.iinfo(np.int64).max
    known = np.full(len(series), 0 if several else never)
    (np.maximum if several else np.minimum).at(known, at[counts], newest[counts])
    return np.maximum(own, np.where(known == never, own, known))
