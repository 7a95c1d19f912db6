"""Columns to frames of pandas, polars or pyarrow, in which times keep their zone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import ComputeError

from streamridge.errors import MissingExtraError
from streamridge.series.writing import ZonedTimes

BACKENDS = ("pandas", "polars", "pyarrow")


def frame_kind(backend: str | None) -> str:
    """Return the library to make a frame with, the first that is installed by default."""
    installed = [name for name in BACKENDS if find_spec(name)]
    kind = backend or (installed[0] if installed else None)
    if kind is None or kind not in installed:
        raise MissingExtraError(
            f"a frame needs pandas, polars or pyarrow to be installed, got {kind!r}."
        )
    return kind


def framed(columns: Mapping[str, Any], backend: str | None) -> Any:
    """Return columns, (n,) each, as a frame; times with a zone become a column with that zone."""
    kind = frame_kind(backend)
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    if kind == "polars":  # it does not count in seconds
        arrays = {name: _in_milliseconds(column) for name, column in arrays.items()}
    frame = nw.from_dict(arrays, backend=import_module(kind))
    for name, column in columns.items():
        if isinstance(column, ZonedTimes):
            frame = _zoned(frame, name, column)
    return frame.to_native()


def _zoned(frame: nw.DataFrame[Any], name: str, column: ZonedTimes) -> nw.DataFrame[Any]:
    in_utc = nw.col(name).dt.replace_time_zone("UTC")
    try:
        zone = column.writing.column_zone or "UTC"
        return frame.with_columns(in_utc.dt.convert_time_zone(zone))
    except ComputeError:  # polars knows offsets of whole hours only
        return frame.with_columns(in_utc)


def _in_milliseconds(array: Any) -> Any:
    return array.astype("M8[ms]") if array.dtype == np.dtype("M8[s]") else array
