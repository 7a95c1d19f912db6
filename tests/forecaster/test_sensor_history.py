"""The history of a sensor: its naive forecasts, and the readings that it forgets."""

import numpy as np
import pytest

from streamridge import Forecaster
from streamridge.features.timeline import Timeline
from streamridge.forecaster.calibration import Calibration
from streamridge.forecaster.sensor_history import DAYS, SensorHistory, quantile
from tests.support.forecasters import DAY, HOUR, START, column, daily, live, small
from tests.support.sensor_histories import FIRST, HORIZON, LAGS, recalled
from tests.support.tiers import each_horizon


def test_before_the_first_fit_old_readings_are_forgotten_now_and_then():
    history, oldest = recalled(1), []

    for step in range(FIRST + 1, FIRST + 60):
        history.timeline.push(float(step), read=True, trusted=True)
        history.forget_unneeded(10)
        oldest.append(history.timeline.oldest)
        kept = min(10 + HORIZON + LAGS, step - FIRST)
        assert history.timeline.remembered()[0] <= step - kept

    assert len(set(oldest)) == 5
    assert step - oldest[-1] < 2 * 10 + HORIZON + LAGS + 1


def exact_history(days=9):
    """Return a history whose days are all the same, so that a day ago is never wrong."""
    history = SensorHistory(small().settings)
    for hour in range(days * DAY):
        history.place(START + hour * HOUR)
        history.push(100.0 + hour % DAY, 100.0, None, None)
    return history


@pytest.mark.parametrize("silence", [1, 5, 20])
@pytest.mark.parametrize("size", [1e-9, 0.1, 30.0], ids=str)
def test_expected_errors_grow_during_silence_up_to_those_of_a_naive_forecast(silence, size):
    history = exact_history()
    for _ in range(silence):
        history.push_gap(100.0, None)
    calibration = Calibration.start(1, 0.9, corrects=True)
    naive = history.naive_offsets(np.array([size]), (0.9,))

    (wider,) = calibration.widening(np.array([size]), silence, naive)

    # The value a day ago has hardly any band of its own, but no band gets narrower.
    below, above = calibration.bands.offsets(np.array([size]), (0.9,))
    most = ((naive[1] - naive[0]) / (above - below)).item() / np.sqrt(2)
    assert wider == pytest.approx(min(np.sqrt(1 + silence), max(1.0, most)))


@pytest.mark.parametrize("days", [1, 5, 20])
def test_naive_intervals_look_up_errors_once_enough_of_them_can_be_known(days, monkeypatch):
    history, looked_up = exact_history(days), []
    found = Timeline.trusted_values
    monkeypatch.setattr(
        Timeline, "trusted_values", lambda self, at: looked_up.append(at.size) or found(self, at)
    )

    history.naive_offsets(np.array([1.0]), (0.9,))

    near = 3  # an hour is compared with itself and its neighbours
    assert bool(looked_up) == (days * near >= DAYS)


@pytest.mark.parametrize("count", [2, 3, 28, 29, 195, 196])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.9 * (1 + 1 / DAYS), 0.999])
def test_a_quantile_equals_that_of_numpy_to_the_last_bit(count, share):
    rng = np.random.default_rng(count)

    for sample in (rng.normal(size=count) ** 2, rng.integers(0, 4, count) / 3):
        assert quantile(sample, share) == np.quantile(sample, share)


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
@pytest.mark.parametrize(("horizon", "days"), [(1, 9), (5, 9), (5, 3), (30, 9)])
def test_naive_forecasts_of_all_steps_equal_those_of_single_steps(tz, horizon, days):
    history = SensorHistory(small(horizon=horizon, tz=tz).settings)
    history.place(np.datetime64("2021-03-24T00:00"))  # clocks change four days later
    for value in daily(days * DAY).tolist():
        history.push(value, value, None, None)
        steps = range(history.next_step, history.next_step + history.horizon)

        together = history.naive_forecasts()

        each = np.array([history.naive_values(step) for step in steps]).T
        np.testing.assert_array_equal(together, each)


def test_after_silence_the_last_reading_is_no_forecast():
    history = SensorHistory(small().settings)
    rng = np.random.default_rng(0)
    for hour, value in enumerate(np.cumsum(rng.normal(size=9 * DAY))):
        history.place(START + hour * HOUR)
        history.push(value, value, None, None)

    sources = []
    for _ in range(10):
        sources.append(history.naive_forecast()[1])
        history.push_gap(0.0, None)

    assert sources == ["last"] * 8 + ["seasonal"] * 2


@each_horizon(1, 3)
def test_a_leap_fills_a_silence_as_single_steps_do(horizon):
    values = daily(15 * DAY)
    stepped = small(horizon=horizon)
    live(stepped, values)
    leapt = Forecaster.from_bytes(stepped.to_bytes())

    live(stepped, [np.nan] * (4 * DAY), 15 * DAY)
    for forecaster in (stepped, leapt):
        live(forecaster, values[:1], 19 * DAY)

    for name, array in stepped._history.timeline.state().items():
        np.testing.assert_array_equal(array, leapt._history.timeline.state()[name])
    np.testing.assert_array_equal(stepped.predict().value, leapt.predict().value)


def test_a_forecast_that_is_corrected_stays_within_what_the_history_may_show():
    rng = np.random.default_rng(2)
    t = np.arange(9 * DAY)
    wave = np.maximum(0.0, 50 * np.sin(2 * np.pi * t / DAY) + 5 * rng.standard_normal(len(t)))
    wave[5 * DAY + 6 :] *= 0.2  # forecasts are too high from here on, and corrected downwards

    forecasts = live(small(), wave)

    assert column(forecasts[3 * DAY :]).min() >= 0.0


def test_a_season_is_remembered_even_if_the_model_looks_back_less():
    forecaster = Forecaster.paper("1h", lags=3, train_size=30, update_every=24, warmup=48)
    values = daily(12 * DAY)
    live(forecaster, values)

    live(forecaster, [np.nan] * (DAY + 2), 12 * DAY)

    forecast = forecaster.predict()
    assert forecast.source == "seasonal"
    history = forecaster._history
    week_ago, day_ago, _ = history.naive_values(history.next_step)
    assert week_ago == values[13 * DAY + 2 - 7 * DAY]
    assert day_ago == history.timeline.value(history.next_step - DAY)
    assert forecast.value[0] in (week_ago, day_ago)
