"""Numbers in text: which mark is the decimal one, and what a cell then says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf, isinf, nan
from typing import Literal, TypeAlias

DecimalMark: TypeAlias = Literal[".", ","]

MISSING = ("", "na", "null", "none")  # and nan, which is a number to float()
OTHER: dict[DecimalMark, DecimalMark] = {".": ",", ",": "."}
# Marks between thousands that are never decimal: spaces of several widths, and apostrophes.
_SPACES = " '\u2019\u00a0\u202f\u2009"

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_DOUBTFUL = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_ALL_DOUBTFUL = re.compile(r"(?:[+-]?\d+\n|[+-]?[1-9]\d{0,2}[.,]\d{3}\n)*", re.ASCII)
# Whole numbers of three and more digits could stand beside 1.195 that means 1195.
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


def number_of(text: str | None, decimal: DecimalMark, missing: Iterable[str] = ()) -> float:
    """Return the number in a cell: NaN if there is none, infinity if it cannot be read.

    Examples
    --------
    >>> number_of("1.195", ","), number_of("1 195,5", ","), number_of("2.5", ",")
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
        return _odd_number(text.strip(), decimal, missing)
    return number


def decimal_proof(text: str) -> DecimalMark | None:
    """Return the decimal mark that a cell proves, None if it can be read both ways or neither.

    Examples
    --------
    >>> decimal_proof("12,5"), decimal_proof("1.195.000"), decimal_proof("0.195")
    (',', ',', '.')
    >>> decimal_proof("1.195"), decimal_proof("880")
    (None, None)
    """
    text = text.strip()
    if doubtful_mark(text):
        return None
    as_dot, as_comma = (_reads(text, decimal) for decimal in OTHER)
    if as_dot == as_comma:
        return None
    return "." if as_dot else ","


def doubtful_mark(text: str) -> DecimalMark | None:
    """Return the mark of a cell such as 1.195, which may part thousands or decimals."""
    if not _DOUBTFUL.fullmatch(text.strip()):
        return None
    return "." if "." in text else ","


def all_doubtful(lines: str) -> bool:
    """Return whether each line has a number like 1.195, or one without any mark."""
    return _ALL_DOUBTFUL.fullmatch(f"{lines}\n") is not None


def has_whole(lines: str) -> bool:
    """Return whether a line has a whole number of three digits or more, without any mark."""
    return _WHOLE.search(lines) is not None


def _reads(text: str, decimal: DecimalMark) -> bool:
    """Return whether a cell is a number with marks, if this one is the decimal mark."""
    patterns = (_WITH_MARK[decimal], _GROUPED[decimal])
    return any(pattern.fullmatch(text) for pattern in patterns)


def _odd_number(text: str, decimal: DecimalMark, missing: Iterable[str]) -> float:
    if text.lower() in MISSING or text in missing:
        return nan
    if _GROUPED[decimal].fullmatch(text):
        return float(re.sub(rf"[{OTHER[decimal]}{_SPACES}]", "", text).replace(",", "."))
    return inf
