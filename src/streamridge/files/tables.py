"""Tables written to CSV and Parquet files, complete or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import require_shape
from streamridge.errors import InvalidInputError
from streamridge.files.atomic import replacing, unwritable
from streamridge.files.open_files import is_special
from streamridge.files.parquet import ParquetRows
from streamridge.series.time_format import UTC_FORMAT, ZonedTimes

Columns: TypeAlias = Mapping[str, NDArray[Any] | ZonedTimes]
# The rows that are turned into text together. Text takes far more memory than numbers.
AT_ONCE = 4096
# A function that takes the next rows of a table, column by column.
Append: TypeAlias = Callable[[Mapping[str, ArrayLike]], None]


def write_table(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Write columns to a file, complete or not at all; see `open_table`."""
    with open_table(path) as append:
        append(columns)


@contextmanager
def open_table(
    path: str | os.PathLike[str],
    *,
    utc: Collection[str] = (),
    at_end: Callable[[], Path] | None = None,
) -> Iterator[Append]:
    """Yield a function that appends rows to a new file, which gets its name when it is complete.

    After an error the file does not exist, or has its former content. Rows are written at once, so
    that a table may be larger than memory.

    Parameters
    ----------
    path
        The file. Its ending determines the format: `.csv`, `.csv.gz` (packed) or `.parquet`. A pipe
        or a device gets CSV.
    utc
        Names of the columns whose times are in UTC, and written with this zone.
    at_end
        Returns the name of the complete file, if it is not the path.

    Yields
    ------
    Append
        A function that takes columns, (n,) each, with the same names in every call. In CSV, times
        are in ISO 8601 to the second, and floats have as many digits as are needed to read the same
        number back. `ZonedTimes` have their offsets in CSV, and a zone in Parquet. NaN, NaT and
        None are empty cells in CSV and nulls in Parquet. Each call writes a row group of Parquet.
    """
    target = Path(path)
    kind = _KINDS[require_ending(target)]
    with replacing(target, at_end) as stream:
        rows = kind(stream)

        def append(columns: Mapping[str, ArrayLike]) -> None:
            try:
                zoned = {name: ZonedTimes(np.asarray(columns[name]), UTC_FORMAT) for name in utc}
                rows.append(column_arrays({**columns, **zoned}))
            except OSError as error:
                raise unwritable(target, error) from None
            except ValueError as error:
                if isinstance(error, InvalidInputError):
                    raise
                raise InvalidInputError(f"{target} cannot hold these columns: {error}.") from None

        try:
            yield append
        finally:
            rows.close()


def require_ending(path: Path) -> str:
    """Return the ending of a path; raise unless a table may have it.

    A pipe or a device needs no ending.
    """
    if is_special(path):
        return ".csv"
    for ending in _KINDS:
        if path.name.lower().endswith(ending):
            return ending
    raise InvalidInputError(f"path must end in {', '.join(_KINDS)}, got {str(path)!r}.")


def column_arrays(columns: Mapping[str, ArrayLike]) -> Columns:
    """Return columns as arrays of one length, their times in microseconds."""
    arrays: dict[str, NDArray[Any] | ZonedTimes] = {}
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
        plain = array.astype("datetime64[us]") if array.dtype.kind == "M" else array
        arrays[name] = replace(column, utc=plain) if isinstance(column, ZonedTimes) else plain
    return arrays


class CsvRows:
    """A CSV file that is being written to a stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        self._rows = csv.writer(self._text, lineterminator="\n")
        # The writer does not quote a carriage return, which ends a row for other readers.
        self._quoted = csv.writer(self._text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        self._begun = False

    def append(self, columns: Columns) -> None:
        """Write columns as the next rows, under their names if they are the first."""
        if not self._begun:
            self._rows.writerow(columns)
            self._begun = True
        writer = self._quoted if any(map(_has_returns, columns.values())) else self._rows
        rows = max(map(len, columns.values()), default=0)
        for start in range(0, rows, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            writer.writerows(
                zip(*(_texts(column[part]) for column in columns.values()), strict=True)
            )

    def flush(self) -> None:
        """Write all rows to the stream."""
        self._text.flush()

    def close(self) -> None:
        """Write all remaining rows."""
        self._text.detach()


class PackedRows(CsvRows):
    """A CSV file in gzip that is being written to a stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        # Without a name and a time inside, the same table gives the same bytes.
        self._packed = gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
        super().__init__(cast(IO[bytes], self._packed))

    def close(self) -> None:
        """Write all remaining rows, and the end of the gzip file."""
        super().close()
        self._packed.close()


def _has_returns(column: NDArray[Any] | ZonedTimes) -> bool:
    """Return whether a column of texts contains a carriage return."""
    if isinstance(column, ZonedTimes) or column.dtype.kind not in "OU":
        return False
    return any("\r" in str(value) for value in set(column.tolist()))


def _texts(column: NDArray[Any] | ZonedTimes) -> list[str]:
    if isinstance(column, ZonedTimes):
        return column.texts()
    return [_text(value) for value in column.tolist()]


def _text(value: object) -> str:
    if value is None or value != value:
        return ""
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)


_KINDS: Mapping[str, type[CsvRows] | type[ParquetRows]] = {
    ".csv": CsvRows,
    ".csv.gz": PackedRows,
    ".parquet": ParquetRows,
}
