"""CSV: text whose cells are separated by a delimiter, read some rows at a time."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from math import isfinite
from typing import IO, Any, TypeAlias

import numpy as np

from streamridge.errors import InvalidInputError, counted, listed, option
from streamridge.files.date_formats import WRITTEN, DateFormat
from streamridge.files.encodings import naming_lines
from streamridge.files.layouts import PEMS_COLUMNS, is_station_row
from streamridge.files.number_formats import parse_number
from streamridge.files.raw_table import (
    Column,
    ColumnFormat,
    Origin,
    RawTable,
    SourceFormats,
    rows_in_a_part,
)
from streamridge.files.reading_options import MONTH_FIRST

# The line at which a row ends, and its cells.
CsvRow: TypeAlias = tuple[int, list[str]]

_QUOTED = re.compile(r'"[^"]*"')
_DELIMITER = re.compile(r"[,;\t|]")
# Excel understands a line before the header that names the delimiter.
_NAMED_DELIMITER = re.compile(r'"?sep=([,;\t|])"?', re.IGNORECASE)
COMMENT = "#"
# A header has at most this number of lines of other text above it.
MOST_LINES_ABOVE = 100


def read_csv(
    lines: IO[str], encoding: str, origin: Origin, formats: SourceFormats
) -> Iterator[RawTable]:
    """Yield the rows of a text.

    The delimiter is the first of `,` `;` tab `|` in the header, unless a line such as sep=; comes
    before it. Empty rows are skipped, and so are lines with # before the header. If such lines are
    followed by rows without a header, the last of them is the header.
    """
    options = formats.options
    table = _CsvTable(
        lines, origin, skip_lines=options.skip_lines, counted=options.start_time is not None
    )
    with naming_lines(origin.name, encoding, lambda: table.lines_read):
        table.open()
        formats.usual = "," if table.delimiter == ";" else "."
        if table.comments:
            formats.note("lines with # before the header are skipped")
        if table.remark:
            formats.note(table.remark)
        rows, size = table.rows(), rows_in_a_part(len(table.names))
        chunks = iter(lambda: list(islice(rows, size)), [])
        # A loop over the chunks would keep one in memory while the next is read.
        yield from map(lambda chunk: _raw_table(chunk, table, formats), chunks)


class _CsvTable:
    """A CSV text that is being read: its delimiter, its header and its rows.

    After `open`, `delimiter` and `names` are known from its header. `ragged` counts rows with more
    or fewer cells that were left out since it was last set to 0. If rows are `counted`, none has a
    time, and the header may consist of numbers or be missing.
    """

    def __init__(
        self, lines: Iterable[str], origin: Origin, *, skip_lines: int = 0, counted: bool = False
    ) -> None:
        self.origin = origin
        self.remark = ""  # how a first row of numbers is read
        self.delimiter = ","
        self.names: Sequence[str] = ()
        self.order: str | None = None  # the order of day and month, where it is known
        self.comments: list[str] = []
        self.ragged = 0
        self._lines = iter(lines)
        self._skipped = sum(1 for _ in islice(self._lines, skip_lines))  # lines before the header
        self._counted = counted
        self._reader: Any = None
        self._ahead: list[list[str]] = []  # a first row that is not a header

    @property
    def lines_read(self) -> int:
        """Return the number of lines that were read so far."""
        return self._skipped + (self._reader.line_num if self._reader is not None else 0)

    def open(self) -> None:
        """Read up to the first row."""
        first = self._first_line()
        self._reader = csv.reader(chain([first], self._lines), delimiter=self.delimiter)
        head = next(self._cells(), [])
        if not head or "\0" in "".join(head):
            got = "null characters" if head else "an empty file"
            raise InvalidInputError(
                f"{self.origin.name} must be CSV, NDJSON or Parquet with rows, got {got}."
            )
        if is_station_row(head):
            self.names = PEMS_COLUMNS + ("",) * (len(head) - len(PEMS_COLUMNS))
            self.order, self._ahead = MONTH_FIRST, [head]
            return
        if self._counted and _are_numbers(head):
            head = self._names_above_numbers(head)
        elif _holds_readings(head):
            self._ahead = [head]
            head = self._commented_names(head)
        self.names = [cell.strip() for cell in head]
        self.origin.require_distinct(self.names)

    def rows(self) -> Iterator[CsvRow]:
        """Yield the rows that have as many cells as the header."""
        width = len(self.names)
        for cells in chain(self._ahead, self._cells()):
            if len(cells) == width:
                yield self.lines_read, cells
            else:
                must = f" must have {counted(width, 'cell')} like the first line, got {len(cells)}"
                self.origin.refuse(self.lines_read, must, "rows", self._header_remedy(cells))
                self.ragged += 1

    def _header_remedy(self, cells: Sequence[str]) -> str:
        """Return the remedy for text above the header, if this row looks like the header."""
        far = self.lines_read > MOST_LINES_ABOVE or self.origin.gap == "skip"
        if far or len(cells) <= len(self.names) or _are_numbers(cells) or _holds_readings(cells):
            return ""
        lines = self.lines_read - 1
        return f", or {option('skip_lines', str(lines))} if line {lines + 1} is the header"

    def _first_line(self) -> str:
        """Return the first line that is neither blank nor a comment."""
        for line in self._lines:
            named = _NAMED_DELIMITER.fullmatch(line.strip())
            if line.lstrip().startswith(COMMENT):
                self.comments = [line]  # only the last may be a header
            elif named and not self._skipped:
                self._skipped += 1
                line = next((each for each in self._lines), "")
                self.delimiter = named[1]
                return line
            elif line.strip():
                self.delimiter = _delimiter(line)
                return line
            self._skipped += 1
        return ""

    def _cells(self) -> Iterator[list[str]]:
        try:
            yield from (row for row in self._reader if any(map(str.strip, row)))
        except csv.Error as error:
            raise InvalidInputError(
                f"{self.origin.name} line {self.lines_read} must be CSV, got: {error}. "
                "Is a quote left open?"
            ) from None

    def _names_above_numbers(self, first: list[str]) -> list[str]:
        """Return the names of columns, given a first row of numbers: its cells, or 1, 2, 3, ...

        The first row holds names if its cells are distinct whole numbers that the second row cannot
        continue, since the second row has decimals, or much smaller numbers.
        """
        second = next(self._cells(), [])
        self._ahead = [second] if second else []
        names = [cell.strip() for cell in first]
        if len(set(names)) == len(names) and all(map(str.isdigit, names)):
            values = [parse_number(cell, ".") for cell in second]
            known = [abs(each) for each in values if isfinite(each)]
            if any(each % 1 for each in known) or 10 * max(known, default=0) < min(map(int, names)):
                self.remark = f"the numbers of the first row, such as {names[0]}, name the sensors"
                return names
            raise InvalidInputError(
                f"{self.origin.name} line {self.lines_read - 1} must be a header that names the "
                f"columns, got {listed(first)}, which may be values. Write a header with names."
            )
        self._ahead = [first, *self._ahead]
        self.remark = "there is no header, so sensors are named by their column, from 1 on"
        return [str(1 + at) for at in range(len(first))]

    def _commented_names(self, cells: Sequence[str]) -> list[str]:
        """Return the header from a comment above the rows."""
        above = [line.lstrip(f"{COMMENT} ").strip() for line in self.comments]
        names = next(csv.reader(above, delimiter=self.delimiter), [])
        if len(names) != len(cells) or _holds_readings(names):
            raise InvalidInputError(
                f"{self.origin.name} line {self.lines_read} must be a header that names the "
                f"columns, got {listed(cells)}. Write a header, or pass {option('start_time')} and "
                f"{option('step')} if rows have no times."
            )
        self.comments = []
        return names


def _delimiter(header: str) -> str:
    found = _DELIMITER.search(_QUOTED.sub("", header))
    return found.group() if found else ","


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(isfinite(parse_number(cell, ".")) for cell in cells)


def _holds_readings(cells: Sequence[str]) -> bool:
    """Return whether a first row has readings instead of names; a name may be a number."""
    column = Column(cells, ColumnFormat(times=DateFormat(found=WRITTEN)))
    only_times = ~np.isnat(column.times[0]) & np.isinf(column.numbers)
    return bool(np.isfinite(column.numbers[0]) or only_times.any())


def _raw_table(rows: Sequence[CsvRow], table: _CsvTable, formats: SourceFormats) -> RawTable:
    """Return rows as a raw table, with the number of ragged rows left out since the last one."""
    lines = [line for line, _ in rows]
    cells_of = zip(*(cells for _, cells in rows), strict=True) if rows else repeat(())
    columns = {}
    for position, (name, cells) in enumerate(zip(table.names, cells_of, strict=False)):
        if name or position == 0:
            columns[name] = Column(cells, formats.of(name, table.order), lines)
        elif any(map(str.strip, cells)):
            formats.note(f"column {position + 1} has no name and is left out")
    ragged, table.ragged = table.ragged, 0
    return RawTable(table.origin, lines, columns, ragged)
