"""Readings of sensors from files, standard input and frames, as series on a regular grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from narwhals.dependencies import is_pandas_series

from streamridge.errors import InvalidInputError, listed, option, shown, visible, warn
from streamridge.files.calendar_columns import CONSTANT
from streamridge.files.collector import Collector
from streamridge.files.reading_arguments import ReadingArguments
from streamridge.files.reading_options import (
    OPTION_NAMES,
    ReadingOptions,
    reading_arguments,
    require_options,
)
from streamridge.files.source import SourceReader
from streamridge.series.lengths import step_name
from streamridge.series.series import Readings, Series
from streamridge.series.spans import parse_range
from streamridge.series.zones import parse_zone

# Why a sensor with one reading is left out.
ONE_READING = f"it has one reading. Pass {option('step', '15min')} to read it"


@dataclass(frozen=True)
class LeftOut:
    """A sensor that is not used, and why."""

    sensor: str
    reason: str
    series: Series | None = None  # the series of a column with one value, which may be a sensor

    def __str__(self) -> str:
        if ". " in self.reason:  # with a remedy
            return visible(f"{self.sensor}: left out, {self.reason}.")
        return visible(f"{self.sensor}: {self.reason}, left out")


@dataclass(frozen=True)
class ReadResult:
    """The series of all sensors that were read.

    Parameters
    ----------
    series
        The series by the name of their sensor, in the requested order or the order of the source.
    left_out
        Sensors without any value, and sensors whose readings make no series, with the reason.
    notes
        Decisions about formats that a user may want to check, such as the order of day and month.
    """

    series: Mapping[str, Series]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()


@reading_arguments()
def read(source: Any, **reading: Unpack[ReadingArguments]) -> ReadResult:
    """Return the series of every sensor in files or a frame, on a regular grid.

    A file is CSV, NDJSON or Parquet, packed with gzip or not; its content decides, not its name. A
    cell that is empty or says nan, NA, null or None is missing. The format of numbers and dates
    is decided by the whole column: where two formats remain, an error names the option to pass.

    Parameters
    ----------
    source
        A path, "-" for standard input, a DataFrame of pandas, polars or pyarrow, or a Series of
        pandas with a DatetimeIndex or a PeriodIndex. A list of these is joined in the order given.
        A `Series` or several are accepted as well. A dict of series names their sensors.
    reading
        The reading options: see `ReadingOptions`.

    Examples
    --------
    >>> import pandas as pd
    >>> flows = pd.DataFrame({"time": ["2021-06-13 08:00", "2021-06-13 08:15"], "ramp": [12, 7]})
    >>> read(flows).series["ramp"].values
    array([12.,  7.])
    """
    require_options("read", reading, OPTION_NAMES)
    return read_series(source, ReadingOptions.of(reading))


def read_series(source: Any, options: ReadingOptions) -> ReadResult:
    """Return the series of every sensor of a source; see `read`."""
    regular = _regular(source)
    if regular is not None:
        chosen = _of_series(regular, options)
        by_name = {each.sensor: each for each in chosen}
        if len(by_name) < len(chosen):
            times = Counter(each.sensor for each in chosen)
            repeated = [name for name in times if times[name] > 1]
            raise InvalidInputError(
                f"series must have distinct names, got {listed(repeated)} more than once."
            )
        return ReadResult(by_name)
    collector = read_readings(source, options)
    found, names = {}, collector.names
    left_out = [_no_sensor(collector, options, *each) for each in collector.left_out.items()]
    first_error: InvalidInputError | None = None
    for readings in map(collector.take, names):
        sensor = readings.sensor
        if np.isnan(readings.values).all():
            left_out.append(LeftOut(sensor, "no values"))
            continue
        try:
            found[sensor] = options.to_series(readings)
        except InvalidInputError as error:  # one sensor must not cost all others
            if sensor in options.sensor_names:
                raise
            first_error = first_error or error
            alone = options.step_of(sensor) is None and _has_one_reading(readings)
            reason = str(error).removeprefix(f"{sensor}: ").rstrip(".")
            left_out.append(LeftOut(sensor, ONE_READING if alone else reason))
    if first_error is not None and not found:
        raise first_error
    if not found:
        raise InvalidInputError(
            f"at least one sensor must have values, got none in {listed(names)}."
        )
    return ReadResult(found, tuple(left_out), tuple(collector.notes))


def _has_one_reading(readings: Readings) -> bool:
    """Return whether all values have the same time."""
    return len(set(readings.times[~np.isnan(readings.values)].tolist())) == 1


def _no_sensor(collector: Collector, options: ReadingOptions, sensor: str, reason: str) -> LeftOut:
    """Return a column that is left out, with its series if its value is constant."""
    if not reason.startswith(CONSTANT):
        return LeftOut(sensor, reason)
    try:
        return LeftOut(sensor, reason, options.to_series(collector.take(sensor)))
    except InvalidInputError:
        return LeftOut(sensor, reason)


def read_one_series(
    source: Any, options: ReadingOptions, choose: Callable[[Sequence[str]], str] | None = None
) -> Series:
    """Return the series of one sensor; see `read`.

    `choose` returns the sensor, given the names of all; by default there must be only one.
    """
    pick = choose or _only
    regular = _regular(source)
    if regular is None:
        return options.to_series(read_one_sensor(source, options, pick))
    chosen = {each.sensor: each for each in _of_series(regular, options)}
    return chosen[pick(list(chosen))]


def read_one_sensor(
    source: Any, options: ReadingOptions, choose: Callable[[Sequence[str]], str]
) -> Readings:
    """Return the readings of one sensor of a source, chosen among the names of all.

    Notes about the source, and columns that were left out, are warnings.
    """
    collector = read_readings(source, options)
    try:
        chosen = choose(collector.every_name)
    except InvalidInputError:
        if not collector.left_out:
            raise
        chosen = choose(collector.names)
        left_out = (LeftOut(*each) for each in collector.left_out.items())
        warn(map(str, left_out), RuntimeWarning)
    warn(collector.notes)
    return collector.take(chosen)


def read_readings(sources: Any, options: ReadingOptions) -> Collector:
    """Return the readings of all sensors of some sources; raise at anything that is wrong there.

    A file is read a second time if cells far below show that cells above were misread.
    """
    every = listed_sources(sources)
    if options.start_time is not None and len(every) > 1:
        raise InvalidInputError(
            f"{option('start_time')} must be left out with several sources, got {len(every)}. Join "
            "their rows first."
        )
    readers = [SourceReader(source, options) for source in every]
    collector = _collected(readers, options)
    if any([reader.must_be_reread() for reader in readers]):
        collector = _collected(readers, options)
    name = readers[0].name if len(readers) == 1 else f"all {len(readers)} sources together"
    collector.require_readings(name)
    collector.require_even_index(name)
    for reader in readers:
        reader.require_unambiguous()
    if not options.every_number_is_a_value:
        collector.require_no_markers()
    collector.leave_out_calendar()
    for reader in readers:
        for note in reader.notes():
            collector.note(note)
    return collector


def _collected(readers: Sequence[SourceReader], options: ReadingOptions) -> Collector:
    collector = Collector(options)
    for reader in readers:
        reader.read(collector)
    return collector


def listed_sources(given: Any) -> Sequence[Any]:
    """Return one source or several as a sequence; the keys of a dict name its series."""
    if isinstance(given, Mapping):
        return [_renamed(str(name), series) for name, series in given.items()]
    return given if isinstance(given, list | tuple) else [given]


def _renamed(name: str, series: Any) -> Any:
    """Return a series with the name of its sensor."""
    if isinstance(series, Series):
        return replace(series, sensor=name)
    if is_pandas_series(series):
        return series.rename(name)
    raise InvalidInputError(
        'sources must be a path, "-", a list of paths, or a DataFrame or Series of pandas, polars '
        f"or pyarrow, or a dict of Series with an index of times, got {shown(series)} for {name!r}."
    )


def _regular(source: Any) -> Sequence[Series] | None:
    """Return the series if these were given; None if the source has to be read."""
    every = listed_sources(source)
    return every if all(isinstance(each, Series) for each in every) else None


def _of_series(every: Sequence[Series], options: ReadingOptions) -> list[Series]:
    """Return the chosen sensors and times of series that are regular already."""
    if not every:
        raise InvalidInputError("series must hold at least one sensor, got none.")
    by_name = {each.sensor: each for each in every}
    for name in options.sensor_names:
        if name not in by_name:
            raise InvalidInputError(f"sensors must be among {listed(by_name)}, got {name!r}.")
    chosen = [by_name[name] for name in options.sensor_names] or every
    return [_within(each, options) for each in chosen]


def _within(series: Series, options: ReadingOptions) -> Series:
    step, own = options.step_of(series.sensor), series.clock.step
    if step not in (None, own):
        raise InvalidInputError(
            f"{series.sensor}: step must be the step of the series, "
            f"{step_name(own)}, got {step_name(step)}."
        )
    zone = parse_zone(options.tz) or series.clock.zone
    first, last = parse_range(options.from_, options.to, zone, series.time_format)
    return series if first is None and last is None else series.between(first, last)


def _only(names: Sequence[str]) -> str:
    """Return the only name; raise if there are several."""
    if len(names) > 1:
        raise InvalidInputError(
            f"sensor must be one of {listed(names)}, got none. Pass {option('sensor')}."
        )
    return names[0]
