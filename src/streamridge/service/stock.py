"""The readings of files, ready to be sent: step by step, or sensor by sensor."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, listed
from streamridge.runs.sources import Source
from streamridge.series.clock import step_name
from streamridge.texts import option

# The names that a service takes, and the largest size of a value. These are those of `rows`, which
# a machine that only sends cannot import.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
LARGEST = 1e6
# Before any reading.
NEVER = -(1 << 62)

# Sensor, time in microseconds since 1970, and value.
Reading = tuple[str, int, float]


@dataclass(frozen=True)
class Stock:
    """The readings of all sensors.

    Parameters
    ----------
    names
        The sensors.
    step, first
        Microseconds of a step, and since 1970 of the first one.
    phases
        By how much each sensor's times are after those of steps.
    values
        (sensors, steps), NaN where there is none; in a file, since it may be larger than memory.
    """

    names: Sequence[str]
    step: int
    first: int
    phases: Sequence[int]
    values: Any

    @property
    def last(self) -> int:
        """Return the time of the last step."""
        return self.first + (int(self.values.shape[1]) - 1) * self.step

    def steps(self, newest: Mapping[str, int]) -> Iterator[list[Reading]]:
        """Give the readings of each step that are newer than what is there already."""
        after = [newest.get(name, NEVER) for name in self.names]
        for at in range(self.values.shape[1]):
            time, column = self.first + at * self.step, self.values[:, at].tolist()
            yield [
                (name, time + phase, value)
                for name, phase, value, known in zip(
                    self.names, self.phases, column, after, strict=True
                )
                if value == value and time + phase > known
            ]

    def sensors(self) -> Iterator[list[Reading]]:
        """Give the readings of each sensor."""
        for name, phase, row in zip(self.names, self.phases, self.values, strict=True):
            known = np.flatnonzero(~np.isnan(row))
            times = (self.first + phase + known * self.step).tolist()
            yield [
                (name, time, value) for time, value in zip(times, row[known].tolist(), strict=True)
            ]

    def count(self, newest: Mapping[str, int]) -> int:
        """Return how many readings are newer than what is there already."""
        total = 0
        for name, phase, row in zip(self.names, self.phases, self.values, strict=True):
            behind = newest.get(name, NEVER) - self.first - phase
            begin = min(max(behind // self.step + 1, 0), len(row))
            total += int((~np.isnan(row[begin:])).sum())
        return total

    @property
    def too_large(self) -> int:
        """Return how many values are larger than any service takes."""
        return sum(int((np.abs(row) > LARGEST).sum()) for row in self.values)


@dataclass(frozen=True)
class _Span:
    """Where the readings of a source lie, in microseconds."""

    step: int
    start: int
    steps: int


@contextmanager
def stocked(sources: Iterable[Source]) -> Iterator[Stock]:
    """Give all readings of some sources, which must be of one step, and of known moments."""
    found = list(sources)
    _require_names(found)
    spans = [_span(source) for source in found]
    step = _one_step(found, spans)
    first = min(span.start for span in spans) // step * step
    end = max(span.start + span.steps * step for span in spans)
    with tempfile.TemporaryFile() as file:
        shape = len(found), -(-(end - first) // step)
        values = np.memmap(file, dtype=np.float64, mode="w+", shape=shape)
        for row, source, span in zip(values, found, spans, strict=True):
            at = (span.start - first) // step
            row[:] = np.nan
            row[at : at + span.steps] = source.load().values
        phases = [(span.start - first) % step for span in spans]
        yield Stock([source.sensor for source in found], step, first, phases, values)


def _require_names(sources: Sequence[Source]) -> None:
    """Raise unless a service takes the names of all sensors."""
    wrong = [source.sensor for source in sources if not NAME.fullmatch(source.sensor)]
    if wrong:
        raise InvalidInputError(
            "names of sensors must be up to 64 letters, digits and . _ : - and begin with a letter "
            f"or digit, got {listed(wrong)}. Rename these columns."
        )


def _span(source: Source) -> _Span:
    """Return where the readings of a source lie; raise unless their times are known moments."""
    if isinstance(source.step, int):
        raise InvalidInputError(
            f"{source.sensor}: times must be dates, got whole numbers of an index."
        )
    series = source.load()
    if not source.zoned and series.clock.zone is None:
        raise InvalidInputError(
            f"{source.sensor}: times must have an offset from UTC, or a zone, got neither. "
            f"Pass {option('tz', 'UTC')}, or the zone they are local to."
        )
    start = series.times[0].astype("M8[us]").astype(np.int64)
    return _Span(source.step // timedelta(microseconds=1), int(start), len(series))


def _one_step(sources: Sequence[Source], spans: Sequence[_Span]) -> int:
    """Return the step that all sources have; raise if there are several."""
    if len({span.step for span in spans}) > 1:
        names = sorted({step_name(source.step) for source in sources})
        raise InvalidInputError(
            f"all sensors must have one step, got {listed(names)}. Pass {option('step', names[0])}."
        )
    return spans[0].step
