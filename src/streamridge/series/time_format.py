"""The format of a sensor's times, in which its forecasts are written as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, timedelta, timezone
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from streamridge.series.times import EPOCH, Steps, Times
from streamridge.series.zone_inference import zone_of_offsets
from streamridge.series.zones import offsets_at

# Seconds ahead of UTC, NaN for a time without an offset; (n,).
Offsets: TypeAlias = NDArray[np.float64]
# The units in which frames count times.
Unit: TypeAlias = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True)
class TimeFormat:
    """The format of times: without an offset, with one or several offsets, or in a zone.

    >>> noon = np.array(["2023-06-13T12:00"], "M8[us]")
    >>> TimeFormat(zoned=True, zone="Europe/Berlin").texts(noon)
    ['2023-06-13T14:00:00+02:00']
    >>> TimeFormat(zone="Europe/Berlin").texts(noon), TimeFormat().texts(noon)
    (['2023-06-13T14:00:00'], ['2023-06-13T12:00:00'])
    """

    zoned: bool = False  # whether each time has an offset from UTC
    zone: str | None = None  # the name of the zone that times are local to, if it is known
    # Times without a named zone: moments in microseconds since 1970, and the seconds ahead of UTC
    # from there on. The first also holds before. If there is a zone as well, it was inferred.
    offsets: tuple[tuple[int, int], ...] = ()
    unit: Unit = "us"  # the unit in which the column of a frame counts

    @classmethod
    def of(cls, times: Times, offsets: Offsets, zone: str | None, unit: Unit = "us") -> TimeFormat:
        """Return the format of times in UTC, at least one, given the offset of each."""
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
        """Return the zone in words, None if times have neither an offset nor a zone.

        >>> TimeFormat(zoned=True, offsets=((0, 7200),)).name, TimeFormat(zone="Europe/Berlin").name
        ('UTC+02:00', 'Europe/Berlin')
        """
        if not self.offsets:
            return self.zone
        return " and ".join(
            f"UTC{_offset_name(seconds) if seconds else ''}" for seconds in sorted(self._distinct)
        )

    @property
    def column_zone(self) -> str | None:
        """Return the zone of a frame's column; UTC if offsets differ, None without any."""
        if not self.zoned or not self.offsets:
            return (self.zone or "UTC") if self.zoned else None
        [*distinct] = self._distinct
        return _offset_name(distinct[0]) if len(distinct) == 1 and distinct[0] else "UTC"

    def offsets_at(self, times: Times) -> Steps:
        """Return the seconds that each written time is ahead of UTC, shape (n,)."""
        if self.zone is not None:
            known = ~np.isnat(times)
            seconds = np.where(known, times, EPOCH).astype("M8[s]").astype(np.int64)
            return np.where(known, offsets_at(seconds, ZoneInfo(self.zone)), 0)
        if not self.offsets:
            return np.zeros(len(times), dtype=np.int64)
        since, seconds = np.array(self.offsets).T
        at = np.searchsorted(since, times.astype("M8[us]").astype(np.int64), side="right") - 1
        return seconds[np.maximum(at, 0)]

    def local(self, times: Times) -> Times:
        """Return the local times, without their offsets."""
        if times.dtype.kind != "M" or not (self.zone or self.offsets):
            return times
        return times + self.offsets_at(times) * np.timedelta64(1, "s")

    def utc(self, local: Times) -> Times:
        """Return the moments of local times, the first of two in a zone.

        A local time that clocks skip is read with the offset before the change. Offsets without a
        zone change with a reading, so that the second of two moments is the one of the reading.
        """
        if not (self.zone or self.offsets):
            return local
        day, second = np.timedelta64(1, "D"), np.timedelta64(1, "s")
        earlier, later = (self.offsets_at(local + shift) for shift in (-day, day))
        by_earlier, by_later = local - earlier * second, local - later * second
        is_earlier = (self.zone is not None) & (self.offsets_at(by_earlier) == earlier)
        is_later = ~is_earlier & (self.offsets_at(by_later) == later)
        return np.where(is_later, by_later, by_earlier)

    def with_offset(self, since: np.datetime64, seconds: int) -> TimeFormat:
        """Return the format with an offset that holds from a moment on.

        Named zones stay as they are. An inferred zone with another offset there was wrong.
        """
        moment = int(since.astype("M8[us]").astype(np.int64))
        if not self.offsets or moment < self.offsets[-1][0]:
            return self
        if self.offsets_at(np.array([since]))[0] == seconds:
            return self
        return replace(self, zone=None, offsets=(*self.offsets, (moment, seconds)))

    def with_inferred_zone(self, times: Times) -> TimeFormat:
        """Return the format with the zone that its offsets at some times suggest, if they do."""
        if self.zone is not None or not self.has_changes:
            return self
        return replace(self, zone=zone_of_offsets(times, self.offsets_at(times)))

    @property
    def has_changes(self) -> bool:
        """Return whether offsets differ and no name of a zone was given."""
        return len(self._distinct) > 1

    @property
    def is_inferred(self) -> bool:
        """Return whether the zone was inferred from offsets that change."""
        return self.zone is not None and bool(self.offsets)

    def datetimes(self, times: Times) -> list[Any]:
        """Return times as datetimes, with a zone or offset if the format has one."""
        if times.dtype.kind != "M":
            return times.tolist()
        shown = self.local(times).astype("M8[us]").tolist()
        if not self.zoned:
            return shown
        if self.zone is not None:
            zone = ZoneInfo(self.zone)
            utc = times.astype("M8[us]").tolist()
            return [each.replace(tzinfo=UTC).astimezone(zone) for each in utc]
        ahead = self.offsets_at(times).tolist()
        return [
            each.replace(tzinfo=timezone(timedelta(seconds=seconds)))
            for each, seconds in zip(shown, ahead, strict=True)
        ]

    def texts(self, times: Times, timespec: str = "seconds") -> list[str]:
        """Return times as text in ISO 8601, and whole numbers of an index as text."""
        if times.dtype.kind != "M":
            return [str(time) for time in times.tolist()]
        known = self.datetimes(times)
        return ["" if each is None else each.isoformat(timespec=timespec) for each in known]

    def to_json(self) -> dict[str, Any]:
        """Return the format as plain JSON, for `from_json`."""
        return {
            "zoned": self.zoned,
            "zone": self.zone,
            "offsets": [list(pair) for pair in self.offsets],
            "unit": self.unit,
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any] | None) -> TimeFormat:
        """Return the format that `to_json` was called on; None stands for `NAIVE`."""
        if plain is None:
            return cls()
        offsets = tuple((int(since), int(seconds)) for since, seconds in plain["offsets"])
        return cls(bool(plain["zoned"]), plain["zone"], offsets, plain["unit"])

    @property
    def _distinct(self) -> set[int]:
        return {seconds for _, seconds in self.offsets}


# Times without an offset and without a zone.
NAIVE = TimeFormat()
# Times in UTC, written with this zone.
UTC_FORMAT = TimeFormat(zoned=True, zone="UTC")


@dataclass(frozen=True)
class ZonedTimes:
    """A column of times with their zone, which NumPy's arrays cannot carry."""

    utc: Times
    time_format: TimeFormat

    def __len__(self) -> int:
        return len(self.utc)

    def __getitem__(self, rows: slice) -> ZonedTimes:
        return ZonedTimes(self.utc[rows], self.time_format)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Times:
        return np.array(self.utc, dtype=dtype, copy=bool(copy))

    def texts(self) -> list[str]:
        """Return the times as text, with their offsets."""
        return self.time_format.texts(self.utc)


def time_columns(utc: Times, time_format: TimeFormat) -> dict[str, Times | ZonedTimes]:
    """Return times in UTC, or whole numbers, as the column "time" of a table, in their own format.

    Local times without an offset occur twice when clocks are set back. A column "utc" makes them
    distinct.
    """
    if utc.dtype.kind != "M":
        return {"time": utc}
    counted = utc.astype(f"M8[{time_format.unit}]")
    if time_format.zoned:
        return {"time": ZonedTimes(counted, time_format)}
    if time_format.zone is None:
        return {"time": counted}
    in_utc = TimeFormat(zoned=True, zone="UTC")
    return {"time": time_format.local(counted), "utc": ZonedTimes(counted, in_utc)}


def _offset_name(seconds: int) -> str:
    """Return an offset as text, such as +02:00."""
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
