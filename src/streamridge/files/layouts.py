"""Layouts: how the rows and columns of a raw table belong to sensors.

Station files of Caltrans PeMS have a row for every station and five minutes, and no header. Their
first twelve columns belong to the whole station, the others to its lanes. Where too few samples
arrived, PeMS fills in a value of its own; the column `observed` is the share that was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, listed, option
from streamridge.files.collector import Collector
from streamridge.files.date_formats import YEAR_AND_MONTH
from streamridge.files.raw_table import RawTable
from streamridge.files.reading_options import Layout, ReadingOptions
from streamridge.series.times import INDEX_END, PEMS_TIME

SENSOR = ("unique_id", "sensor", "sensor_id", "station", "station_id", "detector", "detector_id")
# The last is the name that pandas gives to an index without a name in Parquet.
TIME = ("time", "timestamp", "ds", "date", "datetime", "date_time", "__index_level_0__")
HOURS = ("hour", "hr", "hour_ending", "hour_beginning", "he")
# Columns next to whole times that are no sensors, unless the user names them.
NO_SENSORS = (*HOURS, "timeofday", "time_of_day", "% observed", "# lane points")
VALUE = ("y", "value", "flow", "count", "volume", "traffic_volume")
PEMS_COLUMNS = (
    *("time", "station", "district", "freeway", "direction", "lane_type", "length", "samples"),
    *("observed", "flow", "occupancy", "speed"),
)
# The least share in percent that must have been measured. PeMS filled in the other flows.
LEAST_OBSERVED = 50.0
# Each column that is read from Parquet takes a page of memory, often 1 MB.
SENSORS_TOGETHER = 32
# Names of the hours or times of a day, such as h1, 00:15, 0015, 12 AM or 00:00-01:00.
_HOUR_NAME = re.compile(
    r"(?:h|hr|hour|he)?[ _]?(?:(?P<hour>\d{1,2})(?:h|:(?P<minute>[0-5]\d)(?::00)?)?"
    r"|(?P<hour_before>\d\d)(?P<minute_after>[0-5]\d))"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: ?(?:-|\u2013|to) ?\d{1,2}(?::?[0-5]\d)*(?: ?[ap]\.?m\.?)?)?",
    re.ASCII,
)
MINUTES_OF_A_DAY = 24 * 60


def layout_of(table: RawTable, options: ReadingOptions) -> Layout:
    """Return how a table is laid out, by the options and the names of its columns."""
    if options.id is not None:
        return "long"
    if _is_pems(table):
        return "pems"
    sensor = table.find(SENSOR)
    timed = table.time is not None and not table.guessed and options.start_time is None
    if sensor is None or not timed:
        return "wide"
    others = [name for name in table.columns if name and name not in (sensor, table.time)]
    valued = options.value or table.find(VALUE) or len(others) == 1
    return "long" if valued else "wide"


def is_station_row(cells: Sequence[str]) -> bool:
    """Return whether these cells look like a row of a station file."""
    return len(cells) >= len(PEMS_COLUMNS) and PEMS_TIME.fullmatch(cells[0]) is not None


def add_wide(table: RawTable, collector: Collector) -> None:
    """Add the readings of a table with a column of times and a column for each sensor.

    A column without a name is no sensor.
    """
    time, sensors = _wide_columns(table, collector)
    if collector.options.layout is None and len(table.places):
        _require_no_row_per_day(table, time, sensors)
    collector.add_names(sensors, table.ragged)
    for name in filter(collector.wants, sensors):
        _add(table, collector, name, slice(None), time, name)


def add_long(table: RawTable, collector: Collector, observed: str | None = None) -> None:
    """Add the readings of a table with a row for each reading: sensor, time and value.

    `observed` is the column with the share of a value that was measured, if there is one.
    """
    options = collector.options
    sensor = table.require("id", options.id) if options.id else _require_one(table, SENSOR)
    time = table.time or _require_one(table, TIME)
    _require_columns(table, collector.extras)
    value = _value_column(table, options, (sensor, time, *collector.extras))
    if observed is None:
        _note_other_values(table, collector, (sensor, time, value, *collector.extras))
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(table.columns[sensor].texts):
        rows_of.setdefault((name or "").strip(), []).append(row)
    unnamed = rows_of.pop("", [])
    if unnamed:
        table.refuse(unnamed[0], sensor, "the name of a sensor")
    collector.add_names(rows_of, table.ragged + len(unnamed))
    for name, rows in rows_of.items():
        if collector.wants(name):
            _add(table, collector, name, np.array(rows), time, value, observed)


def add_pems(table: RawTable, collector: Collector) -> None:
    """Add the total flows of the stations of a Caltrans file."""
    if not _is_pems(table):
        raise InvalidInputError(
            f"{table.origin.name} must be a PeMS station file, with rows such as "
            f"06/13/2021 08:15:00,716078,7,..., got columns {listed(table.columns)}."
        )
    add_long(table, collector, observed="observed")


# How the rows of each layout are added to a collector.
LAYOUTS: Mapping[Layout, Callable[[RawTable, Collector], None]] = {
    "wide": add_wide,
    "long": add_long,
    "pems": add_pems,
}


def wide_groups(table: RawTable, collector: Collector) -> list[tuple[str, ...]]:
    """Return the columns of a wide table in groups: the time, the extras and some sensors each.

    A group takes less memory than all columns of a file that is stored column by column.
    """
    time, sensors = _wide_columns(table, collector)
    starts = range(0, len(sensors), SENSORS_TOGETHER)
    shared = tuple(dict.fromkeys((time, *collector.extras)))
    return [(*shared, *sensors[start : start + SENSORS_TOGETHER]) for start in starts]


def _is_pems(table: RawTable) -> bool:
    return tuple(table.columns)[: len(PEMS_COLUMNS)] == PEMS_COLUMNS


def _wide_columns(table: RawTable, collector: Collector) -> tuple[str, list[str]]:
    """Return the column of times and the columns of sensors."""
    time, options = table.time or next(iter(table.columns), ""), collector.options
    _require_columns(table, collector.extras)
    others = [name for name in table.columns if name and name not in (time, *collector.extras)]
    if options.value is not None:
        return time, [table.require("value", options.value)]
    asked = {name for name in others if name in collector.wanted}
    sensors = [name for name in others if name in asked or name.lower() not in NO_SENSORS]
    measured = [name for name in sensors if name in asked or not table.columns[name].is_time]
    sensors = measured or sensors  # of which the first is refused as no number
    _note_left_out(table, collector, [name for name in others if name not in sensors])
    if not sensors:
        text = table.origin.unit == "line"
        between = " Put a comma, a semicolon, a tab or | between columns." if text else ""
        raise InvalidInputError(
            f"{table.origin.name} must have a time column and a column for each sensor, "
            f"got {listed(table.columns)}.{between}"
        )
    return time, sensors


def _note_left_out(table: RawTable, collector: Collector, names: Sequence[str]) -> None:
    if names and not collector.wanted:
        collector.note(
            f"{table.origin.name}: {_columns_text(names)} left out. "
            f"Pass {option('sensor', names[0])} to read it"
        )


def _note_other_values(table: RawTable, collector: Collector, used: Sequence[str]) -> None:
    """Note the other columns of a long table that hold numbers."""
    others = [
        name
        for name, column in table.columns.items()
        if name and name not in used and column.holds_numbers
    ]
    if others:
        collector.note(
            f"{table.origin.name}: column {used[2]!r} is read, {_columns_text(others)} left out. "
            f"Pass {option('value', others[0])} to read that one"
        )


def _columns_text(names: Sequence[str]) -> str:
    return f"columns {listed(names)} are" if len(names) > 1 else f"column {names[0]!r} is"


def _value_column(table: RawTable, options: ReadingOptions, used: Sequence[str]) -> str:
    """Return the column of values: the requested one, one with such a name, or the only other."""
    if options.value is not None:
        return table.require("value", options.value)
    others = [name for name in table.columns if name and name not in used]
    named = table.find(VALUE)
    if named is None and len(others) == 1:
        return others[0]
    if named is None:
        raise InvalidInputError(
            f"{table.origin.name} must have a column named one of {listed(VALUE)}, "
            f"got {listed(table.columns)}. Pass {option('value')} with the name of the column."
        )
    return named


def _require_no_row_per_day(table: RawTable, time: str, sensors: Sequence[str]) -> None:
    """Raise if each row is a day and the columns are its hours."""
    minutes = {name: _minute_of_day(name) for name in sensors}
    of_day = [each for each in minutes.values() if each is not None]
    apart = set(np.diff(of_day).tolist())
    if len(apart) != 1 or len(of_day) * min(apart) < MINUTES_OF_A_DAY:
        return
    stamps = table.columns[time].times[0]
    whole_days = stamps == stamps.astype("M8[D]")
    if whole_days.all() and (stamps >= INDEX_END).all() and max(of_day) <= MINUTES_OF_A_DAY:
        hours = [name for name in sensors if minutes[name] is not None]
        others = [name for name in table.columns if name and name not in hours]
        raise InvalidInputError(
            f"{table.origin.name} must have a row for each reading, got a row for each day and a "
            f"column for each hour, {hours[0]!r} to {hours[-1]!r}. Rewrite it, for example with "
            f"pandas: frame.melt({others}), and add the hour of each row to its date. Pass "
            f"{option('layout', 'wide')} if these columns are sensors."
        )


def _minute_of_day(name: str) -> int | None:
    """Return the minute of the day that a column is named after, None for another name.

    >>> [_minute_of_day(name) for name in ("h1", "00:15", "0030", "12 AM", "1:00-2:00", "ramp")]
    [60, 15, 30, 0, 60, None]
    """
    found = _HOUR_NAME.fullmatch(name.strip().lower())
    if found is None:
        return None
    hour = int(found["hour"] or found["hour_before"])
    if found["half"] is not None:
        hour = hour % 12 + 12 * (found["half"] == "p")
    return 60 * hour + int(found["minute"] or found["minute_after"] or 0)


def _add(
    table: RawTable,
    collector: Collector,
    sensor: str,
    rows: slice | NDArray[np.intp],
    time: str,
    value: str,
    observed: str | None = None,
) -> None:
    """Add some rows as readings of a sensor, except rows with a cell that cannot be read."""
    stamps, offsets = (cells[rows] for cells in table.columns[time].times)
    names = dict.fromkeys((value, *collector.extras, *([] if observed is None else [observed])))
    read = {name: table.columns[name].numbers[rows] for name in names}
    bad = {time: np.isnat(stamps)} | {name: np.isinf(column) for name, column in read.items()}
    left_out = np.logical_or.reduce(list(bad.values()))
    if left_out.any():
        first = int(left_out.argmax())
        column = next(name for name, mask in bad.items() if mask[first])
        refuse = table.refuse_time if column == time else table.refuse_number
        refuse(first if isinstance(rows, slice) else int(rows[first]), column)
        stamps, offsets = stamps[~left_out], offsets[~left_out]
        read = {name: column[~left_out] for name, column in read.items()}
    values, imputed = read[value], 0
    if observed is not None:
        filled_in = (read[observed] < LEAST_OBSERVED) & ~np.isnan(values)
        values, imputed = np.where(filled_in, np.nan, values), int(filled_in.sum())
    collector.add(
        sensor,
        stamps,
        offsets,
        values,
        [read[name] for name in collector.extras],
        skipped=int(left_out.sum()),
        imputed=imputed,
        aggregate=None if observed is None else "sum" if value == "flow" else "mean",
        guessed=table.guessed and table.columns[time].format.times.found != YEAR_AND_MONTH,
        wide=isinstance(rows, slice),
        zone=table.columns[time].zone,
        unit=table.columns[time].unit,
    )


def _require_one(table: RawTable, names: Sequence[str]) -> str:
    column = table.find(names)
    if column is None:
        raise InvalidInputError(
            f"{table.origin.name} must have a column named one of {listed(names)}, "
            f"got {listed(table.columns)}. Pass {option('id')} with the name of that column."
        )
    return column


def _require_columns(table: RawTable, names: Sequence[str]) -> None:
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise InvalidInputError(
            f"extras must be columns of {table.origin.name}, got {lacking[0]!r}. "
            f"It has {listed(table.columns)}."
        )
