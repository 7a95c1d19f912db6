"""The correction of daily bursts: its formula, help where it can be, and no harm elsewhere."""

import numpy as np
import pytest

import streamridge as sr
from streamridge.forecaster.burst_correction import (
    DOUBT,
    MEMORY,
    BurstCorrection,
    BurstForecast,
)
from tests.support.forecasters import loaded_without

DAY = 8
ANY = (-np.inf, np.inf)


def learned(values, forecasts, means):
    """Return the correction after some steps, and the forecasts it made."""
    correction, made = BurstCorrection(DAY), []
    for value, forecast, mean in zip(values, forecasts, means, strict=True):
        made.append(correction.forecast(forecast, mean))
        correction = correction.observe(value, made[-1])
    return correction, made


def test_the_share_is_least_squares_less_half_a_standard_error(rng):
    values = rng.normal(size=200)
    means = values + rng.normal(size=200)
    correction, made = learned(values, np.zeros(200), means)

    weights = (1 - 1 / (MEMORY * DAY)) ** np.arange(200)[::-1]
    left = values - np.array([each.share for each in made]) * means
    noise = np.sqrt((weights * (means * left) ** 2).sum())
    wanted = ((weights * means * values).sum() - DOUBT * noise) / (weights * means**2).sum()
    assert correction.share == pytest.approx(wanted, rel=1e-10)
    assert 0.2 < wanted < 0.8


def test_a_mean_that_is_right_is_used_within_days_and_one_that_is_wrong_never(rng):
    values, noise = rng.normal(size=80), rng.normal(size=80)

    assert learned(values, np.zeros(80), values)[0].share > 0.9
    assert learned(values, values + 0.1 * noise, noise)[0].share == 0.0
    assert BurstCorrection(DAY).share == 0.0


def test_only_the_first_step_changes_and_limits_hold():
    values = np.array([1.0, 2.0])

    moved = BurstForecast(1.0, 4.0, 0.5).corrected(values, ANY)

    assert moved.tolist() == [3.0, 2.0]
    assert BurstForecast(1.0, 4.0, 0.5).corrected(values, (0.0, 2.5)).tolist() == [2.5, 2.0]
    assert BurstForecast(1.0, 4.0, 0.0).corrected(values, (0.0, 0.5)) is values


def test_an_unknown_mean_corrects_nothing_and_huge_numbers_teach_nothing():
    correction = learned([1.0, 1.0], [0.0, 0.0], [1.0, 1.0])[0]

    assert correction.forecast(1.0, np.nan) is None
    assert correction.forecast(-1e308, 1e308) is None
    assert correction.observe(1e200, correction.forecast(0.0, 1e200)) is correction


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        (np.zeros(2), "sums must have shape"),
        (np.array([1, np.nan, 1]), "sums must be finite"),
        (np.array([1, -1, -1]), "sums must not be negative"),
    ],
)
def test_damaged_states_are_refused(sums, message):
    with pytest.raises(sr.InvalidInputError, match=message):
        BurstCorrection(DAY).restore({"sums": sums})


def daily_job(days, *, floor=0.0):
    """Return readings every half hour: a large job each day, in three steps, and small ones."""
    rng, at = np.random.default_rng(2), np.arange(48 * days) % 48
    large, small = 5000 * rng.lognormal(0, 0.2, len(at)), 20 * rng.lognormal(0, 0.5, len(at))
    values = np.where((at >= 6) & (at < 9), large, np.where(at % 12 == 5, small, 0.0))
    return np.rint(values + floor * rng.random(len(at)))


def forecasts_of(values):
    """Return the forecasts of all steps, and the forecaster."""
    times = np.datetime64("2026-01-05T00:00") + np.arange(len(values)) * np.timedelta64(30, "m")
    forecaster = sr.Forecaster("30min", train_size=240)
    made = []
    for time, value in zip(times, values, strict=True):
        known = forecaster.next_time is not None
        made.append(forecaster.predict().value[0] if known else 0.0)
        forecaster.observe(time, value)
    return np.array(made), forecaster


def uncorrected(monkeypatch):
    monkeypatch.setattr(BurstCorrection, "forecast", lambda self, value, mean: None)


def test_a_daily_job_is_forecast_better(monkeypatch):
    values = daily_job(19)
    corrected, forecaster = forecasts_of(values)
    uncorrected(monkeypatch)
    plain, _ = forecasts_of(values)

    assert forecaster._bursts.share > 0.5
    errors = [np.std((values - each)[12 * 48 :]) for each in (corrected, plain)]
    assert errors[0] < 0.95 * errors[1]


def test_readings_that_vary_are_forecast_as_before(monkeypatch):
    values = daily_job(10, floor=10.0)
    corrected, forecaster = forecasts_of(values)
    uncorrected(monkeypatch)
    plain, _ = forecasts_of(values)

    assert corrected.tobytes() == plain.tobytes()
    assert forecaster._bursts is None


def test_a_saved_correction_continues_bit_for_bit():
    values = daily_job(14)
    _, forecaster = forecasts_of(values[:-48])
    loaded = sr.Forecaster.from_bytes(forecaster.to_bytes())

    assert loaded._bursts.share == forecaster._bursts.share > 0
    for value in values[-48:]:
        one, other = (each.predict() for each in (forecaster, loaded))
        assert one.value.tobytes() == other.value.tobytes()
        for each in (forecaster, loaded):
            each.observe(each.next_time, value)
    assert loaded._bursts.sums.tobytes() == forecaster._bursts.sums.tobytes()


def test_a_file_without_the_correction_starts_it_anew():
    loaded = loaded_without("bursts", forecasts_of(daily_job(10))[1])

    assert loaded._bursts is None
    assert np.isfinite(loaded.predict().value).all()


@pytest.mark.parametrize("seasons", [(), None])
def test_a_stream_without_seasons_is_forecast(seasons):
    forecaster = sr.Forecaster("30min", seasons=seasons, train_size=60, warmup=96)
    for at, value in enumerate(daily_job(4)):
        time = np.datetime64("2026-01-05T00:00") + at * np.timedelta64(30, "m")
        forecaster.observe(time, value)

    assert forecaster._history.plausibility.common == 0.0
    assert np.isfinite(forecaster.predict().value).all()
