"""Layouts: how the rows and columns of a block belong to sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, listed
from streamridge.files.blocks import Block
from streamridge.series.readings import Piece

SENSOR = ("unique_id", "sensor", "sensor_id", "station", "station_id", "detector", "detector_id")
# The last is what pandas calls an index without a name in Parquet.
TIME = ("time", "timestamp", "ds", "date", "datetime", "date_time", "__index_level_0__")
# Hours beside whole times are no sensor, unless they are asked for.
HOURS = ("hour", "hr", "hour_ending", "hour_beginning", "he")
VALUE = ("y", "value", "flow", "count", "volume", "traffic_volume")
# Each column that is read from Parquet takes a page of memory, often 1 MB.
SENSORS_TOGETHER = 32


@dataclass(frozen=True)
class Choice:
    """The sensors that are wanted, all if none is named, and the columns to read with them."""

    sensors: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()

    def wants(self, sensor: str) -> bool:
        """Return whether to read this sensor."""
        return not self.sensors or sensor in self.sensors


@dataclass(frozen=True)
class Split:
    """A block parted by sensor.

    Parameters
    ----------
    pieces
        One for each sensor that is wanted.
    names
        All sensors of the block, wanted or not.
    loose
        How many rows were left out without belonging to one sensor.
    """

    pieces: Sequence[Piece]
    names: Sequence[str]
    loose: int


def is_long(block: Block) -> bool:
    """Return whether there is a column of sensors, one of times and one of values."""
    timed = block.time is not None or _find(block, TIME) is not None
    return timed and all(_find(block, names) is not None for names in (SENSOR, VALUE))


def split_wide(block: Block, choice: Choice) -> Split:
    """Part a block that has a column of times and a column for each sensor.

    The times are in the first column, unless another one has such a name. A column without a name
    is no sensor.
    """
    time, sensors = _wide_columns(block, choice)
    rows = np.arange(len(block.places))
    wanted = filter(choice.wants, sensors)
    pieces = [_piece(block, name, rows, time, (name, *choice.extras)) for name in wanted]
    return Split(pieces, sensors, block.ragged)


def split_long(block: Block, choice: Choice) -> Split:
    """Part a block that has a row for each reading: sensor, time and value."""
    sensor, value = (_require_one(block, names) for names in (SENSOR, VALUE))
    time = block.time or _require_one(block, TIME)
    _require_columns(block, choice.extras)
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(block.columns[sensor].texts):
        rows_of.setdefault((name or "").strip(), []).append(row)
    unnamed = rows_of.pop("", [])
    if unnamed:
        block.refuse(unnamed[0], sensor, "the name of a sensor")
    pieces = [
        _piece(block, name, np.array(rows), time, (value, *choice.extras))
        for name, rows in rows_of.items()
        if choice.wants(name)
    ]
    return Split(pieces, list(rows_of), block.ragged + len(unnamed))


def wide_groups(block: Block, choice: Choice) -> list[tuple[str, ...]]:
    """Return the columns of a wide block in groups: the time, the extras and some sensors each.

    Where a file is stored column by column, reading all of them at once may take too much memory.
    """
    time, sensors = _wide_columns(block, choice)
    starts = range(0, len(sensors), SENSORS_TOGETHER)
    shared = tuple(dict.fromkeys((time, *choice.extras)))
    return [(*shared, *sensors[start : start + SENSORS_TOGETHER]) for start in starts]


def _wide_columns(block: Block, choice: Choice) -> tuple[str, list[str]]:
    """Return the column of times and the columns of sensors."""
    named = block.time or _find(block, TIME)
    time = next(iter(block.columns), "") if named is None else named
    _require_columns(block, choice.extras)
    others = [name for name in block.columns if name and name not in (time, *choice.extras)]
    sensors = [name for name in others if name in choice.sensors or name.lower() not in HOURS]
    if not sensors:
        text = block.origin.unit == "line"
        between = " Put a comma, a semicolon, a tab or | between columns." if text else ""
        raise InvalidInputError(
            f"{block.origin.name} must have a time column and a column for each sensor, "
            f"got {listed(block.columns)}.{between}"
        )
    return time, sensors


def _piece(
    block: Block, sensor: str, rows: NDArray[np.intp], time: str, numbers: Sequence[str]
) -> Piece:
    """Return some rows as a piece; of the columns of numbers, the first holds the values."""
    stamps, offsets = (cells[rows] for cells in block.columns[time].times)
    read = {name: block.columns[name].numbers[rows] for name in numbers}
    bad = {time: np.isnat(stamps)} | {name: np.isinf(column) for name, column in read.items()}
    left_out = np.logical_or.reduce(list(bad.values()))
    if left_out.any():
        first = int(left_out.argmax())
        column = next(name for name, mask in bad.items() if mask[first])
        refuse = block.refuse_time if column == time else block.refuse_number
        refuse(int(rows[first]), column)
    kept = {name: column[~left_out] for name, column in read.items()}
    value, *extras = numbers
    return Piece(
        sensor,
        stamps[~left_out],
        offsets[~left_out],
        kept[value],
        {name: kept[name] for name in extras},
        int(left_out.sum()),
        zone=block.columns[time].zone,
        unit=block.columns[time].unit,
    )


def _find(block: Block, names: Sequence[str]) -> str | None:
    """Return the column with one of these names, in any case; the earliest name wins."""
    there = {column.lower(): column for column in reversed(list(block.columns))}
    return next((there[name] for name in names if name in there), None)


def _require_one(block: Block, names: Sequence[str]) -> str:
    column = _find(block, names)
    if column is None:
        raise InvalidInputError(
            f"{block.origin.name} must have a column named one of {listed(names)}, "
            f"got {listed(block.columns)}."
        )
    return column


def _require_columns(block: Block, names: Sequence[str]) -> None:
    lacking = [name for name in names if name not in block.columns]
    if lacking:
        raise InvalidInputError(
            f"extras must be columns of {block.origin.name}, got {lacking[0]!r}. "
            f"It has {listed(block.columns)}."
        )
