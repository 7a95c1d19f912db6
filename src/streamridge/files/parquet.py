"""Parquet files, for which pyarrow must be installed: the extra `parquet`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any

import narwhals as nw
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge.files.raw_table import rows_in_a_part
from streamridge.series.time_format import ZonedTimes

MAGIC = b"PAR1"
# The bytes of each column that are read at once.
BUFFER = 2**16


@dataclass(frozen=True)
class ParquetContent:
    """The content of a Parquet file that is open."""

    name: str  # the name of the file in messages
    file: Any  # A `ParquetFile` of pyarrow
    head: Any  # its columns without rows, as a table of pyarrow

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of some columns as tables of pyarrow, some rows at a time."""
        pyarrow = _require_pyarrow()
        with _naming_file(self.name):
            for batch in self.file.iter_batches(rows_in_a_part(len(columns)), columns=columns):
                table = pyarrow.Table.from_batches([batch]).select(columns)
                table.validate(full=True)
                yield table


def open_parquet(stream: io.BufferedReader, name: str) -> ParquetContent:
    """Return the content of a Parquet file, which stays open as long as the stream.

    A stream that only goes forward, such as standard input, is read into memory.
    """
    _require_pyarrow()
    seekable = isinstance(stream.raw, io.FileIO) and stream.seekable()
    source = stream if seekable else io.BytesIO(stream.read())
    with _naming_file(name):
        # Otherwise pyarrow reads all row groups ahead.
        bounded = {"pre_buffer": False, "buffer_size": BUFFER}
        file = import_module("pyarrow.parquet").ParquetFile(source, **bounded)
        head = file.schema_arrow.empty_table()
        numbered = head.rename_columns([str(i) for i in range(head.num_columns)])
        # Only now are the names of zones decoded.
        nw.from_native(numbered, eager_only=True).collect_schema()
    return ParquetContent(name, file, head)


class ParquetRows:
    """A Parquet file that is being written to a stream, a row group at a time; NaN is null."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._pyarrow = _require_pyarrow()
        self._stream = stream
        self._writer: Any = None

    def append(self, columns: Mapping[str, NDArray[Any] | ZonedTimes]) -> None:
        """Write columns as the next row group; the first call determines their types."""
        pyarrow = self._pyarrow
        try:
            table = pyarrow.table({name: self._array(each) for name, each in columns.items()})
            if self._writer is None:
                parquet = import_module("pyarrow.parquet")
                self._writer = parquet.ParquetWriter(self._stream, table.schema)
            # Sensors may have different zones; a column has the zone of the first.
            self._writer.write_table(table.cast(self._writer.schema))
        except pyarrow.ArrowException as error:
            raise InvalidInputError(
                f"each column must hold values of one kind, got: {error}."
            ) from None

    def _array(self, column: NDArray[Any] | ZonedTimes) -> Any:
        if not isinstance(column, ZonedTimes):
            return self._pyarrow.array(column, from_pandas=True)
        kind = self._pyarrow.timestamp("us", tz=column.time_format.column_zone)
        return self._pyarrow.array(column.utc, type=kind)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def _naming_file(name: str) -> Iterator[None]:
    try:
        yield
    except (_require_pyarrow().ArrowException, OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0].rstrip(" .:")
        raise InvalidInputError(f"{name} must be a whole Parquet file, got {reason}.") from None


def _require_pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        raise MissingExtraError(
            "pyarrow must be installed for Parquet. "
            "Install it with: pip install 'streamridge[parquet]'"
        ) from None
