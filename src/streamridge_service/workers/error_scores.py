"""Errors of a sensor's forecasts, summed by hour and by day, and the figures that follow.

The figures of the last day and of the last four weeks are means over these sums, so that they agree
with the stored readings and forecasts. An hour and a day are those of UTC; the newest one is
included although it is not over.
"""

from __future__ import annotations

from math import sqrt
from struct import Struct as Packing
from typing import Literal

import msgspec

from streamridge_service.plan import DAY, HOUR

# Spans of time in buckets: the last day in hours; the trend and the usual errors in days.
LAST_DAY, TREND, USUAL = 24, 3, 28
# The relative change of errors that counts as a trend.
CHANGED = 0.15
# The sums of one bucket: number of errors, number of readings outside bands, sum of squares.
SUMS = Packing("<IId")
EMPTY = SUMS.pack(0, 0, 0.0)

Direction = Literal["up", "down", "flat"]


class ErrorSums(msgspec.Struct, frozen=True):
    """Sums over the newest buckets of equal length, oldest first."""

    newest: int = 0  # the number of the newest bucket
    packed: bytes = b""

    def after(self, bucket: int, error: float, *, outside: bool, most: int) -> ErrorSums:
        """Return the sums after one more error, of at most `most` buckets."""
        passed = bucket - self.newest if self.packed else 1
        packed = (self.packed + EMPTY * min(passed, most))[-most * SUMS.size :]
        count, beyond, squares = SUMS.unpack(packed[-SUMS.size :])
        last = SUMS.pack(count + 1, beyond + outside, squares + error * error)
        return ErrorSums(bucket, packed[: -SUMS.size] + last)

    def total(self, buckets: int) -> tuple[int, int, float]:
        """Return the sums over the newest buckets: count, outside, and squares."""
        counts, beyond, squares = zip(
            (0, 0, 0.0), *SUMS.iter_unpack(self.packed[-buckets * SUMS.size :]), strict=True
        )
        return sum(counts), sum(beyond), sum(squares)


class Scores(msgspec.Struct, frozen=True):
    """The errors of a sensor up to its last reading; None before the first error."""

    count: int = 0  # number of errors in the last four weeks
    error: float | None = None  # root mean square error of the last day
    usual: float | None = None  # root mean square error of the last four weeks
    outside: float | None = None  # share of the last day's readings outside the band
    trend: Direction = "flat"  # of the last day's errors, compared with the last three days

    @property
    def ratio(self) -> float | None:
        """Return the error of the last day divided by the error of the last four weeks."""
        return self.error / self.usual if self.usual and self.error is not None else None

    @property
    def without_last_day(self) -> Scores:
        """Return the scores of a sensor that had no reading in the last day."""
        return Scores(self.count, usual=self.usual)


class ErrorHistory(msgspec.Struct, frozen=True):
    """The errors of a sensor by hour and by day."""

    hours: ErrorSums = ErrorSums()
    days: ErrorSums = ErrorSums()

    def after(self, time: int, error: float, *, outside: bool) -> ErrorHistory:
        """Return the history after one more error, of a reading at `time`."""
        return ErrorHistory(
            self.hours.after(time // HOUR, error, outside=outside, most=LAST_DAY),
            self.days.after(time // DAY, error, outside=outside, most=USUAL),
        )

    @property
    def scores(self) -> Scores:
        """Return the figures that follow; there must be an error."""
        count, outside, squares = self.hours.total(LAST_DAY)
        usual_count, _, usual_squares = self.days.total(USUAL)
        trend_count, _, trend_squares = self.days.total(TREND)
        lately, before = squares / count, trend_squares / trend_count
        return Scores(
            usual_count,
            sqrt(lately),
            sqrt(usual_squares / usual_count),
            outside / count,
            _direction(lately, before),
        )


def _direction(lately: float, before: float) -> Direction:
    """Return the trend of mean squared errors."""
    if lately > (1 + CHANGED) ** 2 * before:
        return "up"
    return "down" if lately < (1 - CHANGED) ** 2 * before else "flat"


def anomaly_score(value: float, forecast: float, lower: float, upper: float) -> float | None:
    """Return the distance of a reading from its forecast, in units of the band on its side.

    It is 1 on the edge of the band, and above 1 outside. It is None if the band has no width there.

    Examples
    --------
    >>> anomaly_score(140.0, 100.0, 90.0, 120.0), anomaly_score(95.0, 100.0, 90.0, 120.0)
    (2.0, 0.5)
    """
    distance = abs(value - forecast)
    width = upper - forecast if value > forecast else forecast - lower
    if not distance:
        return 0.0
    return distance / width if width > 0 else None
