"""Sensors that change for days: they lose readings, their road closes, or they show something else.

Forecasts follow within a day or two, and so do the bands.
"""

import numpy as np
import pytest

from streamridge import Forecaster, Workspace
from tests.support.forecasters import DAY, HOUR, START, column, daily, live, small
from tests.support.tiers import each_horizon

CHANGED = slice(12 * DAY, 16 * DAY)


def day(number):
    return slice(number * DAY, (number + 1) * DAY)


def errors(forecasts, values):
    return np.abs(column(forecasts) - values)


def held(forecasts, values):
    """Return which values the bands hold."""
    return (values >= column(forecasts, "lower")) & (values <= column(forecasts, "upper"))


def sources(forecasts, when):
    return {forecast.source for forecast in forecasts[when]}


def changed(how):
    """Return readings that are different for four days: `how` makes them of the true ones."""
    values = np.maximum(daily(19 * DAY), 1.0)
    values[CHANGED] = how(values[CHANGED])
    return values


@pytest.fixture(scope="module")
def before():
    """Return a forecaster as bytes, and its forecasts, before its sensor changes."""
    forecaster = small()
    forecasts = live(forecaster, changed(np.copy)[: CHANGED.start])
    return forecaster.to_bytes(), forecasts


def continued(before, values, end=None):
    """Return the forecaster after the sensor has changed, and all its forecasts."""
    content, forecasts = before
    forecaster = Forecaster.from_bytes(content)
    later = live(forecaster, values[CHANGED.start : end], CHANGED.start)
    return forecaster, forecasts + later


@pytest.fixture(scope="module")
def lived():
    """Return a forecaster of a sensor that loses every second reading, and its forecasts."""
    values = daily(15 * DAY)
    values[12 * DAY :] *= 1.6
    kept = values.copy()
    kept[12 * DAY + 1 :: 2] = np.nan
    forecaster = small()
    return forecaster, values, live(forecaster, kept)


class TestEverySecondReadingLost:
    def test_it_is_refitted_as_often_as_others(self, lived):
        forecaster, values, _ = lived
        whole = small()
        live(whole, values)

        assert whole.counts["fits"] - 1 <= forecaster.counts["fits"] <= whole.counts["fits"]

    def test_its_rows_are_trained_on(self, lived):
        forecaster, _, _ = lived
        first = forecaster.tuning.path.steps[0] - (3 * DAY - 1)
        trained = forecaster._model.training.t - first

        assert (trained >= 12 * DAY + DAY // 2).sum() > DAY // 2

    def test_it_follows_a_rise_within_a_day(self, lived):
        _, values, forecasts = lived
        second = day(13)

        day_ago = np.abs(values[second] - values[day(12)])
        assert errors(forecasts, values)[second].mean() < 1.05 * day_ago.mean()
        assert 0.75 <= held(forecasts, values)[second].mean() <= 1


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(0.0, id="a closed road"),
        pytest.param(137.0, id="a stuck value", marks=pytest.mark.slow),
    ],
)
class TestOneValueForDays:
    def test_it_is_forecast_within_a_day_and_given_up_within_two(self, before, shown):
        values = changed(lambda true: 0 * true + shown)

        _, forecasts = continued(before, values)

        for number in (13, 14, 15):
            assert errors(forecasts, values)[day(number)].max() < 5
        assert sources(forecasts, day(15)) == {"last"}
        assert sources(forecasts, day(17)) <= {"model", "seasonal"}
        assert errors(forecasts, values)[day(17)].mean() < 8
        assert held(forecasts, values)[17 * DAY :].mean() > 0.75

    def test_it_is_believed_after_a_season(self, before, shown):
        values = changed(lambda true: 0 * true + shown)

        forecaster, _ = continued(before, values, end=13 * DAY)
        assert forecaster.counts["stuck"] == DAY - 8
        live(forecaster, values[13 * DAY : 16 * DAY], 13 * DAY)

        assert forecaster.counts["stuck"] == DAY - 8


def alternating(true):
    return np.where(np.arange(len(true)) % 2, 90.0, 140.0)


def shifted(true):
    return true + 300


@pytest.mark.parametrize(("how", "largest"), [(alternating, 6.0), (shifted, 12.0)])
def test_other_changes_are_followed_by_the_third_day_and_given_up_within_two(before, how, largest):
    values = changed(how)

    _, forecasts = continued(before, values)

    assert errors(forecasts, values)[day(14)].mean() < largest
    assert held(forecasts, values)[day(14)].mean() > 0.75
    assert [each.source for each in forecasts[day(17)]].count("last") < DAY / 4
    assert errors(forecasts, values)[day(17)].mean() < 8


def test_without_a_guard_a_model_never_gives_way():
    values = changed(lambda true: 0 * true)[8 * DAY : 15 * DAY]

    forecasts = live(small(guard=False), values)

    assert sources(forecasts, slice(3 * DAY, None)) == {"model"}


class TestLateReadings:
    GAPS = (9 * DAY + 4, 9 * DAY + 10, 10 * DAY - 4)

    def fitted(self, horizon):
        """Return a forecaster that was fitted to rows with gaps, one of them read since."""
        values = daily(10 * DAY)
        values[list(self.GAPS)] = np.nan
        forecaster = small(horizon=horizon, train_size=60)
        forecaster.workspace = Workspace()  # holds the rows as they were made
        live(forecaster, values)
        forecaster.refit()
        return forecaster

    @each_horizon(1, 3)
    @pytest.mark.parametrize("saved", [False, True], ids=["rested", "saved"])
    def test_rows_are_rebuilt_as_the_refit_saw_them(self, horizon, saved):
        forecaster = self.fitted(horizon)
        were = forecaster._model.training
        first = forecaster.tuning.path.steps[0] - (3 * DAY - 1)
        assert self.GAPS[0] + 1 in were.t - first  # its last lag is filled in

        for gap in self.GAPS:
            forecaster.observe(START + gap * HOUR, 77.0)
        assert forecaster.counts["late"] == len(self.GAPS)
        forecaster.workspace = None
        if saved:
            forecaster = Forecaster.from_bytes(forecaster.to_bytes())

        again = forecaster._model.training
        for letter in "txy":
            assert getattr(again, letter).tobytes() == getattr(were, letter).tobytes()

    def test_the_next_refit_sees_what_came(self):
        forecaster = self.fitted(horizon=1)
        before = forecaster._model.training

        forecaster.observe(START + self.GAPS[0] * HOUR, 77.0)
        forecaster.refit()

        after = forecaster._model.training
        shared = np.isin(after.t, before.t)
        assert not np.array_equal(after.x[shared], before.x[np.isin(before.t, after.t)])
        assert 77.0 in after.y


@pytest.mark.parametrize("glitch", [65_535.0, pytest.param(1e9, marks=pytest.mark.slow)])
def test_a_glitch_does_not_widen_the_bands_for_days(before, glitch):
    values = changed(np.copy)
    values[CHANGED.start] = glitch

    forecaster, forecasts = continued(before, values)

    widths = column(forecasts, "upper") - column(forecasts, "lower")
    usual = np.median(widths[9 * DAY : CHANGED.start])
    assert widths[CHANGED.start + 2 :].max() < 3 * usual
    assert forecaster.counts["implausible"] == 1


def test_a_fault_value_that_is_repeated_is_not_believed_within_a_season(before):
    values = changed(np.copy)
    values[CHANGED.start : CHANGED.start + 20] = 65_535.0

    forecaster, _ = continued(before, values)

    assert forecaster.counts["implausible"] == 20
    assert forecaster.predict().upper[0] < 300


def test_intervals_follow_noise_that_is_six_times_as_large():
    covered = []
    for seed in range(2):
        values, loud = daily(11 * DAY, seed=seed), daily(11 * DAY, seed=seed, noise=18.0)
        values[8 * DAY :] = loud[8 * DAY :]
        covered.append(held(live(small(), values), values)[8 * DAY :])

    assert np.mean(covered) > 0.75


class TestSilence:
    def test_intervals_hold_the_values_of_the_second_and_third_day(self):
        covered = []
        for seed in range(3):
            values = daily(33 * DAY, seed=seed, noise=8.0)
            forecaster = small(warmup=30 * DAY)
            live(forecaster, values[: 30 * DAY])
            silent = live(forecaster, [None] * (3 * DAY), first=30 * DAY)
            covered.append(held(silent, values[30 * DAY :])[DAY:])

        assert 0.82 < np.mean(covered) < 0.98

    def test_the_size_of_errors_is_that_of_the_time_of_day(self):
        values = daily(20 * DAY, noise=1.0)
        rough = np.arange(20 * DAY) % DAY == 15
        values[rough] += np.random.default_rng(5).normal(0, 40, rough.sum())
        forecaster = small(warmup=30 * DAY, level=0.9)
        live(forecaster, values)

        silent = live(forecaster, [None] * (2 * DAY), first=20 * DAY)

        widths = (column(silent, "upper") - column(silent, "lower"))[DAY:]
        assert widths[15] > 1.5 * widths[5]


def test_two_equal_readings_have_an_interval_like_a_poisson_count():
    forecaster = small()

    forecast = live(forecaster, [57.0, 57.0, None])[-1]

    half = 1.645 * np.sqrt(57)
    assert forecast.upper[0] - 57 == pytest.approx(57 - forecast.lower[0])
    assert half < forecast.upper[0] - 57 < 3 * half


@pytest.fixture(scope="module")
def opened():
    """Return a forecaster of a sensor that is read from 8 to 16 only, and its forecasts."""
    values = daily(14 * DAY)
    is_open = (np.arange(len(values)) % DAY >= 8) & (np.arange(len(values)) % DAY < 16)
    forecaster = small(lags=16)
    return forecaster, values, live(forecaster, np.where(is_open, values, np.nan))


class TestOpenHours:
    def test_closed_hours_are_filled_with_the_last_reading(self, opened):
        forecaster, values, _ = opened
        newest = forecaster._history.timeline.newest

        assert forecaster._history.timeline.value(newest) == values[13 * DAY + 15]

    def test_the_first_hour_of_the_day_is_learned_and_forecast(self, opened):
        forecaster, values, forecasts = opened
        first = np.arange(9 * DAY + 8, 14 * DAY, DAY)

        assert (forecaster._model.training.t % DAY == forecaster._history.next_step % DAY + 8).any()
        assert errors(forecasts, values)[first].mean() < 12
