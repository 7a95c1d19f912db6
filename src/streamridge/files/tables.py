"""Tables written to files, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import require_shape
from streamridge.errors import InvalidInputError
from streamridge.files.atomic import is_special, replacing, unwritable
from streamridge.files.parquet import ParquetRows
from streamridge.series.writing import ZonedTimes

Columns: TypeAlias = Mapping[str, NDArray[Any] | ZonedTimes]
# Rows that are turned into text at a time: the text takes far more memory than the numbers.
AT_ONCE = 4096
# Takes the next rows of a table, column by column.
Append: TypeAlias = Callable[[Mapping[str, ArrayLike]], None]


def write_table(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Write columns to a file, which is never half written; see `growing_table`."""
    with growing_table(path) as append:
        append(columns)


@contextmanager
def growing_table(
    path: str | os.PathLike[str], at_end: Callable[[], Path] | None = None
) -> Iterator[Append]:
    """Give a function that appends rows to a file, which has its name once all are there.

    After an error there is no file, or the one from before. Rows are written as they come, so that
    a table may be larger than memory.

    Parameters
    ----------
    path
        The file. Its ending says what is written: `.csv`, `.csv.gz` (packed) or `.parquet`. A pipe
        or a device gets CSV.
    at_end
        Returns the name that the file gets instead once all rows are there.

    Yields
    ------
    Append
        To be called with columns, (n,) each, of the same names every time. In CSV, times are in
        ISO 8601 to the second, and floats have as many digits as are needed to read the same number
        back. Times that are `ZonedTimes` have their offsets in CSV, and a zone in Parquet. NaN, NaT
        and None are empty cells in CSV and nulls in Parquet, where each call makes a row group.
    """
    target = Path(path)
    kind = _KINDS[require_ending(target)]
    with replacing(target, at_end) as stream:
        rows = kind(stream)

        def append(columns: Mapping[str, ArrayLike]) -> None:
            try:
                rows.append(column_arrays(columns))
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
    """Return which ending a path has; an error lists those that a table may have.

    A pipe or a device needs none.
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
        # By itself the writer leaves a carriage return without quotes, which ends a row elsewhere.
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
        """Write what is not in the stream yet."""
        self._text.detach()


class PackedRows(CsvRows):
    """A CSV file that is being written to a stream, packed by gzip."""

    def __init__(self, stream: IO[bytes]) -> None:
        # Without a name and a time inside, the same table gives the same bytes.
        self._packed = gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
        super().__init__(cast(IO[bytes], self._packed))

    def close(self) -> None:
        """Write what is not in the stream yet, and the end of the packed file."""
        super().close()
        self._packed.close()


def _has_returns(column: NDArray[Any] | ZonedTimes) -> bool:
    """Return whether a carriage return stands in a column of texts."""
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
