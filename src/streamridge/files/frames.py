"""Frames of pandas, polars and pyarrow: read as raw tables, and made from columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import ComputeError, DuplicateError

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, MissingExtraError, shown
from streamridge.files.evidence import Texts
from streamridge.files.raw_table import (
    CELLS_INSPECTED,
    Column,
    ColumnFormat,
    Origin,
    RawTable,
    SourceFormats,
)
from streamridge.series.time_format import Offsets, TimeFormat, ZonedTimes
from streamridge.series.times import Times, in_microseconds
from streamridge.series.zones import known_zone

BACKENDS = ("pandas", "polars", "pyarrow")


class FrameColumn(Column):
    """A column of a frame. Cells that are neither numbers nor times are read as text.

    `first` is the row of the source at which it begins.
    """

    def __init__(self, series: nw.Series[Any], format: ColumnFormat, first: int = 0) -> None:
        super().__init__((), format, range(first, first + len(series)))
        # narwhals does not recognize zones of pandas with an underscore, such as America/New_York.
        native = series.to_native()
        zone = getattr(getattr(native, "dtype", None), "tz", None)
        if zone is not None and not isinstance(series.dtype, nw.Datetime):
            series = nw.from_native(native.dt.tz_convert("UTC"), series_only=True)
        self._series = series
        self.is_time = isinstance(series.dtype, nw.Datetime | nw.Date)
        if isinstance(series.dtype, nw.Datetime):
            self.zone = series.dtype.time_zone if zone is None else str(zone)
            self.unit = series.dtype.time_unit

    @cached_property
    def _cells(self) -> list[Any]:
        return self._series.to_list()

    @cached_property
    def _has_decimals(self) -> bool:
        """Return whether the cells are decimals, perhaps among other numbers and empty cells."""
        if isinstance(self._series.dtype, nw.Object):
            kinds = set(map(type, self._cells))
            return Decimal in kinds and kinds <= {Decimal, int, float, type(None)}
        return isinstance(self._series.dtype, nw.Decimal)

    @cached_property
    def texts(self) -> Texts:
        """Return the cells as they are written, None for an empty one."""
        return _texts(self._series)

    def _head(self) -> Texts:
        return _texts(self._series.head(CELLS_INSPECTED))

    @cached_property
    def numbers(self) -> Vector:
        """Return the cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        if self._series.dtype.is_numeric() or self._has_decimals:
            # A list, since not every library makes a NumPy array of decimals.
            cells = np.array(self._cells, object) if self._has_decimals else self._series.to_numpy()
            return self.format.numbers.without_missing(cells.astype(np.float64))
        return self.format.numbers.read(self.texts, self._places)

    @cached_property
    def times(self) -> tuple[Times, Offsets]:
        """Return the cells as times, NaT for an unreadable one, and their offsets from UTC."""
        if not isinstance(self._series.dtype, nw.Datetime):
            return self.format.times.read(self.texts, self._places)
        stamps = in_microseconds(self._series.to_numpy())  # in UTC when there is a zone
        if self.zone is None:
            return stamps, np.full(len(stamps), np.nan)
        zone = known_zone(self.zone)
        if zone is not None:
            return stamps, TimeFormat(zone=zone).offsets_at(stamps).astype(np.float64)
        try:
            local = self._series.dt.replace_time_zone(None)
        except ValueError:  # pyarrow knows no such zone
            raise InvalidInputError(
                f"the zone of column {self._series.name} must be one that is known, such as "
                f"Europe/London, got {shown(self.zone)}."
            ) from None
        return stamps, (in_microseconds(local.to_numpy()) - stamps) / np.timedelta64(1, "s")


def _texts(series: nw.Series[Any]) -> Texts:
    # Times of Python are limited to the years 1 to 9999; times of NumPy are not.
    cells = series.to_numpy() if series.dtype.is_temporal() else series.to_list()
    nulls = series.is_null().to_list()
    return [None if null else str(cell) for cell, null in zip(cells, nulls, strict=True)]


def read_frame(native: Any, origin: Origin, formats: SourceFormats, first: int = 0) -> RawTable:
    """Return a frame or series of pandas, polars or pyarrow as a raw table.

    If it has a DatetimeIndex or a PeriodIndex, that is its time. A series is one sensor, called
    "value" if it has no name; its index may also hold whole numbers. `first` is the row of the
    source where it begins.
    """
    data = _narwhal(native, origin)
    index: Any = nw.maybe_get_index(data)
    columns: dict[str, Column] = {}
    is_series = isinstance(data, nw.Series)
    if hasattr(index, "to_timestamp"):  # a reading belongs to the start of its period
        index = index.to_timestamp()
    if index is not None and index.dtype.kind in ("Miu" if is_series else "M"):
        times: Any = nw.from_native(index.to_series(), series_only=True)
        columns["time"] = FrameColumn(times, formats.of("time"), first)
    elif is_series:
        raise InvalidInputError(
            f"{origin.name} must have times, got a Series without an index of times or whole "
            "numbers. Pass a DataFrame with a time column."
        )
    for name, series in _named(data, origin):
        # An index of times takes precedence over a column "time".
        columns.setdefault(name, FrameColumn(_with_starts(series), formats.of(name), first))
    return RawTable(origin, range(first, first + len(data)), columns)


def _with_starts(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return a column of periods of pandas as the times of their starts; another as it is."""
    native = series.to_native()
    if not (isinstance(series.dtype, nw.Unknown) and hasattr(native, "dt")):
        return series
    starts = getattr(native.dt, "to_timestamp", None)
    return series if starts is None else nw.from_native(starts(), series_only=True)


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


def frame_library(backend: str | None) -> str:
    """Return the library of a frame, by default the first that is installed."""
    installed = [name for name in BACKENDS if find_spec(name)]
    kind = backend or (installed[0] if installed else None)
    if kind is None or kind not in installed:
        raise MissingExtraError(
            f"a frame needs pandas, polars or pyarrow to be installed, got {kind!r}."
        )
    return kind


def make_frame(columns: Mapping[str, Any], backend: str | None) -> Any:
    """Return columns, (n,) each, as a frame; `ZonedTimes` become a column with their zone."""
    kind = frame_library(backend)
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    if kind == "polars":  # it does not count in seconds
        coarse = [name for name, array in arrays.items() if array.dtype == np.dtype("M8[s]")]
        arrays |= {name: arrays[name].astype("M8[ms]") for name in coarse}
    frame = nw.from_dict(arrays, backend=import_module(kind))
    for name, column in columns.items():
        if isinstance(column, ZonedTimes):
            frame = _zoned(frame, name, column)
    return frame.to_native()


def _zoned(frame: nw.DataFrame[Any], name: str, column: ZonedTimes) -> nw.DataFrame[Any]:
    in_utc = nw.col(name).dt.replace_time_zone("UTC")
    try:
        zone = column.time_format.column_zone or "UTC"
        return frame.with_columns(in_utc.dt.convert_time_zone(zone))
    except ComputeError:  # polars knows offsets of whole hours only
        return frame.with_columns(in_utc)
