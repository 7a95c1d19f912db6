"""The forecasters of several sensors, which the adapters of frames and datasets share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamridge.arrays import Matrix
from streamridge.errors import InvalidInputError, about, counted
from streamridge.files.reading import read_one_series
from streamridge.files.reading_options import ReadingOptions, require_options
from streamridge.forecaster.forecast import JUDGED, Forecast, Level, Levels, by_level
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.settings import require_readings
from streamridge.runs.next_steps import forecast_settings, naive_note
from streamridge.runs.tasks import SHARED_SETTINGS, ModelName
from streamridge.series.lengths import Length, step_name
from streamridge.series.series import Series


class Sensors:
    """One forecaster for each sensor, all with the same settings.

    Parameters
    ----------
    horizon, level
        The number of steps to forecast, and the levels of the bands.
    model, settings
        The name of the model, and settings of `Forecaster`, as `forecast` takes them.
    """

    def __init__(
        self, horizon: int, level: Level, *, model: ModelName = "default", **settings: Any
    ) -> None:
        require_options("settings", settings, SHARED_SETTINGS)
        self.horizon = horizon
        self._arguments = {"model": model, "horizon": horizon, "level": level, **settings}
        self._settings_of = forecast_settings(**self._arguments)
        self._forecasters: dict[str, Forecaster] = {}
        self._histories: dict[str, Series] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the function `_settings_of`, which cannot be pickled."""
        return {name: each for name, each in vars(self).items() if name != "_settings_of"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._settings_of = forecast_settings(**self._arguments)

    @property
    def steps(self) -> dict[str, Length]:
        """Return the time between readings of each sensor."""
        return {name: each.settings.step for name, each in self._forecasters.items()}

    @property
    def notes(self) -> list[str]:
        """Return a note for each sensor whose history is too short for a model."""
        every = [naive_note(name, each) for name, each in self._forecasters.items()]
        return [note for notes in every for note in notes]

    def start(self, series: Mapping[str, Series]) -> None:
        """Start a forecaster for each series, which replaces a forecaster of the same name."""
        for name, each in series.items():
            settings = replace(self._settings_of(each.clock.step), sensor=name or None)
            self._forecasters[name] = Forecaster.from_settings(settings, each)

    def observe(self, series: Mapping[str, Series]) -> None:
        """Learn from new readings; a new sensor is started. A bad value changes nothing."""
        for name, each in series.items():
            with about(name):
                require_readings("value", each.values)
        self.start({name: each for name, each in series.items() if name not in self._forecasters})
        for name, each in series.items():
            self._forecasters[name].observe(each)

    def follow(self, series: Mapping[str, Series]) -> None:
        """Learn from whole histories: only the new steps if a history continues a known one."""
        for name, each in series.items():
            known = self._histories.get(name)
            self._histories[name] = each
            if known is None or not _continues(known, each):
                self.start({name: each})
            elif len(each) > len(known):
                later = replace(
                    each, start=each.start + len(known), values=each.values[len(known) :]
                )
                self._forecasters[name].observe(later)

    def predict_one(self, name: str) -> Forecast:
        """Return the forecast of the next steps of one sensor."""
        return self._forecasters[name].predict()

    def predict(self, level: Level | None = None) -> dict[str, Forecast]:
        """Return the forecast of the next steps of each sensor."""
        return {name: each.predict(level=level) for name, each in self._forecasters.items()}


def _continues(known: Series, given: Series) -> bool:
    """Return whether a series begins with all values of a known one, at the same times."""
    return (
        len(given) >= len(known)
        and given.clock.step == known.clock.step
        and bool(given.times[0] == known.times[0])
        and np.array_equal(given.values[: len(known)], known.values, equal_nan=True)
    )


def whole_series(readings: Any, tz: str | None = None) -> Series:
    """Return a series of pandas from its first value on, with the gaps at its end.

    Raises an error unless its index is regular: forecasts would belong to other times than the
    caller's next steps.
    """
    step = _length(readings.index[0]) if len(readings) == 1 else None
    filled = read_one_series(readings.ffill().bfill(), ReadingOptions(step=step, tz=tz))
    if len(filled) != len(readings):
        raise InvalidInputError(
            f"the index must have a row for each step of {step_name(filled.clock.step)}, got "
            f"{counted(len(readings), 'row')} for {counted(len(filled), 'step')}. Business days "
            'and other calendars with gaps are not supported: fill the index, such as asfreq("D").'
        )
    values = readings.to_numpy(np.float64, na_value=np.nan)
    first = int(np.flatnonzero(~np.isnan(values))[0])
    return replace(filled, start=filled.start + first, values=values[first:])


def _length(time: Any) -> Any:
    """Return the length of a period of pandas, None for a point in time."""
    return (time + 1).start_time - time.start_time if hasattr(time, "start_time") else None


def levels_between(shares: Iterable[float]) -> Levels:
    """Return the levels of the bands whose ends are quantiles; at least one level.

    Examples
    --------
    >>> levels_between([0.1, 0.5, 0.9]), levels_between([0.5])
    ((0.8,), (0.9,))
    """
    levels = {round(abs(2 * share - 1), 10) for share in shares} - {0.0}
    return tuple(sorted(levels)) or (JUDGED,)


def quantiles(forecast: Forecast, shares: Sequence[float]) -> Matrix:
    """Return the quantiles of a forecast with the levels of `levels_between`, (H, n).

    The forecast is its median.
    """
    lower = dict(zip(forecast.levels, by_level(forecast.lower, forecast.levels), strict=True))
    upper = dict(zip(forecast.levels, by_level(forecast.upper, forecast.levels), strict=True))
    columns = []
    for share in shares:
        level = round(abs(2 * share - 1), 10)
        columns.append(forecast.value if level == 0 else (lower if share < 0.5 else upper)[level])
    return np.column_stack(columns)
