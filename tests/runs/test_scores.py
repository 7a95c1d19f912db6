"""Naive forecasts, implausible readings, and the scores that depend on them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from streamridge import Forecaster, compare, replay
from streamridge.forecaster.plausibility import CONVINCING
from streamridge.metrics import rmse
from streamridge.runs.scores import implausible_readings, naive_forecasts
from streamridge.series.clock import Clock, IndexClock
from streamridge.series.lengths import parse_step
from streamridge.series.zones import parse_zone
from tests.support.forecasters import DAY, daily, small
from tests.support.series import frame

WEEK = 7 * DAY
WARMUP = 3 * DAY
HOUR = Clock(parse_step("1h"))


def settings(**given):
    return Forecaster("1h", **given).settings


def test_last_is_the_last_known_reading():
    readings = np.array([np.nan, 1.0, 2.0, np.nan, np.nan, 5.0])

    last = naive_forecasts(readings, HOUR, 0, settings(horizon=2))["last"]

    expected = [np.nan, np.nan, 1.0, 2.0, 2.0, 2.0]
    np.testing.assert_array_equal(last, np.column_stack([expected, expected]))


def test_week_is_a_week_ago_else_two_weeks_else_the_last():
    readings = np.arange(3.0 * WEEK)
    readings[2 * WEEK - 5] = np.nan
    readings[[WEEK - 3, 2 * WEEK - 3]] = np.nan

    week = naive_forecasts(readings, HOUR, 0, settings())["week"][:, 0]

    assert week[0] != week[0]  # nothing is known
    assert week[10] == 9.0  # no week has passed
    assert week[2 * WEEK] == WEEK
    assert week[3 * WEEK - 5] == WEEK - 5
    assert week[3 * WEEK - 3] == 3 * WEEK - 4


@pytest.mark.parametrize("horizon", [3, WEEK + 5])
def test_no_naive_forecast_uses_the_readings_it_forecasts(horizon):
    readings = daily(4 * WEEK)
    at = 3 * WEEK
    poisoned = np.concatenate([readings[:at], np.full(WEEK, 1e6)])

    calm, shaken = (
        naive_forecasts(y, HOUR, 0, settings(horizon=WEEK)) for y in (readings, poisoned)
    )

    for name in ("last", "week"):
        np.testing.assert_array_equal(calm[name][: at + 1], shaken[name][: at + 1])
    far = naive_forecasts(readings, HOUR, 0, replace(settings(), horizon=horizon, update_every=999))
    assert not np.isnan(far["week"][WEEK]).any()


def test_a_week_ago_is_at_the_same_local_time_when_clocks_have_changed():
    zone = parse_zone("Europe/Berlin")
    clock = Clock(parse_step("1h"), zone=zone)
    steps = np.arange(
        int((np.datetime64("2021-03-20") - np.datetime64("1970-01-01")) / np.timedelta64(1, "h")),
        int((np.datetime64("2021-04-03") - np.datetime64("1970-01-01")) / np.timedelta64(1, "h")),
    )
    hours = ((steps + clock.shifts(steps)) % DAY).astype(float)  # each reading is its local hour

    week = naive_forecasts(hours, clock, int(steps[0]), settings(tz="Europe/Berlin"))["week"][:, 0]

    np.testing.assert_array_equal(week[WEEK + 1 :], hours[WEEK + 1 :])


def test_a_series_without_a_week_has_its_longest_season_and_one_without_any_only_last():
    readings = np.arange(60.0)

    index = naive_forecasts(readings, IndexClock(1), 0, Forecaster(1).settings)
    seasonal = naive_forecasts(readings, IndexClock(1), 0, Forecaster(1, seasons=(4, 12)).settings)

    assert list(index) == ["last"]
    assert seasonal["week"][30, 0] == 18.0


def test_scores_of_every_horizon_are_relative_to_the_season_ago():
    values = daily(16 * DAY)
    values[200] = np.nan

    run = replay(small(horizon=3), frame(values), warmup=8 * DAY)

    record = json.loads(json.dumps(run.record()))
    for ahead, score in enumerate(record["horizons"], start=1):
        target = np.arange(8 * DAY + ahead - 1, 16 * DAY)
        naive = values[target] - values[target - WEEK]
        naive[target == 200 + WEEK] = values[200 + WEEK] - values[200 - WEEK]
        naive = naive[~np.isnan(naive)]
        assert score["ahead"] == ahead
        assert score["rmse"] == pytest.approx(rmse(run.errors(ahead)))
        assert score["rmse_relative"] == pytest.approx(rmse(run.errors(ahead)) / rmse(naive))
    assert record["rmse_relative"] == record["horizons"][0]["rmse_relative"] < 1
    assert record["by_model"] == 1.0
    assert record["interrupted"] is False
    assert record["rmse_last"] > record["rmse"]


def test_naive_forecasts_are_rows_of_a_comparison_over_the_same_steps():
    table = compare(frame(daily(11 * DAY)), "ohl,last,week", train_size=96, horizon=2)

    ohl, last, week = table.runs
    records = [run.record() for run in table.runs]
    assert [record["method"] for record in records] == ["ohl", "last", "week"]
    assert len({record["scored"] for record in records}) == 1
    assert records[0]["rmse_last"] == pytest.approx(last.rmse)
    assert records[0]["rmse_week"] == pytest.approx(week.rmse)
    assert records[2]["rmse_relative"] == pytest.approx(1.0)
    for run, record in zip((last, week), records[1:], strict=True):
        assert (record["coverage"], record["by_model"], record["seconds_total"]) == (None, 0.0, 0.0)
        np.testing.assert_array_equal(run.times, ohl.times)
        assert len(run.columns()["value"]) == len(ohl.columns()["value"])


def test_naive_forecasts_do_not_repeat_an_implausible_reading():
    values = daily(16 * DAY)
    values[300] = 9e11

    run = replay(small(), frame(values))

    assert run.naive_run("last").rmse < 100
    assert run.naive_run("week").rmse < 100


def test_a_naive_run_of_several_levels_has_no_band_at_any():
    table = compare(frame(daily(10 * DAY)), "last", level=(0.8, 0.95))

    record = table.runs[0].record()
    assert (record["coverage_80"], record["coverage_95"]) == (None, None)
    assert not table.runs[0].has_bands


def test_no_reading_of_a_usual_series_is_implausible():
    assert not implausible_readings(daily(20 * DAY), WARMUP).any()


@pytest.mark.parametrize("at", [5, WARMUP - 1, WARMUP, 100, -1])
@pytest.mark.parametrize("glitch", [9e11, -1e6])
def test_a_glitch_is_implausible_in_the_warm_up_and_after_it(at, glitch):
    readings = daily(6 * DAY)
    readings[at] = glitch

    marks = implausible_readings(readings, WARMUP)

    np.testing.assert_array_equal(marks, readings == glitch)


def test_gaps_are_not_implausible_and_hide_nothing():
    readings = daily(6 * DAY)
    readings[[100, 102, 104]] = np.nan
    readings[[101, 103]] = 9e11

    marks = implausible_readings(readings, WARMUP)

    assert np.flatnonzero(marks).tolist() == [101, 103]


def test_a_lasting_change_is_not_implausible_from_its_first_reading_on():
    readings = daily(8 * DAY)
    readings[100:] *= 100

    assert not implausible_readings(readings, WARMUP).any()


def test_a_short_burst_stays_implausible():
    readings = daily(8 * DAY)
    readings[100 : 100 + CONVINCING] = 9e11

    assert implausible_readings(readings, WARMUP).sum() == CONVINCING


def test_a_burst_at_the_same_time_of_every_day_is_scored():
    readings = daily(12 * DAY)
    readings[WARMUP + 7 :: DAY] = 9e5
    readings[WARMUP + 8 :: DAY] = 8e5

    assert not implausible_readings(readings, WARMUP).any()


@pytest.mark.parametrize("readings", [np.full(9, np.nan), np.full(9, 5.0), np.zeros(0)])
def test_nothing_is_implausible_without_a_range(readings):
    assert not implausible_readings(readings, 4).any()


def test_scores_omit_a_glitch_and_report_the_error_with_it():
    clean, dirty = daily(6 * DAY), daily(6 * DAY)
    dirty[-1] = 9e11  # the last, so that the forecasts are the same

    calm, shaken = replay(small(), frame(clean)), replay(small(), frame(dirty))

    record = shaken.record()
    errors = clean[WARMUP:-1] - shaken.value[:-1, 0]
    assert shaken.rmse == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)
    assert (record["implausible"], record["scored"]) == (1, 3 * DAY - 1)
    assert record["rmse"] < 100 < 1e10 < record["rmse_all"]
    assert record["mae"] < 100 < 1e9 < record["mae_all"]
    record = calm.record()
    assert record["implausible"] == 0
    assert (record["rmse"], record["mae"]) == (record["rmse_all"], record["mae_all"])


def test_all_methods_omit_the_same_readings():
    values = daily(6 * DAY)
    values[[100, 120]] = 9e11

    guarded = replay(small(), frame(values))
    trusting = replay(Forecaster("1h", train_size=96, warmup=WARMUP, guard=False), frame(values))

    np.testing.assert_array_equal(guarded.implausible, trusting.implausible)
    assert guarded.implausible.sum() == 2
