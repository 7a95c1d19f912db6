"""The blend of the model with a regression on seasonal profiles."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster
from streamridge.features.base import Past
from streamridge.features.seasonal_columns import SeasonalColumns
from streamridge.features.timeline import Timeline
from streamridge.forecaster.blend import FIRST_DAYS, FIRST_SHARE, MEMORY, Blend, BlendedForecast
from streamridge.forecaster.seasonal_regression import SeasonalRegression
from streamridge.series.clock import Clock

DAY = 24


def blend(horizon=2):
    return Blend.start(SeasonalColumns(7.0 * DAY, float(DAY)), horizon, DAY)


def lived(values, model, regression):
    """Return the blend after values whose forecasts, one and two steps ahead, were constant."""
    state = blend()
    for step, value in enumerate(values):
        forecast = BlendedForecast(step, np.full(2, model), np.full(2, regression - model))
        state = state.observe(step, value, forecast, learns=True)
    return state


def test_shares_are_discounted_least_squares_moved_towards_their_first_value():
    values = np.random.default_rng(0).normal(2.0, 1.0, 50)

    shares = lived(values, model=1.0, regression=4.0).shares

    for lead in range(2):
        ages = np.arange(len(values) - lead)[::-1]
        weights = (1 - 1 / (MEMORY * DAY)) ** ages
        # The model is 1 and the regression 4, so the best share of a value is a third above 1.
        best = np.average((values[lead:] - 1.0) / 3.0, weights=weights)
        first, seen = FIRST_DAYS * DAY, weights.sum()
        expected = (first * FIRST_SHARE + seen * best) / (first + seen)
        assert shares[lead] == pytest.approx(expected, rel=1e-12)


def test_the_better_forecast_gets_the_larger_share():
    assert (lived([4.0] * 400, model=1.0, regression=4.0).shares > 0.75).all()
    assert (lived([1.0] * 400, model=1.0, regression=4.0).shares < 0.05).all()
    assert (lived([9.0] * 400, model=1.0, regression=4.0).shares <= 1.0).all()


def test_values_that_the_model_does_not_learn_from_change_no_share():
    forecast = BlendedForecast(0, np.ones(2), np.ones(2))

    after = blend().observe(0, 100.0, forecast, learns=False)

    assert after.shares == pytest.approx(FIRST_SHARE)
    assert after.pending == (forecast,)  # its second step is still to come


def test_a_regression_without_a_forecast_leaves_the_model_as_it_is():
    forecast = BlendedForecast(0, np.array([1.0, 2.0]), np.zeros(2))

    assert blend().blended(forecast, forecast.model).tolist() == [1.0, 2.0]
    assert blend().observe(0, 5.0, forecast, learns=True).shares == pytest.approx(FIRST_SHARE)


def test_fits_move_towards_the_regression_by_the_same_share():
    forecast = BlendedForecast(0, np.array([1.0, 2.0]), np.array([4.0, 4.0]))

    moved = blend().blended(forecast, np.array([0.0, 6.0]))

    assert moved == pytest.approx([5.0 * FIRST_SHARE, 6.0])


def test_rows_that_reach_farther_give_the_same_forecasts():
    rng, timeline = np.random.default_rng(0), Timeline()
    timeline.start_at(0)
    for value in (rng.normal(size=60 * DAY) + np.sin(np.arange(60 * DAY) / 4)).tolist():
        timeline.push(value, read=True, trusted=True)
    past, columns = (
        Past(timeline, Clock(timedelta(hours=1))),
        SeasonalColumns(7.0 * DAY, float(DAY)),
    )
    near = Blend.start(columns, 4, DAY).caught_up(past)
    far = SeasonalRegression.start(columns, (5, 48)).caught_up(past)

    model = np.ones(4)
    own, shared = (
        near.forecast(each.next_rows(past), 60 * DAY, model) for each in (near.regression, far)
    )

    assert np.abs(own.differences).min() > 0
    np.testing.assert_allclose(shared.differences, own.differences, rtol=1e-9)


def test_forecasts_are_blended_if_some_steps_are_too_far_for_the_model():
    assert Forecaster("1h", horizon=4)._blend is None
    assert Forecaster("1h", horizon=5)._blend is not None
    assert Forecaster("1h", horizon=5, learn=False)._blend is None


def test_near_forecasts_follow_profiles_where_the_model_has_little_history():
    rng = np.random.default_rng(0)
    hours = np.arange(60 * DAY)
    wave = 100 * (1 + (hours // DAY % 7 < 5)) * np.sin(np.pi * (hours % DAY) / DAY)
    times = np.datetime64("2021-03-01T00:00") + hours * np.timedelta64(1, "h")
    values = 50 + wave + rng.normal(scale=5, size=len(hours))
    frame = pd.DataFrame({"time": times, "value": values})
    forecaster = Forecaster.start(frame[: 50 * DAY], horizon=5, train_size=60)
    for at in range(50 * DAY, 60 * DAY):
        forecaster.observe(times[at], values[at])

    assert (forecaster._blend.shares[1:] > 0.6).all()
