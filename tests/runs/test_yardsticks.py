import json
from dataclasses import replace

import numpy as np
import pytest

from streamridge import Forecaster, compare, replay
from streamridge.metrics import rmse
from streamridge.runs.yardsticks import yardsticks
from streamridge.series.clock import Clock, IndexClock, parse_step, parse_zone
from tests.forecaster.test_forecaster import DAY, daily, small
from tests.runs.test_replay import frame

WEEK = 7 * DAY
HOUR = Clock(parse_step("1h"))


def settings(**given):
    return Forecaster("1h", **given).settings


def test_last_is_the_last_reading_that_is_known():
    readings = np.array([np.nan, 1.0, 2.0, np.nan, np.nan, 5.0])

    last = yardsticks(readings, HOUR, 0, settings(horizon=2))["last"]

    expected = [np.nan, np.nan, 1.0, 2.0, 2.0, 2.0]
    np.testing.assert_array_equal(last, np.column_stack([expected, expected]))


def test_week_is_a_week_ago_else_two_weeks_else_the_last():
    readings = np.arange(3.0 * WEEK)
    readings[2 * WEEK - 5] = np.nan
    readings[[WEEK - 3, 2 * WEEK - 3]] = np.nan

    week = yardsticks(readings, HOUR, 0, settings())["week"][:, 0]

    assert week[0] != week[0]  # nothing is known
    assert week[10] == 9.0  # no week has passed
    assert week[2 * WEEK] == WEEK
    assert week[3 * WEEK - 5] == WEEK - 5
    assert week[3 * WEEK - 3] == 3 * WEEK - 4


@pytest.mark.parametrize("horizon", [3, WEEK + 5])
def test_no_yardstick_looks_at_what_it_forecasts(horizon):
    readings = daily(4 * WEEK)
    at = 3 * WEEK
    poisoned = np.concatenate([readings[:at], np.full(WEEK, 1e6)])

    calm, shaken = (yardsticks(y, HOUR, 0, settings(horizon=WEEK)) for y in (readings, poisoned))

    for name in ("last", "week"):
        np.testing.assert_array_equal(calm[name][: at + 1], shaken[name][: at + 1])
    far = yardsticks(readings, HOUR, 0, replace(settings(), horizon=horizon, update_every=999))
    assert not np.isnan(far["week"][WEEK]).any()


def test_a_week_ago_is_at_the_same_local_time_when_clocks_have_changed():
    zone = parse_zone("Europe/Berlin")
    clock = Clock(parse_step("1h"), zone=zone)
    steps = np.arange(
        int((np.datetime64("2021-03-20") - np.datetime64("1970-01-01")) / np.timedelta64(1, "h")),
        int((np.datetime64("2021-04-03") - np.datetime64("1970-01-01")) / np.timedelta64(1, "h")),
    )
    hours = ((steps + clock.shifts(steps)) % DAY).astype(float)  # each reading is its local hour

    week = yardsticks(hours, clock, int(steps[0]), settings(tz="Europe/Berlin"))["week"][:, 0]

    np.testing.assert_array_equal(week[WEEK + 1 :], hours[WEEK + 1 :])


def test_a_series_without_a_week_has_its_longest_season_and_one_without_any_only_last():
    readings = np.arange(60.0)

    index = yardsticks(readings, IndexClock(1), 0, Forecaster(1).settings)
    seasonal = yardsticks(readings, IndexClock(1), 0, Forecaster(1, seasons=(4, 12)).settings)

    assert list(index) == ["last"]
    assert seasonal["week"][30, 0] == 18.0


def test_a_run_says_how_it_compares_with_the_season_ago_at_every_horizon():
    values = daily(20 * DAY)
    values[300] = np.nan

    run = replay(small(horizon=3), frame(values), warmup=10 * DAY)

    record = json.loads(json.dumps(run.record()))
    for ahead, score in enumerate(record["horizons"], start=1):
        target = np.arange(10 * DAY + ahead - 1, 20 * DAY)
        naive = values[target] - values[target - WEEK]
        naive[target == 300 + WEEK] = values[300 + WEEK] - values[300 - WEEK]
        naive = naive[~np.isnan(naive)]
        assert score["ahead"] == ahead
        assert score["rmse"] == pytest.approx(rmse(run.errors(ahead)))
        assert score["rmse_relative"] == pytest.approx(rmse(run.errors(ahead)) / rmse(naive))
    assert record["rmse_relative"] == record["horizons"][0]["rmse_relative"] < 1
    assert record["by_model"] == 1.0
    assert record["interrupted"] is False
    assert record["rmse_last"] > record["rmse"]


def test_yardsticks_are_rows_of_a_comparison_over_the_same_steps():
    table = compare(frame(daily(16 * DAY)), "ohl,last,week", train_size=96, horizon=2)

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


def test_a_glitch_does_not_lead_the_yardsticks_astray():
    values = daily(16 * DAY)
    values[300] = 9e11

    run = replay(small(), frame(values))

    assert run.yardstick("last").rmse < 100
    assert run.yardstick("week").rmse < 100


def test_a_yardstick_of_several_levels_has_no_band_at_any():
    table = compare(frame(daily(10 * DAY)), "last", level=(0.8, 0.95))

    record = table.runs[0].record()
    assert (record["coverage_80"], record["coverage_95"]) == (None, None)
    assert not table.runs[0].has_bands
