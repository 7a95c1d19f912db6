"""How well a sensor is forecast of late, against how well it usually is."""

from __future__ import annotations

from math import sqrt

import msgspec

# Days that each mean looks back on: lately, and usually; a trend compares a day with three.
LATELY, TREND, USUALLY = 1, 3, 28
# By this share errors must have grown or shrunk to be called a trend.
CHANGED = 0.15


class Scores(msgspec.Struct, frozen=True):
    """Means of squared errors over three memories, and the share of readings outside the band.

    Each mean counts what it has seen, so that it is one from the first error on.
    """

    count: int = 0
    lately: float = 0.0
    trend: float = 0.0
    usually: float = 0.0
    outside: float = 0.0

    def after(self, error: float, *, outside: bool, day: int) -> Scores:
        """Return the scores after one more error, with so many steps a day."""
        count, square = self.count + 1, error * error
        return Scores(
            count,
            self._moved(self.lately, square, LATELY * day),
            self._moved(self.trend, square, TREND * day),
            self._moved(self.usually, square, USUALLY * day),
            self._moved(self.outside, float(outside), LATELY * day),
        )

    def _moved(self, mean: float, value: float, memory: int) -> float:
        return mean + (value - mean) / min(self.count + 1, memory)

    @property
    def error(self) -> float | None:
        """Return the root mean square error of the last day."""
        return sqrt(self.lately) if self.count else None

    @property
    def ratio(self) -> float | None:
        """Return the error of the last day over that of the last four weeks."""
        return sqrt(self.lately / self.usually) if self.usually else None

    @property
    def direction(self) -> str:
        """Return whether errors go "up", "down", or are "flat"."""
        if self.lately > (1 + CHANGED) ** 2 * self.trend:
            return "up"
        return "down" if self.lately < (1 - CHANGED) ** 2 * self.trend else "flat"
