import numpy as np
import pytest

from streamridge.forecaster.plausibility import CONVINCING, RUN, Plausibility


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
def test_a_reading_is_judged_by_its_error_and_by_the_range_of_late(value, error, band, verdict):
    assert CALM.judge(value, error, band)[0] == verdict


def test_so_many_in_a_row_are_believed():
    judge, verdicts = CALM, []
    for step in range(CONVINCING + 3):
        verdict, judge = judge.judge(5000.0 + step, 4900.0, 20.0)
        verdicts.append(verdict)

    assert verdicts == ["implausible"] * CONVINCING + ["good"] + ["outlier"] * 2


def test_equal_readings_are_suspicious_when_there_are_more_than_ever():
    judge, verdicts = CALM, []
    for _ in range(RUN + 3):
        verdict, judge = judge.judge(100.0, 0.0, 20.0)
        verdicts.append(verdict)

    assert verdicts == ["good"] * RUN + ["stuck"] * 3


def test_what_has_happened_three_times_is_usual():
    nights = np.tile(np.concatenate([np.arange(1.0, 9.0), np.zeros(30)]), 3)
    judge, verdicts = of(*nights), []
    for _ in range(31):
        verdict, judge = judge.judge(0.0, 0.0, 2.0)
        verdicts.append(verdict)

    assert verdicts == ["good"] * 30 + ["stuck"]


def test_one_stuck_stretch_does_not_make_the_next_one_usual():
    once = np.concatenate([np.arange(1.0, 50.0), np.zeros(60), np.arange(1.0, 50.0)])

    assert of(*once).longest_run == 1


def test_runs_count_whether_trusted_or_not():
    readings = np.tile(np.concatenate([np.arange(1.0, 9.0), np.zeros(30)]), 3)

    judge = Plausibility().renewed(readings, readings > 0)

    assert judge.longest_run == 30
    assert judge.low == 1.0


def test_before_anything_is_known_nothing_is_doubted():
    assert Plausibility().judge(1e6, 0.0, 1.0)[0] == "good"
    assert of() == Plausibility()


def test_forecasts_stay_within_twice_the_range_and_above_zero():
    np.testing.assert_array_equal(
        CALM.bounded(np.array([-500.0, 100.0, 1e9])), np.array([40.0, 100.0, 160.0])
    )
    some_below = of(-5.0, 5.0)
    assert some_below.floor == -np.inf
    assert of(1.0, 5.0).bounded(np.array([-9.0])) == [0.0]


def test_a_state_is_put_back():
    _, judge = CALM.judge(100.0, 0.0, 20.0)

    assert Plausibility().restore(judge.state()) == judge
