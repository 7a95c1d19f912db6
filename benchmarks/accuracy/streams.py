"""The streams of files: what of each is lived through, what is scored, and what is not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.errors import InvalidInputError
from streamridge.files.reading import read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.series.lengths import DAY, Length, step_name
from streamridge.series.series import Series

# The name of a column that names nothing; its stream is called by its file.
UNNAMED = "value"
# Where steps are below a day, so many days at most are the warm-up, and as many are scored.
USUAL_DAYS = 60.0


@dataclass(frozen=True)
class Stream:
    """A series to forecast, of which the steps after the warm-up are scored.

    Parameters
    ----------
    name, group
        Of the stream, and of the file or the group of files that it belongs to.
    series
        The warm-up and the scored steps.
    flagged
        (T,), the steps that are not scored.
    warmup
        Steps before the first scored one.
    size
        Rows of a fit of LightGBM and of the paper's model; the default model has its own.
    """

    name: str
    group: str
    series: Series
    flagged: Mask
    warmup: int
    size: int

    @property
    def actual(self) -> Vector:
        """Return what the forecasts are held against, NaN where nothing is."""
        return np.where(self.flagged, np.nan, self.series.values)[self.warmup :]

    @property
    def day(self) -> int:
        """Return the steps of a day, 0 where steps are not shorter."""
        return round(days_in_steps(self.series.clock.step)) if is_below_a_day(self) else 0

    @cached_property
    def label(self) -> str:
        """Return a text that stands for the readings, the span, the warm-up and the size."""
        times, step = self.series.times, step_name(self.series.clock.step)
        span = f"{times[0]}/{times[-1]} {step} warmup={self.warmup} size={self.size}"
        content = self.series.values.tobytes() + self.flagged.tobytes()
        return f"{self.name} {span} {blake2b(content, digest_size=8).hexdigest()}"


@dataclass(frozen=True)
class Plan:
    """How much of a series is the warm-up, how much is scored, and how large a fit is.

    Parameters
    ----------
    warmup_days, days
        The longest warm-up, and the most days that are scored; by default 60 each where steps are
        below a day, and no limit where they are not.
    warmup_share
        The warm-up is at most this share of the series.
    train_size, train_days
        Rows of a fit of LightGBM and of the paper's model, or the days of these rows.
    """

    warmup_days: float | None = None
    days: float | None = None
    warmup_share: float = 0.5
    train_size: int = 2880
    train_days: float | None = None

    def applied(self, name: str, group: str, series: Series, flagged: Mask) -> Stream:
        """Return the stream that a series makes."""
        step = series.clock.step
        warmup = int(min(_steps(self.warmup_days, step), self.warmup_share * len(series)))
        end = int(min(warmup + _steps(self.days, step), len(series)))
        if not 0 < warmup < end:
            raise InvalidInputError(
                f"{name}: warmup must be 1 to {len(series) - 1} steps, got {warmup}. "
                "Pass another --warmup-days or --warmup-share."
            )
        size = self.train_size
        if self.train_days is not None:
            size = round(_steps(self.train_days, step))
        part = replace(series, values=series.values[:end])
        return Stream(name, group, part, flagged[:end], warmup, size)


def load(
    file: str,
    reading: ReadingOptions,
    plan: Plan,
    mask: str | None = None,
    group: str | None = None,
) -> list[Stream]:
    """Return the streams of a file, read and put on a grid as `streamridge replay` does it."""
    stem = Path(file).name.split(".")[0]
    flags = {} if mask is None else {each.sensor: each for each in _series(mask, reading)}
    streams = []
    for series in _series(file, reading):
        name = stem if series.sensor == UNNAMED else series.sensor
        flagged = _flagged(series, flags.get(series.sensor))
        streams.append(plan.applied(name, group or stem, series, flagged))
    return streams


def days_in_steps(step: Length) -> float:
    """Return the steps of a day; infinitely many for an index, which has none."""
    return np.inf if isinstance(step, int) else DAY / step


def is_below_a_day(stream: Stream) -> bool:
    """Return whether the steps of a stream are shorter than a day."""
    return 1 < days_in_steps(stream.series.clock.step) < np.inf


def _steps(days: float | None, step: Length) -> float:
    """Return some days in steps; where none are given, those that are usual."""
    if days is None:
        days = USUAL_DAYS if days_in_steps(step) > 1 else np.inf
    elif isinstance(step, int):
        raise InvalidInputError(
            f"days must be left out with an integer index, got {days:g}. "
            "Pass --warmup-share and --train-size."
        )
    return float(np.rint(days * days_in_steps(step)))


def _series(file: str, reading: ReadingOptions) -> list[Series]:
    return list(read_series(file, reading).series.values())


def _flagged(series: Series, flags: Series | None) -> Mask:
    """Return which steps another series marks by more than zero, shape (T,)."""
    if flags is None:
        return np.zeros(len(series), dtype=bool)
    return np.isin(series.times, flags.times[flags.values > 0])
