"""A sensor without any model: its bands in silence, and what it may show."""

import numpy as np
import pytest

from streamridge import Forecaster
from streamridge.forecaster.sensor import Sensor
from tests.forecaster.test_forecaster import DAY, HOUR, START, column, daily, live, small


def exact_sensor(days=9):
    """Return a sensor whose days are all the same, so that a day ago is never wrong."""
    sensor = Sensor(small().settings)
    for hour in range(days * DAY):
        sensor.place(START + hour * HOUR)
        sensor.push(100.0 + hour % DAY, 100.0, None, None)
    return sensor


@pytest.mark.parametrize("silence", [1, 5, 20])
def test_bands_of_a_silent_sensor_never_shrink(silence):
    sensor = exact_sensor()
    for _ in range(silence):
        sensor.push_gap(100.0, None)
    below, above = np.array([[-30.0]]), np.array([[30.0]])

    lower, upper = sensor.widened(below, above, (0.9,))

    # The same time a season ago has hardly any band of its own, and still none gets narrower.
    lowest, highest = sensor.seasonal_offsets(sensor.seasonal(), (0.9,))
    assert -30.0 < lowest < 0 < highest < 30.0
    assert lower == below
    assert upper == above


def test_a_forecast_that_is_corrected_stays_within_what_the_sensor_may_show():
    rng = np.random.default_rng(2)
    t = np.arange(9 * DAY)
    wave = np.maximum(0.0, 50 * np.sin(2 * np.pi * t / DAY) + 5 * rng.standard_normal(len(t)))
    wave[5 * DAY + 6 :] *= 0.2  # forecasts are too high from here on, and corrected downwards

    forecasts = live(small(), wave)

    assert column(forecasts[3 * DAY :]).min() >= 0.0


def test_a_season_ago_is_remembered_whatever_the_model_looks_back_at():
    forecaster = Forecaster.paper("1h", lags=3, train_size=30, update_every=24, warmup=48)
    values = daily(12 * DAY)
    live(forecaster, values)

    live(forecaster, [np.nan] * (DAY + 2), 12 * DAY)

    forecast = forecaster.predict()
    assert forecast.source == "seasonal"
    assert forecast.value[0] == values[13 * DAY + 2 - 7 * DAY]
