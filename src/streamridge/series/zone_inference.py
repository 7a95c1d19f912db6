"""The time zone that offsets from UTC suggest, so that forecasts go on with its offsets.

Times such as 2021-03-28T00:00+01:00 name no zone. If their offsets change as the clocks of some
zones do, and all of these zones agree about the year after the last time, the offsets to come are
known. Otherwise nothing is assumed. Zones are compared once a day, or at the distance of the times
if that is longer.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from streamridge.series.times import Times

# Moments in seconds since 1970, and the seconds that local time is ahead of UTC there.
Evidence = tuple[tuple[int, int], ...]
# Times that are checked are at most this far apart, where there are times; a zone keeps an offset
# for some weeks at least. Zones must agree for a year. Both in days.
CHECKED, YEAR = 7, 366
# The zone that stands for others with the same offsets, if it is among them.
KNOWN = (
    "Europe/London",
    "Europe/Berlin",
    "Europe/Athens",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "Australia/Sydney",
)
_DAY = 86_400


def zone_of_offsets(times: Times, offsets: Times) -> str | None:
    """Return a zone whose offsets are the given ones, in seconds; None if they leave doubt.

    Offsets that never change fit too many zones.

    >>> days = np.array(["2021-03-26T23:00", "2021-03-27T23:00", "2021-03-28T22:00"], "M8[us]")
    >>> zone_of_offsets(days, np.array([3600, 3600, 7200]))
    'Europe/Berlin'
    """
    order = np.argsort(times, kind="stable")
    seconds, ahead = times[order].astype("M8[s]").astype(np.int64), offsets[order]
    changes = np.flatnonzero(np.diff(ahead))
    if not len(changes):
        return None
    weeks = np.flatnonzero(np.diff(seconds // (CHECKED * _DAY)))
    at = np.unique(np.concatenate([changes, changes + 1, weeks, [0, len(seconds) - 1]]))
    apart = max(_DAY, int(np.median(np.diff(seconds))))
    return _zone(tuple(zip(seconds[at].tolist(), ahead[at].tolist(), strict=True)), apart)


@lru_cache(maxsize=64)
def _zone(evidence: Evidence, apart: int) -> str | None:
    """Return the zone that fits all of the evidence; None if there is none or they disagree."""
    names = sorted(available_timezones())
    for moment, offset in evidence:
        names = [name for name in names if _offset(moment, name) == offset]
    last = evidence[-1][0]
    later = range(last, last + YEAR * _DAY, apart)
    if len({tuple(_offset(moment, name) for moment in later) for name in names}) != 1:
        return None
    return next((name for name in KNOWN if name in names), names[0])


def _offset(moment: int, name: str) -> int:
    """Return by how many seconds a zone is ahead of UTC at a moment, in seconds since 1970."""
    local = datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(name))
    return (local.utcoffset() or timedelta(0)) // timedelta(seconds=1)
