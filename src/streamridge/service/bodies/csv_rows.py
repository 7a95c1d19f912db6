"""Tables in CSV with the columns sensor, time and value."""

from __future__ import annotations

import csv
import re
from codecs import utf_8_decode

from streamridge.errors import listed, shown
from streamridge.service.bodies.fields import FIELDS, FieldError
from streamridge.service.bodies.lines import (
    LONGEST_ROW,
    numbered,
    place,
    require_few_lines,
    require_short,
    without_mark,
)
from streamridge.service.bodies.sieve import Sieve
from streamridge.service.problems import Problem
from streamridge.service.rows import Batch

# Bytes that are looked at together to see whether they are text.
BLOCK = 2**16
NUMBER = re.compile(r"[+-]?(?=[.,]?[0-9])[0-9]*([.,]?)[0-9]*(?:[eE][+-]?[0-9]+)?")


def decode_csv(body: bytes) -> Batch:
    r"""Return the readings of a table in CSV; an empty value is a gap.

    The first line names the columns, in any order. Cells are parted by commas, or by semicolons,
    and then numbers may have a decimal comma. No cell may hold a line break, so a quotation mark
    that is left open spoils one line only.

    Examples
    --------
    >>> decode_csv(b"time;sensor;value\r\n1970-01-01 00:00:01Z;a;3,5\r\n").rows
    [Row(line=2, sensor='a', time=1000000, value=3.5)]
    """
    body = without_mark(body)
    _require_text(body)
    require_few_lines(body, besides=1)
    sieve = Sieve()
    lines = numbered(body)
    table = CsvTable(*next(lines, (1, b"")))
    for line, raw in lines:
        try:
            sieve.add(line, *table.fields(raw))
        except FieldError as error:
            sieve.refuse(line, error)
    return sieve.batch()


class CsvTable:
    """How a table is written, as its header says and its numbers show.

    Parameters
    ----------
    line
        The number of its first line.
    header
        This line.
    """

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
                f"blanks and parted by commas or semicolons, got {listed(names)}.",
            )
        self._places = [names.index(field) for field in FIELDS]
        # The decimal mark, once a number has shown it.
        self._mark = ""

    def fields(self, raw: bytes) -> tuple[str, str, float | str | None]:
        """Return sensor, time and value of a line; a value that is no number stays a text."""
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
            # Whichever is the decimal mark, the other one parts thousands.
            raise FieldError(
                "sr-not-a-number",
                f"value must have the decimal mark {self._mark!r} of the lines before, "
                f"got {shown(text)}.",
                "value",
            )
        self._mark = mark or self._mark
        return float(text.replace(",", "."))


def _require_text(body: bytes) -> None:
    """Refuse a table that is not UTF-8: its names would be others."""
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
