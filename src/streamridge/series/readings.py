"""The readings of one sensor, and the one place where times are parsed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypeAlias

import numpy as np

from streamridge.arrays import Vector, require_shape
from streamridge.errors import InvalidInputError, shown
from streamridge.series.clock import Times
from streamridge.series.writing import AS_IS, Offsets, Unit, Writing, known_zone

Aggregate: TypeAlias = Literal["sum", "mean", "last"]

A_TIME = "an ISO 8601 time such as 2021-06-13T08:15"
PEMS_TIME = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d)", re.ASCII)
# fromisoformat accepts any character between date and time: 2021061312345 would be 23:45.
_ISO_TIME = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{8})(?:[Tt ].+)?", re.ASCII)
_END_OF_DAY = re.compile(r"(?<=[Tt ])24(?=:00(?::00(?:\.0+)?)?(?![:.\d]))", re.ASCII)

# A whole number that stands for a time counts units of an index. It is kept as microseconds after
# the first moment of the calendar, where no reading has ever been.
_INDEX = re.compile(r"\d{1,7}", re.ASCII)
INDEX_ORIGIN = np.datetime64("0001-01-01T00:00:00", "us")
INDEX_END = INDEX_ORIGIN + np.timedelta64(10**7, "us")


@dataclass(frozen=True)
class Readings:
    """The readings of one sensor, in the order of their source.

    Parameters
    ----------
    sensor
        Its name.
    times
        (n,), datetime64[us]: local time as written, or UTC if they had an offset.
    values
        (n,), NaN where there is no value.
    writing
        How the times were written: whether they had an offset from UTC, and which.
    extras
        (n,) each, columns that are known in advance, by name.
    skipped
        Number of cells and rows left out because they could not be read.
    imputed
        Number of values that the publisher had filled in; they are missing here.
    aggregate
        How readings combine into one of a longer step, if the source says so.
    """

    sensor: str
    times: Times
    values: Vector
    writing: Writing = AS_IS
    extras: Mapping[str, Vector] = field(default_factory=dict)
    skipped: int = 0
    imputed: int = 0
    aggregate: Aggregate | None = None

    def __post_init__(self) -> None:
        if self.times.dtype != np.dtype("datetime64[us]"):
            raise InvalidInputError(f"times must be datetime64[us], got {self.times.dtype}.")
        require_shape("times", self.times, (None,))
        for name, column in {**self.extras, "values": self.values}.items():
            require_shape(name, column, self.times.shape)

    @property
    def zoned(self) -> bool:
        """Return whether the times had an offset from UTC."""
        return self.writing.zoned

    @property
    def indexed(self) -> bool:
        """Return whether the times are whole numbers, which count units of an index."""
        return bool(len(self.times) and (self.times < INDEX_END).all())


@dataclass(frozen=True)
class Piece:
    """The readings of a sensor in one part of a source, with the offset from UTC of each time.

    Where the times are a column of a frame, `zone` is the name of its zone, and `unit` what it
    counts in.
    """

    sensor: str
    times: Times
    offsets: Offsets
    values: Vector
    extras: Mapping[str, Vector]
    skipped: int
    imputed: int = 0
    aggregate: Aggregate | None = None
    zone: str | None = None
    unit: Unit = "us"


def require_one_kind_of_time(sensor: str, zoned: Collection[bool]) -> None:
    """Raise if some times of a sensor have an offset and some have none."""
    if len(zoned) > 1:
        raise InvalidInputError(
            f"times of sensor {sensor!r} must all have an offset such as Z or +01:00, "
            "or all have none, got both."
        )


def join(pieces: Sequence[Piece]) -> Readings:
    """Return the readings of one sensor from one or more pieces."""
    first = pieces[0]
    times = np.concatenate([piece.times for piece in pieces])
    whole = times < INDEX_END  # as is the first midnight of the year 1
    if not whole.all() and (times[whole] > INDEX_ORIGIN).any():
        raise InvalidInputError(
            f"times of sensor {first.sensor!r} must all be dates or all be whole numbers, got both."
        )
    return Readings(
        first.sensor,
        times,
        np.concatenate([piece.values for piece in pieces]),
        _writing(pieces, times),
        {name: np.concatenate([piece.extras[name] for piece in pieces]) for name in first.extras},
        sum(piece.skipped for piece in pieces),
        sum(piece.imputed for piece in pieces),
        first.aggregate,
    )


def _writing(pieces: Sequence[Piece], times: Times) -> Writing:
    """Return how the times of some pieces are written; zones or units that differ are dropped."""
    offsets = np.concatenate([piece.offsets for piece in pieces])
    zoned = ~np.isnan(offsets)
    require_one_kind_of_time(pieces[0].sensor, set(zoned.tolist()))
    zones, units = {piece.zone for piece in pieces}, {piece.unit for piece in pieces}
    unit = units.pop() if len(units) == 1 else "us"
    if not zoned.any():
        return Writing(unit=unit)
    zone = known_zone(zones.pop()) if len(zones) == 1 else None
    return Writing.of(times, offsets, zone, unit)


def parse_time(time: object) -> tuple[np.datetime64, bool]:
    """Return a time in microseconds, and whether it had an offset; if so, it is now in UTC.

    See `parse_stamp`, which also tells the offset.

    Examples
    --------
    >>> parse_time("2021-06-13T08:15+01:00")
    (np.datetime64('2021-06-13T07:15:00.000000'), True)
    """
    stamp, offset = parse_stamp(time)
    return stamp, offset is not None


def parse_stamp(time: object) -> tuple[np.datetime64, int | None]:
    """Return a time in microseconds, and its offset in seconds; if it has one, it is now in UTC.

    Parameters
    ----------
    time
        Text in ISO 8601 or in Caltrans' form (06/13/2021 08:15:00), where 24:00 is the start of
        the next day; or a datetime, a date or a numpy.datetime64.

    Examples
    --------
    >>> parse_stamp("2021-06-13T08:15+01:00")
    (np.datetime64('2021-06-13T07:15:00.000000'), 3600)
    >>> parse_stamp("2021-06-13 24:00")
    (np.datetime64('2021-06-14T00:00:00.000000'), None)
    """
    try:
        return _stamp(_from_text(time) if isinstance(time, str) else time)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"time must be {A_TIME}, got {shown(time)}.") from None


def index_stamps(texts: Sequence[str | None]) -> Times | None:
    """Return whole numbers as the times that stand for them; None unless all texts are such."""
    written = [(text or "").strip() for text in texts]
    if not written or not all(map(_INDEX.fullmatch, written)):
        return None
    return INDEX_ORIGIN + np.array(written, dtype=np.int64) * np.timedelta64(1, "us")


def index_of(times: Any) -> Any:
    """Return the whole number that a time stands for, or those of an array."""
    return (times - INDEX_ORIGIN) // np.timedelta64(1, "us")


def require_kind(sensor: str, end: np.datetime64 | None, *, indexed: bool) -> None:
    """Raise unless the end of a span is a whole number where times are, and a time elsewhere."""
    if end is not None and (end < INDEX_END) != indexed:
        got = index_of(end) if end < INDEX_END else end
        wanted = "a whole number, as its times are" if indexed else A_TIME
        raise InvalidInputError(f"{sensor}: time must be {wanted}, got {got}.")


def in_microseconds(times: Times) -> Times:
    """Return the times as datetime64[us], NaT outside the years 1 to 9999."""
    years = times.astype("datetime64[Y]").astype(np.int64) + 1970
    within = (years >= 1) & (years <= 9999)
    return np.where(within, times, np.datetime64("NaT")).astype("datetime64[us]")


def _stamp(time: object) -> tuple[np.datetime64, int | None]:
    offset = time.utcoffset() if isinstance(time, datetime) else None
    if isinstance(time, datetime) and offset is not None:
        utc = np.datetime64(time.astimezone(UTC).replace(tzinfo=None), "us")
        return utc, offset // timedelta(seconds=1)
    if isinstance(time, date):
        return np.datetime64(time, "us"), None
    if isinstance(time, np.datetime64):
        [stamp] = in_microseconds(np.array([time]))
        if not np.isnat(stamp):
            return stamp, None
    raise ValueError(time)


def _from_text(text: str) -> datetime:
    written = text.strip()
    pems = PEMS_TIME.fullmatch(written)
    iso = "{2}-{0}-{1} {3}".format(*pems.groups()) if pems else written
    if not _ISO_TIME.fullmatch(iso):
        raise ValueError(text)
    iso, ends_the_day = _END_OF_DAY.subn("00", iso)
    return datetime.fromisoformat(iso) + timedelta(days=ends_the_day)
