"""A sensor's readings as they came, and on a regular grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np

from streamridge.arrays import Mask, Vector, require_shape
from streamridge.errors import InvalidInputError, counted, counts_text
from streamridge.series.clock import AnyClock, Clock, IndexClock
from streamridge.series.lengths import step_name
from streamridge.series.time_format import NAIVE, TimeFormat
from streamridge.series.times import INDEX_END, Steps, Times, index_of, require_kind

Aggregate: TypeAlias = Literal["sum", "mean", "last"]
DIGEST_BYTES = 12


@dataclass(frozen=True)
class Readings:
    """The readings of one sensor, in the order of their source."""

    sensor: str
    times: Times  # (n,), datetime64[us]: local time as written, or UTC if they had an offset
    values: Vector  # (n,), NaN where there is no value
    time_format: TimeFormat = NAIVE  # whether times had an offset from UTC, and which
    extras: Mapping[str, Vector] = field(default_factory=dict)  # known in advance, (n,) each
    skipped: int = 0  # cells and rows that could not be read
    imputed: int = 0  # values that the publisher had filled in; missing here
    aggregate: Aggregate | None = None  # how readings combine, if the source determines it

    def __post_init__(self) -> None:
        if self.times.dtype != np.dtype("datetime64[us]"):
            raise InvalidInputError(f"times must be datetime64[us], got {self.times.dtype}.")
        require_shape("times", self.times, (None,))
        for name, column in {**self.extras, "values": self.values}.items():
            require_shape(name, column, self.times.shape)

    @property
    def indexed(self) -> bool:
        """Return whether the times are the whole numbers of an index."""
        return bool(len(self.times) and (self.times < INDEX_END).all())

    @property
    def moments(self) -> Steps:
        """Return the times in microseconds since 1970, or as the whole numbers of an index."""
        return index_of(self.times) if self.indexed else self.times.astype(np.int64)

    def part(self, rows: slice | Mask) -> Readings:
        """Return some of the readings."""
        extras = {name: column[rows] for name, column in self.extras.items()}
        return replace(self, times=self.times[rows], values=self.values[rows], extras=extras)


@dataclass(frozen=True)
class Counts:
    """The number of readings of a series, and of each problem met with them."""

    readings: int = 0
    skipped: int = 0  # cells without a number or a time
    imputed: int = 0  # values that the source had filled in
    duplicates: int = 0  # equal to another one at the same step
    conflicts: int = 0  # differ from another one at the same step, of which the first is used
    off_grid: int = 0  # stamps between two steps, moved to the nearest
    out_of_order: int = 0  # older than a reading that came before them
    nonexistent: int = 0  # local times that clocks skip
    # bins with missing readings; half of the readings are scaled up, fewer are a gap
    partial: int = 0
    rate_changes: int = 0  # changes of the time between readings
    binned: int = 0  # irregular readings, from which the values of steps are made
    missing: int = 0  # steps without a value

    def found(self) -> dict[str, int]:
        """Return the counts that are not zero."""
        return {name: count for name, count in asdict(self).items() if count}


@dataclass(frozen=True)
class Series:
    """The readings of a sensor on a regular grid.

    Parameters
    ----------
    sensor
        Its name.
    clock
        The clock that converts steps to times.
    start
        The step of the first value.
    values
        (T,), NaN where there is no value.
    extras
        Columns known in advance, (T,) each.
    counts
        The problems met with its readings.
    upcoming
        The same columns at the steps after the last value, as far as they are known.
    known_at
        (T,), the step at which each value was known, if the order of arrival counts. It is later
        than the value's own step for a late reading. By default all readings came in time.
    time_format
        The format of the times of its readings, which forecasts use as well.
    """

    sensor: str
    clock: AnyClock
    start: int
    values: Vector
    extras: Mapping[str, Vector] = field(default_factory=dict)
    counts: Counts = Counts()
    time_format: TimeFormat = NAIVE
    known_at: Steps | None = None
    upcoming: Mapping[str, Vector] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        begin, end = self.time_format.texts(self.times[[0, -1]], "minutes")
        problems = counts_text(replace(self.counts, readings=0).found())
        return (
            f"{self.sensor}: {counted(len(self), 'step')} of {step_name(self.clock.step)}, "
            f"{begin} to {end}{f'; {problems}' if problems else ''}"
        )

    @property
    def times(self) -> Times:
        """Return the time of every value, shape (T,)."""
        return self.clock.times(self.start + np.arange(len(self)))

    @property
    def local_times(self) -> Times:
        """Return the local time of every value, shape (T,)."""
        if isinstance(self.clock, Clock) and self.clock.follows_calendar:
            return self.clock.calendar.local(self.times)
        steps = self.start + np.arange(len(self))
        return self.clock.times(steps + self.clock.shifts(steps))

    @property
    def digest(self) -> str:
        """Return a short text that identifies the content: times as written, and every value."""
        content = blake2b(digest_size=DIGEST_BYTES)
        content.update(np.ascontiguousarray(self.values).tobytes())
        content.update(f"{self.times[0]} {self.clock.step}".encode())
        if self.clock.zone is not None:
            content.update(self.clock.zone.key.encode())
        if self.time_format.zoned:
            content.update(repr(self.time_format).encode())
        if self.known_at is not None:
            content.update(self.known_at.tobytes())
        for name, column in self.extras.items():
            content.update(name.encode())
            content.update(np.ascontiguousarray(column).tobytes())
        for column in self.upcoming.values():
            content.update(np.ascontiguousarray(column).tobytes())
        return content.hexdigest()

    def between(self, first: np.datetime64 | None, last: np.datetime64 | None) -> Series:
        """Return the part from `first` up to and including `last`."""
        indexed = isinstance(self.clock, IndexClock)
        for bound in (first, last):
            require_kind(self.sensor, bound, indexed=indexed)
        if indexed:
            first, last = (None if each is None else index_of(each) for each in (first, last))
        times = self.times
        begin = 0 if first is None else int(np.searchsorted(times, first))
        end = len(self) if last is None else int(np.searchsorted(times, last, side="right"))
        if end <= begin:
            raise InvalidInputError(
                f"{self.sensor}: the series{span_text(first, last)} must hold at least one step, "
                f"got none. It runs from {times[0]} to {times[-1]}."
            )
        part = slice(begin, end)
        extras = {name: column[part] for name, column in self.extras.items()}
        known_at = None if self.known_at is None else self.known_at[part]
        upcoming = {
            name: np.concatenate([column[end:], self.upcoming.get(name, ())])
            for name, column in self.extras.items()
        }
        return replace(
            self,
            start=self.start + begin,
            values=self.values[part],
            extras=extras,
            known_at=known_at,
            upcoming=upcoming,
        )


def datetimes_of(series: Series, times: Times | Steps) -> list[Any]:
    """Return times of a series in their own format, which a forecaster accepts; never ambiguous."""
    zone = series.clock.zone
    if zone is None or series.time_format.zoned:
        return series.time_format.datetimes(times)
    return TimeFormat(zoned=True, zone=zone.key).datetimes(times)


def span_text(first: np.datetime64 | None, last: np.datetime64 | None) -> str:
    """Return the ends of a span of time in words; an end that is None is left out.

    >>> span_text(np.datetime64("2021-06-13"), None), span_text(None, None)
    (' from 2021-06-13', '')
    """
    ends = (("from", first), ("to", last))
    return "".join(f" {word} {end}" for word, end in ends if end is not None)
