"""The forecasters of several sensors, which the adapters of frames and datasets share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from streamridge.errors import about
from streamridge.forecaster.forecast import Forecast, Level
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.settings import require_readings
from streamridge.runs.next_steps import forecast_settings, naive_note
from streamridge.runs.tasks import ModelName
from streamridge.series.lengths import Length
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
        self.horizon = horizon
        self._settings_of = forecast_settings(model, horizon=horizon, level=level, **settings)
        self._forecasters: dict[str, Forecaster] = {}
        self._histories: dict[str, Series] = {}

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
        """Start a forecaster for each series, which replaces the one of the same name."""
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
        """Learn from whole histories: only the new steps of those that continue a known one."""
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
