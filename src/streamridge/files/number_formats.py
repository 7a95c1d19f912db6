"""Numbers in text: which decimal mark a column uses, and what its cells mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, isinf, nan

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import shown
from streamridge.files.evidence import EITHER, Clue, Evidence, Texts, distinct_cells
from streamridge.files.reading_options import DecimalMark, ReadingOptions

MISSING = ("", "na", "null", "none")  # and nan, which float() reads
OTHER: dict[DecimalMark, DecimalMark] = {".": ",", ",": "."}
# Separators of thousands that are never decimal marks: spaces of several widths, and apostrophes.
_SPACES = " '\u2019\u00a0\u202f\u2009"

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_ALL_AMBIGUOUS = re.compile(r"(?:[+-]?\d+\n|[+-]?[1-9]\d{0,2}[.,]\d{3}\n)*", re.ASCII)
# Whole numbers of three and more digits could occur next to 1.195 with the meaning 1195.
_WHOLE = re.compile(r"^[+-]?[1-9]\d{2,}$", re.ASCII | re.MULTILINE)


def _grouped(decimal: str) -> re.Pattern[str]:
    other = re.escape("." if decimal == "," else ",")
    mark = re.escape(decimal)
    return re.compile(
        rf"[+-]?[1-9]\d{{0,2}}([{other}{_SPACES}])\d{{3}}(?:\1\d{{3}})*(?:{mark}\d*)?{_EXPONENT}",
        re.ASCII,
    )


def _with_mark(decimal: str) -> re.Pattern[str]:
    mark = re.escape(decimal)
    return re.compile(rf"[+-]?(?:\d+{mark}\d*|{mark}\d+){_EXPONENT}", re.ASCII)


_GROUPED: dict[DecimalMark, re.Pattern[str]] = {".": _grouped("."), ",": _grouped(",")}
_WITH_MARK: dict[DecimalMark, re.Pattern[str]] = {".": _with_mark("."), ",": _with_mark(",")}


def parse_number(text: str | None, decimal: DecimalMark, missing: Iterable[str] = ()) -> float:
    """Return the number in a cell: NaN if it is missing, infinity if it cannot be read.

    >>> parse_number("1.195", ","), parse_number("1 195,5", ","), parse_number("2.5", ",")
    (1195.0, 1195.5, inf)
    """
    if text is None:
        return nan
    try:
        if decimal == ".":
            number = float(text)
        else:
            number = inf if "." in text else float(text.replace(",", "."))
    except ValueError:
        number = inf
    # float() also takes 1_000 and the digits of any script.
    if isinf(number) or "_" in text or not (text.isascii() or text.strip().isascii()):
        return _parse_special(text.strip(), decimal, missing)
    return number


def decimal_proof(text: str) -> DecimalMark | None:
    """Return the decimal mark that a cell proves, None if it can be read both ways or neither.

    >>> decimal_proof("12,5"), decimal_proof("1.195.000"), decimal_proof("0.195")
    (',', ',', '.')
    >>> decimal_proof("1.195"), decimal_proof("880")
    (None, None)
    """
    text = text.strip()
    if ambiguous_mark(text):
        return None
    as_dot, as_comma = (_matches(text, decimal) for decimal in OTHER)
    if as_dot == as_comma:
        return None
    return "." if as_dot else ","


def ambiguous_mark(text: str) -> DecimalMark | None:
    """Return the mark of a cell such as 1.195, which may separate thousands or decimals."""
    if not _AMBIGUOUS.fullmatch(text.strip()):
        return None
    return "." if "." in text else ","


@dataclass
class NumberFormat:
    """The number format of one column, as far as the cells so far show it."""

    options: ReadingOptions = field(default_factory=ReadingOptions)
    usual: DecimalMark = "."  # the decimal mark unless a cell proves another one
    evidence: Evidence = field(default_factory=Evidence)  # about the decimal mark
    # The marks of ambiguous cells such as 1.195.
    ambiguous: set[DecimalMark] = field(default_factory=set)
    whole: bool = False  # whether there are whole numbers of three digits or more

    def read(self, texts: Texts, places: Sequence[int] = ()) -> Vector:
        """Return cells as numbers: NaN for a missing one, infinity for an unreadable one."""
        distinct = set(texts)
        if self._known is None:
            self._collect_evidence(distinct, texts, places)
        decimal, missing = self.decimal, self.options.missing_texts
        read = {text: parse_number(text, decimal, missing) for text in distinct}
        return self.without_missing(np.fromiter(map(read.__getitem__, texts), float, len(texts)))

    def without_missing(self, numbers: Vector) -> Vector:
        """Return numbers with NaN in place of the user's missing-value markers."""
        for marker in self.options.missing_numbers:
            numbers = np.where(numbers == marker, np.nan, numbers)
        return numbers

    @property
    def decimal(self) -> DecimalMark:
        """Return the known decimal mark, or else the usual one."""
        return self._known or self.usual

    @property
    def wanted(self) -> str:
        """Return what a cell must be, for messages."""
        proof = self.evidence.proof
        if proof is None or self.decimal == self.usual:
            return "a number"
        return f"a number with the decimal mark {self.decimal!r}, as {shown(proof.text)} above"

    @property
    def late_proof(self) -> Clue | None:
        """Return the cell that proved earlier cells to be misread, None if there is none."""
        wrong = self.evidence.late and self.decimal != self.usual
        return self.evidence.proof if wrong else None

    def require_unambiguous(self, where: str, column: str) -> None:
        """Raise if cells can still be read in two ways; `where` is such as "flow.csv line"."""
        doubt = self.evidence.doubt
        if doubt is None or (self.ambiguous == {self.usual} and not self.whole):
            return
        values = " or ".join(f"{parse_number(doubt.text, mark):.15g}" for mark in OTHER)
        self.evidence.require_proof(
            where,
            column,
            "a number",
            f"which is {values}. Pass --decimal . or --decimal , to choose the decimal mark "
            "(decimal= in Python).",
        )

    def notes(self) -> Iterator[str]:
        """Yield decisions that a user may want to check."""
        proof = self.evidence.proof
        for mark in self.ambiguous:
            if proof is not None and mark != self.decimal:
                yield f"{mark!r} is read as a separator of thousands, as {shown(proof.text)} shows"

    @property
    def _known(self) -> DecimalMark | None:
        proof = self.evidence.proof
        return self.options.decimal or (decimal_proof(proof.text) if proof else None)

    def _collect_evidence(
        self, distinct: set[str | None], texts: Texts, places: Sequence[int]
    ) -> None:
        lines = "\n".join(filter(None, distinct))
        self.whole = self.whole or _WHOLE.search(lines) is not None
        marks = {mark for mark in OTHER if mark in lines}
        if not marks:
            return
        if self.evidence.doubt is not None and _ALL_AMBIGUOUS.fullmatch(f"{lines}\n"):
            self.ambiguous |= marks  # as in columns with three digits after the mark throughout
            return
        self.evidence.add(self._clues(texts, places))

    def _clues(self, texts: Texts, places: Sequence[int]) -> Iterator[Clue]:
        for text, place in distinct_cells(texts, places):
            mark, ambiguous = decimal_proof(text), ambiguous_mark(text)
            if mark is not None:
                yield Clue(mark, text, place)
            elif ambiguous is not None:
                self.ambiguous.add(ambiguous)
                yield Clue(EITHER, text, place)


def _matches(text: str, decimal: DecimalMark) -> bool:
    """Return whether a cell is a number with marks, if this one is the decimal mark."""
    patterns = (_WITH_MARK[decimal], _GROUPED[decimal])
    return any(pattern.fullmatch(text) for pattern in patterns)


def _parse_special(text: str, decimal: DecimalMark, missing: Iterable[str]) -> float:
    """Return a cell that float() does not read: a missing value, or grouped thousands."""
    if text.lower() in MISSING or text in missing:
        return nan
    if _GROUPED[decimal].fullmatch(text):
        return float(re.sub(rf"[{OTHER[decimal]}{_SPACES}]", "", text).replace(",", "."))
    return inf
