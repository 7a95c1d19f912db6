"""Coordinates of the calendar: where in each season a step lies, as a sine and a cosine."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import cos, pi, sin

import numpy as np

from streamridge.arrays import Matrix
from streamridge.series.clock import Steps

# A period that is a fraction with at most this denominator repeats after few steps: a day of seven
# minutes a step is 1440/7 steps.
DENOMINATOR = 1000
# Longer cycles are not kept as a table.
LONGEST = 100_000


def calendar_at(at: Steps, periods: tuple[float, ...]) -> Matrix:
    """Return the sine of the time for each period, then the cosines; shape (n, 2 periods).

    A coordinate depends on its step alone. The sine of a whole array would not do, since its last
    bit may depend on where in the array a step stands.

    Examples
    --------
    >>> calendar_at(np.array([0, 24, 48]), (96,)).round(3)
    array([[ 0.,  1.],
           [ 1.,  0.],
           [ 0., -1.]])
    """
    coordinates = np.empty((2, len(periods), len(at)))
    for i, period in enumerate(periods):
        coordinates[:, i] = _coordinates(at, float(period))
    return coordinates.reshape(2 * len(periods), len(at)).T


def calendar_of(step: int, periods: tuple[float, ...]) -> list[float]:
    """Return the row of `calendar_at` for one step."""
    pairs = [_coordinates_of(step, float(period)) for period in periods]
    return [sine for sine, _ in pairs] + [cosine for _, cosine in pairs]


def _coordinates_of(step: int, period: float) -> tuple[float, float]:
    parts, cycle = _cycle(period)
    if cycle is None:
        angle = 2 * pi * (step % period / period)
        return sin(angle), cos(angle)
    place = step * parts.denominator % parts.numerator
    return cycle.item(0, place), cycle.item(1, place)


def _coordinates(at: Steps, period: float) -> Matrix:
    parts, cycle = _cycle(period)
    if cycle is None:
        return _on_circle([step % period / period for step in at.tolist()])
    return cycle[:, at * parts.denominator % parts.numerator]


@lru_cache(maxsize=32)
def _cycle(period: float) -> tuple[Fraction, Matrix | None]:
    """Return a period as a fraction, and the coordinates of the parts of the cycle, if few."""
    parts = Fraction(period).limit_denominator(DENOMINATOR)
    if float(parts) != period or parts.numerator > LONGEST:
        return parts, None
    return parts, _on_circle([part / parts.numerator for part in range(parts.numerator)])


def _on_circle(turns: list[float]) -> Matrix:
    """Return the sine and the cosine of shares of a turn, shape (2, n)."""
    angles = [2 * pi * turn for turn in turns]
    return np.array([[sin(angle) for angle in angles], [cos(angle) for angle in angles]])
