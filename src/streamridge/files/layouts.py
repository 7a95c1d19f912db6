"""Layouts: how the rows and columns of a raw table belong to sensors.

Station files of Caltrans PeMS have a row for every station and five minutes, and no header. Their
first twelve columns belong to the whole station, the others to its lanes. Where too few samples
arrived, PeMS fills in a value of its own; the column `observed` is the share that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, listed
from streamridge.files.collector import Collector
from streamridge.files.raw_table import RawTable
from streamridge.files.reading_options import Layout
from streamridge.series.times import PEMS_TIME

SENSOR = ("unique_id", "sensor", "sensor_id", "station", "station_id", "detector", "detector_id")
# The last is the name that pandas gives to an index without a name in Parquet.
TIME = ("time", "timestamp", "ds", "date", "datetime", "date_time", "__index_level_0__")
# Hours next to whole times are no sensor, unless the user names them.
HOURS = ("hour", "hr", "hour_ending", "hour_beginning", "he")
VALUE = ("y", "value", "flow", "count", "volume", "traffic_volume")
PEMS_COLUMNS = (
    *("time", "station", "district", "freeway", "direction", "lane_type", "length", "samples"),
    *("observed", "flow", "occupancy", "speed"),
)
# The least share in percent that must have been measured. PeMS filled in the other flows.
LEAST_OBSERVED = 50.0
# Each column that is read from Parquet takes a page of memory, often 1 MB.
SENSORS_TOGETHER = 32


def layout_of(table: RawTable) -> Layout:
    """Return how a table is laid out, by the names of its columns."""
    if _is_pems(table):
        return "pems"
    timed = table.time is not None or table.find(TIME) is not None
    is_long = timed and all(table.find(names) is not None for names in (SENSOR, VALUE))
    return "long" if is_long else "wide"


def is_station_row(cells: Sequence[str]) -> bool:
    """Return whether these cells look like a row of a station file."""
    return len(cells) >= len(PEMS_COLUMNS) and PEMS_TIME.fullmatch(cells[0]) is not None


def add_wide(table: RawTable, collector: Collector) -> None:
    """Add the readings of a table with a column of times and a column for each sensor.

    The times are in the first column, unless another one has such a name. A column without a name
    is no sensor.
    """
    time, sensors = _wide_columns(table, collector)
    collector.add_names(sensors, table.ragged)
    for name in filter(collector.wants, sensors):
        _add(table, collector, name, slice(None), time, name)


def add_long(table: RawTable, collector: Collector, observed: str | None = None) -> None:
    """Add the readings of a table with a row for each reading: sensor, time and value.

    `observed` is the column with the share of a value that was measured, if there is one.
    """
    sensor, value = (_require_one(table, names) for names in (SENSOR, VALUE))
    time = table.time or _require_one(table, TIME)
    _require_columns(table, collector.extras)
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
    named = table.time or table.find(TIME)
    time = next(iter(table.columns), "") if named is None else named
    _require_columns(table, collector.extras)
    others = [name for name in table.columns if name and name not in (time, *collector.extras)]
    sensors = [name for name in others if name in collector.wanted or name.lower() not in HOURS]
    if not sensors:
        text = table.origin.unit == "line"
        between = " Put a comma, a semicolon, a tab or | between columns." if text else ""
        raise InvalidInputError(
            f"{table.origin.name} must have a time column and a column for each sensor, "
            f"got {listed(table.columns)}.{between}"
        )
    return time, sensors


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
        aggregate=None if observed is None else "sum",
        zone=table.columns[time].zone,
        unit=table.columns[time].unit,
    )


def _require_one(table: RawTable, names: Sequence[str]) -> str:
    column = table.find(names)
    if column is None:
        raise InvalidInputError(
            f"{table.origin.name} must have a column named one of {listed(names)}, "
            f"got {listed(table.columns)}."
        )
    return column


def _require_columns(table: RawTable, names: Sequence[str]) -> None:
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise InvalidInputError(
            f"extras must be columns of {table.origin.name}, got {lacking[0]!r}. "
            f"It has {listed(table.columns)}."
        )
