"""Blocks: some rows of a source, column by column, with the place each row came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, listed, shown
from streamridge.series.clock import Times
from streamridge.series.readings import index_stamps, parse_stamp
from streamridge.series.writing import Offsets, Unit
from streamridge.texts import option

Gap: TypeAlias = Literal["error", "skip"]

MISSING = ("", "na", "null", "none")  # and nan, which is a number to float()
# A cell of text takes some 80 bytes, so that a block takes some tens of MB.
CELLS_IN_A_BLOCK = 500_000


def rows_in_a_block(width: int) -> int:
    """Return how many rows of so many cells a block holds."""
    return max(1, CELLS_IN_A_BLOCK // max(1, width))


class Column(Protocol):
    """A column of a source. Its numbers and times mark the cells that cannot be read."""

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

    Examples
    --------
    >>> TextColumn(["12", "NA", "n/a", "1,5"]).numbers
    array([12., nan, inf, inf])
    """

    texts: Sequence[str | None]
    decimal_comma: bool = False
    zone: ClassVar[None] = None  # text has offsets, but names no zone
    unit: ClassVar[Unit] = "us"

    @cached_property
    def numbers(self) -> Vector:
        """Return the cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        read = {text: _number(text, self.decimal_comma) for text in set(self.texts)}
        return np.fromiter(map(read.__getitem__, self.texts), float, len(self.texts))

    @cached_property
    def times(self) -> tuple[Times, Offsets]:
        """Return the cells as times, NaT for an unreadable one, and their offsets from UTC."""
        index = index_stamps(self.texts)
        if index is not None:
            return index, np.full(len(index), nan)
        read = {text: _time(text) for text in set(self.texts)}
        stamps = np.array([read[text][0] for text in self.texts], "datetime64[us]")
        return stamps, np.array([read[text][1] for text in self.texts], float)


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

    def refuse(self, place: int, problem: str, thing: str) -> None:
        """Raise at something that cannot be read, unless such things are to be left out."""
        if self.gap == "error":
            raise InvalidInputError(
                f"{self.name} {self.unit} {place}{problem}. "
                f"Pass {option('gap', 'skip')} to drop such {thing}."
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
    """

    origin: Origin
    places: Sequence[int]
    columns: Mapping[str, Column]
    ragged: int = 0

    def refuse(self, row: int, column: str, wanted: str) -> None:
        """Raise at a cell that is not what is wanted, unless such cells are to be left out."""
        cell = shown(self.columns[column].texts[row])
        problem = f", column {column}: must be {wanted}, got {cell}"
        self.origin.refuse(self.places[row], problem, "cells")


def _number(text: str | None, decimal_comma: bool) -> float:
    if text is None:
        return nan
    try:
        number = float(text.replace(",", ".") if decimal_comma else text)
    except ValueError:
        return nan if text.strip().lower() in MISSING else inf
    # float() also takes 1_000 and the digits of any script.
    return number if text.isascii() and "_" not in text else inf


def _time(text: str | None) -> tuple[np.datetime64, float]:
    try:
        stamp, offset = parse_stamp(text)
    except InvalidInputError:
        return np.datetime64("NaT"), nan
    return stamp, nan if offset is None else offset
