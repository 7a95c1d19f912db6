"""A sensor's readings on a regular grid, with counts of what was wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.series.clock import AnyClock, IndexClock, Steps, Times
from streamridge.series.readings import index_of, require_kind
from streamridge.series.writing import AS_IS, Writing


@dataclass(frozen=True)
class Counts:
    """The number of readings of a series, and of each problem met with them.

    Parameters
    ----------
    readings
        All readings.
    skipped
        Cells without a number or a time.
    imputed
        Values that the source had filled in.
    duplicates
        Readings equal to another one at the same step.
    conflicts
        Readings that differ from another one at the same step; the first is kept, or the first
        whose stamp is exactly that of the step.
    off_grid
        Stamps between two steps; they are moved to the nearest.
    out_of_order
        Readings older than one that came before them.
    nonexistent
        Local times that clocks skip.
    partial
        Bins that miss some readings; with at least half of them they are scaled up, else a gap.
    rate_changes
        How often the time between readings changes.
    binned
        Readings that come at no rate, from which the values of steps are made.
    missing
        Steps without a value.
    """

    readings: int = 0
    skipped: int = 0
    imputed: int = 0
    duplicates: int = 0
    conflicts: int = 0
    off_grid: int = 0
    out_of_order: int = 0
    nonexistent: int = 0
    partial: int = 0
    rate_changes: int = 0
    binned: int = 0
    missing: int = 0

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
        What converts steps to times.
    start
        The step of the first value.
    values
        (T,), NaN where there is no value.
    extras
        Columns known in advance, (T,) each.
    counts
        The problems met with its readings.
    known_at
        (T,), the step at which each value was known, if readings are taken as they arrived: later
        than its own step for one that came late. By default all came in time.
    writing
        How the times of its readings were written, in which those of forecasts are given back.
    """

    sensor: str
    clock: AnyClock
    start: int
    values: Vector
    extras: Mapping[str, Vector] = field(default_factory=dict)
    counts: Counts = Counts()
    writing: Writing = AS_IS
    known_at: Steps | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def times(self) -> Times:
        """Return the time of every value, shape (T,)."""
        return self.clock.times(self.start + np.arange(len(self)))

    @property
    def local_times(self) -> Times:
        """Return the local time of every value, shape (T,)."""
        steps = self.start + np.arange(len(self))
        return self.clock.times(steps + self.clock.shifts(steps))

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
        start = self.start + begin
        return replace(
            self, start=start, values=self.values[part], extras=extras, known_at=known_at
        )


def span_text(first: np.datetime64 | None, last: np.datetime64 | None) -> str:
    """Return the ends of a span of time in words; an end that is None is left out.

    Examples
    --------
    >>> span_text(np.datetime64("2021-06-13"), None), span_text(None, None)
    (' from 2021-06-13', '')
    """
    ends = (("from", first), ("to", last))
    return "".join(f" {word} {end}" for word, end in ends if end is not None)
