"""Scores of forecasts, naive forecasts to compare with, and implausible readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.forecaster.forecast import named, one_or_all
from streamridge.forecaster.plausibility import (
    CONVINCING,
    FREQUENT,
    Plausibility,
    common_value,
    far_from_most,
    recurring,
)
from streamridge.forecaster.settings import Settings
from streamridge.metrics import finite_or_none
from streamridge.series.clock import AnyClock
from streamridge.series.lengths import DAY
from streamridge.series.series import Series
from streamridge.series.times import Steps


@dataclass(frozen=True)
class Score:
    """The errors of the forecasts of one horizon; NaN if nothing was scored."""

    ahead: int  # the number of steps ahead
    rmse: float
    mae: float
    coverages: Mapping[float, float]  # the share of readings within their band, by level
    naive: Mapping[str, float]  # the RMSE of each naive forecast over the same steps, by name

    @property
    def relative(self) -> float:
        """Return the RMSE divided by the RMSE of "week", or of "last" without a season.

        It is NaN if the naive RMSE is zero, as for a constant sensor.
        """
        naive = self.naive.get("week", self.naive.get("last", np.nan))
        return self.rmse / naive if naive > 0 else np.nan

    def record(self) -> dict[str, Any]:
        """Return the score as plain values, with None for NaN."""
        figures = {
            "rmse": self.rmse,
            "rmse_relative": self.relative,
            "mae": self.mae,
            **named("coverage", tuple(self.coverages), list(self.coverages.values())),
        }
        return {"ahead": self.ahead} | {n: finite_or_none(each) for n, each in figures.items()}


def scored_part(series: Series, settings: Settings, first: int, end: int) -> dict[str, Any]:
    """Return the fields of a `Run` that depend on the series and the settings alone.

    The steps `first` to `end - 1` are scored.
    """
    scored = slice(first, end)
    (lower, upper), values = settings.limits, series.values[:end]
    # No forecast within the bounds can match a reading outside of them.
    readings = np.where((values < lower) | (values > upper), np.nan, values)
    implausible = implausible_readings(readings, settings.warmup)
    plausible = np.where(implausible, np.nan, readings)
    naive = naive_forecasts(plausible, series.clock, series.start, settings)
    step = series.clock.step
    return {
        "sensor": series.sensor,
        "step": np.int64(step) if isinstance(step, int) else np.timedelta64(step),
        "times": series.times[scored],
        "local_times": series.local_times[scored],
        "time_format": series.time_format,
        "actual": readings[scored],
        "implausible": implausible[scored],
        "naive_forecasts": {name: values[scored] for name, values in naive.items()},
        "steps_done": end,
        "level": one_or_all(settings.levels),
    }


def naive_forecasts(
    readings: Vector, clock: AnyClock, start: int, settings: Settings
) -> dict[str, Matrix]:
    """Return the naive forecasts of each step of a series by name, (T, H) each.

    "last" is the last reading. "week" is the reading at the same local time one week before, else
    two weeks before, else the last reading. A series without a weekly season has its longest season
    instead; a series without any season has no "week". `start` is the step of the first reading.
    """
    last = np.broadcast_to(_latest_before(readings)[:, None], (len(readings), settings.horizon))
    periods = dict(zip(settings.seasons, settings.periods, strict=True))
    season = periods.get(7 * DAY, max(settings.periods, default=None))
    if season is None:
        return {"last": last}
    return {"last": last, "week": _season_ago(readings, clock, start, season, last)}


def _season_ago(
    readings: Vector, clock: AnyClock, start: int, season: float, last: Matrix
) -> Matrix:
    """Return the latest known reading a whole number of seasons ago; else the last reading."""
    count, horizon = last.shape
    now = np.arange(count)[:, None]
    ahead = now + np.arange(horizon)
    values = np.full(last.shape, np.nan)
    for seasons in range(1, 3 + int(horizon / season)):
        back = round(seasons * season)
        steps = start + ahead
        shifted = clock.shifts(steps) - clock.shifts(steps - back)
        places = ahead - back + shifted
        values = np.where(np.isnan(values), _at(readings, places, before=now), values)
    return np.where(np.isnan(values), last, values)


def _latest_before(readings: Vector) -> Vector:
    """Return the last reading before each step, (T,); NaN before the first reading."""
    known = np.where(np.isnan(readings), -1, np.arange(len(readings)))
    latest = np.concatenate([[-1], np.maximum.accumulate(known)[:-1]])
    return _at(readings, latest, before=np.arange(len(readings)))


def _at(readings: Vector, places: Steps, *, before: Steps) -> Matrix:
    """Return the readings at some places; NaN outside the series, and from `before` on."""
    known = (places >= 0) & (places < before)
    return np.where(known, readings[np.where(known, places, 0)], np.nan)


def implausible_readings(readings: Vector, warmup: int) -> Mask:
    """Return which readings are far outside the range of the readings before them, shape (T,).

    Scores leave these readings out. Forecasts play no part, so that all methods are scored on the
    same steps. The rule is the forecaster's: farther outside the range than three times its width.
    The first `warmup` readings are judged together, by the range of most of them. After eight such
    readings in a row the sensor has changed, and none of them is implausible. The same holds for
    readings that recur.

    Examples
    --------
    >>> readings = np.array([9.0, 11.0, 10.0, 12.0, 9e11, 10.0])
    >>> implausible_readings(readings, 4)
    array([False, False, False, False,  True, False])
    """
    marks = np.zeros(len(readings), dtype=bool)
    known = np.flatnonzero(~np.isnan(readings))
    early, later = known[known < warmup], known[known >= warmup]
    marks[early] = far_from_most(readings[early], early)
    trusted = readings[early][~marks[early]]
    has_common = common_value(trusted) is not None
    low, high = (trusted.min(), trusted.max()) if trusted.size else (np.inf, -np.inf)
    far: list[int] = []  # places of the latest readings in a row that are far outside
    starts: list[int] = []  # places where such readings began
    doubted: list[int] = []  # places of all such readings since the warm-up that are marked
    for at, value in zip(later.tolist(), readings[later].tolist(), strict=True):
        is_far = Plausibility(low, high).is_implausible(value)
        if is_far and not far:
            starts = [*starts, at][-FREQUENT:]
        recurs = is_far and recurring(starts, has_common=has_common)
        if is_far and not recurs and len(far) < CONVINCING:
            far.append(at)
            doubted.append(at)
            marks[at] = True
            continue
        if is_far:  # the sensor has changed, or has bursts
            marks[[each for each in doubted if each >= starts[0]] if recurs else far] = False
        low, high, far = min(low, value), max(high, value), []
    return marks
