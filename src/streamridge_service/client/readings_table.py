"""The readings of several sensors, by step, ready to be sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from streamridge import Series
from streamridge.errors import InvalidInputError, listed, option
from streamridge_service.limits import LARGEST, NAME_RULE, SENSOR_NAME

is_name = re.compile(SENSOR_NAME).fullmatch
# Earlier than any reading.
NEVER = -(1 << 62)

# Sensor, time in microseconds since 1970, and value.
SensorReading = tuple[str, int, float]


@dataclass(frozen=True)
class ReadingsTable:
    """The readings of all sensors of one step."""

    names: Sequence[str]
    # The step and the time of the first step, in microseconds.
    step: int
    first: int
    offsets: Sequence[int]  # the difference of each sensor's times to the times of the steps
    values: Any  # (sensors, steps), NaN for missing readings

    @classmethod
    def of(cls, series: Iterable[Series]) -> list[ReadingsTable]:
        """Return the readings of series, a table for each step; times are in UTC or a zone."""
        every = list(series)
        _require_names(every)
        by_step: dict[int, list[Series]] = {}
        for each in every:
            by_step.setdefault(_step(each), []).append(each)
        return [cls._of_one_step(alike, step) for step, alike in sorted(by_step.items())]

    @classmethod
    def _of_one_step(cls, every: list[Series], step: int) -> ReadingsTable:
        starts = [_start(each) for each in every]
        first = min(starts) // step * step
        end = max(start + len(each) * step for start, each in zip(starts, every, strict=True))
        values = np.full((len(every), -(-(end - first) // step)), np.nan)
        for row, start, each in zip(values, starts, every, strict=True):
            at = (start - first) // step
            row[at : at + len(each)] = each.values
        offsets = [(start - first) % step for start in starts]
        return cls([each.sensor for each in every], step, first, offsets, values)

    @property
    def last(self) -> int:
        """Return the time of the last step."""
        return self.first + (int(self.values.shape[1]) - 1) * self.step

    def by_step(self, newest: Mapping[str, int]) -> Iterator[tuple[int, list[SensorReading]]]:
        """Yield each step with its readings that are newer than `newest` of their sensor."""
        after = [newest.get(name, NEVER) for name in self.names]
        for at in range(self.values.shape[1]):
            time, column = self.first + at * self.step, self.values[:, at].tolist()
            yield (
                time,
                [
                    (name, time + offset, value)
                    for name, offset, value, known in zip(
                        self.names, self.offsets, column, after, strict=True
                    )
                    if value == value and time + offset > known
                ],
            )

    def by_sensor(self) -> Iterator[list[SensorReading]]:
        """Yield the readings of each sensor."""
        for name, offset, row in zip(self.names, self.offsets, self.values, strict=True):
            known = np.flatnonzero(~np.isnan(row))
            times = (self.first + offset + known * self.step).tolist()
            yield [
                (name, time, value) for time, value in zip(times, row[known].tolist(), strict=True)
            ]

    def count(self, newest: Mapping[str, int]) -> int:
        """Return the number of readings that are newer than `newest` of their sensor."""
        total = int((~np.isnan(self.values)).sum())
        return total - sum(len(times) for times in self.skipped(newest).values())

    def skipped(self, newest: Mapping[str, int]) -> dict[str, list[int]]:
        """Return the times of readings that are not newer than `newest`, by sensor if any."""
        found = {}
        for name, offset, row in zip(self.names, self.offsets, self.values, strict=True):
            first = self.first + offset
            end = min(max((newest.get(name, NEVER) - first) // self.step + 1, 0), len(row))
            times = first + np.flatnonzero(~np.isnan(row[:end])) * self.step
            if len(times):
                found[name] = times.tolist()
        return found

    @property
    def too_large(self) -> int:
        """Return the number of values that a service refuses as too large."""
        return int((np.abs(self.values) > LARGEST).sum())


def _require_names(every: Sequence[Series]) -> None:
    """Raise unless a service accepts the names of all sensors."""
    wrong = [each.sensor for each in every if not is_name(each.sensor)]
    if wrong:
        raise InvalidInputError(
            f"sensor names must be {NAME_RULE}, got {listed(wrong)}. Rename these columns."
        )


def _start(series: Series) -> int:
    """Return the first time in microseconds since 1970; raise unless it is known in UTC."""
    if not series.time_format.zoned and series.clock.zone is None:
        raise InvalidInputError(
            f"{series.sensor}: times must have an offset from UTC, or a zone, got neither. "
            f"Pass {option('tz', 'UTC')}, or the zone they are local to."
        )
    return int(series.times[0].astype("M8[us]").astype(np.int64))


def _step(series: Series) -> int:
    """Return the step of a series in microseconds."""
    step = series.clock.step
    if not isinstance(step, timedelta):
        raise InvalidInputError(
            f"{series.sensor}: times must be dates, got whole numbers of an index."
        )
    return step // timedelta(microseconds=1)
