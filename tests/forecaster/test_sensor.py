"""A sensor without any model: its bands in silence, and what it may show."""

import numpy as np
import pytest

from streamridge import Forecaster
from streamridge.forecaster.sensor import Sensor
from streamridge.forecaster.stepper import Stepper
from tests.forecaster.test_forecaster import DAY, HOUR, START, column, daily, live, small


def exact_sensor(days=9):
    """Return a sensor whose days are all the same, so that a day ago is never wrong."""
    sensor = Sensor(small().settings)
    for hour in range(days * DAY):
        sensor.place(START + hour * HOUR)
        sensor.push(100.0 + hour % DAY, 100.0, None, None)
    return sensor


@pytest.mark.parametrize("silence", [0, 1, 5, 20])
@pytest.mark.parametrize("size", [1e-9, 0.1, 30.0], ids=str)
def test_the_errors_to_expect_of_a_silent_sensor_grow_up_to_those_of_a_naive_forecast(
    silence, size
):
    stepper = Stepper(small().settings)
    stepper.sensor = exact_sensor()
    for _ in range(silence):
        stepper.sensor.push_gap(100.0, None)

    (wider,) = stepper._widened(np.array([size]))

    # The same time a day ago has hardly any band of its own, and still none gets narrower.
    below, above = stepper._calibration.bands.offsets(np.array([1.0]), (0.9,))
    lowest, highest = stepper.sensor.naive_offsets(np.array([100.0]), (0.9,))
    most = ((highest - lowest) / (above - below)).item()
    expected = min(size * np.sqrt(1 + silence), max(size, most))
    assert wider == pytest.approx(expected)


def test_what_stands_in_after_silence_is_no_old_reading():
    sensor = Sensor(small().settings)
    rng = np.random.default_rng(0)
    for hour, value in enumerate(np.cumsum(rng.normal(size=9 * DAY))):
        sensor.place(START + hour * HOUR)
        sensor.push(value, value, None, None)

    sources = []
    for _ in range(10):
        sources.append(sensor.stand_in()[1])
        sensor.push_gap(0.0, None)

    assert sources == ["last"] * 8 + ["seasonal"] * 2


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_leap_fills_a_silence_as_single_steps_do(horizon):
    values = daily(15 * DAY)
    told, untold = (small(horizon=horizon) for _ in range(2))
    for forecaster in (told, untold):
        live(forecaster, values)

    live(told, [np.nan] * (4 * DAY), 15 * DAY)
    for forecaster in (told, untold):
        live(forecaster, values[:1], 19 * DAY)

    for name, array in told._stepper.sensor.timeline.state().items():
        np.testing.assert_array_equal(array, untold._stepper.sensor.timeline.state()[name])
    np.testing.assert_array_equal(told.predict().value, untold.predict().value)


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
    sensor = forecaster._stepper.sensor
    week_ago, day_ago, _ = sensor._naive_values(sensor.next_step)
    assert week_ago == values[13 * DAY + 2 - 7 * DAY]
    assert day_ago == sensor.timeline.value(sensor.next_step - DAY)
    assert forecast.value[0] in (week_ago, day_ago)
