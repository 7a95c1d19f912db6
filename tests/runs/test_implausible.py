import numpy as np
import pytest

from streamridge import Forecaster, replay
from streamridge.forecaster.plausibility import CONVINCING
from streamridge.runs.implausible import implausible_readings
from tests.forecaster.test_forecaster import DAY, daily, small
from tests.runs.test_replay import frame

WARMUP = 3 * DAY


def test_nothing_is_implausible_in_a_usual_series():
    assert not implausible_readings(daily(20 * DAY), WARMUP).any()


@pytest.mark.parametrize("at", [5, WARMUP - 1, WARMUP, 100, -1])
@pytest.mark.parametrize("glitch", [9e11, -1e6])
def test_a_glitch_is_implausible_in_the_warm_up_and_after_it(at, glitch):
    readings = daily(6 * DAY)
    readings[at] = glitch

    marks = implausible_readings(readings, WARMUP)

    np.testing.assert_array_equal(marks, readings == glitch)


def test_gaps_are_neither_implausible_nor_in_the_way():
    readings = daily(6 * DAY)
    readings[[100, 102, 104]] = np.nan
    readings[[101, 103]] = 9e11

    marks = implausible_readings(readings, WARMUP)

    assert np.flatnonzero(marks).tolist() == [101, 103]


def test_a_sensor_that_stays_beyond_has_changed_and_counts_from_its_first_reading_there():
    readings = daily(8 * DAY)
    readings[100:] *= 100

    assert not implausible_readings(readings, WARMUP).any()


def test_a_burst_that_ends_before_it_convinces_stays_implausible():
    readings = daily(8 * DAY)
    readings[100 : 100 + CONVINCING] = 9e11

    assert implausible_readings(readings, WARMUP).sum() == CONVINCING


@pytest.mark.parametrize("readings", [np.full(9, np.nan), np.full(9, 5.0), np.zeros(0)])
def test_without_a_range_nothing_is_implausible(readings):
    assert not implausible_readings(readings, 4).any()


def test_scores_leave_a_glitch_out_and_say_what_they_are_with_it():
    clean, dirty = daily(6 * DAY), daily(6 * DAY)
    dirty[-1] = 9e11  # the last, so that the forecasts are the same

    calm, shaken = replay(small(), frame(clean)), replay(small(), frame(dirty))

    record = shaken.record()
    errors = clean[WARMUP:-1] - shaken.value[:-1, 0]
    assert shaken.rmse == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)
    assert (record["implausible"], record["scored"]) == (1, 3 * DAY - 1)
    assert record["rmse"] < 100 < 1e10 < record["rmse_all"]
    assert record["mae"] < 100 < 1e9 < record["mae_all"]
    assert calm.record()["implausible"] == 0
    assert (calm.rmse, calm.mae) == (calm.rmse_all, calm.mae_all)


def test_all_methods_leave_out_the_same_readings_whatever_they_guard():
    values = daily(6 * DAY)
    values[[100, 120]] = 9e11

    guarded = replay(small(), frame(values))
    trusting = replay(Forecaster("1h", train_size=96, warmup=WARMUP, guard=False), frame(values))

    np.testing.assert_array_equal(guarded.implausible, trusting.implausible)
    assert guarded.implausible.sum() == 2
