"""Parquet files, for which pyarrow must be installed: the extra `parquet`."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any

import narwhals as nw
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge.files.blocks import rows_in_a_block
from streamridge.files.spool import SPILL_ABOVE, disk_errors
from streamridge.series.writing import ZonedTimes

MAGIC = b"PAR1"
# Bytes that are read at once, of each column.
BUFFER = 2**16


@dataclass(frozen=True)
class ParquetContent:
    """The content of a Parquet file that is open.

    Parameters
    ----------
    name
        What messages call the file.
    file
        A `ParquetFile` of pyarrow.
    head
        Its columns without rows, as a table of pyarrow.
    """

    name: str
    file: Any
    head: Any

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of some columns, some rows at a time, as tables of pyarrow."""
        pyarrow = _require_pyarrow()
        with _damage_named(self.name):
            for batch in self.file.iter_batches(rows_in_a_block(len(columns)), columns=columns):
                table = pyarrow.Table.from_batches([batch]).select(columns)
                table.validate(full=True)
                yield table


@contextmanager
def parquet_content(stream: io.BufferedReader, name: str) -> Iterator[ParquetContent]:
    """Open a Parquet file.

    Parameters
    ----------
    stream
        The file from its start. A stream that only goes forward, such as standard input, is first
        copied to a temporary file.
    name
        What messages call the file.
    """
    _require_pyarrow()
    with _seekable(stream) as source:
        with _damage_named(name):
            # Otherwise pyarrow reads all row groups ahead.
            bounded = {"pre_buffer": False, "buffer_size": BUFFER}
            file = import_module("pyarrow.parquet").ParquetFile(source, **bounded)
            head = file.schema_arrow.empty_table()
            numbered = head.rename_columns([str(i) for i in range(head.num_columns)])
            # Only now are the names of zones decoded.
            nw.from_native(numbered, eager_only=True).collect_schema()
        yield ParquetContent(name, file, head)


class ParquetRows:
    """A Parquet file that is being written to a stream, a row group at a time; NaN is null."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._pyarrow = _require_pyarrow()
        self._stream = stream
        self._writer: Any = None

    def append(self, columns: Mapping[str, NDArray[Any] | ZonedTimes]) -> None:
        """Write columns as the next row group; the first ones say what kind each column is."""
        pyarrow = self._pyarrow
        try:
            table = pyarrow.table({name: self._array(each) for name, each in columns.items()})
            if self._writer is None:
                parquet = import_module("pyarrow.parquet")
                self._writer = parquet.ParquetWriter(self._stream, table.schema)
            # Sensors may have zones of their own; a column has that of the first.
            self._writer.write_table(table.cast(self._writer.schema))
        except pyarrow.ArrowException as error:
            raise InvalidInputError(
                f"each column must hold values of one kind, got: {error}."
            ) from None

    def _array(self, column: NDArray[Any] | ZonedTimes) -> Any:
        if not isinstance(column, ZonedTimes):
            return self._pyarrow.array(column, from_pandas=True)
        kind = self._pyarrow.timestamp("us", tz=column.writing.column_zone)
        return self._pyarrow.array(column.utc, type=kind)

    def close(self) -> None:
        """Write what ends the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    try:
        yield
    except (_require_pyarrow().ArrowException, OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0].rstrip(" .:")
        raise InvalidInputError(f"{name} must be a whole Parquet file, got {reason}.") from None


@contextmanager
def _seekable(stream: io.BufferedReader) -> Iterator[IO[bytes]]:
    if isinstance(stream.raw, io.FileIO) and stream.seekable():
        yield stream
        return
    with tempfile.SpooledTemporaryFile(SPILL_ABOVE) as copy:
        for chunk in iter(lambda: stream.read(BUFFER), b""):
            with disk_errors():
                copy.write(chunk)
        yield copy


def _require_pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        raise MissingExtraError(
            "pyarrow must be installed for Parquet. "
            "Install it with: pip install 'streamridge[parquet]'"
        ) from None
