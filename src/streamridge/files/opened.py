"""Files and standard input as streams of bytes: unpacked, with every damage named."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from streamridge.errors import InvalidInputError
from streamridge.files.guards import CHUNK, Counted, Unpacked

STDIN = "-"
GZIP = b"\x1f\x8b"


def name_of(path: str | os.PathLike[str]) -> str:
    """Return what messages call a file."""
    return "standard input" if path == STDIN else os.fspath(path)


@contextmanager
def opened(
    path: str | os.PathLike[str], most_bytes: int | None = None
) -> Iterator[io.BufferedReader]:
    """Open a file or standard input, and unpack it if it is gzip.

    An error of the file system or of gzip, met here or while the stream is read, becomes an
    `InvalidInputError` that names the file.

    Parameters
    ----------
    path
        The file; "-" is standard input.
    most_bytes
        The most bytes that it may unpack to.
    """
    name = name_of(path)
    try:
        with _source(path) as source:
            packed = source.peek(2)[:2] == GZIP
            yield io.BufferedReader(Unpacked(source, name, most_bytes), CHUNK) if packed else source
    except (OSError, EOFError, zlib.error) as error:
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
    return io.BufferedReader(Counted(sys.stdin.buffer))
