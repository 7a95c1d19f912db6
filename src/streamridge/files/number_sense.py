"""How the numbers of one column are written: by all that was read of it so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import shown
from streamridge.files.dialect import Dialect
from streamridge.files.evidence import EITHER, Evidence, Seen, Texts, first_of_each
from streamridge.files.numbers import (
    OTHER,
    DecimalMark,
    all_doubtful,
    decimal_proof,
    doubtful_mark,
    has_whole,
    number_of,
)


@dataclass
class NumberSense:
    """The way in which one column writes numbers.

    Parameters
    ----------
    dialect
        What the user says about it.
    usual
        The decimal mark where nothing speaks against it.
    """

    dialect: Dialect = field(default_factory=Dialect)
    usual: DecimalMark = "."
    evidence: Evidence = field(default_factory=Evidence)
    doubtful: set[DecimalMark] = field(default_factory=set)  # the marks of cells such as 1.195
    whole: bool = False  # whether there are whole numbers of three digits and more

    def read(self, texts: Texts, places: Sequence[int] = ()) -> Vector:
        """Return cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        distinct = set(texts)
        if self._given is None:
            self._look(distinct, texts, places)
        decimal, missing = self.decimal, self.dialect.missing_texts
        read = {text: number_of(text, decimal, missing) for text in distinct}
        return self.meant(np.fromiter(map(read.__getitem__, texts), float, len(texts)))

    def meant(self, numbers: Vector) -> Vector:
        """Return numbers, NaN in place of those that stand for no value."""
        for mark in self.dialect.missing_numbers:
            numbers = np.where(numbers == mark, np.nan, numbers)
        return numbers

    @property
    def decimal(self) -> DecimalMark:
        """Return the decimal mark, by what is known so far."""
        return self._given or self.usual

    @property
    def wanted(self) -> str:
        """Return what a cell must be."""
        proof = self.evidence.proof
        if proof is None or self.decimal == self.usual:
            return "a number"
        return f"a number with the decimal mark {self.decimal!r}, as {shown(proof.text)} above"

    @property
    def misread(self) -> Seen | None:
        """Return the cell that proved that cells before it had been read in the wrong way."""
        wrong = self.evidence.late and self.decimal != self.usual
        return self.evidence.proof if wrong else None

    def require_one_reading(self, where: str, column: str) -> None:
        """Raise if cells can still be read in two ways; `where` is such as "flow.csv line"."""
        doubt = self.evidence.doubt
        if doubt is None or (self.doubtful == {self.usual} and not self.whole):
            return
        readings = " or ".join(f"{number_of(doubt.text, mark):.15g}" for mark in OTHER)
        self.evidence.refuse(
            where,
            column,
            "a number",
            f"which is {readings}. Pass --decimal . or --decimal , to say what the decimal mark is "
            "(decimal= in Python).",
        )

    def notes(self) -> Iterator[str]:
        """Yield what was decided that a user may want to know."""
        proof = self.evidence.proof
        for mark in self.doubtful:
            if proof is not None and mark != self.decimal:
                yield f"{mark!r} is read as a mark between thousands, as {shown(proof.text)} shows"

    @property
    def _given(self) -> DecimalMark | None:
        proof = self.evidence.proof
        return self.dialect.decimal or (decimal_proof(proof.text) if proof else None)

    def _look(self, distinct: set[str | None], texts: Texts, places: Sequence[int]) -> None:
        """Take down what the numbers of a block tell about their decimal mark."""
        written = "\n".join(filter(None, distinct))
        self.whole = self.whole or has_whole(written)
        marks = {mark for mark in OTHER if mark in written}
        if not marks:
            return
        if self.evidence.doubt is not None and all_doubtful(written):
            self.doubtful |= marks  # as many columns have three digits after the mark throughout
            return
        self.evidence.add(self._told(texts, places))

    def _told(self, texts: Texts, places: Sequence[int]) -> Iterator[Seen]:
        for text, place in first_of_each(texts, places):
            mark, doubtful = decimal_proof(text), doubtful_mark(text)
            if mark is not None:
                yield Seen(mark, text, place)
            elif doubtful is not None:
                self.doubtful.add(doubtful)
                yield Seen(EITHER, text, place)
