"""NDJSON: a record on each line, as a JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from math import inf, nan
from typing import IO, Any, TypeAlias

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, shown
from streamridge.files import raw_table
from streamridge.files.encodings import naming_lines
from streamridge.files.evidence import Texts
from streamridge.files.raw_table import Column, ColumnFormat, Origin, RawTable, SourceFormats

Record: TypeAlias = Mapping[str, Any]


class JsonColumn(Column):
    """A column of JSON's numbers, texts, true, false and null."""

    def __init__(self, cells: Sequence[Any], format: ColumnFormat, places: Sequence[int]) -> None:
        super().__init__((), format, places)
        self._cells = cells

    @cached_property
    def texts(self) -> Texts:
        """Return the cells as they are written, None for an empty one."""
        return [_text(cell) for cell in self._cells]

    def _head(self) -> Texts:
        return [_text(cell) for cell in self._cells[: raw_table.CELLS_INSPECTED]]

    @cached_property
    def numbers(self) -> Vector:
        """Return the cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        if any(isinstance(cell, str) for cell in self._cells):
            return self.format.numbers.read(self.texts, self._places)
        return self.format.numbers.without_missing(
            np.array([_number(cell) for cell in self._cells])
        )


def read_json_lines(
    lines: IO[str], encoding: str, origin: Origin, formats: SourceFormats
) -> Iterator[RawTable]:
    """Yield the records of a text; a key that a record lacks is a missing value."""
    records = _Records(lines, origin, formats.options.skip_lines)
    known: dict[str, str] = {}  # the names of columns, and their keys
    with naming_lines(origin.name, encoding, lambda: records.line):
        for places, rows in records.chunks():
            keys = dict.fromkeys(key for row in rows for key in row)
            known |= {key.strip(): key for key in keys if key.strip() not in known}
            columns = {
                name: JsonColumn([row.get(key) for row in rows], formats.of(name), places)
                for name, key in known.items()
            }
            yield RawTable(origin, places, columns, records.take_refused())


class _Pairs(dict[str, Any]):
    """A JSON object with the first of its keys that occurred more than once."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs] if len(pairs) > len(self) else []
        self.repeated = next((name for name in names if names.count(name) > 1), None)


class _Records:
    """The records of a text, and the number of lines read and refused."""

    def __init__(self, lines: Iterable[str], origin: Origin, skipped: int = 0) -> None:
        self._lines, self._origin = islice(lines, skipped, None), origin
        self._skipped = self.line = skipped
        self._refused = 0

    def chunks(self) -> Iterator[tuple[list[int], list[Record]]]:
        """Yield lists of records with their lines."""
        places: list[int] = []
        rows: list[Record] = []
        cells = 0
        for line in self._lines:
            self.line += 1
            record = self._record(line) if line.strip() else None
            if record is None:
                continue
            places.append(self.line)
            rows.append(record)
            cells += len(record)
            if cells >= raw_table.CELLS_IN_A_PART:
                yield places, rows
                places, rows, cells = [], [], 0
        yield places, rows

    def take_refused(self) -> int:
        """Return the number of lines refused since the last call."""
        refused, self._refused = self._refused, 0
        return refused

    def _record(self, line: str) -> Record | None:
        try:
            record = json.loads(line, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, _Pairs):
            if self.line == self._skipped + 1:
                raise InvalidInputError(
                    f"{self._origin.name} must have one JSON object a line (NDJSON), got one that "
                    "goes over several lines. Rewrite it, for example with: "
                    "jq -c . FILE.json | streamridge replay -, or jq -c '.data[]' if its records "
                    "are a list under the key data."
                )
            self._refuse(f" must be one JSON object, got {shown(line.strip())}")
            return None
        if record.repeated is not None:
            self._refuse(f", key {record.repeated}: must have one value, got more than one")
            return None
        nested = [key for key, cell in record.items() if isinstance(cell, dict | list)]
        if nested:
            got = shown(record[nested[0]])
            self._refuse(f", key {nested[0]}: must be a number, a text or null, got {got}")
            return None
        return record

    def _refuse(self, problem: str) -> None:
        self._origin.refuse(self.line, problem, "rows")
        self._refused += 1


def _text(cell: Any) -> str | None:
    return json.dumps(cell) if isinstance(cell, bool) else None if cell is None else str(cell)


def _number(cell: Any) -> float:
    if isinstance(cell, bool):
        return inf
    try:
        return nan if cell is None else float(cell)
    except OverflowError:
        return inf
