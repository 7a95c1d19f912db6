"""Encodings: which one a text has, and errors that name the line of a wrong byte."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streamridge.errors import InvalidInputError, option
from streamridge.files.open_files import CHUNK, LineLimitedStream

HEAD = 1024
# The longer marks come first, since the mark of UTF-32 begins with the mark of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Encodings that need a mark; others such as utf-16-le need none.
_MARKED_ENCODINGS = ("utf-16", "utf-32")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def encoding_of(head: bytes, name: str, given: str | None) -> str:
    """Return the encoding of a text, from its byte order mark or as given; UTF-8 by default."""
    marked = next((found for mark, found in _MARKS.items() if head.startswith(mark)), None)
    given = given and codecs.lookup(given).name
    if marked is None:
        _require_byte_order_mark(head, name, given)
        return given or "utf-8"
    if given is not None and not given.startswith(marked.removesuffix("-sig")):
        raise InvalidInputError(
            f"{name} must be text in {given}, the given encoding, got the byte order mark of "
            f"{marked.removesuffix('-sig')}. Leave out {option('encoding')}."
        )
    return marked


def open_text(stream: io.BufferedReader, name: str, encoding: str) -> io.TextIOWrapper:
    """Open bytes as text with unchanged line ends."""
    guarded = io.BufferedReader(LineLimitedStream(stream, name), CHUNK)
    return io.TextIOWrapper(guarded, encoding=encoding, newline="")


@contextmanager
def naming_lines(name: str, encoding: str, lines_before: Callable[[], int]) -> Iterator[None]:
    """Turn an error of the encoding into one that names its line and the remedy.

    `lines_before` returns the number of lines that have been read.
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


def _require_byte_order_mark(head: bytes, name: str, given: str | None) -> None:
    """Raise at a text in UTF-16 without a byte order mark, unless the order of bytes is given."""
    if given not in (None, *_MARKED_ENCODINGS) or len(head) < 4:
        return
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        nulls, letters = head[start:HEAD:2], head[1 - start : HEAD : 2]
        if nulls.count(0) > 0.7 * len(nulls) and letters.count(0) < 0.3 * len(letters):
            raise InvalidInputError(
                f"{name} must be text in UTF-8, got what looks like {encoding.upper()} without "
                f"a byte order mark. Pass {option('encoding', encoding)}."
            )
    if given is not None:
        raise InvalidInputError(
            f"{name} must begin with the byte order mark of {given}, got none. "
            f"Pass {option('encoding', f'{given}-le')}, or {given}-be."
        )
