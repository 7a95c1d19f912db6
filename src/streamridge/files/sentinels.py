"""Sentinels: numbers such as -9999 that stand for missing values."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.texts import counted, option

# Numbers that programs write where they have none.
_NINES = [float("9" * digits) for digits in range(2, 8)]
_TENTHS = [99.9, 999.9, 9999.9, 99.99, 999.99, 9999.99]
_WORDS = [32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0, 4294967295.0]
_CLEAR = {*_NINES, *_TENTHS, *_WORDS, 6999.0, 7777.0, 8888.0, 1e20, 1e30, 1e36}
LOW = frozenset(-number for number in (*_CLEAR, 1.0, 9.0))
HIGH = frozenset(_CLEAR - {99.0, 99.9, 99.99})
# -1 and -9 are small enough to be values, so that one of them alone is taken for one.
SMALL = (-1.0, -9.0)


@dataclass
class Extremes:
    """The least and the greatest value of a column so far."""

    least: float = inf
    greatest: float = -inf

    def add(self, values: Vector) -> None:
        """Take in more values; NaN is none."""
        self.least = min(self.least, float(np.fmin.reduce(values, initial=inf)))
        self.greatest = max(self.greatest, float(np.fmax.reduce(values, initial=-inf)))

    @property
    def suspicious(self) -> bool:
        """Return whether one of them may be a sentinel."""
        return self.least in LOW or self.greatest in HIGH


def require_no_sentinel(column: str, values: Vector) -> None:
    """Raise if a number in a column looks like a mark for missing values.

    A low one does if all others are zero or more, or if it is farther from the others than these
    are from each other. A high one does if it is that far and occurs more than once.

    Parameters
    ----------
    column
        What messages call the column.
    values
        (n,), all its values; NaN is none.
    """
    known = values[~np.isnan(values)]
    if not known.size:
        return
    for mark, wrong in ((known.min(), _is_low_mark), (known.max(), _is_high_mark)):
        others, times = known[known != mark], int((known == mark).sum())
        if wrong(float(mark), times, others):
            beside = (
                f"while all others go from {others.min():g} to {others.max():g}"
                if others.size
                else "and nothing else"
            )
            text = f"{mark:.15g}"
            often = counted(times, "time")
            raise InvalidInputError(
                f"{column}: {text} must be a value, got it {often}, {beside}: it looks like a mark "
                f"for missing values. Pass {option('missing', text)} if it is one, or "
                f"{option('missing', 'none')} if every number is a value."
            )


def _is_low_mark(mark: float, times: int, others: Vector) -> bool:
    if mark not in LOW:
        return False
    if mark in SMALL:
        counts = bool(others.size) and bool((others == np.floor(others)).all())
        return counts and times > 1 and bool(others.min() >= 0)
    return times > 1 if not others.size else bool(others.min() >= 0) or _is_far(mark, others)


def _is_high_mark(mark: float, times: int, others: Vector) -> bool:
    return mark in HIGH and times > 1 and (not others.size or _is_far(mark, others))


def _is_far(mark: float, others: Vector) -> bool:
    """Return whether a number is farther from all others than these are from each other."""
    return bool(np.abs(others - mark).min() > np.ptp(others))
