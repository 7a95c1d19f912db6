"""A sensor's readings on a regular grid, and what was wrong with them on the way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.series.clock import Clock, Times


@dataclass(frozen=True)
class Counts:
    """Counts what was not as it should be on the way from readings to a series.

    Parameters
    ----------
    readings
        All of them.
    skipped
        Cells that held no number, or no time.
    imputed
        Values that the source had made up.
    duplicates
        Readings that repeat one at the same step.
    conflicts
        Readings that differ from one at the same step; the first stays.
    off_grid
        Stamps between two steps; the nearest is taken.
    out_of_order
        Readings older than one before them.
    nonexistent
        Local times that clocks skip.
    partial
        Bins of which a part is missing; at least half is scaled up, less is a gap.
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
    missing: int = 0

    def found(self) -> dict[str, int]:
        """Return the counts that are not zero."""
        return {name: count for name, count in asdict(self).items() if count}


@dataclass(frozen=True)
class Series:
    """Is a sensor's readings on a regular grid.

    Parameters
    ----------
    sensor
        Its name.
    clock
        What a step is.
    start
        The step of the first value.
    values
        (T,), NaN where there is none.
    extras
        Columns known in advance, (T,) each.
    counts
        What was not as it should be.
    """

    sensor: str
    clock: Clock
    start: int
    values: Vector
    extras: Mapping[str, Vector] = field(default_factory=dict)
    counts: Counts = Counts()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def times(self) -> Times:
        """Return the time of every value, shape (T,)."""
        return self.clock.times(self.start + np.arange(len(self)))

    @property
    def local_times(self) -> Times:
        """Return the time of every value on the sensor's own clock, shape (T,)."""
        steps = self.start + np.arange(len(self))
        return self.clock.times(steps + self.clock.shifts(steps))

    def between(self, first: np.datetime64 | None, last: np.datetime64 | None) -> Series:
        """Return the part from `first` up to and including `last`."""
        times = self.times
        begin = 0 if first is None else int(np.searchsorted(times, first))
        end = len(self) if last is None else int(np.searchsorted(times, last, side="right"))
        if end <= begin:
            raise InvalidInputError(
                f"{self.sensor}: no step lies between {first} and {last}; "
                f"the series runs from {times[0]} to {times[-1]}."
            )
        part = slice(begin, end)
        extras = {name: column[part] for name, column in self.extras.items()}
        return replace(self, start=self.start + begin, values=self.values[part], extras=extras)
