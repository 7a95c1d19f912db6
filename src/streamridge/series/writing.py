"""How a sensor's times were written, so that they can be given back the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError
from streamridge.series.clock import EPOCH, HALF_HOUR, Steps, Times, parse_zone

# Seconds ahead of UTC, NaN for a time without an offset; (n,).
Offsets: TypeAlias = NDArray[np.float64]
# What frames count their times in.
Unit: TypeAlias = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True)
class Writing:
    """How times are written: without an offset, with one or several, or in a zone.

    Parameters
    ----------
    zoned
        Whether each time says its offset from UTC. Without, times are local where there is a zone,
        and else as they are.
    zone
        The name of the zone that times are local to, if it is known.
    offsets
        Without a zone: moments in microseconds since 1970, and the seconds ahead of UTC that times
        have from there on. The first offset also holds before.
    unit
        What the column of a frame counts in.

    Examples
    --------
    >>> noon = np.array(["2023-06-13T12:00"], "M8[us]")
    >>> Writing(zoned=True, zone="Europe/Berlin").texts(noon)
    ['2023-06-13T14:00:00+02:00']
    >>> Writing(zone="Europe/Berlin").texts(noon), Writing().texts(noon)
    (['2023-06-13T14:00:00'], ['2023-06-13T12:00:00'])
    """

    zoned: bool = False
    zone: str | None = None
    offsets: tuple[tuple[int, int], ...] = ()
    unit: Unit = "us"

    @classmethod
    def of(cls, times: Times, offsets: Offsets, zone: str | None, unit: Unit = "us") -> Writing:
        """Return how times in UTC were written, given the offset of each; at least one time."""
        if zone is not None:
            return cls(zoned=True, zone=zone, unit=unit)
        order = np.argsort(times, kind="stable")
        ahead = offsets[order].astype(np.int64)
        changes = np.flatnonzero(np.diff(ahead, prepend=ahead[0] - 1))
        moments = times[order][changes].astype(np.int64)
        pairs = zip(moments.tolist(), ahead[changes].tolist(), strict=True)
        return cls(zoned=True, offsets=tuple(pairs), unit=unit)

    @property
    def name(self) -> str | None:
        """Return the zone in words, None where times have neither an offset nor a zone.

        Examples
        --------
        >>> Writing(zoned=True, offsets=((0, 7200),)).name, Writing(zone="Europe/Berlin").name
        ('UTC+02:00', 'Europe/Berlin')
        """
        if self.zone is not None or not self.zoned:
            return self.zone
        return " and ".join(_zone_name(seconds) for seconds in sorted(self._distinct))

    @property
    def column_zone(self) -> str | None:
        """Return the one zone of a frame's column; UTC where offsets differ, None without any."""
        if not self.zoned or self.zone is not None:
            return self.zone if self.zoned else None
        [*distinct] = self._distinct
        return _offset_name(distinct[0]) if len(distinct) == 1 and distinct[0] else "UTC"

    def ahead(self, times: Times) -> Steps:
        """Return by how many seconds written times are ahead of UTC, shape (n,)."""
        if self.zone is not None:
            return _ahead(times, ZoneInfo(self.zone))
        if not self.offsets:
            return np.zeros(len(times), dtype=np.int64)
        since, seconds = np.array(self.offsets).T
        at = np.searchsorted(since, times.astype("M8[us]").astype(np.int64), side="right") - 1
        return seconds[np.maximum(at, 0)]

    def on_the_clock(self, times: Times) -> Times:
        """Return times as a clock on the wall shows them, without their offsets."""
        if times.dtype.kind != "M" or not (self.zone or self.offsets):
            return times
        return times + self.ahead(times) * np.timedelta64(1, "s")

    def stamps(self, times: Times) -> list[Any]:
        """Return times as Python's own; with their zone or offset if they were written with one."""
        if times.dtype.kind != "M":
            return times.tolist()
        shown = self.on_the_clock(times).astype("M8[us]").tolist()
        if not self.zoned:
            return shown
        if self.zone is not None:
            zone = ZoneInfo(self.zone)
            utc = times.astype("M8[us]").tolist()
            return [each.replace(tzinfo=UTC).astimezone(zone) for each in utc]
        ahead = self.ahead(times).tolist()
        return [
            each.replace(tzinfo=timezone(timedelta(seconds=seconds)))
            for each, seconds in zip(shown, ahead, strict=True)
        ]

    def texts(self, times: Times, timespec: str = "seconds") -> list[str]:
        """Return times as text in ISO 8601; whole numbers of an index as they are."""
        if times.dtype.kind != "M":
            return [str(time) for time in times.tolist()]
        return [
            "" if each is None else each.isoformat(timespec=timespec) for each in self.stamps(times)
        ]

    def plain(self) -> dict[str, Any]:
        """Return the writing as plain JSON, for `from_plain`."""
        return {
            "zoned": self.zoned,
            "zone": self.zone,
            "offsets": [list(pair) for pair in self.offsets],
            "unit": self.unit,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any] | None) -> Writing:
        """Return the writing that `plain` was called on; None stands for times as they are."""
        if plain is None:
            return cls()
        offsets = tuple((int(since), int(seconds)) for since, seconds in plain["offsets"])
        return cls(bool(plain["zoned"]), plain["zone"], offsets, plain["unit"])

    @property
    def _distinct(self) -> set[int]:
        return {seconds for _, seconds in self.offsets}


# Times without an offset and without a zone.
AS_IS = Writing()


@dataclass(frozen=True)
class ZonedTimes:
    """A column of times with their zone, which NumPy's arrays cannot carry.

    Parameters
    ----------
    utc
        (n,), in UTC.
    writing
        How they are written.
    """

    utc: Times
    writing: Writing

    def __len__(self) -> int:
        return len(self.utc)

    def __getitem__(self, rows: slice) -> ZonedTimes:
        return ZonedTimes(self.utc[rows], self.writing)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Times:
        return np.array(self.utc, dtype=dtype, copy=bool(copy))

    def texts(self) -> list[str]:
        """Return the times as text, with their offsets."""
        return self.writing.texts(self.utc)


def time_columns(utc: Times, writing: Writing) -> dict[str, Times | ZonedTimes]:
    """Return times as the column "time" of a table, written as they came in.

    Local times without an offset occur twice when clocks are set back, so that a column "utc" tells
    them apart.

    Parameters
    ----------
    utc
        (n,), in UTC where there is a zone or an offset; or whole numbers.
    writing
        How they are written.
    """
    if utc.dtype.kind != "M":
        return {"time": utc}
    counted = utc.astype(f"M8[{writing.unit}]")
    if writing.zoned:
        return {"time": ZonedTimes(counted, writing)}
    if writing.zone is None:
        return {"time": counted}
    in_utc = Writing(zoned=True, zone="UTC")
    return {"time": writing.on_the_clock(counted), "utc": ZonedTimes(counted, in_utc)}


def known_zone(name: str | None) -> str | None:
    """Return the name of a zone if it is one that times can be converted to; else None.

    Examples
    --------
    >>> known_zone("Europe/Berlin"), known_zone("+02:00")
    ('Europe/Berlin', None)
    """
    try:
        return None if parse_zone(name) is None else name
    except InvalidInputError:
        return None


def zone_of(time: object) -> str | None:
    """Return the name of the zone that a datetime carries, if it carries one by name."""
    tzinfo = getattr(time, "tzinfo", None)
    # Python's own zones say it as `key`, those of pytz as `zone`.
    named = getattr(tzinfo, "key", None) or getattr(tzinfo, "zone", None)
    return known_zone(named) if isinstance(named, str) else None


def _ahead(times: Times, zone: ZoneInfo) -> Steps:
    """Return by how many seconds a zone is ahead of UTC; zones change at half hours only."""
    halves, which = np.unique(
        (times - EPOCH) // np.timedelta64(HALF_HOUR, "s"), return_inverse=True
    )
    starts = (EPOCH + halves * np.timedelta64(HALF_HOUR, "s")).tolist()
    return np.array([_seconds(start, zone) for start in starts], dtype=np.int64)[which]


def _seconds(utc: datetime | None, zone: ZoneInfo) -> int:
    if utc is None:
        return 0
    offset = utc.replace(tzinfo=UTC).astimezone(zone).utcoffset() or timedelta(0)
    return offset // timedelta(seconds=1)


def _offset_name(seconds: int) -> str:
    """Return an offset as text, such as +02:00."""
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _zone_name(seconds: int) -> str:
    return f"UTC{_offset_name(seconds)}" if seconds else "UTC"
