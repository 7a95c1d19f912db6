"""Blocks: some rows of a source, column by column, with the place each row came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, Protocol, TypeAlias

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, listed, shown
from streamridge.files.likely_formats import likely_format
from streamridge.files.sense import Sense
from streamridge.series.clock import Times
from streamridge.series.writing import Offsets, Unit
from streamridge.texts import option

Gap: TypeAlias = Literal["error", "skip"]

# A cell of text takes some 80 bytes, so that a block takes some tens of MB.
CELLS_IN_A_BLOCK = 500_000
# The longest text that may be a mark for missing values.
LONGEST_MARK = 12


def rows_in_a_block(width: int) -> int:
    """Return how many rows of so many cells a block holds."""
    return max(1, CELLS_IN_A_BLOCK // max(1, width))


class Column(Protocol):
    """A column of a source. Its numbers and times mark the cells that cannot be read."""

    @property
    def sense(self) -> Sense:
        """Return how the cells are written."""

    @property
    def texts(self) -> Sequence[str | None]:
        """Return the cells as they are written, None for an empty one."""

    @property
    def numbers(self) -> Vector:
        """Return the cells as numbers: NaN for a missing one, infinity for an unreadable one."""

    @property
    def times(self) -> tuple[Times, Offsets]:
        """Return the cells as times, NaT for an unreadable one, and their offsets from UTC."""

    @property
    def zone(self) -> str | None:
        """Return the name of the zone of all times, if the source says one."""

    @property
    def unit(self) -> Unit:
        """Return what the source counts times in."""


@dataclass(frozen=True)
class TextColumn:
    """A column of text.

    Parameters
    ----------
    texts
        The cells as they are written, None for an empty one.
    sense
        How they are written; it learns from the cells that are read.
    places
        (n,), the line or row where each was found; by default they are counted from 0.

    Examples
    --------
    >>> TextColumn(["12", "NA", "n/a", "1,5"]).numbers
    array([12. ,  nan,  inf,  1.5])
    """

    texts: Sequence[str | None]
    sense: Sense = field(default_factory=Sense)
    places: Sequence[int] = ()
    zone: ClassVar[None] = None  # text has offsets, but names no zone
    unit: ClassVar[Unit] = "us"

    @cached_property
    def numbers(self) -> Vector:
        """Return the cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        return self.sense.numbers.read(self.texts, self.places)

    @cached_property
    def times(self) -> tuple[Times, Offsets]:
        """Return the cells as times, NaT for an unreadable one, and their offsets from UTC."""
        return self.sense.times.read(self.texts, self.places)


@dataclass(frozen=True)
class Origin:
    """The source of some rows, and what to do with a row or cell that cannot be read.

    Parameters
    ----------
    name
        The source, as the user named it.
    unit
        What a place is: a line of text, counted from 1, or a row of a frame, counted from 0.
    gap
        "error" to raise at what cannot be read, "skip" to leave it out.
    """

    name: str
    unit: Literal["line", "row"]
    gap: Gap

    def refuse(self, place: int, problem: str, thing: str, remedy: str = "") -> None:
        """Raise at something that cannot be read, unless such things are to be left out."""
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
class Block:
    """Some rows of a source.

    Parameters
    ----------
    origin
        Where they come from.
    places
        (n,), the line or row where each was found.
    columns
        The columns by name, in order. Only the first may be without a name.
    ragged
        How many rows were left out because they had more or fewer cells than the header.
    time
        The column of times, where that is known.
    """

    origin: Origin
    places: Sequence[int]
    columns: Mapping[str, Column]
    ragged: int = 0
    time: str | None = None

    def refuse(self, row: int, column: str, wanted: str, remedy: str = "") -> None:
        """Raise at a cell that is not what is wanted, unless such cells are to be left out.

        Parameters
        ----------
        row, column
            The cell.
        wanted
            What it must be.
        remedy
            What to pass if it is right as it is.
        """
        cell = shown(self.columns[column].texts[row])
        problem = f", column {column}: must be {wanted}, got {cell}"
        self.origin.refuse(self.places[row], problem, "cells", remedy and f", or {remedy}")

    def refuse_number(self, row: int, column: str) -> None:
        """Raise at a cell that is no number."""
        text = (self.columns[column].texts[row] or "").strip()
        mark = option("missing", text)
        remedy = f"{mark} if that stands for no value" if 0 < len(text) <= LONGEST_MARK else ""
        self.refuse(row, column, self.columns[column].sense.numbers.wanted, remedy)

    def refuse_time(self, row: int, column: str) -> None:
        """Raise at a cell that is no time."""
        times = self.columns[column].sense.times
        likely = likely_format(self.columns[column].texts[row] or "") if times.is_open else None
        form = option("date_format", likely or "")
        remedy = f"{form} if times are written so" if likely else f"{form} with their pattern"
        self.refuse(row, column, times.wanted, remedy if times.is_open else "")
