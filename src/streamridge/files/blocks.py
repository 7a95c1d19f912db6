"""Blocks: some rows of a source, column by column, that know where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamridge.errors import InvalidInputError, listed, shown
from streamridge.files.columns import Column

Gap: TypeAlias = Literal["error", "skip"]


@dataclass(frozen=True)
class Origin:
    """Says where rows come from, and what becomes of those that cannot be read.

    Parameters
    ----------
    name
        The source, as the user named it.
    unit
        What its places count: lines of text from 1 on, or rows of a frame from 0 on.
    gap
        "error" to raise at what cannot be read, "skip" to leave it out.
    skip
        What the user would say to leave it out.
    """

    name: str
    unit: Literal["line", "row"]
    gap: Gap
    skip: str = "--gap skip"

    def refuse(self, place: int, problem: str, thing: str) -> None:
        """Raise at something that cannot be read, unless such things are to be left out."""
        if self.gap == "error":
            raise InvalidInputError(
                f"{self.name} {self.unit} {place}{problem}. Pass {self.skip} to drop such {thing}."
            )

    def require_distinct(self, names: Sequence[str]) -> None:
        """Raise unless the columns that have a name have distinct ones."""
        repeated = [name for name, times in Counter(names).items() if name and times > 1]
        if repeated:
            raise InvalidInputError(
                f"{self.name} must have columns with distinct names, got {listed(repeated)} twice."
            )


@dataclass(frozen=True)
class Block:
    """Holds some rows of a source.

    Parameters
    ----------
    origin
        Where they come from.
    places
        (n,), the line or row that each was found at.
    columns
        The columns by name, in order. Only the first may be without a name.
    ragged
        Rows with another number of cells that were left out.
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
