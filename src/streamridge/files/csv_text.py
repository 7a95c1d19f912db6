"""CSV: text whose cells are parted by a delimiter, in blocks of rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import IO, Any, TypeAlias

import numpy as np

from streamridge.errors import InvalidInputError, listed
from streamridge.files.blocks import Block, Origin, TextColumn, rows_in_a_block
from streamridge.files.dialect import MONTH_FIRST
from streamridge.files.pems import COLUMNS, is_station_row
from streamridge.files.sense import Sense, Senses
from streamridge.files.text import decoded
from streamridge.files.time_sense import WRITTEN, TimeSense

Row: TypeAlias = tuple[int, list[str]]  # the line it ends at, and its cells

_QUOTED = re.compile(r'"[^"]*"')
_DELIMITER = re.compile(r"[,;\t|]")
# Excel understands a line before the header that names the delimiter.
_NAMED_DELIMITER = re.compile(r'"?sep=([,;\t|])"?', re.IGNORECASE)
COMMENT = "#"


def csv_blocks(lines: IO[str], encoding: str, origin: Origin, senses: Senses) -> Iterator[Block]:
    """Yield the rows of a text.

    The delimiter is whichever of `,` `;` tab `|` comes first in the header, unless a line such as
    sep=; stands before it. Rows with no content are skipped, and so are lines with # before the
    header; where rows follow at once, the last of these is the header.
    """
    table = _Table(lines, origin)
    with decoded(origin.name, encoding, lambda: table.lines_read):
        table.open()
        senses.usual = "," if table.delimiter == ";" else "."
        if table.comments:
            senses.remark("lines with # before the header are skipped")
        rows, size = table.rows(), rows_in_a_block(len(table.names))
        chunks = iter(lambda: list(islice(rows, size)), [])
        # A loop over the chunks would hold on to one while the next is read.
        yield from map(lambda chunk: _block(chunk, table, senses), chunks)


class _Table:
    """A CSV text that is being read, and what is known of it.

    Once it is open, `delimiter` and `names` are those of its header; `ragged` counts rows with more
    or fewer cells that were left out since it was last set to 0.
    """

    def __init__(self, lines: Iterable[str], origin: Origin) -> None:
        self.origin = origin
        self.delimiter = ","
        self.names: Sequence[str] = ()
        self.order: str | None = None  # of the parts of dates, where it is known
        self.comments: list[str] = []
        self.ragged = 0
        self._lines = iter(lines)
        self._skipped = 0  # lines before the header
        self._reader: Any = None
        self._ahead: list[list[str]] = []  # a first row that is no header

    @property
    def lines_read(self) -> int:
        """Return the number of lines that were read so far."""
        return self._skipped + (self._reader.line_num if self._reader is not None else 0)

    def open(self) -> None:
        """Read up to the first row."""
        first = self._first_line()
        self._reader = csv.reader(chain([first], self._lines), delimiter=self.delimiter)
        head = next(self._cells(), [])
        _require_text(head, self.origin)
        if is_station_row(head):
            self.names = COLUMNS + ("",) * (len(head) - len(COLUMNS))
            self.order, self._ahead = MONTH_FIRST, [head]
            return
        if _holds_readings(head):
            self._ahead = [head]
            head = self._commented_names(head)
        self.names = [cell.strip() for cell in head]
        self.origin.require_distinct(self.names)

    def rows(self) -> Iterator[Row]:
        """Yield the rows that have as many cells as the header."""
        width = len(self.names)
        for cells in chain(self._ahead, self._cells()):
            if len(cells) == width:
                yield self.lines_read, cells
            else:
                must = f" must have {width} cells like the first line, got {len(cells)}"
                self.origin.refuse(self.lines_read, must, "rows")
                self.ragged += 1

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

    def _commented_names(self, cells: Sequence[str]) -> list[str]:
        """Return the header that stands in a comment above rows."""
        above = [line.lstrip(f"{COMMENT} ").strip() for line in self.comments]
        names = next(csv.reader(above, delimiter=self.delimiter), [])
        if len(names) != len(cells) or _holds_readings(names):
            raise InvalidInputError(
                f"{self.origin.name} line {self.lines_read} must be a header that names the "
                f"columns, got {listed(cells)}."
            )
        self.comments = []
        return names


def _delimiter(header: str) -> str:
    found = _DELIMITER.search(_QUOTED.sub("", header))
    return found.group() if found else ","


def _require_text(cells: Sequence[str], origin: Origin) -> None:
    if not cells or "\0" in "".join(cells):
        got = "null characters" if cells else "an empty file"
        raise InvalidInputError(
            f"{origin.name} must be CSV, NDJSON or Parquet with rows, got {got}."
        )


def _holds_readings(cells: Sequence[str]) -> bool:
    """Return whether a first row holds readings, not names; a name may be a number, as 20210613."""
    column = TextColumn(cells, Sense(times=TimeSense(found=WRITTEN)))
    only_times = ~np.isnat(column.times[0]) & np.isinf(column.numbers)
    return bool(np.isfinite(column.numbers[0]) or only_times.any())


def _block(rows: Sequence[Row], table: _Table, senses: Senses) -> Block:
    """Return rows as a block, with the count of those that were left out meanwhile."""
    lines = [line for line, _ in rows]
    cells_of = zip(*(cells for _, cells in rows), strict=True) if rows else repeat(())
    columns = {}
    for position, (name, cells) in enumerate(zip(table.names, cells_of, strict=False)):
        if name or position == 0:
            columns[name] = TextColumn(cells, senses.of(name, table.order), lines)
        elif any(map(str.strip, cells)):
            senses.remark(f"column {position + 1} has no name and is left out")
    ragged, table.ragged = table.ragged, 0
    return Block(table.origin, lines, columns, ragged)
