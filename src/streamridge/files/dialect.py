"""How the cells of a source are written, as far as the user says so."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from math import isfinite, isnan
from typing import TypeAlias

from streamridge.errors import InvalidInputError, shown
from streamridge.files.numbers import DecimalMark

Missing: TypeAlias = float | str | Iterable[float | str] | None

# Words for ways to write times that no pattern of strptime describes.
EPOCHS = {  # in microseconds
    "epoch-s": Decimal(1_000_000),
    "epoch-ms": Decimal(1_000),
    "epoch-us": Decimal(1),
    "epoch-ns": Decimal("0.001"),
}
DAY_FIRST, MONTH_FIRST, INDEX = "dayfirst", "monthfirst", "index"
DATE_WORDS = (DAY_FIRST, MONTH_FIRST, *EPOCHS, INDEX)
ALL_MEANT = "none"
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
# Encodings of Python's own, for names of hosts and for source text: no file is written in them.
OWN_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([kmgt]?)i?b?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """What the user says about the way a source is written; None leaves it to the source.

    Parameters
    ----------
    date_format
        How times are written: a pattern of strptime such as "%d/%m/%Y %H:%M", or one of the words
        dayfirst, monthfirst, epoch-s, epoch-ms, epoch-us, epoch-ns and index. Where date and hour
        have columns of their own, it describes them joined by a space, the hour as 8:00.
    decimal
        The decimal mark, "." or ","; the other one then parts thousands.
    missing
        Cells that stand for no value, in every column: numbers such as -9999, or texts such as
        "n/a". The word "none" says that every number is meant, also one that looks like a mark for
        missing values.
    encoding
        The encoding of text, such as "latin-1".
    largest
        The most bytes that a packed file may unpack to, such as "20GB".
    """

    date_format: str | None = None
    decimal: DecimalMark | None = None
    missing: Missing | None = ()
    encoding: str | None = None
    largest: int | str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise InvalidInputError(f"decimal must be . or , got {shown(self.decimal)}.")
        if self.date_format not in (None, *DATE_WORDS):
            _require_pattern(str(self.date_format))
        if self.encoding is not None:
            _require_encoding(self.encoding)
        # An iterator could be used up by the first source.
        given = self.missing
        every = (given,) if isinstance(given, str | int | float) else tuple(given or ())
        object.__setattr__(self, "missing", every)
        _ = self.most_bytes

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """Return the numbers that stand for no value."""
        found = (_finite(each) for each in self._missing)
        return tuple(number for number in found if number is not None)

    @cached_property
    def missing_texts(self) -> frozenset[str]:
        """Return the texts that stand for no value."""
        return frozenset(str(each).strip() for each in self._missing if _finite(each) is None)

    @cached_property
    def all_meant(self) -> bool:
        """Return whether every number is a value, also one that looks like a mark."""
        return any(str(each).strip().lower() == ALL_MEANT for each in self._missing)

    @cached_property
    def most_bytes(self) -> int | None:
        """Return the most bytes that a packed file may unpack to."""
        if self.largest is None:
            return None
        found = _SIZE.fullmatch(str(self.largest).strip())
        if found is None:
            raise InvalidInputError(
                f"largest must be a size such as 500MB or 20GB, got {shown(self.largest)}."
            )
        return int(float(found[1]) * UNITS[found[2].lower()])

    @property
    def _missing(self) -> tuple[float | str, ...]:
        return self.missing if isinstance(self.missing, tuple) else ()


def _finite(value: float | str) -> float | None:
    """Return a finite number, None for any other text; "nan" is a word for no value already."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) or isnan(number) else None


def _require_pattern(pattern: str) -> None:
    """Raise unless a pattern of strptime gives back at least the year of a time."""
    moment = datetime(2021, 6, 13, 8, 15)
    try:
        known = "%" in pattern and datetime.strptime(moment.strftime(pattern), pattern)
    except (ValueError, re.error):  # such as a part that is there twice
        known = False
    if not known or known.year != moment.year:
        raise InvalidInputError(
            "date_format must be a pattern with a year, such as %d/%m/%Y %H:%M, or one of "
            f"{', '.join(DATE_WORDS)}, got {shown(pattern)}."
        )


def _require_encoding(name: str) -> None:
    try:
        "".encode(name)
        b"".decode(name)
        known = codecs.lookup(name).name not in OWN_ENCODINGS
    except (LookupError, ValueError, UnicodeError):
        known = False
    if not known:
        raise InvalidInputError(
            f"encoding must be one that Python knows, such as utf-8, latin-1 or utf-16, "
            f"got {shown(name)}."
        )
