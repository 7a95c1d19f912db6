"""Forecasters of steps of any length, of seasons that are asked for, and of an integer index."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError, replay

START = np.datetime64("2001-01-01T00:00", "s")


def wave(count, *periods, seed=0, noise=0.3):
    """Return waves of some periods, in steps, with noise."""
    t = np.arange(count)
    waves = sum(np.sin(2 * np.pi * t / period) for period in periods)
    return 20 + 4 * waves + noise * np.random.default_rng(seed).standard_normal(count)


def run_of(step, values, **settings):
    forecaster = Forecaster(step, **settings)
    times = START + np.arange(len(values)) * np.timedelta64(forecaster.settings.step)
    return replay(forecaster, pd.Series(values, index=pd.DatetimeIndex(times)))


@pytest.mark.parametrize(
    ("step", "count", "periods"),
    [
        ("10s", 400, (90,)),
        pytest.param("7min", 900, (1440 / 7,), marks=pytest.mark.slow),
        pytest.param("1d", 500, (7, 365.25), marks=pytest.mark.slow),
        pytest.param("7d", 300, (52.18,), marks=pytest.mark.slow),
        ("1mo", 150, (12,)),
        ("30d", 150, (12.175,)),
    ],
)
def test_a_series_of_any_step_is_forecast_better_than_by_its_last_value(step, count, periods):
    values = wave(count, *periods)
    seasons = ("15min",) if step == "10s" else None

    run = run_of(step, values, seasons=seasons, train_size=200)

    last = np.sqrt(np.mean(np.diff(values)[-len(run.actual) :] ** 2))
    # On a plain wave, a season ago or the last value is better now and then.
    assert run.by_model.mean() > 0.5
    assert run.rmse < 0.9 * last
    assert 0.8 < run.coverage <= 1


def test_without_seasons_changes_are_forecast():
    rising = np.arange(200.0) + 0.1 * np.random.default_rng(1).standard_normal(200)

    run = run_of("7d", rising, seasons=())

    assert run.rmse < 0.4  # the last value is off by one


def fed(values):
    """Return a daily forecaster without a model after these values."""
    forecaster = Forecaster("1d", warmup=10**6)
    for day, value in enumerate(values):
        forecaster.observe(START + np.timedelta64(day, "D"), float(value))
    return forecaster


@pytest.mark.parametrize(
    ("period", "source"), [(365, "seasonal"), (7, "seasonal"), (400, "last")], ids=str
)
def test_before_the_first_fit_the_best_recent_season_is_the_fallback(period, source):
    values = 90.0 * np.arange(400) if period == 400 else np.sin(np.arange(400) % period) * 90

    forecast = fed(values).predict()

    assert forecast.source == source
    assert forecast.value[0] == values[-1 if period == 400 else 400 - period]


def test_of_two_equally_good_seasons_the_longer_is_the_fallback():
    values = np.where(np.arange(365) % 7 == 0, 5.0, 1.0)

    forecast = fed([*values, *values]).predict()

    assert forecast.source == "seasonal"
    assert forecast.value[0] == values[0]


def test_seasons_are_saved(tmp_path):
    forecaster = Forecaster("7min", seasons=("8h", "1d"), horizon=2)
    for i, value in enumerate(wave(400, 60)):
        forecaster.observe(START + i * np.timedelta64(420, "s"), value)
    forecaster.save(tmp_path / "sensor.sr")

    loaded = Forecaster.load(tmp_path / "sensor.sr")

    assert loaded.settings == forecaster.settings
    assert loaded.settings.seasons == (timedelta(hours=8), timedelta(days=1))
    np.testing.assert_array_equal(loaded.predict().value, forecaster.predict().value)
    assert "8h_lags" in dict(loaded.settings.preset.features.layout.blocks)


@pytest.mark.parametrize("days", [3, 40, 900])
def test_a_weekly_sensor_survives_silence(days):
    forecaster = Forecaster("7d", train_size=100)
    for week, value in enumerate(wave(120, 52.18)):
        forecaster.observe(START + week * np.timedelta64(7, "D"), value)

    forecaster.observe(START + np.timedelta64(119 * 7 + 7 * (1 + days // 7), "D"), 21.0)

    forecast = forecaster.predict()
    assert forecast.lower[0] <= forecast.value[0] <= forecast.upper[0]
    assert forecaster.counts.get("missing", 0) == days // 7


def test_an_integer_index_counts_steps(tmp_path):
    forecaster = Forecaster(step=1, seasons=(12,), horizon=3)
    for i, value in enumerate(wave(120, 12)):
        forecaster.observe(i + 5, value)
    forecaster.save(tmp_path / "sensor.sr")

    forecast = Forecaster.load(tmp_path / "sensor.sr").predict()

    assert forecast.source in ("model", "seasonal")  # a season ago is good here
    assert forecast.time.tolist() == [125, 126, 127]
    np.testing.assert_array_equal(forecast.value, forecaster.predict().value)
    np.testing.assert_allclose(forecast.value, wave(128, 12, noise=0)[120:123], atol=1.5)


def test_an_index_has_gaps_and_late_readings():
    forecaster = Forecaster(step=2)
    for time, value in ((0, 1.0), (2, 2.0), (8, 3.0), (4, 2.5), (7, 9.0)):
        forecaster.observe(time, value)

    assert forecaster.counts["missing"] == 2
    assert forecaster.counts["late"] == 1
    assert forecaster.counts["off_grid"] == 1
    assert forecaster.next_time == 10


def test_a_series_with_whole_numbers_is_replayed():
    run = replay(Forecaster(step=1), pd.Series(wave(120, 12), name="y"))

    assert run.times.tolist() == list(range(32, 120))
    assert run.columns()["time"].tolist() == list(range(32, 120))


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("2021-06-13", "time must be a whole number, since the step is one, got '2021-06-13'"),
        (1.5, r"time must be a whole number, since the step is one, got 1\.5"),
        (True, "time must be a whole number"),
        (1_700_000_000, "time must be at most 100000000 in size, got 1700000000. If it counts"),
        (5_000_000, "time must be within 1000000 steps of the newest reading, got 5000000"),
    ],
)
def test_a_time_that_is_no_index_is_refused_and_changes_nothing(time, message):
    forecaster = Forecaster(step=1)
    forecaster.observe(0, 5.0)

    with pytest.raises(InvalidInputError, match=message):
        forecaster.observe(time, 6.0)

    assert forecaster.counts == {"readings": 1}
    assert forecaster.next_time == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": "7h", "tz": "Europe/London"}, "step must be at most 1h with tz, .* got 7h"),
        ({"step": 1, "tz": "Europe/London"}, "tz must be left out with an integer index"),
        ({"step": "1d", "seasons": "7d"}, "seasons must be a tuple of times"),
        ({"step": "1d", "seasons": ("1d",)}, "season must be 2 to 20160 steps of 1d long"),
        ({"step": 1, "seasons": ("1d",)}, "season must be a whole number, as the step 1 is"),
        ({"step": "1d", "train_size": "many"}, "train_size must be a whole number"),
    ],
)
def test_bad_steps_and_seasons_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        Forecaster(**settings)


def test_a_zone_shifts_steps_that_do_not_divide_an_hour_by_whole_ones():
    clock = Forecaster("7min", tz="Europe/Berlin")
    clock.observe("2021-06-13T00:00", 1.0)
    clock.observe("2021-06-13T00:07", 2.0)

    assert str(clock.predict().time[0]) == "2021-06-12T22:14:00.000000"
