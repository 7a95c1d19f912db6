"""Frames and series of pandas, polars and pyarrow, as one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, shown
from streamridge.files.blocks import Block, Column, Origin, TextColumn
from streamridge.files.sense import Sense, Senses
from streamridge.series.clock import Times
from streamridge.series.readings import in_microseconds
from streamridge.series.writing import Offsets, Unit


@dataclass(frozen=True)
class FrameColumn:
    """A column of a frame. Cells that are neither numbers nor times are read as text.

    Parameters
    ----------
    series
        The cells.
    sense
        How they are written.
    first
        The row of the source at which they begin.
    """

    series: nw.Series[Any]
    sense: Sense
    first: int = 0

    @cached_property
    def texts(self) -> Sequence[str | None]:
        """Return the cells as they are written, None for an empty one."""
        # Python's own times only hold the years 1 to 9999; NumPy's show any.
        temporal = self.series.dtype.is_temporal()
        cells = self.series.to_numpy() if temporal else self.series.to_list()
        nulls = self.series.is_null().to_list()
        return [None if null else str(cell) for cell, null in zip(cells, nulls, strict=True)]

    @cached_property
    def numbers(self) -> Vector:
        """Return the cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        if self.series.dtype.is_numeric():
            return self.sense.numbers.meant(self.series.to_numpy().astype(np.float64))
        return self._as_text().numbers

    @cached_property
    def times(self) -> tuple[Times, Offsets]:
        """Return the cells as times, NaT for an unreadable one, and their offsets from UTC."""
        dtype = self.series.dtype
        if not isinstance(dtype, nw.Datetime):
            return self._as_text().times
        stamps = in_microseconds(self.series.to_numpy())  # in UTC when there is a zone
        if dtype.time_zone is None:
            return stamps, np.full(len(stamps), np.nan)
        try:
            local = self.series.dt.replace_time_zone(None)
        except ValueError:  # pyarrow knows no such zone
            raise InvalidInputError(
                f"the zone of column {self.series.name} must be one that is known, such as "
                f"Europe/London, got {shown(dtype.time_zone)}."
            ) from None
        return stamps, (in_microseconds(local.to_numpy()) - stamps) / np.timedelta64(1, "s")

    @property
    def zone(self) -> str | None:
        """Return the name of the zone of all times, if they have one."""
        dtype = self.series.dtype
        return dtype.time_zone if isinstance(dtype, nw.Datetime) else None

    @property
    def unit(self) -> Unit:
        """Return what the frame counts times in."""
        dtype = self.series.dtype
        return dtype.time_unit if isinstance(dtype, nw.Datetime) else "us"

    def _as_text(self) -> TextColumn:
        rows = range(self.first, self.first + len(self.series))
        return TextColumn(self.texts, self.sense, rows)


def frame_block(native: Any, origin: Origin, senses: Senses, first: int = 0) -> Block:
    """Return a frame or a series as a block.

    Parameters
    ----------
    native
        A frame or series of pandas, polars or pyarrow. If it has a DatetimeIndex, that is its time.
        A series is one sensor, called "value" if it has no name; its index may also hold whole
        numbers.
    origin
        Where it comes from.
    senses
        How its columns are written.
    first
        The row of the source at which it begins.
    """
    data = _narwhal(native, origin)
    index: Any = nw.maybe_get_index(data)
    columns: dict[str, Column] = {}
    is_series = isinstance(data, nw.Series)
    if index is not None and index.dtype.kind in ("Miu" if is_series else "M"):
        times: Any = nw.from_native(index.to_series(), series_only=True)
        columns["time"] = FrameColumn(times, senses.of("time"), first)
    elif is_series:
        raise InvalidInputError(
            f"{origin.name} must have times, got a Series without an index of times or whole "
            "numbers. "
            "Pass a DataFrame with a time column."
        )
    for name, series in _named(data, origin):
        # An index wins over a column "time".
        columns.setdefault(name, FrameColumn(series, senses.of(name), first))
    return Block(origin, range(first, first + len(data)), columns)


def _narwhal(native: Any, origin: Origin) -> nw.DataFrame[Any] | nw.Series[Any]:
    try:
        return nw.from_native(native, eager_only=True, allow_series=True)
    except TypeError:
        raise InvalidInputError(
            'sources must be a path, "-", a list of paths, or a DataFrame or Series of pandas, '
            f"polars or pyarrow, got {shown(native)}."
        ) from None
    except DuplicateError:
        names = getattr(native, "column_names", None) or native.columns
        origin.require_distinct([str(name) for name in names])
        raise


def _named(
    data: nw.DataFrame[Any] | nw.Series[Any], origin: Origin
) -> Sequence[tuple[str, nw.Series[Any]]]:
    if isinstance(data, nw.Series):
        return [("value" if data.name in (None, "") else str(data.name), data)]
    names = [str(name).strip() for name in data.columns]
    origin.require_distinct(names)
    return list(zip(names, data.iter_columns(), strict=True))
