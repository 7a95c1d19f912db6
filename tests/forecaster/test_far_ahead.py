"""Forecasts farther ahead than the model's steps."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster
from streamridge.features.base import Past
from streamridge.features.seasonal_columns import SeasonalColumns
from streamridge.features.timeline import Timeline
from streamridge.forecaster.far_ahead import FarAhead
from streamridge.forecaster.seasonal_regression import RIDGE, SeasonalRegression
from streamridge.forecaster.settings import near_steps, seasonal_columns
from streamridge.series.clock import Clock
from streamridge.series.holidays import Holidays
from tests.support.tiers import tiered

HOUR, DAY = np.timedelta64(1, "h"), 24
START = np.datetime64("2021-03-01T00:00")


def series(days, seed=0):
    """Return hourly values with a weekly pattern, days that differ, and noise."""
    rng = np.random.default_rng(seed)
    hours = np.arange(days * DAY)
    weekday = (hours // DAY) % 7
    shape = np.clip(np.sin(2 * np.pi * (hours % DAY - 6) / DAY), 0, None)
    factor = np.where(weekday < 5, 1.0, 0.5) * (1 + 0.2 * rng.normal(size=days))[hours // DAY]
    return 50 + 400 * shape * factor + rng.normal(scale=5, size=len(hours))


def observed(forecaster, values, first=0):
    for hour, value in enumerate(values.tolist(), first):
        forecaster.observe(START + hour * HOUR, value)
    return forecaster


@pytest.fixture(scope="module")
def forecaster():
    return observed(Forecaster(step="1h", horizon=48, train_size=100), series(11))


@pytest.mark.parametrize(
    ("step", "horizon", "near"),
    [("1h", 48, 4), ("15min", 96, 12), ("5min", 288, 12), ("1h", 3, 3), ("1d", 28, 4)],
)
def test_the_model_forecasts_the_next_hours_only(step, horizon, near):
    settings = Forecaster(step=step, horizon=horizon).settings

    assert settings.near == near
    assert near_steps(horizon, settings.step, None, None) == horizon  # without seasonal columns
    assert Forecaster(step=step, horizon=horizon, update_every=2).settings.near == 2


@pytest.mark.parametrize(
    ("step", "season", "day"),
    [("15min", 672, 96), ("1d", 7, None), ("7d", 365.25 / 7, None), ("7min", 1440, 1440 / 7)],
)
def test_the_reference_is_the_week_or_the_shortest_longer_season(step, season, day):
    settings = Forecaster(step=step).settings

    columns = seasonal_columns(settings.seasons, settings.step)

    assert columns == SeasonalColumns(season, day)


def test_an_index_without_seasons_is_forecast_by_the_model_alone():
    assert Forecaster(step=1, horizon=20).settings.near == 20


def test_forecasts_are_finite_and_ordered_from_the_first_reading_on():
    forecaster = Forecaster(step="1h", horizon=30, train_size=100, level=(0.5, 0.9))
    for hour, value in enumerate(series(8).tolist()):
        forecaster.observe(START + hour * HOUR, value if hour % 7 else None)
        if hour % 5 != 1:
            continue
        forecast = forecaster.predict()

        assert len(forecast) == 30
        assert np.isfinite(forecast.value).all()
        assert (np.diff(np.c_[forecast.lower[:, ::-1], forecast.value, forecast.upper]) >= 0).all()


@pytest.mark.parametrize("horizon", tiered([5, 6, 7, 8, 9], quick=lambda steps: steps in {5, 8}))
def test_a_few_far_steps_are_forecast_too(horizon):
    near = observed(Forecaster(step="1h", horizon=horizon, train_size=100), series(5))

    made = near.predict()

    assert len(made) == horizon > near.settings.near
    assert np.isfinite(made.value).all()


@pytest.mark.parametrize("ahead", [1, 2])
def test_holidays_are_like_sundays_several_days_ahead_whatever_the_last_days_were(ahead):
    hours, rng = np.arange(90 * DAY), np.random.default_rng(8)
    day, holidays = hours // DAY, np.array([17, 38, 59, 73, 82])
    free = (day % 7 == 6) | np.isin(day, holidays)
    level = 1 + 0.3 * np.cumsum(rng.normal(size=90))[day] / 6
    wave = level * np.where(free, 40, 200) * np.sin(np.pi * (hours % DAY) / DAY)
    values = 50 + wave + rng.normal(scale=3, size=len(hours))
    dates = (START.astype("M8[D]") + holidays).astype(str).tolist()
    timeline, first = Timeline(), 83 - ahead
    timeline.start_at(int(START.astype("M8[h]").astype(int)))
    for value in values[: first * DAY].tolist():
        timeline.push(value, read=True, trusted=True)
    past = Past(timeline, Clock(timedelta(hours=1), holidays=Holidays(tuple(dates))))
    far = FarAhead.start(SeasonalColumns(168.0, 24.0), (5, 96)).caught_up(past)

    forecast = far.forecast(
        far.regression.next_rows(past), np.zeros(92), 900.0, 1e-9, (0.0, np.inf)
    )

    errors = np.abs(forecast.values - values[first * DAY + 4 : first * DAY + 96])
    # With the last working days as columns, errors of the last holiday were 15 and 19.
    assert errors[day[first * DAY + 4 : first * DAY + 96] == 82].mean() < 13


def test_a_saved_forecaster_continues_bit_for_bit(forecaster):
    more = series(13)[11 * DAY :]
    copies = [Forecaster.from_bytes(forecaster.to_bytes()) for _ in range(2)]
    straight = observed(copies[0], more, 11 * DAY)
    saved = copies[1]
    for part in np.array_split(np.arange(len(more)), 7):
        saved = Forecaster.from_bytes(saved.to_bytes())
        observed(saved, more[part], 11 * DAY + part[0])

    mine, other = straight.predict(), saved.predict()

    assert mine.value.tolist() == other.value.tolist()
    assert mine.lower.tolist() == other.lower.tolist()


def test_predict_changes_nothing(forecaster):
    values = series(12)[11 * DAY :]
    watched, alone = (Forecaster.from_bytes(forecaster.to_bytes()) for _ in range(2))
    for hour in range(len(values)):
        watched.predict()
        observed(watched, values[hour : hour + 1], 11 * DAY + hour)
    observed(alone, values, 11 * DAY)

    assert watched.predict().value.tolist() == alone.predict().value.tolist()
    assert watched.predict().upper.tolist() == alone.predict().upper.tolist()


def test_a_history_at_once_equals_reading_by_reading():
    values = series(25)
    clock, far = (
        Clock(timedelta(hours=1)),
        FarAhead.start(SeasonalColumns(168.0, 24.0), (5, 48)),
    )
    timeline = Timeline()
    timeline.start_at(int(START.astype("M8[h]").astype(int)))
    past, stepwise = Past(timeline, clock), far
    for value in values.tolist():
        timeline.push(value, read=True, trusted=True)
        stepwise = stepwise.caught_up(past)

    at_once = far.caught_up(past)

    for name, array in at_once.state().items():
        assert np.array_equal(array, stepwise.state()[name], equal_nan=True), name


def test_the_regression_solves_its_weighted_least_squares():
    values, timeline = series(30), Timeline()
    timeline.start_at(int(START.astype("M8[h]").astype(int)))
    for value in values.tolist():
        timeline.push(value, read=True, trusted=True)
    past = Past(timeline, Clock(timedelta(hours=1)))
    far = FarAhead.start(SeasonalColumns(168.0, 24.0), (5, 48)).caught_up(past)
    regression = far.regression

    w, gram, moments = regression.coefficients, regression.gram, regression.moments
    scale = np.diag(gram) / regression.weight

    # The gradient of the penalized sum of squares vanishes at its minimum.
    gradient = gram @ w / regression.weight + RIDGE * scale * w - moments / regression.weight
    assert gradient == pytest.approx(np.zeros_like(w), abs=1e-8 * np.abs(moments).max())


def stream(values):
    """Return the state of far forecasts after each fifth hour, with the hours known by then."""
    far = FarAhead.start(SeasonalColumns(168.0, 24.0), (5, 36))
    timeline = Timeline()
    timeline.start_at(int(START.astype("M8[h]").astype(int)))
    past = Past(timeline, Clock(timedelta(hours=1)))
    for hour, value in enumerate(values.tolist(), 1):
        timeline.push(value, read=True, trusted=True)
        if hour % 5 == 0:
            far = far.caught_up(past)
            yield (
                hour,
                far,
                far.forecast(
                    far.regression.next_rows(past), np.zeros(32), 900.0, 1e-9, (0.0, np.inf)
                ),
            )


def test_far_forecasts_are_better_than_last_week_and_like_the_median_where_days_differ_by_chance():
    values = series(110, seed=3)
    errors = {"forecast": [], "week": [], "median": []}
    for hour, _, forecast in stream(values[: 108 * DAY]):
        if hour >= 70 * DAY:
            ahead = np.arange(hour + 4, hour + 36)
            weeks = [values[ahead - 168 * k] for k in range(1, 9)]
            forecasts = forecast.values, weeks[0], np.median(weeks, axis=0)
            for name, each in zip(errors, forecasts, strict=True):
                errors[name].append(each - values[ahead])

    rmse = {name: np.sqrt(np.mean(np.square(error))) for name, error in errors.items()}

    assert rmse["forecast"] < 0.8 * rmse["week"]
    assert rmse["forecast"] < 1.03 * rmse["median"]


def test_far_forecasts_follow_a_change_of_level():
    values = np.where(np.arange(85 * DAY) < 65 * DAY, 1.0, 2.0) * series(85, seed=6)
    errors = {"forecast": [], "median": []}
    for hour, _, forecast in stream(values[: 83 * DAY]):
        if hour >= 69 * DAY:
            ahead = np.arange(hour + 4, hour + 36)
            median = np.median([values[ahead - 168 * k] for k in range(1, 9)], axis=0)
            errors["forecast"].append(forecast.values - values[ahead])
            errors["median"].append(median - values[ahead])

    rmse = {name: np.sqrt(np.mean(np.square(error))) for name, error in errors.items()}

    assert rmse["forecast"] < 0.7 * rmse["median"]


def test_intervals_cover_their_share():
    values, inside = series(90, seed=4), []
    for hour, far, forecast in stream(values[: 88 * DAY]):
        if hour >= 60 * DAY:
            below, above = far.offsets(forecast, (0.9,))
            errors = values[hour + 4 : hour + 36] - forecast.values
            inside.append((below[:, 0] <= errors) & (errors <= above[:, 0]))

    assert 0.85 < np.mean(inside) < 0.95


@pytest.mark.parametrize("days", tiered([4, 9, 14, 24], quick=lambda days: days in (4, 9)))
def test_intervals_are_sensible_from_the_first_days_on(days):
    inside, widths = [], []
    for seed in range(5):
        values = series(days + 2, seed=20 + seed)
        history = pd.DataFrame({"time": START + np.arange(days * DAY) * HOUR})
        history["value"] = values[: days * DAY]
        forecast = Forecaster.start(history, horizon=24, train_size=100).predict()
        actual = values[days * DAY : days * DAY + 24]
        inside.append(((forecast.lower <= actual) & (actual <= forecast.upper))[4:])
        widths.append((forecast.upper - forecast.lower)[4:])

    assert np.mean(inside) > 0.6
    assert np.mean(widths) < 3 * values.mean()


def test_a_date_that_was_special_a_year_ago_is_forecast_as_special():
    days = 13 * 31
    values = series(days, seed=5)
    for day in range(45, 365, 40):  # holidays: like Sundays, and the same dates a year later
        values[day * DAY : (day + 1) * DAY] = 50 + 0.3 * (values[day * DAY : (day + 1) * DAY] - 50)
    start = int(START.astype("M8[h]").astype(int))
    timeline = Timeline()
    timeline.start_at(start)
    for value in values[: (days - 10) * DAY].tolist():
        timeline.push(value, read=True, trusted=True)
    past = Past(timeline, Clock(timedelta(hours=1)))
    regression = SeasonalRegression.start(SeasonalColumns(168.0, 24.0), (5, 24))
    while regression.newest < timeline.newest:
        regression, _ = regression.advanced(past)

    change, strength = regression.special.a_year_ago(
        np.array([(start // DAY) + 45 + 365, (start // DAY) + 47 + 365])
    )

    assert strength[0] < 1.5 * min(strength[1], -0.5)
    assert change[0] < -0.3


def test_a_long_gap_is_survived():
    forecaster = observed(Forecaster(step="1h", horizon=30, train_size=100), series(5))
    observed(forecaster, series(2), (5 + 60) * DAY)

    forecast = forecaster.predict()

    assert np.isfinite(forecast.value).all()
    assert (forecast.lower <= forecast.upper).all()
