"""CSV tables with the columns sensor, time and value."""

from __future__ import annotations

import csv
import re
from codecs import utf_8_decode

from streamridge.errors import listed, shown
from streamridge_service.bodies.fields import FIELDS, FieldError
from streamridge_service.bodies.row_validation import (
    LONGEST_ROW,
    RowValidator,
    numbered_lines,
    place,
    require_few_lines,
    require_short,
    without_byte_order_mark,
)
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch

# Bytes that are checked for UTF-8 at once.
BLOCK = 2**16
NUMBER = re.compile(r"[+-]?(?=[.,]?[0-9])[0-9]*([.,]?)[0-9]*(?:[eE][+-]?[0-9]+)?")


def decode_csv(body: bytes) -> Batch:
    r"""Return the readings of a CSV table; an empty value is a missing measurement.

    The first line names the columns, in any order. Cells are separated by commas or semicolons.
    Numbers may have a decimal comma if semicolons separate the cells. A cell must not contain a
    line break, so an unclosed quotation mark affects one line only.

    Examples
    --------
    >>> decode_csv(b"time;sensor;value\r\n1970-01-01 00:00:01Z;a;3,5\r\n").rows
    [Row(line=2, sensor='a', time=1000000, value=3.5)]
    """
    body = without_byte_order_mark(body)
    _require_utf8(body)
    require_few_lines(body, headers=1)
    validator = RowValidator()
    lines = numbered_lines(body)
    table = CsvTable(*next(lines, (1, b"")))
    for line, raw in lines:
        try:
            validator.add(line, *table.fields(raw))
        except FieldError as error:
            validator.refuse(line, error)
    return validator.batch()


class CsvTable:
    """The format of a table: the order of its columns, its delimiter and its decimal mark."""

    def __init__(self, line: int, header: bytes) -> None:
        self._delimiter = ";" if b";" in header else ","
        try:
            names = self._cells(header)
        except FieldError:
            names = [header[:LONGEST_ROW].decode(errors="replace")]
        if sorted(names) != sorted(FIELDS):
            raise Problem(
                "sr-unreadable",
                f"line {line} must name the columns sensor, time and value, in any order, without "
                f"blanks and separated by commas or semicolons, got {listed(names)}.",
            )
        self._places = [names.index(field) for field in FIELDS]
        # The decimal mark of the first number that has one.
        self._mark = ""

    def fields(self, raw: bytes) -> tuple[str, str, float | str | None]:
        """Return sensor, time and value of a line; a value that is not a number stays text."""
        cells = self._cells(raw)
        if len(cells) != len(FIELDS):
            raise FieldError(
                "sr-bad-row", f"a row must have {len(FIELDS)} cells, got {len(cells)}."
            )
        sensor, time, value = (cells[index] for index in self._places)
        return sensor, time, self._number(value)

    def _cells(self, raw: bytes) -> list[str]:
        require_short(raw)
        try:
            return next(csv.reader([raw.decode()], delimiter=self._delimiter, strict=True), [])
        except csv.Error as error:
            raise FieldError("sr-bad-row", f"a row must be whole in one line: {error}.") from None

    def _number(self, text: str) -> float | str | None:
        match = NUMBER.fullmatch(text)
        if match is None:
            return text or None
        mark = match[1]
        if mark == "," and self._delimiter == ",":
            return text
        if mark and self._mark and mark != self._mark:
            # One of the two marks separates thousands.
            raise FieldError(
                "sr-not-a-number",
                f"value must have the decimal mark {self._mark!r} of the lines before, "
                f"got {shown(text)}.",
                "value",
            )
        self._mark = mark or self._mark
        return float(text.replace(",", "."))


def _require_utf8(body: bytes) -> None:
    """Raise unless a table is UTF-8; in another encoding its names would be wrong."""
    at = len(body) if body.isascii() else 0
    while at < len(body):
        block = body[at : at + BLOCK]
        try:
            at += utf_8_decode(block, "strict", at + BLOCK >= len(body))[1]
        except UnicodeDecodeError as error:
            where = place(body, at + error.start)
            raise Problem(
                "sr-unreadable", f"a table must be UTF-8, which {where} is not."
            ) from None
