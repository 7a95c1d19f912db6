"""Files and standard input, opened as bytes: unpacked, and every damage named."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from streamridge.errors import InvalidInputError

STDIN = "-"
GZIP = b"\x1f\x8b"


def name_of(path: str | os.PathLike[str]) -> str:
    """Return how messages name a file."""
    return "standard input" if path == STDIN else os.fspath(path)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """Open a file or standard input, unpacked if it is gzip, and refuse what cannot be read."""
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
    if sys.stdin is None:
        raise InvalidInputError("standard input must be open, got none.")
    return io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))
