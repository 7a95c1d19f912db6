"""Figures of merit: the size of errors over time, and the coverage of intervals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.series.times import Times

Places = NDArray[np.int64]

# Windows, in days, of the rolling coverage and of the recent RMSE.
WEEK, RECENT = 7, 3
# A chart may leave out this share of values on each side.
TAIL = 0.01
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONDAY = np.datetime64("1970-01-05", "D")


def rmse(errors: ArrayLike) -> float:
    """Return the root mean squared error; NaN if there are no errors.

    >>> rmse([3.0, -4.0])
    3.5355339
    """
    squares = np.square(np.asarray(errors, dtype=np.float64))
    return float(np.sqrt(squares.mean())) if squares.size else np.nan


def mae(errors: ArrayLike) -> float:
    """Return the mean absolute error; NaN if there are no errors.

    >>> mae([3.0, -4.0])
    3.5
    """
    sizes = np.abs(np.asarray(errors, dtype=np.float64))
    return float(sizes.mean()) if sizes.size else np.nan


def coverage(actual: Vector, lower: Vector, upper: Vector) -> float:
    """Return the share of actual values within their interval; NaN values do not count.

    >>> coverage(np.array([1.0, 5.0, np.nan]), np.zeros(3), np.full(3, 2.0))
    0.5
    """
    known = ~np.isnan(actual) & ~np.isnan(lower)
    inside = (actual >= lower) & (actual <= upper)
    return float(inside[known].mean()) if known.any() else np.nan


def made_ahead(forecasts: Matrix, ahead: int) -> Vector:
    """Return the forecasts made `ahead` steps before; the first is for step `ahead - 1`.

    Row i of the forecasts, (T, H), is for the steps i, i + 1, ...

    >>> made_ahead(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 2)
    array([2., 4.])
    """
    return forecasts[: max(0, len(forecasts) - ahead + 1), ahead - 1]


def errors_ahead(actual: Vector, forecasts: Matrix, ahead: int) -> Vector:
    """Return actual values minus the forecasts made `ahead` steps before; NaN without a value.

    >>> errors_ahead(np.array([1.0, 2.0, 7.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 2)
    array([0., 3.])
    """
    return actual[ahead - 1 :] - made_ahead(forecasts, ahead)


def finite_or_none(figure: float) -> float | None:
    """Return a number for JSON: None instead of NaN and infinity."""
    return figure if np.isfinite(figure) else None


def percent(share: float) -> str:
    """Return a share in percent, with the digits of the share.

    >>> percent(0.9), percent(0.975)
    ('90', '97.5')
    """
    return format((100 * Decimal(repr(share))).normalize(), "f")


def running_rmse(errors: ArrayLike) -> Vector:
    """Return RMSE(t), the root mean squared error of all steps up to t, shape (T,).

    Paper: section 6.2.3. The paper divides t + 1 terms by t; here they are divided by t + 1.

    >>> running_rmse([3.0, -4.0])
    array([3.        , 3.53553391])
    """
    squares = np.square(np.asarray(errors, dtype=np.float64))
    return np.sqrt(np.cumsum(squares) / np.arange(1, len(squares) + 1))


def rolling_rmse(errors: Vector, window: int) -> Vector:
    """Return, at each step, the RMSE of the last `window` steps, shape (T,).

    It is NaN before the first whole window, and where a window has no error.

    >>> rolling_rmse(np.array([3.0, np.nan, -4.0, 4.0]), 2)
    array([nan,  3.,  4.,  4.])
    """
    known = ~np.isnan(errors)
    squares = _rolling_sum(np.where(known, np.square(errors), 0.0), window)
    return np.sqrt(_rolling_ratio(squares, known, window))


def gap_spans(times: Times, actual: Vector) -> list[tuple[np.datetime64, np.datetime64]]:
    """Return the start and end of every gap, widened by half a step on either side.

    >>> hours = np.datetime64("2021-06-13T00", "m") + np.arange(4) * np.timedelta64(60, "m")
    >>> [[str(end) for end in span] for span in gap_spans(hours, np.array([1, np.nan, np.nan, 2]))]
    [['2021-06-13T00:30', '2021-06-13T02:30']]
    """
    if len(times) < 2:
        return []
    half = (times[1] - times[0]) / 2
    firsts, lasts = _runs(np.isnan(actual))
    return [(times[i] - half, times[j] + half) for i, j in zip(firsts, lasts, strict=True)]


def lone_readings(actual: Vector) -> Places:
    """Return the places of readings between two gaps, where no line can be drawn.

    >>> lone_readings(np.array([1.0, np.nan, 2.0, 3.0, np.nan, 4.0]))
    array([0, 5])
    """
    firsts, lasts = _runs(~np.isnan(actual))
    return firsts[firsts == lasts]


def running_curve(errors: Vector, steps_a_day: int) -> tuple[Places, Vector]:
    """Return the steps and values of the curve RMSE(t), without the first day.

    If a run is shorter than two days, its first tenth is left out instead.

    >>> running_curve(np.array([3.0, np.nan, -4.0]), 96)
    (array([0, 2]), array([3.        , 3.53553391]))
    """
    known = np.flatnonzero(~np.isnan(errors))
    first = steps_a_day if len(errors) >= 2 * steps_a_day else len(errors) // 10
    shown = known >= first
    return known[shown], running_rmse(errors[known])[shown]


def bulk_range(*columns: Vector) -> tuple[float, float]:
    """Return the range of a chart of some columns, without a few extreme values.

    A value is extreme if its distance from the bulk exceeds the width of the bulk. A chart marks
    such glitches at its edge. NaN does not count.

    >>> bulk_range(np.array([1.0, 2.0, 3.0] * 100), np.array([9e11]))
    (1.0, 3.0)
    """
    values = np.concatenate(columns)
    values = values[np.isfinite(values)]
    if not values.size:
        return np.nan, np.nan
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    reach = high - low or np.inf
    bulk = values[(values >= low - reach) & (values <= high + reach)]
    return float(bulk.min()), float(bulk.max())


def rmse_by_hour(times: Times, errors: Vector) -> Vector:
    """Return the RMSE of every hour of the day, shape (24,); NaN if an hour has no error.

    >>> rmse_by_hour(np.array(["2021-06-13T01:15", "2021-06-14T01:45"], "M8[us]"), [3, -4])[:2]
    array([       nan, 3.53553391])
    """
    hours = (times - times.astype("M8[D]")) // np.timedelta64(1, "h")
    return _rmse_by(hours, errors, 24)


def rmse_by_weekday(times: Times, errors: Vector) -> Vector:
    """Return the RMSE of every day of the week, Monday first, shape (7,).

    >>> rmse_by_weekday(np.array(["2021-06-13T01:15"], "M8[us]"), [3.0])[-2:]
    array([nan,  3.])
    """
    days = (times.astype("M8[D]") - MONDAY).astype(np.int64) % 7
    return _rmse_by(days, errors, 7)


def recent_window(steps: int, steps_a_day: int) -> int:
    """Return the window of the recent RMSE, in steps: three days, or half of a short run."""
    return max(1, min(RECENT * steps_a_day, steps // 2))


def coverage_window(steps: int, steps_a_day: int) -> int:
    """Return the window of the rolling coverage, in steps: a week, or half of a short run."""
    return max(1, min(WEEK * steps_a_day, steps // 2))


def rolling_coverage(actual: Vector, lower: Vector, upper: Vector, window: int) -> Vector:
    """Return, at each step, the share of values within their interval in the last `window` steps.

    It is NaN before the first whole window, and where a window has no reading.

    >>> actual = np.array([1.0, 1.0, 5.0, np.nan, np.nan])
    >>> rolling_coverage(actual, np.zeros(5), np.full(5, 2.0), 2)
    array([nan, 1. , 0.5, 0. , nan])
    """
    inside = _rolling_sum((actual >= lower) & (actual <= upper), window)
    return _rolling_ratio(inside, ~np.isnan(actual), window)


def _rolling_sum(values: NDArray[Any], window: int) -> NDArray[Any]:
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.maximum(sums[window:] - sums[:-window], 0)  # rounding may give a negative sum


def _rolling_ratio(sums: NDArray[Any], known: Mask, window: int) -> Vector:
    """Return rolling sums divided by the number of known values, shape (T,); NaN without any."""
    counts = _rolling_sum(known, window)
    ratios = np.full(len(known), np.nan)
    whole = ratios[window - 1 :]
    whole[counts > 0] = sums[counts > 0] / counts[counts > 0]
    return ratios


def _rmse_by(groups: Places, errors: Vector, count: int) -> Vector:
    known = ~np.isnan(errors)
    squares = np.bincount(groups[known], np.square(errors)[known], minlength=count)
    sizes = np.bincount(groups[known], minlength=count)
    return np.sqrt(np.where(sizes > 0, squares / np.maximum(sizes, 1), np.nan))


def _runs(marked: Mask) -> tuple[Places, Places]:
    """Return the first and the last place of every run of consecutive marks."""
    edges = np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
