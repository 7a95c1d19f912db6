"""What is taken of a source, and how it becomes regular series."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, listed, shown
from streamridge.files.blocks import Gap
from streamridge.files.dialect import Dialect, Missing
from streamridge.files.numbers import DecimalMark
from streamridge.files.reading import Layout
from streamridge.series.aggregate import coarser
from streamridge.series.clock import Length, amount, parse_step, parse_zone, step_name
from streamridge.series.grid import to_series
from streamridge.series.local_time import Fold
from streamridge.series.readings import Aggregate, Readings
from streamridge.series.series import Series
from streamridge.series.spans import span_to_take


@dataclass(frozen=True)
class Selection:
    """What to take of a source, and how it becomes series.

    Parameters
    ----------
    sensors
        Which ones, in this order; all by default.
    layout, extras, gap
        See `read_readings`.
    date_format, decimal, missing, encoding, largest
        How the source is written: see `Dialect`.
    step
        Time between readings; found by default.
    tz, fold
        Zone of local times, and which of two is meant where clocks are set back.
    aggregate
        How finer readings make a value of a step: "sum", "mean" or "last".
    from_, to
        The first and the last time to take; local times where there is a zone.
    arrival_order
        Whether readings are taken in the order of the source, as a live stream would bring them:
        what comes late is late, and the step is found from the first days alone.
    sum_to
        Finer readings are summed to steps of this length; longer steps stay as they are.
    """

    sensors: Sequence[str] | str | None = None
    layout: Layout | None = None
    extras: tuple[str, ...] = ()
    gap: Gap = "error"
    step: str | Length | None = None
    tz: str | None = None
    fold: Fold = "infer"
    aggregate: Aggregate | None = None
    from_: object = None
    to: object = None
    sum_to: Length | None = None
    arrival_order: bool = False
    date_format: str | None = None
    decimal: DecimalMark | None = None
    missing: Missing | None = ()
    encoding: str | None = None
    largest: int | str | None = None

    @property
    def dialect(self) -> Dialect:
        """Return how the source is written, as far as the user says so."""
        return Dialect(self.date_format, self.decimal, self.missing, self.encoding, self.largest)

    def of_readings(self, readings: Readings) -> Series:
        """Return what is selected of a sensor's readings, on a regular grid."""
        first, last = self._span()
        series = to_series(
            readings,
            step=self._length(),
            zone=parse_zone(self.tz),
            fold=self.fold,
            aggregate=self.aggregate,
            skip=self.gap == "skip",
            first=first,
            last=last,
            arrival_order=self.arrival_order,
        )
        return self._summed(series)

    def of_series(self, every: Sequence[Series]) -> list[Series]:
        """Return what is selected of series that are regular already."""
        return [self._within(each) for each in self._chosen(every)]

    def _chosen(self, every: Sequence[Series]) -> Sequence[Series]:
        if not every:
            raise InvalidInputError("series must hold at least one sensor, got none.")
        if not self.sensors:
            return every
        by_name = {each.sensor: each for each in every}
        asked = [self.sensors] if isinstance(self.sensors, str) else self.sensors
        for name in asked:
            if name not in by_name:
                raise InvalidInputError(f"sensors must be among {listed(by_name)}, got {name!r}.")
        return [by_name[name] for name in asked]

    def _within(self, series: Series) -> Series:
        step = self._length()
        if step not in (None, series.clock.step):
            raise InvalidInputError(
                f"{series.sensor}: step must be that of the series, "
                f"{step_name(series.clock.step)}, got {step_name(step)}."
            )
        first, last = self._span()
        part = series if first is None and last is None else series.between(first, last)
        return self._summed(part)

    def _summed(self, series: Series) -> Series:
        if self.sum_to is None or amount(series.clock.step) >= amount(self.sum_to):
            return series
        return coarser(series, self.sum_to, "sum")

    def _length(self) -> Length | None:
        return None if self.step is None else parse_step(self.step)

    def _span(self) -> tuple[np.datetime64 | None, np.datetime64 | None]:
        return span_to_take(self.from_, self.to, parse_zone(self.tz))


# The options of `replay` and `compare` that say what to read: its parts, and a name for one sensor.
SELECTING = ("sensor", *(part.name for part in fields(Selection) if part.name != "sum_to"))


def selection_of(options: Mapping[str, Any]) -> Selection:
    """Return the selection that some options make; one sensor may be named as `sensor`."""
    parts = dict(options)
    sensor = parts.pop("sensor", None)
    if sensor is None:
        return Selection(**parts)
    if parts.get("sensors"):
        raise InvalidInputError(f"sensor must be left out with sensors, got {shown(sensor)}.")
    return Selection(**{**parts, "sensors": [str(sensor)]})


def require_options(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise at an option that a function does not have."""
    for name in given:
        if name not in known:
            words = ", ".join(dict.fromkeys(known))
            raise InvalidInputError(
                f"{function} must be given options among {words}, got {name!r}."
            )
