"""Tables written to files, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import require_shape
from streamridge.errors import InvalidInputError
from streamridge.files.atomic import replacing
from streamridge.files.parquet import write_parquet

Columns: TypeAlias = Mapping[str, NDArray[Any]]


def write_table(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Write columns to a file, which is never half written.

    Parameters
    ----------
    path
        The file. Its ending says what is written: `.csv`, `.csv.gz` (packed) or `.parquet`.
    columns
        (n,) each. In CSV, times are in ISO 8601 to the second, and floats have as many digits as
        are needed to read the same number back. NaN, NaT and None are empty cells in CSV and nulls
        in Parquet.
    """
    target = Path(path)
    write = _WRITERS[require_ending(target)]
    arrays = _arrays(columns)
    try:
        with replacing(target) as stream:
            write(stream, arrays)
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{target} cannot hold these columns: {error}.") from None


def require_ending(path: Path) -> str:
    """Return which ending a path has; an error lists those that a table may have."""
    for ending in _WRITERS:
        if path.name.lower().endswith(ending):
            return ending
    raise InvalidInputError(f"path must end in {', '.join(_WRITERS)}, got {str(path)!r}.")


def _arrays(columns: Mapping[str, ArrayLike]) -> Columns:
    arrays: dict[str, NDArray[Any]] = {}
    shape: tuple[int | None, ...] = (None,)
    for name, column in columns.items():
        try:
            array = np.asarray(column)
        except ValueError:  # lists of different lengths
            raise InvalidInputError(
                f"{name} must be a column of single values, got lists of different lengths."
            ) from None
        require_shape(name, array, shape)
        shape = array.shape
        arrays[name] = array.astype("datetime64[us]") if array.dtype.kind == "M" else array
    return arrays


def _write_csv(stream: IO[bytes], columns: Columns) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*map(_texts, columns.values()), strict=True))
    text.detach()


def _write_packed(stream: IO[bytes], columns: Columns) -> None:
    # Without a name and a time inside, the same table gives the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
        _write_csv(cast(IO[bytes], packed), columns)


def _texts(column: NDArray[Any]) -> list[str]:
    return [_text(value) for value in column.tolist()]


def _text(value: object) -> str:
    if value is None or value != value:
        return ""
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)


_WRITERS = {".csv": _write_csv, ".csv.gz": _write_packed, ".parquet": write_parquet}
