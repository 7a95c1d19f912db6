"""Parquet, which needs the extra `parquet`: pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import IO, Any

import narwhals as nw
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, MissingExtraError

MAGIC = b"PAR1"


def read_parquet(content: bytes, name: str) -> Any:
    """Return the content of a Parquet file as a table of pyarrow."""
    pyarrow = _require_pyarrow()
    try:
        table = import_module("pyarrow.parquet").read_table(pyarrow.BufferReader(content))
        table.validate(full=True)
        frame = nw.from_native(table, eager_only=True)
        frame.collect_schema()  # only now are names of zones decoded
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidInputError(f"{name} must be a whole Parquet file, got {error}.") from None
    return table


class ParquetRows:
    """A Parquet file that is being written to a stream, a row group at a time; NaN is null."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._pyarrow = _require_pyarrow()
        self._stream = stream
        self._writer: Any = None

    def append(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write columns as the next row group; the first ones say what kind each column is."""
        pyarrow = self._pyarrow
        try:
            table = pyarrow.table(
                {name: pyarrow.array(column, from_pandas=True) for name, column in columns.items()}
            )
            if self._writer is None:
                parquet = import_module("pyarrow.parquet")
                self._writer = parquet.ParquetWriter(self._stream, table.schema)
            self._writer.write_table(table)
        except pyarrow.ArrowException as error:
            raise InvalidInputError(
                f"columns must hold one kind of values each, got: {error}."
            ) from None

    def close(self) -> None:
        """Write what ends the file."""
        if self._writer is not None:
            self._writer.close()


def _require_pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        raise MissingExtraError(
            "pyarrow must be installed for Parquet. "
            "Install it with: pip install 'streamridge[parquet]'"
        ) from None
