"""Files and standard input as streams of bytes: unpacked, with every damage named."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from streamridge.errors import InvalidInputError

STDIN = "-"
GZIP = b"\x1f\x8b"


def name_of(path: str | os.PathLike[str]) -> str:
    """Return what messages call a file."""
    return "standard input" if path == STDIN else os.fspath(path)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """Open a file or standard input, and unpack it if it is gzip.

    An error of the file system, of gzip, of the text encoding or of the CSV syntax, met here or
    while the stream is read, becomes an `InvalidInputError` that names the file.
    """
    name = name_of(path)
    try:
        with _source(path) as source:
            packed = source.peek(2)[:2] == GZIP
            yield io.BufferedReader(gzip.GzipFile(fileobj=source)) if packed else source
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{name} must be text in UTF-8, got byte 0x{error.object[error.start]:02x}. "
            "Convert it, for example with: iconv -f latin1 -t utf-8"
        ) from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"{name} must be a file that can be read, got: {reason}.") from None


def _source(path: str | os.PathLike[str]) -> io.BufferedReader:
    if path != STDIN:
        try:
            return open(path, "rb")
        except ValueError as error:  # a null character in the name
            raise OSError(str(error)) from None
    if sys.stdin is None or sys.stdin.closed:
        raise InvalidInputError("standard input must be open, got a closed one.")
    return io.BufferedReader(_LeftOpen(sys.stdin.buffer))


class _LeftOpen(io.RawIOBase):
    """A stream that reads from another one, which stays open when this one is closed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)
