"""Bodies that are lines of text."""

from __future__ import annotations

import io
from collections.abc import Iterator

from streamridge.service.bodies.fields import FieldError
from streamridge.service.bodies.sieve import too_many_rows
from streamridge.service.rows import MOST_ROWS

BOM = b"\xef\xbb\xbf"
# A reading takes about 70 bytes. What is much longer is none, and is not looked into.
LONGEST_ROW = 4_096


def without_mark(body: bytes) -> bytes:
    """Return a body without the byte order mark that some editors put before it."""
    return body.removeprefix(BOM)


def numbered(body: bytes) -> Iterator[tuple[int, bytes]]:
    r"""Yield the lines that are not blank, with their numbers from one and without their ends.

    Examples
    --------
    >>> list(numbered(b"a\r\n\n b"))
    [(1, b'a'), (3, b' b')]
    """
    for line, raw in enumerate(io.BytesIO(body), 1):
        if not raw.isspace():
            yield line, raw.rstrip(b"\r\n")


def require_few_lines(body: bytes, besides: int = 0) -> None:
    """Refuse a body of too many lines before any is read; `besides` of them are no rows.

    Blank lines are no rows, but as many of them as rows may be sent, no more.
    """
    count = body.count(b"\n")
    if count < MOST_ROWS:
        return
    if count > 2 * MOST_ROWS or sum(1 for _ in numbered(body)) > MOST_ROWS + besides:
        raise too_many_rows()


def require_short(raw: bytes) -> None:
    """Refuse a row that is far longer than any reading."""
    if len(raw) > LONGEST_ROW:
        raise FieldError(
            "sr-bad-row", f"a row must have at most {LONGEST_ROW:,} bytes, got {len(raw):,}."
        )


def place(body: bytes, at: int) -> str:
    """Return where a byte of a body is, as people count."""
    line = body.count(b"\n", 0, at) + 1
    return f"byte {at + 1} (line {line})"
