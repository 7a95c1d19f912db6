"""Time zones: exact offsets from UTC, and local times that occur twice or not at all."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, shown
from streamridge.series.times import Steps, Times

Fold = Literal["infer", "first", "second"]

# Offsets are looked up for 8 days at a time and cached. All are in seconds.
_DAY, PERIOD = 86_400, 8 * 86_400
# Between these moments, no offset leads outside the calendar of Python.
_FIRST, _LAST = -62_135_000_000, 253_402_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_zone(tz: str | None) -> ZoneInfo | None:
    """Return the time zone of that name; raise if there is none."""
    if tz is None:
        return None
    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInputError(
            f"tz must be the name of a time zone such as Europe/London, got {shown(tz)}."
        ) from None


def known_zone(name: str | None) -> str | None:
    """Return the name of a zone if it is in the time zone database; otherwise None.

    >>> known_zone("Europe/Berlin"), known_zone("+02:00")
    ('Europe/Berlin', None)
    """
    try:
        return None if parse_zone(name) is None else name
    except InvalidInputError:
        return None


def zone_of(time: object) -> str | None:
    """Return the name of the zone that a datetime carries, None if it carries none."""
    tzinfo = getattr(time, "tzinfo", None)
    # Zones of Python have their name in `key`, zones of pytz in `zone`.
    named = getattr(tzinfo, "key", None) or getattr(tzinfo, "zone", None)
    return known_zone(named) if isinstance(named, str) else None


def offset_at(moment: int, zone: ZoneInfo) -> int:
    """Return by how many seconds a zone is ahead of UTC at a moment, in seconds since 1970."""
    starts, offsets = offsets_in(moment // PERIOD, zone)
    return offsets[bisect_right(starts, moment) - 1]


def offsets_at(moments: Steps, zone: ZoneInfo) -> Steps:
    """Return by how many seconds a zone is ahead of UTC at each moment, in seconds since 1970.

    >>> start = np.datetime64("2010-03-14T03:31", "s").astype(np.int64)  # 00:01 local time
    >>> offsets_at(start + np.array([-1, 0]), ZoneInfo("America/St_Johns")) / 3600
    array([-3.5, -2.5])
    """
    if not moments.size:
        return np.zeros_like(moments)
    periods = moments // PERIOD
    first = int(periods.min())
    touched = np.flatnonzero(np.bincount((periods - first).ravel()))
    found = [offsets_in(first + at, zone) for at in touched.tolist()]
    starts = np.concatenate([each for each, _ in found])
    offsets = np.concatenate([each for _, each in found])
    return offsets[np.searchsorted(starts, moments, side="right") - 1]


@lru_cache(maxsize=512)
def offsets_in(period: int, zone: ZoneInfo) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the moments from which an offset holds in a period, and these offsets, in seconds.

    The zone is looked up once a day, since zones keep an offset for some days at least. Where two
    days differ, the second of the change is found by bisection.
    """
    begin = period * PERIOD
    starts, offsets = [begin], [_offset(begin, zone)]
    for day in range(begin, begin + PERIOD, _DAY):
        before, after = offsets[-1], _offset(day + _DAY, zone)
        if before != after:
            starts.append(_change(day, before, zone))
            offsets.append(after)
    return tuple(starts), tuple(offsets)


def to_utc(times: Times, zone: ZoneInfo, fold: Fold = "infer") -> tuple[Times, Mask]:
    """Return local times in UTC, and which of them exist.

    The fold says how to read a time that occurs twice when clocks go back: as the "first", as the
    "second", or "infer", which takes its first occurrence in the data as the first.

    >>> times = np.array(["2023-10-29T02:30", "2023-10-29T02:30", "2023-03-26T02:30"], "M8[us]")
    >>> to_utc(times, ZoneInfo("Europe/Berlin"))[0].astype("M8[m]")[:2]
    array(['2023-10-29T00:30', '2023-10-29T01:30'], dtype='datetime64[m]')
    >>> to_utc(times, ZoneInfo("Europe/Berlin"))[1]
    array([ True,  True, False])
    """
    seen: set[datetime] = set()
    utc, exists = [], []
    for local in times.astype("M8[us]").tolist():
        candidates = utc_candidates(local, zone)
        again = fold == "second" or (fold == "infer" and local in seen)
        if len(candidates) > 1:
            seen.add(local)
        utc.append(candidates[-1 if again else 0] if candidates else local)
        exists.append(bool(candidates))
    return np.array(utc, dtype="M8[us]"), np.array(exists, dtype=bool)


def utc_candidates(local: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return the moments of a local time in UTC: one, two when clocks go back, or none.

    >>> berlin = ZoneInfo("Europe/Berlin")
    >>> [str(moment) for moment in utc_candidates(datetime(2023, 10, 29, 2, 30), berlin)]
    ['2023-10-29 00:30:00', '2023-10-29 01:30:00']
    >>> utc_candidates(datetime(2023, 3, 26, 2, 30), berlin)
    ()
    """
    if not 1 < local.year < 9999:  # an offset could lead outside the calendar
        return ()
    first, second = (
        local.replace(tzinfo=zone, fold=fold).astimezone(UTC).replace(tzinfo=None)
        for fold in (0, 1)
    )
    if first == second:
        return (first,)
    return (first, second) if first < second else ()


def _change(day: int, before: int, zone: ZoneInfo) -> int:
    """Return the first second after a day's start at which an offset no longer holds."""
    moments = range(day, day + _DAY + 1)
    return moments[bisect_right(moments, False, key=lambda at: _offset(at, zone) != before)]


def _offset(moment: int, zone: ZoneInfo) -> int:
    utc = _EPOCH + timedelta(seconds=min(max(moment, _FIRST), _LAST))
    return (utc.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(seconds=1)
