"""Text out of bytes: which encoding, and where it goes wrong."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from streamridge.errors import InvalidInputError
from streamridge.files.dialect import Dialect
from streamridge.files.guards import CHUNK, Lines
from streamridge.texts import option

HEAD = 1024
# The longer marks come first, since that of UTF-16 begins that of UTF-32.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def encoding_of(head: bytes, name: str, dialect: Dialect) -> str:
    """Return the encoding of a text: as its byte order mark or the user says, else UTF-8."""
    marked = next((found for mark, found in _MARKS.items() if head.startswith(mark)), None)
    given = dialect.encoding and codecs.lookup(dialect.encoding).name
    if marked is None:
        _require_single_bytes(head, name, given)
        return given or "utf-8"
    if given is not None and not given.startswith(marked.removesuffix("-sig")):
        raise InvalidInputError(
            f"{name} must be text in {given}, as was said, got the byte order mark of "
            f"{marked.removesuffix('-sig')}. Leave out {option('encoding')}."
        )
    return marked


@contextmanager
def opened_text(stream: io.BufferedReader, name: str, encoding: str) -> Iterator[IO[str]]:
    """Open bytes as text, whose line ends stay as they are."""
    guarded = io.BufferedReader(Lines(stream, name), CHUNK)
    with io.TextIOWrapper(guarded, encoding=encoding, newline="") as lines:
        yield lines


@contextmanager
def decoded(name: str, encoding: str, lines_before: Callable[[], int]) -> Iterator[None]:
    """Turn an error of the encoding into one that names its line and the way out.

    Parameters
    ----------
    name, encoding
        The file and its encoding.
    lines_before
        Returns how many lines have been read.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        chunk, start = error.object, error.start
        before = chunk[:start]
        line = lines_before() + 1 + (before.count(b"\n") or before.count(b"\r"))
        if _CONTROL.search(chunk):
            raise InvalidInputError(
                f"{name} must be CSV, NDJSON or Parquet, packed with gzip or not, "
                f"got bytes that are no text in line {line}."
            ) from None
        raise InvalidInputError(
            f"{name} line {line} must be text in {encoding.upper()}, got byte "
            f"0x{chunk[start]:02x}. Pass the right encoding, such as --encoding latin-1 "
            "(encoding= in Python)."
        ) from None


def _require_single_bytes(head: bytes, name: str, given: str | None) -> None:
    """Raise at a text of two bytes a letter that does not say so itself."""
    if given is not None or len(head) < 4:
        return
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        nulls, letters = head[start:HEAD:2], head[1 - start : HEAD : 2]
        if nulls.count(0) > 0.7 * len(nulls) and letters.count(0) < 0.3 * len(letters):
            raise InvalidInputError(
                f"{name} must be text in UTF-8, got what looks like {encoding.upper()} without "
                f"a byte order mark. Pass {option('encoding', encoding)}."
            )
