from dataclasses import replace

import numpy as np
import pytest

from streamridge import Forecaster
from streamridge.forecaster.plausibility import (
    CONVINCING,
    FREQUENT,
    REGULAR,
    REGULAR_COMMON,
    RUN,
    WITHIN,
    WITHIN_COMMON,
    Plausibility,
    clipped,
    far_from_most,
)
from streamridge.forecaster.sensor_history import SensorHistory


def of(*readings):
    return Plausibility().renewed(np.array(readings), np.ones(len(readings), bool))


CALM = of(80.0, 120.0, 100.0, 90.0)


@pytest.mark.parametrize(
    ("value", "error", "band", "verdict"),
    [
        (110.0, 10.0, 20.0, "good"),
        (230.0, 101.0, 20.0, "outlier"),
        (30.0, -101.0, 20.0, "outlier"),
        (230.0, 99.0, 20.0, "good"),
        (241.0, 141.0, 20.0, "implausible"),
        (-41.0, -141.0, 20.0, "implausible"),
        (1e308, 1e308, 20.0, "implausible"),
    ],
)
def test_a_reading_is_judged_by_its_error_and_by_the_recent_range(value, error, band, verdict):
    assert CALM.judge(value, error, band)[0] == verdict


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (-1.0, "outlier"),
        (0.0, "good"),
        (300.0, "good"),
        (599.0, "good"),
        (601.0, "outlier"),
        (1201.0, "implausible"),
    ],
)
def test_if_most_readings_are_equal_a_burst_of_a_usual_size_is_no_outlier(value, verdict):
    bursts = of(0.0, 0.0, 0.0, 300.0)

    found, after = bursts.judge(value, 250.0, 1.0)
    assert (found, after.low, after.high) == (verdict, 0.0, 300.0)
    assert replace(bursts, common=None).judge(value, 250.0, 1.0)[0] != "good"


def test_the_first_other_reading_of_a_constant_stream_is_an_outlier():
    assert of(0.0, 0.0, 0.0).judge(300.0, 300.0, 1.0)[0] == "outlier"


def test_many_strange_readings_in_a_row_are_believed():
    judge, verdicts = CALM, []
    for step in range(CONVINCING + 3):  # each is far from the one before
        verdict, judge = judge.judge(5000.0 + 900 * step, 4900.0, 20.0)
        verdicts.append(verdict)

    assert verdicts == ["implausible"] * CONVINCING + ["good"] * 3


def test_a_second_strange_reading_near_the_first_is_kept_and_not_yet_learned_from():
    verdicts, _ = verdicts_of(CALM, [5000.0 + step for step in range(CONVINCING + 2)])

    assert verdicts == ["implausible"] + ["outlier"] * (CONVINCING - 1) + ["good"] * 2


@pytest.mark.parametrize("second", [5000.0, 5041.0, 4959.0], ids=["equal", "above", "below"])
def test_a_strange_reading_that_is_equal_or_farther_than_the_range_is_wide_confirms_nothing(second):
    assert verdicts_of(CALM, [5000.0, second])[0] == ["implausible"] * 2


def test_outliers_in_a_row_are_believed_until_one_reading_is_none():
    judge, verdicts = CALM, []
    for error in [101.0] * (CONVINCING + 3) + [99.0, 101.0]:
        verdict, judge = judge.judge(130.0 + len(verdicts), error, 20.0)
        verdicts.append(verdict)

    assert verdicts == ["outlier"] * CONVINCING + ["good"] * 4 + ["outlier"]


def test_equal_readings_are_believed_in_the_end():
    judge, verdicts = replace(CALM, stuck_for=RUN + 4), []
    for _ in range(RUN + 6):
        verdict, judge = judge.judge(100.0, 0.0, 20.0)
        verdicts.append(verdict)

    assert verdicts == ["good"] * RUN + ["stuck"] * 4 + ["good"] * 2
    assert judge.judge(101.0, 0.0, 20.0)[1].run == 1


@pytest.mark.parametrize(("step", "doubted"), [("1h", 24), ("15min", 96), ("6h", 24)])
def test_equal_readings_are_doubted_for_a_season_but_for_a_day_of_hours_at_least(step, doubted):
    assert SensorHistory(Forecaster(step).settings).plausibility.stuck_for == doubted


def test_equal_readings_are_suspicious_when_there_are_more_than_ever():
    judge, verdicts = CALM, []
    for _ in range(RUN + 3):
        verdict, judge = judge.judge(100.0, 0.0, 20.0)
        verdicts.append(verdict)

    assert verdicts == ["good"] * RUN + ["stuck"] * 3


def test_what_has_happened_three_times_is_usual():
    nights = np.tile(np.concatenate([np.arange(1.0, 41.0), np.zeros(30)]), 3)
    judge, verdicts = of(*nights), []
    for _ in range(31):
        verdict, judge = judge.judge(0.0, 0.0, 2.0)
        verdicts.append(verdict)

    assert verdicts == ["good"] * 30 + ["stuck"]


def test_what_has_happened_twice_is_not_yet_usual():
    nights = np.tile(np.concatenate([np.arange(1.0, 9.0), np.zeros(30)]), 2)

    assert of(*nights).longest_run == 1


def test_one_stuck_stretch_does_not_make_the_next_one_usual():
    once = np.concatenate([np.arange(1.0, 50.0), np.zeros(60), np.arange(1.0, 50.0)])

    assert of(*once).longest_run == 1


def test_runs_count_whether_trusted_or_not():
    readings = np.tile(np.concatenate([np.arange(1.0, 9.0), np.zeros(30)]), 3)

    judge = Plausibility().renewed(readings, readings > 0)

    assert judge.longest_run == 30
    assert judge.low == 1.0


def test_before_anything_is_known_nothing_is_doubted():
    verdict, after = Plausibility().judge(1e6, 0.0, 1.0)

    assert (verdict, after.low, after.high) == ("good", 1e6, 1e6)
    assert of() == Plausibility()


def test_forecasts_stay_within_twice_the_range_and_above_zero():
    np.testing.assert_array_equal(
        clipped(np.array([-500.0, 100.0, 1e9]), CALM.limits(100.0)), np.array([40.0, 100.0, 160.0])
    )
    assert of(-5.0, 5.0).limits(0.0) == (-15.0, 15.0)
    assert clipped(np.array([-9.0]), of(1.0, 5.0).limits(3.0)) == [0.0]


def test_a_state_is_restored():
    _, judge = CALM.judge(100.0, 0.0, 20.0)

    assert Plausibility().restore(judge.state()) == judge


def verdicts_of(judge, values, *, error=0.0, band=20.0):
    """Return what was made of readings one after the other, and the judgement after them."""
    verdicts = []
    for value in values:
        verdict, judge = judge.judge(value, error, band)
        verdicts.append(verdict)
    return verdicts, judge


@pytest.mark.parametrize("error", [100.0, -100.0])
def test_an_error_of_five_half_bands_is_just_good(error):
    assert CALM.judge(100.0, error, 20.0)[0] == "good"
    assert CALM.judge(100.0, np.nextafter(error, 9 * error), 20.0)[0] == "outlier"


@pytest.mark.parametrize(("edge", "beyond"), [(240.0, 241.0), (-40.0, -41.0)])
def test_three_ranges_away_is_just_plausible(edge, beyond):
    assert not CALM.is_implausible(edge)
    assert CALM.is_implausible(beyond)


def test_one_plausible_reading_restarts_the_count_of_strange_ones():
    strange = [5000.0 + 900 * step for step in range(CONVINCING)]

    verdicts, _ = verdicts_of(CALM, [*strange, 100.0, *strange])

    assert verdicts == ["implausible"] * CONVINCING + ["good"] + ["implausible"] * CONVINCING


def test_a_new_level_that_is_believed_extends_the_range():
    _, judge = verdicts_of(CALM, [5000.0 + step for step in range(CONVINCING + 1)])

    assert (judge.low, judge.high) == (80.0, 5000.0 + CONVINCING)


def test_forecasts_may_stay_at_the_latest_value_and_beyond_it():
    assert CALM.limits(200.0) == (0.0, 320.0)
    assert CALM.limits(-20.0) == (-160.0, 260.0)


def test_equal_readings_count_in_a_row_only():
    verdicts, _ = verdicts_of(CALM, ([100.0] * RUN + [101.0]) * 2)

    assert set(verdicts) == {"good"}


def test_good_readings_widen_the_range_and_outliers_do_not():
    _, wider = verdicts_of(CALM, [70.0, 130.0])
    _, same = verdicts_of(CALM, [30.0, 230.0], error=101.0)

    assert (wider.low, wider.high) == (70.0, 130.0)
    assert (same.low, same.high) == (80.0, 120.0)


def test_an_updated_range_forgets_old_readings():
    renewed = CALM.renewed(np.array([95.0, 105.0, 999.0, 0.0]), np.array([1, 1, 0, 0], bool))

    assert (renewed.low, renewed.high) == (95.0, 105.0)


def test_a_range_without_trusted_readings_stays():
    assert CALM.renewed(np.array([5.0, 6.0]), np.zeros(2, bool)) == CALM


def test_a_sensor_that_never_changed_may_change():
    constant = of(5.0, 5.0, 5.0)

    assert constant.judge(9.0, 0.1, 1.0)[0] == "good"
    np.testing.assert_array_equal(
        clipped(np.array([-3.0, 900.0]), constant.limits(5.0)), [0.0, 900.0]
    )


def test_zero_is_not_below_zero():
    np.testing.assert_array_equal(
        clipped(np.array([-9.0, 11.0]), of(0.0, 5.0).limits(1.0)), [0.0, 10.0]
    )


class TestBursts:
    def verdicts(self, judge, steps, values, *, error=1e4):
        """Return the verdicts on strange readings at some steps; calm readings are between them."""
        verdicts = []
        for step, value in zip(steps, values, strict=True):
            _, judge = judge.judge(100.0 + step % 2, 0.0, 20.0, step - 1)
            verdict, judge = judge.judge(value, error, 20.0, step)
            verdicts.append(verdict)
        return verdicts

    def test_frequent_bursts_are_learned_from(self):
        steps = 50 * np.arange(FREQUENT + 2) + np.arange(FREQUENT + 2) ** 2 % 23

        verdicts = self.verdicts(CALM, steps.tolist(), (5000.0 + 70 * steps % 900).tolist())

        assert verdicts == ["implausible"] * (FREQUENT - 1) + ["good"] * 3

    def test_frequent_outliers_within_the_range_are_learned_from(self):
        steps = 50 * np.arange(FREQUENT + 2) + np.arange(FREQUENT + 2) ** 2 % 23

        verdicts = self.verdicts(CALM, steps.tolist(), [130.0] * len(steps))

        assert verdicts == ["outlier"] * (FREQUENT - 1) + ["good"] * 3

    def test_frequent_outliers_do_not_make_a_far_larger_value_usual(self):
        steps = 40 * np.arange(FREQUENT + 2) + np.arange(FREQUENT + 2) ** 2 % 23

        verdicts = self.verdicts(CALM, steps.tolist(), [130.0] * FREQUENT + [159.0, 300.0])

        assert verdicts[-2:] == ["good", "outlier"]

    def test_rare_bursts_at_irregular_times_stay_implausible(self):
        apart = WITHIN // (FREQUENT - 1) + 40
        steps = apart * np.arange(30) + np.arange(30) ** 2 % 23

        assert set(self.verdicts(CALM, steps.tolist(), [5000.0] * 30)) == {"implausible"}

    def test_fewer_bursts_are_enough_where_most_readings_are_equal(self):
        steps = 90 * np.arange(FREQUENT) + np.arange(FREQUENT) ** 2 % 23
        floor = replace(CALM, common=100.0)

        assert WITHIN < steps[-1] < WITHIN_COMMON
        assert self.verdicts(CALM, steps.tolist(), [5000.0] * FREQUENT)[-1] == "implausible"
        assert self.verdicts(floor, steps.tolist(), [5000.0] * FREQUENT)[-1] == "good"

    def test_a_daily_burst_is_learned_from_after_four_days(self):
        steps, sizes = [288 * day + day % 2 for day in range(6)], [5e6, 6e6, 4e6, 5e6, 7e6, 5e6]

        verdicts = self.verdicts(replace(CALM, common=100.0), steps, sizes)

        assert verdicts == ["implausible"] * (REGULAR_COMMON - 1) + ["good"] * 3

    def test_where_readings_vary_more_bursts_at_equal_distances_are_needed(self):
        steps = [100 * i for i in range(REGULAR + 1)]

        verdicts = self.verdicts(CALM, steps, [1e6] * len(steps))

        assert verdicts == ["implausible"] * (REGULAR - 1) + ["good"] * 2

    def test_a_value_far_beyond_all_bursts_stays_implausible(self):
        steps, floor = [288 * day for day in range(6)], replace(CALM, common=100.0)

        assert self.verdicts(floor, steps, [5e6, 6e6, 4e6, 5e6, 7e6, 9e11])[-1] == "implausible"

    def test_a_value_that_most_readings_have_is_never_stuck(self):
        readings = np.tile(np.concatenate([[7.0, 3.0, 5.0], np.zeros(9)]), 5)

        assert of(*readings).common == 0.0
        assert set(verdicts_of(of(*readings), [0.0] * 40)[0]) == {"good"}
        assert "stuck" in verdicts_of(of(*readings), [3.0] * 40)[0]

    def test_bursts_before_the_first_fit_are_doubted_unless_they_recur(self):
        readings = np.tile([90.0, 110.0, 100.0, 95.0], 150)
        bursts = readings.copy()
        bursts[7::41] = 1e5
        readings[[7, 300]] = 1e5

        steps = np.arange(len(readings))
        assert not far_from_most(bursts, steps).any()
        assert np.flatnonzero(far_from_most(readings, steps)).tolist() == [7, 300]

    def test_periodic_bursts_recur_also_if_other_readings_are_missing(self):
        steps, readings = np.arange(2000), np.tile([90.0, 110.0, 100.0, 95.0], 500)
        readings[50::96] = 1e5
        read = np.random.default_rng(0).random(2000) < 0.9
        read[50::96] = True

        assert not far_from_most(readings[read], steps[read]).any()

    def test_episodes_are_restored(self):
        judge = CALM
        for step in (10, 300, 700):
            _, judge = judge.judge(5e6 + step, 5e6, 20.0, step)
            _, judge = judge.judge(100.0, 0.0, 20.0, step + 1)
            _, judge = judge.judge(130.0, 101.0, 20.0, step + 50)
            _, judge = judge.judge(100.0, 0.0, 20.0, step + 51)

        assert len(judge.starts) > len(judge.far) > 1
        assert CALM.restore(judge.state()) == judge
