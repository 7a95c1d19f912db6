"""Some rows of a source as raw columns, and how each column writes numbers and times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, listed, option, shown
from streamridge.files.date_formats import DateFormat
from streamridge.files.evidence import Clue, Texts
from streamridge.files.number_formats import OTHER, NumberFormat, parse_number
from streamridge.files.reading_options import DecimalMark, Gap, ReadingOptions
from streamridge.files.time_text import suggested_format
from streamridge.series.time_format import Offsets, Unit
from streamridge.series.times import Times

# A cell of text takes about 80 bytes, so that the raw table of one part takes some tens of MB.
CELLS_IN_A_PART = 500_000
# The number of rows that decide whether a column holds numbers, or times.
CELLS_INSPECTED = 100
# The longest text that may be a missing-value marker.
LONGEST_MARKER = 12
# Quarters and weeks, such as 2021Q2 and 2021-W24.
_PERIOD = re.compile(r"\d{4}[- ]?(?:q[1-4]|(?P<week>w)\d{1,2})", re.ASCII | re.IGNORECASE)


def rows_in_a_part(width: int) -> int:
    """Return how many rows of `width` cells are read at a time."""
    return max(1, CELLS_IN_A_PART // max(1, width))


@dataclass
class ColumnFormat:
    """How one column writes its cells, as numbers and as times."""

    numbers: NumberFormat = field(default_factory=NumberFormat)
    times: DateFormat = field(default_factory=DateFormat)


class SourceFormats:
    """The formats of the columns of one source, which grow as rows are read."""

    def __init__(self, options: ReadingOptions) -> None:
        self.options = options
        self.usual: DecimalMark = "."  # the decimal mark unless a cell proves another one
        self._notes: dict[str, None] = {}
        self._columns: dict[str, ColumnFormat] = {}

    def of(self, column: str, order: str | None = None) -> ColumnFormat:
        """Return the format of a column; `order` is the order of day and month, if known."""
        if column not in self._columns:
            self._columns[column] = ColumnFormat(
                NumberFormat(self.options, self.usual), DateFormat(column, self.options, order)
            )
        return self._columns[column]

    def note(self, text: str) -> None:
        """Add a decision that a user may want to check."""
        self._notes[text] = None

    def late_proofs(self) -> Iterator[tuple[str, Clue]]:
        """Yield the columns of which cells were misread, and the cells that proved it."""
        for name, each in self._columns.items():
            proof = each.numbers.late_proof or each.times.late_proof
            if proof is not None:
                yield name, proof

    def require_unambiguous(self, where: str) -> None:
        """Raise if cells can still be read in two ways; `where` is such as "flow.csv line"."""
        for name, each in self._columns.items():
            each.times.require_unambiguous(where, name)
            each.numbers.require_unambiguous(where, name)

    def notes(self) -> Iterator[str]:
        """Yield all decisions that a user may want to check, each once."""
        every = dict(self._notes)
        for each in self._columns.values():
            every |= dict.fromkeys((*each.times.notes(), *each.numbers.notes()))
        yield from every


class Column:
    """A column of text, whose cells are read as numbers or times when they are needed.

    Its format learns from the cells that are read. `places` are the line or row of each cell, by
    default counted from 0.

    >>> Column(["12", "NA", "n/a", "1,5"]).numbers
    array([12. ,  nan,  inf,  1.5])
    """

    zone: str | None = None  # the name of the zone of all times, where the source has one
    unit: Unit = "us"  # the unit in which the source counts times
    is_time: bool = False  # whether the type of the column is a time or a date

    def __init__(
        self, texts: Texts, format: ColumnFormat | None = None, places: Sequence[int] = ()
    ) -> None:
        self._texts, self._places = texts, places
        self.format = format or ColumnFormat()

    @property
    def texts(self) -> Texts:
        """Return the cells as they are written, None for an empty one."""
        return self._texts

    @cached_property
    def numbers(self) -> Vector:
        """Return the cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        return self.format.numbers.read(self.texts, self._places)

    @property
    def first_texts(self) -> list[str]:
        """Return the first cells that are not empty, without reading all of a long column."""
        return [text.strip() for text in self._head() if text and text.strip()]

    def _head(self) -> Texts:
        return self.texts[:CELLS_INSPECTED]

    @property
    def holds_numbers(self) -> bool:
        """Return whether most of the first cells are numbers."""
        cells = self.first_texts
        numbers = [parse_number(text, mark) for text in cells for mark in OTHER]
        known = np.isfinite(numbers).reshape(-1, len(OTHER)).any(axis=1)
        return bool(known.size and known.mean() > 0.5)

    @cached_property
    def times(self) -> tuple[Times, Offsets]:
        """Return the cells as times, NaT for an unreadable one, and their offsets from UTC."""
        return self.format.times.read(self.texts, self._places)


@dataclass(frozen=True)
class Origin:
    """The source of some rows, and what to do with a row or cell that cannot be read."""

    name: str  # the source, as the user named it
    unit: Literal["line", "row"]  # lines are counted from 1, rows of a frame from 0
    gap: Gap  # whether a cell that cannot be read is an error or is skipped

    def refuse(self, place: int, problem: str, thing: str, remedy: str = "") -> None:
        """Raise at something that cannot be read, unless it is to be skipped."""
        if self.gap == "error":
            raise InvalidInputError(
                f"{self.name} {self.unit} {place}{problem}. "
                f"Pass {option('gap', 'skip')} to drop such {thing}{remedy}."
            )

    def require_distinct(self, names: Sequence[str]) -> None:
        """Raise if two columns have the same name; columns without a name do not count."""
        repeated = [name for name, times in Counter(names).items() if name and times > 1]
        if repeated:
            raise InvalidInputError(
                f"{self.name} must have columns with distinct names, "
                f"got more than one named {listed(repeated)}."
            )


@dataclass(frozen=True)
class RawTable:
    """Some rows of a source."""

    origin: Origin
    places: Sequence[int]  # (n,), the line or row of each
    columns: Mapping[str, Column]  # in order; only the first may be without a name
    ragged: int = 0  # rows left out, with more or fewer cells than the header
    time: str | None = None  # the column of times, where that is known
    guessed: bool = False  # whether the column of times has no name or type that says so

    def find(self, names: Sequence[str]) -> str | None:
        """Return the column with one of these names, in any case; the earliest name wins."""
        columns = {column.lower(): column for column in reversed(list(self.columns))}
        return next((columns[name] for name in names if name in columns), None)

    def require(self, option_name: str, name: str) -> str:
        """Return the column that an option names, in any case; raise if there is none."""
        column = name if name in self.columns else self.find((name.lower(),))
        if column is None:
            raise InvalidInputError(
                f"{option_name} must be a column of {self.origin.name}, got {shown(name)}. "
                f"It has {listed(self.columns)}."
            )
        return column

    def refuse(self, row: int, column: str, wanted: str, remedy: str = "") -> None:
        """Raise at a cell that is not what is wanted, unless such cells are to be skipped."""
        cell = shown(self.columns[column].texts[row])
        problem = f", column {column}: must be {wanted}, got {cell}"
        self.origin.refuse(self.places[row], problem, "cells", remedy and f", or {remedy}")

    def refuse_number(self, row: int, column: str) -> None:
        """Raise at a cell that is not a number."""
        text = (self.columns[column].texts[row] or "").strip()
        marker = option("missing", text)
        remedy = f"{marker} if that stands for no value" if 0 < len(text) <= LONGEST_MARKER else ""
        numbers = [each for each in self.columns.values() if each.holds_numbers]
        if len(self.places) > 1 and numbers and not self.columns[column].holds_numbers:
            named = f"{option('id', column)} if the column names sensors"
            remedy = f"{remedy}, or {named}" if remedy else named
        self.refuse(row, column, self.columns[column].format.numbers.wanted, remedy)

    def refuse_time(self, row: int, column: str) -> None:
        """Raise at a cell that is not a time."""
        times = self.columns[column].format.times
        likely = suggested_format(self.columns[column].texts[row] or "") if times.is_open else None
        form = option("date_format", likely or "")
        remedy = f"{form} if times are written so" if likely else f"{form} with their pattern"
        period = _PERIOD.fullmatch((self.columns[column].texts[row] or "").strip())
        if period is not None:
            remedy = f"write the first day of each {'week' if period['week'] else 'quarter'}"
        self.refuse(row, column, times.wanted, remedy if times.is_open else "")
