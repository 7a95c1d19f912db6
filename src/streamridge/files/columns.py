"""Columns of a source: their cells as texts, as numbers and as times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import Protocol

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.errors import InvalidInputError
from streamridge.series.clock import Times
from streamridge.series.readings import parse_time

MISSING = ("", "na", "null", "none")  # and nan, which is a number to float()


class Column(Protocol):
    """Is one column of a source. Marks tell the cells that cannot be read."""

    @property
    def texts(self) -> Sequence[str | None]:
        """Return the cells as they are written, None where there is none."""

    @property
    def numbers(self) -> Vector:
        """Return the cells as numbers, NaN where there is none, infinite where one is bad."""

    @property
    def times(self) -> tuple[Times, Mask]:
        """Return the cells as times, NaT where one is bad, and which of them had an offset."""


@dataclass(frozen=True)
class TextColumn:
    """Is a column of text.

    Examples
    --------
    >>> TextColumn(["12", "NA", "n/a", "1,5"]).numbers
    array([12., nan, inf, inf])
    """

    texts: Sequence[str | None]
    decimal_comma: bool = False

    @cached_property
    def numbers(self) -> Vector:
        """Return the cells as numbers, NaN where there is none, infinite where one is bad."""
        read = {text: _number(text, self.decimal_comma) for text in set(self.texts)}
        return np.fromiter(map(read.__getitem__, self.texts), float, len(self.texts))

    @cached_property
    def times(self) -> tuple[Times, Mask]:
        """Return the cells as times, NaT where one is bad, and which of them had an offset."""
        read = {text: _time(text) for text in set(self.texts)}
        stamps = np.array([read[text][0] for text in self.texts], "datetime64[us]")
        return stamps, np.array([read[text][1] for text in self.texts], bool)


def _number(text: str | None, decimal_comma: bool) -> float:
    if text is None:
        return nan
    try:
        number = float(text.replace(",", ".") if decimal_comma else text)
    except ValueError:
        return nan if text.strip().lower() in MISSING else inf
    # float() takes 1_000 and the digits of any script, too.
    return number if text.isascii() and "_" not in text else inf


def _time(text: str | None) -> tuple[np.datetime64, bool]:
    try:
        return parse_time(text)
    except InvalidInputError:
        return np.datetime64("NaT"), False
