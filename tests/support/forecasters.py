"""Small forecasters, hourly values for them, and what they forecast."""

from dataclasses import replace
from functools import cache

import numpy as np

from streamridge import (
    Forecaster,
    NotPositiveDefiniteError,
)
from streamridge.features.seasons import Season
from streamridge.files.checkpoint import decoded, encoded
from streamridge.forecaster.presets import default_preset

START = np.datetime64("2021-06-13T00:00", "m")
HOUR = np.timedelta64(60, "m")
DAY = 24


def hours(first, last):
    return [START + hour * HOUR for hour in range(first, last)]


def daily(count, *, seed=0, noise=3.0, level=100.0):
    """Return a daily wave with a slower one and noise, hour by hour."""
    rng = np.random.default_rng(seed)
    t = np.arange(count)
    wave = 50 * np.sin(2 * np.pi * t / DAY) + 10 * np.sin(2 * np.pi * t / 37)
    return level + wave + noise * rng.standard_normal(count)


def small(**settings):
    """Return a forecaster that is quick: hourly, few rows, a refit a day."""
    return Forecaster(
        "1h", **{"lags": 6, "train_size": 240, "update_every": DAY, "warmup": 3 * DAY, **settings}
    )


class Watched:
    """A model that keeps the samples of its fits, and fails while it is told to."""

    def __init__(self, model):
        self.model, self.seen, self.fails = model, [], False

    def __getattr__(self, name):
        return getattr(self.model, name)

    def fit(self, samples, *rest):
        if self.fails:
            raise NotPositiveDefiniteError(
                "K + regularization * I", 1.0, "regularization", 1e-14, 0.0
            )
        self.seen.append(samples)
        return self.model.fit(samples, *rest)


def watched(**settings):
    """Return a small forecaster, and its model, which is watched."""
    seasons = (Season("day", DAY, count=7, lags=6), Season("week", 7 * DAY, count=4, lags=4))
    preset = default_preset(seasons, horizon=settings.get("horizon", 1))
    model = Watched(preset.model)
    return small(preset=replace(preset, model=model), **settings), model


def live(forecaster, values, first=0):
    """Return the forecasts made before each value."""
    forecasts = []
    for time, value in zip(hours(first, first + len(values)), values, strict=True):
        forecasts.append(forecaster.predict())
        forecaster.observe(time, value)
    return forecasts


def lived(days):
    """Return a small forecaster that was read daily values for some days, and its forecasts.

    Its days are shared by the tests of a process: each continues a copy.
    """
    content, forecasts = _saved_after(days)
    return Forecaster.from_bytes(content), list(forecasts)


@cache
def _saved_after(days):
    if days == 0:
        return small().to_bytes(), ()
    forecaster, forecasts = lived(days - 1)
    made = live(forecaster, daily(days * DAY)[-DAY:], (days - 1) * DAY)
    return forecaster.to_bytes(), (*forecasts, *made)


def column(forecasts, part="value", ahead=0):
    return np.array([getattr(forecast, part)[ahead] for forecast in forecasts])


def same(one, other):
    assert one.source == other.source
    for part in ("time", "value", "lower", "upper"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def state_of(forecaster):
    """Return everything that is saved but the seconds spent."""
    _, state = decoded(forecaster.to_bytes(), "content")
    return {name: array for name, array in state.items() if name != "costs.seconds"}


def loaded_without(part, forecaster):
    """Return a forecaster loaded from a saved one without the arrays of a part."""
    header, state = decoded(forecaster.to_bytes(), "content")
    kept = {name: array for name, array in state.items() if not name.startswith(part)}
    assert len(kept) < len(state)
    return Forecaster.from_bytes(encoded(header, kept))


def noisy(seed, count, deviations=(1.0, 2.0, 3.0)):
    rng = np.random.default_rng(seed)
    values = 10 * np.sin(np.arange(count) / 9)
    return values, values[:, None] + rng.standard_normal((count, len(deviations))) * deviations
