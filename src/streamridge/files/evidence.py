"""Evidence from all cells of a column about how to read it.

A cell such as 1.195 or 05/06/2021 can be read in two ways. Another cell of the same column may
settle the question, also in a later part of the file. A column without such a cell is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from streamridge.errors import InvalidInputError, shown

Texts: TypeAlias = Sequence[str | None]

EITHER = "either"


class Clue(NamedTuple):
    """A cell that bears on the question: its answer or `EITHER`, its text, and its line or row."""

    answer: str
    text: str
    place: int


@dataclass
class Evidence:
    """The first cell that answers a question about a column, and the first ambiguous cell."""

    proof: Clue | None = None  # the first cell that answers the question
    doubt: Clue | None = None  # the first cell that can be read in two ways
    late: bool = False  # whether ambiguous cells came before the proof, in an earlier part

    def add(self, clues: Iterable[Clue]) -> None:
        """Look through the clues of one part of the file, up to the first proof."""
        before = self.doubt is not None
        for clue in clues:
            if clue.answer != EITHER:
                self.proof, self.late = clue, before
                return
            self.doubt = self.doubt or clue

    def require_proof(self, where: str, column: str, kind: str, explanation: str) -> None:
        """Raise if a cell is ambiguous and no other cell answers the question."""
        if self.doubt is not None and self.proof is None:
            _, text, place = self.doubt
            raise InvalidInputError(
                f"{where} {place}, column {column}: must be {kind} that can be read in one way "
                f"only, got {shown(text)}, {explanation}"
            )


def distinct_cells(texts: Texts, places: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield each distinct cell that is not empty, with the place where it occurs first."""
    known: dict[str | None, int] = {}
    for row, text in enumerate(texts):
        known.setdefault(text, row)
    for text, row in known.items():
        if text:
            yield text, places[row] if len(places) else row
