"""Evidence: what the cells of a whole column tell about one question of how to read them.

A cell such as 1.195 or 05/06/2021 can be read in two ways. Another cell of its column may settle
which one is meant, also in a later block; if none does, the column must be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from streamridge.errors import InvalidInputError, shown

Texts: TypeAlias = Sequence[str | None]

EITHER = "either"


class Seen(NamedTuple):
    """A cell that tells something, and the line or row where it was seen."""

    said: str
    text: str
    place: int


@dataclass
class Evidence:
    """The first cell that settled a question, and the first that left it open.

    Parameters
    ----------
    proof
        The first cell that settled it.
    doubt
        The first cell that can be read in two ways.
    late
        Whether cells in doubt had been read before, in an earlier block.
    """

    proof: Seen | None = None
    doubt: Seen | None = None
    late: bool = False

    def add(self, cells: Iterable[Seen]) -> None:
        """Look through the cells of a block, up to the first that settles the question."""
        before = self.doubt is not None
        for seen in cells:
            if seen.said != EITHER:
                self.proof, self.late = seen, before
                return
            self.doubt = self.doubt or seen

    def refuse(self, where: str, column: str, kind: str, readings: str) -> None:
        """Raise if the question is still open, and name both readings of a cell."""
        if self.doubt is not None and self.proof is None:
            _, text, place = self.doubt
            raise InvalidInputError(
                f"{where} {place}, column {column}: must be {kind} that can be read in one way "
                f"only, got {shown(text)}, {readings}"
            )


def first_of_each(texts: Texts, places: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield each cell once that is not empty, with the place of the first one."""
    known: dict[str | None, int] = {}
    for row, text in enumerate(texts):
        known.setdefault(text, row)
    for text, row in known.items():
        if text:
            yield text, places[row] if len(places) else row
