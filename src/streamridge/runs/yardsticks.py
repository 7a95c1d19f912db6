"""Forecasts that need no model, to hold the errors of others against: `last` and `week`."""

from __future__ import annotations

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.forecaster.settings import Settings
from streamridge.series.clock import DAY, AnyClock, Steps


def yardsticks(
    readings: Vector, clock: AnyClock, start: int, settings: Settings
) -> dict[str, Matrix]:
    """Return the forecasts of each step of a series by name, (T, H) each.

    `last` is the last reading. `week` is the reading at the same local time a week before, else two
    weeks before, else the last one. A series that knows no week has its longest season instead, and
    one without any season has no `week`.

    Parameters
    ----------
    readings
        (T,), NaN where there is none.
    clock, start
        Of the series, and the step of its first reading.
    settings
        Of the forecaster: its horizon and seasons.
    """
    shape = len(readings), settings.horizon
    last = np.broadcast_to(_latest_before(readings)[:, None], shape)
    season = _season(settings)
    if season is None:
        return {"last": last}
    return {"last": last, "week": _season_ago(readings, clock, start, season, last)}


def _season(settings: Settings) -> float | None:
    """Return the week in steps, else the longest season, if there is one."""
    by_length = dict(zip(settings.seasons, settings.periods, strict=True))
    return by_length.get(7 * DAY, max(settings.periods, default=None))


def _season_ago(
    readings: Vector, clock: AnyClock, start: int, season: float, last: Matrix
) -> Matrix:
    """Return the latest reading that is whole seasons ago and known by then; else the last one."""
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
    """Return the last reading before each step, (T,); NaN before the first one."""
    known = np.where(np.isnan(readings), -1, np.arange(len(readings)))
    latest = np.concatenate([[-1], np.maximum.accumulate(known)[:-1]])
    return _at(readings, latest, before=np.arange(len(readings)))


def _at(readings: Vector, places: Steps, *, before: Steps) -> Matrix:
    """Return the readings at some places; NaN outside the series, and where not before a step."""
    known = (places >= 0) & (places < before)
    return np.where(known, readings[np.where(known, places, 0)], np.nan)
