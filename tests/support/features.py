"""Seasonal features, and pasts to make rows of."""

from datetime import timedelta

import numpy as np

from streamridge import Profiles
from streamridge.features.base import Past
from streamridge.features.seasons import Season
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock
from streamridge.series.zones import parse_zone

BOUNDS = (0.01, 2.0)


def profiles(day=8, *, lags=16, week_lags=4, days=7, weeks=4, forgetting=0.0, **rest):
    """Return the features of a sensor with days and weeks."""
    seasons = (
        Season("day", day, days, lags, forgetting=forgetting, forgetting_bounds=BOUNDS),
        Season("week", 7 * day, weeks, week_lags, forgetting=forgetting, forgetting_bounds=BOUNDS),
    )
    return Profiles(seasons, **rest)


HOURLY = timedelta(hours=1)
# Some weeks before clocks go forward in Berlin, in hours since 1970.
SPRING = (np.datetime64("2021-02-10T00", "h") - np.datetime64("1970-01-01T00", "h")).astype(int)
AUTUMN = SPRING + 31 * 7 * 24


def past_of(seed, *, start=SPRING, zone=None, extras=0, count=1300, capacity=1200, holidays=None):
    """Return a past with gaps, readings that are not trusted, and unknown further columns."""
    rng = np.random.default_rng(seed)
    timeline = Timeline(extras)
    timeline.start_at(int(start))
    for value in rng.normal(100, 30, count) * 10.0 ** rng.integers(-6, 6, count):
        read = rng.random() < 0.97
        columns = rng.normal(size=extras) if rng.random() < 0.9 else None
        timeline.push(value, read=read, trusted=read and rng.random() < 0.97, extras=columns)
    timeline.forget_before(timeline.newest - capacity + 1)
    return Past(timeline, Clock(HOURLY, zone=parse_zone(zone), holidays=holidays))
