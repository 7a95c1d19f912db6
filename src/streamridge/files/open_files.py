"""Files and standard input as streams of bytes: unpacked, limited, and of a known format."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from streamridge.errors import InvalidInputError

STDIN = "-"
GZIP = b"\x1f\x8b"
# Tables of readings shrink to a few percent in gzip, a gzip bomb to a thousandth.
MOST_TIMES = 250
# A small file may shrink by more.
ALWAYS_ALLOWED = 2**25
LONGEST_LINE = 2**24
CHUNK = 2**16


def source_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file in messages."""
    return "standard input" if path == STDIN else os.fspath(path)


def is_special(path: Path) -> bool:
    """Return whether a path is a pipe or a device, such as /dev/null, which is not replaced."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # not there, or no name of a file
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def open_source(
    path: str | os.PathLike[str], most_bytes: int | None = None
) -> Iterator[io.BufferedReader]:
    """Open a file or standard input ("-"), and unpack it if it is gzip.

    An error of the file system or of gzip, met here or while the stream is read, becomes an
    `InvalidInputError` that names the file.
    """
    name = source_name(path)
    try:
        with _bytes_of(path) as source:
            packed = source.peek(2)[:2] == GZIP
            yield (
                io.BufferedReader(UnpackedStream(source, name, most_bytes), CHUNK)
                if packed
                else source
            )
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"{name} must be a file that can be read, got: {reason}.") from None


def _bytes_of(path: str | os.PathLike[str]) -> io.BufferedReader:
    if path != STDIN:
        try:
            return open(path, "rb")
        except ValueError as error:  # a null character in the name
            raise OSError(str(error)) from None
    if sys.stdin is None or sys.stdin.closed:
        raise InvalidInputError("standard input must be open, got a closed one.")
    return io.BufferedReader(CountingStream(sys.stdin.buffer))


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""


class CountingStream(io.RawIOBase):
    """A stream that counts the bytes read from another stream, and leaves that one open."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes there were."""
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self.count += len(content)
        return len(content)


class UnpackedStream(CountingStream):
    """The content of a gzip stream, which raises once it is too large.

    By default it may unpack to 250 times its packed size.
    """

    def __init__(self, stream: Readable, name: str, most: int | None) -> None:
        self._packed = CountingStream(stream)
        super().__init__(gzip.GzipFile(fileobj=io.BufferedReader(self._packed, CHUNK)))
        self._name, self._most = name, most

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes there were."""
        count = super().readinto(buffer)
        most = self._most
        if most is None:
            most = max(ALWAYS_ALLOWED, MOST_TIMES * self._packed.count)
        if self.count > most:
            raise InvalidInputError(
                f"{self._name} must unpack to at most {most} bytes, got more. "
                "Pass --largest with a size such as 20GB if the file is sound (largest= in Python)."
            )
        return count


class LineLimitedStream(io.RawIOBase):
    """A stream of text in bytes that raises at a line that is too long."""

    def __init__(self, stream: io.BufferedReader, name: str) -> None:
        self._stream, self._name = stream, name
        self._line, self._length = 1, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes there were."""
        count = self._stream.readinto1(buffer)
        chunk = bytes(buffer[:count])
        ends = chunk.count(b"\n") or chunk.count(b"\r")
        self._line += ends
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._length = count - end - 1 if ends else self._length + count
        if self._length > LONGEST_LINE:
            raise InvalidInputError(
                f"{self._name} line {self._line} must be at most {LONGEST_LINE // 2**20} MiB long, "
                "got a longer one. Is it a table with one row a line?"
            )
        return count


# Formats that are not read: how a file begins, what it is, and how to convert it.
OtherFormat: TypeAlias = tuple[bytes, str, str]

_PANDAS = "Convert it, for example with pandas: {}(...).to_parquet(...)"
_UNPACK = "Unpack it on the way: {} | streamridge replay -"
_NO_TABLE = "Pass the table itself, as CSV, NDJSON or Parquet"

_BINARY_FORMATS: tuple[OtherFormat, ...] = (
    (rb"ARROW1", "an Arrow file (Feather)", _PANDAS.format("pandas.read_feather")),
    (rb"FEA1", "an old Feather file", _PANDAS.format("pandas.read_feather")),
    (rb"ORC", "an ORC file", _PANDAS.format("pandas.read_orc")),
    (rb"Obj\x01", "an Avro file", "Convert it to CSV or Parquet"),
    (
        rb"PK\x03\x04(?s:.{26,60}?)(\[Content_Types\]|_rels/|xl/|docProps/)",
        "an Excel workbook",
        "Save it as CSV, or convert it with pandas: pandas.read_excel(...).to_csv(...)",
    ),
    (rb"PK\x03\x04", "a zip archive", _UNPACK.format("unzip -p FILE.zip")),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save it as CSV"),
    (rb"BZh[1-9]1AY", "a bzip2 file", _UNPACK.format("bzip2 -dc FILE.bz2")),
    (rb"\xfd7zXZ\0", "an xz file", _UNPACK.format("xz -dc FILE.xz")),
    (rb"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK.format("zstd -dc FILE.zst")),
    (rb"\x04\x22\x4d\x18", "an lz4 file", _UNPACK.format("lz4 -dc FILE.lz4")),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK.format("7z x -so FILE.7z")),
    (rb"\x1f\x8b", "gzip within gzip", _UNPACK.format("gzip -dc FILE.gz")),
    (
        rb"SQLite format 3\0",
        "an SQLite database",
        "Take a table out of it: "
        "sqlite3 -header -csv FILE.db 'SELECT * FROM readings' | streamridge replay -",
    ),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 or netCDF file", _PANDAS.format("pandas.read_hdf")),
    (rb"CDF[\x01\x02\x05]", "a netCDF file", "Convert it to CSV or Parquet"),
    (rb"\x93NUMPY", "a file of NumPy", "Write it as CSV with a column of times"),
    (rb"MATLAB \d", "a file of MATLAB", "Write it as CSV with a column of times"),
    (rb"\x80[\x02-\x05][\x95}\]c(K]", "a Python pickle", _PANDAS.format("pandas.read_pickle")),
    (rb"%PDF-", "a PDF document", _NO_TABLE),
    (rb"\x89PNG|\xff\xd8\xff|GIF8|BM.{4}\0\0\0\0", "a picture", _NO_TABLE),
    (rb"(?s:.{257})ustar", "a tar archive", _UNPACK.format("tar -xOf FILE.tar")),
)
_TEXT_FORMATS: tuple[OtherFormat, ...] = (
    (
        rb"\s*<(!doctype html|html|head|body|table|!--)",
        "an HTML page",
        "An address often answers with a page where a login or another address is needed. "
        "Download the table itself, as CSV, NDJSON or Parquet",
    ),
    (
        rb"\s*<[?!A-Za-z]",
        "XML",
        "Convert it, for example with pandas: pandas.read_xml(...).to_csv(...)",
    ),
    (
        rb'\s*\[\s*([\[{"\d-]|\])',
        "a JSON array",
        "Write one record a line (NDJSON), for example with: "
        "jq -c '.[]' FILE.json | streamridge replay -",
    ),
)


def require_readable_bytes(head: bytes, name: str) -> None:
    """Raise if the first bytes of a file belong to another format."""
    _refuse(_BINARY_FORMATS, head, name)


def require_readable_text(head: str, name: str) -> None:
    """Raise if the first text of a file belongs to another format."""
    _refuse(_TEXT_FORMATS, head.lower().encode(), name)


def _refuse(formats: tuple[OtherFormat, ...], head: bytes, name: str) -> None:
    for begins, what, remedy in formats:
        if re.match(begins, head):
            raise InvalidInputError(
                f"{name} must be CSV, NDJSON or Parquet, packed with gzip or not, "
                f"got what looks like {what}. {remedy}."
            )
