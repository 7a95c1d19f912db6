"""CSV: text whose cells are parted by a delimiter, in blocks of rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import IO, TypeAlias

import numpy as np

from streamridge.errors import InvalidInputError, listed
from streamridge.files.blocks import Block, Origin, TextColumn, rows_in_a_block
from streamridge.files.pems import COLUMNS, is_station_row
from streamridge.texts import counted

Row: TypeAlias = tuple[int, list[str]]  # the line it ends at, and its cells

_QUOTED = re.compile(r'"[^"]*"')
_DELIMITER = re.compile(r"[,;\t|]")


def csv_blocks(stream: IO[bytes], origin: Origin) -> Iterator[Block]:
    """Yield the rows of a text in UTF-8, with or without a byte order mark.

    The delimiter is whichever of `,` `;` tab `|` comes first in the header. With `;` or tab,
    numbers may have a decimal comma. Rows with no content are skipped.
    """
    with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines:
        yield from _blocks(lines, origin)


def _blocks(lines: Iterable[str], origin: Origin) -> Iterator[Block]:
    lines = iter(lines)
    blank, first = next(((i, line) for i, line in enumerate(lines) if line.strip()), (0, ""))
    delimiter = _delimiter(first)
    reader = csv.reader(chain([first], lines), delimiter=delimiter)
    rows: Iterator[Row] = (
        (reader.line_num + blank, row) for row in reader if any(map(str.strip, row))
    )
    line, head = next(rows, (0, []))
    if is_station_row(head):
        names: Sequence[str] = COLUMNS
        rows = chain([(line, head)], rows)
    else:
        names = _header(head, line, origin)
    size = rows_in_a_block(len(head))
    chunks = iter(lambda: list(islice(rows, size)), [])
    decimal_comma = delimiter in ";\t"
    # A loop over the chunks would hold on to one while the next is read.
    yield from map(lambda chunk: _block(chunk, names, len(head), decimal_comma, origin), chunks)


def _delimiter(header: str) -> str:
    found = _DELIMITER.search(_QUOTED.sub("", header))
    return found.group() if found else ","


def _header(cells: Sequence[str], line: int, origin: Origin) -> Sequence[str]:
    if not cells or "\0" in "".join(cells):
        got = "null characters" if cells else "an empty file"
        raise InvalidInputError(f"{origin.name} must be text or Parquet with rows, got {got}.")
    if _holds_readings(cells):
        raise InvalidInputError(
            f"{origin.name} line {line} must be a header that names the columns, "
            f"got {listed(cells)}."
        )
    names = [cell.strip() for cell in cells]
    origin.require_distinct(names)
    return names


def _holds_readings(cells: Sequence[str]) -> bool:
    """Return whether a first row holds readings, not names; a name may be a number, as 20210613."""
    column = TextColumn(cells)
    only_times = ~np.isnat(column.times[0]) & np.isinf(column.numbers)
    return bool(np.isfinite(column.numbers[0]) or only_times.any())


def _block(
    rows: Sequence[Row], names: Sequence[str], width: int, decimal_comma: bool, origin: Origin
) -> Block:
    whole = [row for row in rows if len(row[1]) == width]
    if len(whole) < len(rows):
        line, cells = next(row for row in rows if len(row[1]) != width)
        origin.refuse(
            line,
            f" must have {counted(width, 'cell')} like the first line, got {len(cells)}",
            "rows",
        )
    cells_of = zip(*(cells for _, cells in whole), strict=True) if whole else repeat(())
    columns = {
        name: TextColumn(cells, decimal_comma)
        for position, (name, cells) in enumerate(zip(names, cells_of, strict=False))
        if name or position == 0
    }
    return Block(origin, [line for line, _ in whole], columns, len(rows) - len(whole))
