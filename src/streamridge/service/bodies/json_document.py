"""One document of JSON: a reading, an array of readings, or an object that holds one."""

from __future__ import annotations

import re
from codecs import utf_8_decode
from collections.abc import Iterator
from json import JSONDecodeError

import msgspec

from streamridge.service.bodies.fields import FieldError
from streamridge.service.bodies.json_values import (
    QUOTES,
    READER,
    UNTYPED,
    TypedReading,
    fields_of,
)
from streamridge.service.bodies.lines import LONGEST_ROW, place, without_mark
from streamridge.service.bodies.sieve import Sieve
from streamridge.service.problems import Problem
from streamridge.service.rows import MOST_ROWS, Batch

BLANKS = re.compile(rb"[ \t\r\n]*")
# What comes before the first reading of several, between two, and after the last.
OPENING = re.compile(rb'[ \t\r\n]*(?:\[|(\{)[ \t\r\n]*"readings"[ \t\r\n]*:[ \t\r\n]*\[)[ \t\r\n]*')
COMMA = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
CLOSING = {False: re.compile(rb"[ \t\r\n]*\]"), True: re.compile(rb"[ \t\r\n]*\][ \t\r\n]*\}")}
SHAPES = 'one reading, an array of readings, or {"readings": [...]}'


class Wrapped(msgspec.Struct, forbid_unknown_fields=True):
    """An object that holds readings."""

    readings: list[TypedReading]


ARRAY, WRAPPED = msgspec.json.Decoder(list[TypedReading]), msgspec.json.Decoder(Wrapped)


def decode_json(body: bytes) -> Batch:
    """Return the readings of a document of JSON; a reading's line is its place among them.

    Examples
    --------
    >>> decode_json(b'[{"sensor": "a", "time": "1970-01-01T00:00:01Z", "value": null}]').rows
    [Row(line=1, sensor='a', time=1000000, value=None)]
    """
    body = without_mark(body)
    sieve = Sieve()
    readings = _all_at_once(body)
    if readings is None:
        _add_values(sieve, body)
    else:
        sieve.add_all(readings)
    return sieve.batch()


def _all_at_once(body: bytes) -> list[TypedReading] | None:
    """Return all readings if there are several and each has the right fields, else None."""
    opening = OPENING.match(body)
    if opening is None:
        return None
    around = 1 if opening[1] else 0
    # With more braces than rows may be, rows are counted one by one, before they fill memory.
    if body.count(b"{") > MOST_ROWS + around:
        return None
    try:
        readings = WRAPPED.decode(body).readings if around else ARRAY.decode(body)
    except UNTYPED:
        return None
    quotes = QUOTES * len(readings) + 2 * around
    return readings if body.count(b'"') == quotes else None


def _add_values(sieve: Sieve, body: bytes) -> None:
    for line, value in enumerate(_values(body), 1):
        try:
            sieve.add(line, *fields_of(value))
        except FieldError as error:
            sieve.refuse(line, error)


def _values(body: bytes) -> Iterator[object]:
    """Yield the values of a document one by one, so that only one is in memory."""
    opening = OPENING.match(body)
    if opening is None:
        value, at = _value(body, _after(BLANKS, body, 0))
        yield value
    else:
        closing, at = CLOSING[opening[1] is not None], opening.end()
        first = True
        while (end := closing.match(body, at)) is None:
            value, at = _value(body, at if first else _after(COMMA, body, at))
            yield value
            first = False
        at = end.end()
    if _after(BLANKS, body, at) != len(body):
        raise _unreadable(body, at, "something comes after the end of the document")


def _value(body: bytes, at: int) -> tuple[object, int]:
    """Return the value that begins at a byte, and the byte after it.

    Only as many bytes are looked at as a reading may have.
    """
    try:
        text, _ = utf_8_decode(body[at : at + LONGEST_ROW], "strict", False)
        value, end = READER.raw_decode(text)
    except UnicodeDecodeError as error:
        raise _unreadable(body, at + error.start, "it is not UTF-8") from None
    except RecursionError:
        raise _unreadable(body, at, "it is nested too deeply") from None
    except JSONDecodeError as error:
        byte = at + len(text[: error.pos].encode())
        long = f", or a reading of more than {LONGEST_ROW:,} bytes"
        raise _unreadable(body, byte, f"it is not JSON ({error.msg}){long}") from None
    return value, at + len(text[:end].encode())


def _after(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    match = pattern.match(body, at)
    if match is None:
        raise _unreadable(body, at, "a comma or the end is missing")
    return match.end()


def _unreadable(body: bytes, at: int, reason: str) -> Problem:
    return Problem(
        "sr-unreadable", f"{place(body, at)}: {reason}. A body of JSON must be {SHAPES}."
    )
