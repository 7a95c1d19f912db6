"""Readings as JSON: one document, or one object a line (NDJSON).

A body of valid rows is decoded by msgspec in one call. Any other body is decoded value by value
with the standard library. Its decoder accepts more than JSON: NaN, lone surrogates and repeated
fields. Each of these is then refused with its own code.
"""

from __future__ import annotations

import re
from codecs import utf_8_decode
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder

import msgspec

from streamridge.errors import shown
from streamridge_service.bodies.fields import FieldError, require_fields
from streamridge_service.bodies.row_validation import (
    LONGEST_ROW,
    RowValidator,
    numbered_lines,
    place,
    require_few_lines,
    require_short,
    without_byte_order_mark,
)
from streamridge_service.limits import MOST_ROWS
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch

# Objects become tuples of pairs, which keep repeated fields. Integers become floats, since Python
# refuses integers of thousands of digits.
LENIENT = JSONDecoder(object_pairs_hook=tuple, parse_int=float)
# Quotation marks of a reading: around three names and two strings. A reading with more of them
# repeats a field, or has a quotation mark in a string.
QUOTES = 10
BLANKS = re.compile(rb"[ \t\r\n]*")
# The text before the first reading of several, between two readings, and after the last.
OPENING = re.compile(rb'[ \t\r\n]*(?:\[|(\{)[ \t\r\n]*"readings"[ \t\r\n]*:[ \t\r\n]*\[)[ \t\r\n]*')
COMMA = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
CLOSING = {False: re.compile(rb"[ \t\r\n]*\]"), True: re.compile(rb"[ \t\r\n]*\][ \t\r\n]*\}")}
SHAPES = 'one reading, an array of readings, or {"readings": [...]}'


class JsonRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A reading whose fields have the right types."""

    sensor: str
    time: str
    value: float | None


class JsonRows(msgspec.Struct, forbid_unknown_fields=True):
    """An object that holds readings."""

    readings: list[JsonRow]


ROW = msgspec.json.Decoder(JsonRow)
ARRAY, OBJECT = msgspec.json.Decoder(list[JsonRow]), msgspec.json.Decoder(JsonRows)
# Errors of msgspec for bodies of another shape.
WRONG_SHAPE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_json(body: bytes) -> Batch:
    """Return the readings of a JSON document; their lines are their positions in it.

    Examples
    --------
    >>> decode_json(b'[{"sensor": "a", "time": "1970-01-01T00:00:01Z", "value": null}]').rows
    [Row(line=1, sensor='a', time=1000000, value=None)]
    """
    body = without_byte_order_mark(body)
    validator = RowValidator()
    rows = _valid_document(body)
    if rows is not None:
        validator.add_all(rows)
        return validator.batch()
    for line, value in enumerate(_values(body), 1):
        try:
            validator.add(line, *_fields(value))
        except FieldError as error:
            validator.refuse(line, error)
    return validator.batch()


def decode_json_lines(body: bytes) -> Batch:
    r"""Return the readings of lines of JSON; an invalid line is refused alone.

    Examples
    --------
    >>> batch = decode_json_lines(
    ...     b'{"sensor": "ramp-7", "time": "1970-01-01T00:15:00Z", "value": 12}\n'
    ...     b'{"sensor": "ramp-8", "time": "1970-01-01T00:15:00Z", "value": "12"}\n'
    ... )
    >>> batch.rows
    [Row(line=1, sensor='ramp-7', time=900000000, value=12.0)]
    >>> batch.refused[0].line, batch.refused[0].code, batch.refused[0].column
    (2, 'sr-not-a-number', 'value')
    """
    body = without_byte_order_mark(body)
    require_few_lines(body)
    validator = RowValidator()
    rows = _valid_lines(body)
    if rows is not None:
        validator.add_all(rows)
        return validator.batch()
    for line, raw in numbered_lines(body):
        row = _valid_line(raw)
        try:
            if row is None:
                validator.add(line, *_fields_of_line(raw))
            else:
                validator.add(line, row.sensor, row.time, row.value)
        except FieldError as error:
            validator.refuse(line, error)
    return validator.batch()


def _valid_document(body: bytes) -> list[JsonRow] | None:
    """Return the readings of a document if there are several and all have the right fields."""
    opening = OPENING.match(body)
    if opening is None:
        return None
    wrapped = 1 if opening[1] else 0
    # A body with more braces than allowed rows is decoded row by row, to bound its memory.
    if body.count(b"{") > MOST_ROWS + wrapped:
        return None
    try:
        rows = OBJECT.decode(body).readings if wrapped else ARRAY.decode(body)
    except WRONG_SHAPE:
        return None
    return rows if body.count(b'"') == QUOTES * len(rows) + 2 * wrapped else None


def _valid_lines(body: bytes) -> list[JsonRow] | None:
    """Return the readings of all lines if each line is one reading with the right fields."""
    try:
        rows = ROW.decode_lines(body)
    except WRONG_SHAPE:
        return None
    ends = len(rows) - 1
    # A line break inside a string is not JSON, so these are between readings.
    parted = body.count(b"}\n{") + body.count(b"}\r\n{") == ends
    one_a_line = parted and body.count(b"\n") - body.endswith(b"\n") == ends
    return rows if one_a_line and body.count(b'"') == QUOTES * len(rows) else None


def _valid_line(raw: bytes) -> JsonRow | None:
    try:
        return ROW.decode(raw) if raw.count(b'"') == QUOTES else None
    except WRONG_SHAPE:
        return None


def _fields(value: object) -> tuple[object, object, object]:
    """Return sensor, time and value of an object; raise if it has other fields."""
    if not isinstance(value, tuple):
        raise FieldError(
            "sr-bad-row",
            f"a row must be an object with sensor, time and value, got {shown(value)}.",
        )
    require_fields([name for name, _ in value])
    fields = dict(value)
    return fields["sensor"], fields["time"], fields["value"]


def _fields_of_line(raw: bytes) -> tuple[object, object, object]:
    require_short(raw)
    try:
        return _fields(LENIENT.decode(raw.decode()))
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 at byte {error.start + 1}"
    except JSONDecodeError as error:
        reason = f"is not JSON at character {error.pos + 1}: {error.msg}"
    except RecursionError:
        reason = "is nested too deeply"
    raise FieldError("sr-bad-row", f"a line must be one object of JSON; this one {reason}.")


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
    """Return the value that begins at a byte, and the position after it.

    At most `LONGEST_ROW` bytes are parsed.
    """
    try:
        text, _ = utf_8_decode(body[at : at + LONGEST_ROW], "strict", False)
        value, end = LENIENT.raw_decode(text)
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
