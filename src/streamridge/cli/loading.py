"""From the files and flags of a command to regular series, with what was wrong said on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
from rich.console import Console

from streamridge.cli.outcome import in_words
from streamridge.errors import InvalidInputError
from streamridge.files.blocks import Gap
from streamridge.files.reading import Layout, read_readings
from streamridge.series.clock import parse_step, parse_zone, step_name
from streamridge.series.grid import to_series
from streamridge.series.local_time import Fold, moments
from streamridge.series.readings import Aggregate, Readings, parse_time
from streamridge.series.series import Series


@dataclass(frozen=True)
class Selection:
    """Says what to read, and how it becomes a series; each part is the flag of that name."""

    files: list[str]
    sensors: list[str] | None = None
    layout: Layout | None = None
    extras: tuple[str, ...] = ()
    gap: Gap = "error"
    step: str | None = None
    tz: str | None = None
    fold: Fold = "infer"
    aggregate: Aggregate | None = None
    first: str | None = None
    last: str | None = None

    def series(self, console: Console) -> list[Series]:
        """Return the series of every sensor that has readings, and say what was wrong."""
        readings = read_readings(
            self.files,
            sensors=self.sensors,
            layout=self.layout,
            extras=self.extras,
            gap=self.gap,
        )
        loaded = [self._regular(each) for each in readings if self._has_values(each, console)]
        if not loaded:
            raise InvalidInputError("the files must hold a value of some sensor, got none.")
        for series in loaded:
            console.print(_described(series), highlight=False, markup=False)
        return loaded

    def _has_values(self, readings: Readings, console: Console) -> bool:
        if np.isnan(readings.values).all():
            console.print(f"{readings.sensor}: no values, left out", markup=False)
            return False
        return True

    def _regular(self, readings: Readings) -> Series:
        zone = parse_zone(self.tz)
        return to_series(
            readings,
            step=None if self.step is None else parse_step(self.step),
            zone=zone,
            fold=self.fold,
            aggregate=self.aggregate,
            skip=self.gap == "skip",
            first=_moment(self.first, zone),
            last=_moment(self.last, zone),
        )


def _moment(text: str | None, zone: ZoneInfo | None) -> np.datetime64 | None:
    """Return a time that a flag gives, in UTC where the sensor has a zone."""
    if text is None:
        return None
    time, zoned = parse_time(text)
    if zone is None or zoned:
        return time
    local = time.astype(datetime)
    return np.datetime64((moments(local, zone) or (local,))[0], "us")


def _described(series: Series) -> str:
    begin, end = series.times[[0, -1]].astype("M8[m]")
    counts = replace(series.counts, readings=0).found()
    wrong = f"; {in_words(counts)}" if counts else ""
    return (
        f"{series.sensor}: {len(series)} steps of {step_name(series.clock.step)}, "
        f"{begin} to {end}{wrong}"
    )
