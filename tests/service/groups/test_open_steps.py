"""A step of a group is complete when its sensors have reported it, or were waited for."""

import pytest

from streamridge_service.groups.open_steps import MOST_OPEN, OpenSteps
from streamridge_service.ledger.records import GroupMember, IssuedForecast
from streamridge_service.plan import MINUTE

STEP = 15 * MINUTE
SENSORS = (1, 2, 3)


def forecast(sensor, step):
    """Return the forecast that a sensor makes after a step."""
    return IssuedForecast(seq(sensor, step), sensor, (step + 1) * STEP, 0, "model", (), (), ())


def seq(sensor, step):
    return 10 * step + sensor


@pytest.fixture
def steps():
    """Return the steps of a group whose sensors have all reported step 1."""
    steps = OpenSteps(STEP)
    for sensor in SENSORS:
        steps.add(forecast(sensor, 1), 1.0, now=0.0)
    assert steps.next_complete(SENSORS, now=0.0).time == STEP
    return steps


def reported(steps, sensor, step, value=5.0, now=0.0):
    steps.add(forecast(sensor, step), value, now)


def test_a_step_waits_for_the_sensors_that_reported_the_one_before(steps):
    reported(steps, 1, 2)
    reported(steps, 3, 2, value=None)
    assert steps.next_complete(SENSORS, now=0.0) is None

    reported(steps, 2, 2, value=7.0)
    found = steps.next_complete(SENSORS, now=0.0)

    assert found.time == 2 * STEP
    assert found.members == (
        GroupMember(1, 5.0, own=seq(1, 1), following=seq(1, 2)),
        GroupMember(2, 7.0, own=seq(2, 1), following=seq(2, 2)),
        GroupMember(3, None, own=seq(3, 1), following=seq(3, 2)),
    )
    assert found.forecasts == {
        each.seq: each for n in SENSORS for each in (forecast(n, 1), forecast(n, 2))
    }
    assert steps.next_complete(SENSORS, now=0.0) is None


def test_a_sensor_that_reports_a_later_step_is_not_waited_for(steps):
    for sensor in (1, 2):
        reported(steps, sensor, 2)
    reported(steps, 3, 3)

    found = steps.next_complete(SENSORS, now=0.0)

    assert (found.time, found.members[2]) == (2 * STEP, GroupMember(3, None, seq(3, 1), 0))


def test_a_silent_sensor_is_waited_for_once(steps):
    for sensor in (1, 2):
        reported(steps, sensor, 2, now=100.0)
    assert steps.next_complete(SENSORS, now=100.0 + steps.patience) is None
    assert steps.next_complete(SENSORS, now=100.1 + steps.patience).time == 2 * STEP

    for sensor in (1, 2):
        reported(steps, sensor, 3, now=1000.0)
    found = steps.next_complete(SENSORS, now=1000.0)
    assert found.members[2] == GroupMember(3, None, own=0, following=0)


def test_patience_is_a_tenth_of_the_step_up_to_a_minute():
    assert OpenSteps(STEP).patience == 60.0
    assert OpenSteps(MINUTE).patience == pytest.approx(6.0)


def test_a_sensor_that_is_ahead_does_not_leave_the_others_behind(steps):
    reported(steps, 3, 3)
    assert steps.next_complete(SENSORS, now=0.0) is None
    reported(steps, 1, 2)
    reported(steps, 2, 2)
    assert steps.next_complete(SENSORS, now=0.0).time == 2 * STEP

    reported(steps, 3, 4)
    assert steps.next_complete(SENSORS, now=0.0) is None
    for sensor in (1, 2):
        reported(steps, sensor, 3)
    found = steps.next_complete(SENSORS, now=0.0)
    assert [each.value for each in found.members] == [5.0, 5.0, 5.0]


def test_a_few_sensors_wait_for_the_others_for_a_whole_step():
    sensors, steps = tuple(range(1, 6)), OpenSteps(STEP)
    for sensor in sensors:
        reported(steps, sensor, 1)
    steps.next_complete(sensors, now=0.0)

    reported(steps, 1, 2)
    assert steps.next_complete(sensors, now=900.0) is None
    assert steps.next_complete(sensors, now=901.0).time == 2 * STEP
    reported(steps, 1, 3, now=901.0)
    assert steps.next_complete(sensors, now=901.0).time == 3 * STEP


def test_patience_follows_a_sensor_that_always_comes_late(steps):
    for step in (2, 3):
        for sensor in (1, 2):
            reported(steps, sensor, step, now=1000.0 * step)
        complete = steps.next_complete(SENSORS, now=1000.0 * step + 100.0)
        reported(steps, 3, step, now=1000.0 * step + 200.0)
        assert (complete is None) == (step == 3)
    found = steps.next_complete(SENSORS, now=3200.0)
    assert found.members[2].value == 5.0

    for step in range(4, 60):
        for sensor in SENSORS:
            reported(steps, sensor, step, now=1000.0 * step)
        assert steps.next_complete(SENSORS, now=1000.0 * step).time == step * STEP
    assert steps.patience < 100.0


def test_a_late_report_changes_no_step_but_counts_for_the_next(steps):
    for sensor in (1, 2):
        reported(steps, sensor, 2)
    steps.next_complete(SENSORS, now=1e6)

    reported(steps, 3, 2)
    assert steps.next_complete(SENSORS, now=0.0) is None
    for sensor in SENSORS:
        reported(steps, sensor, 3)
    found = steps.next_complete(SENSORS, now=0.0)

    assert found.members[2] == GroupMember(3, 5.0, own=seq(3, 2), following=seq(3, 3))


def test_a_fast_sensor_waits_for_a_slow_one_only_for_so_many_steps(steps):
    for step in range(2, 2 + MOST_OPEN):
        reported(steps, 1, step)
        assert steps.next_complete(SENSORS, now=0.0) is None

    reported(steps, 1, 2 + MOST_OPEN)
    assert steps.next_complete(SENSORS, now=0.0).time == 2 * STEP


def test_a_removed_sensor_is_forgotten(steps):
    for sensor in (1, 2):
        reported(steps, sensor, 2)
    steps.remove(3)

    assert [each.sensor for each in steps.next_complete((1, 2), now=0.0).members] == [1, 2]


def test_steps_that_nobody_reports_are_left_out(steps):
    for sensor in SENSORS:
        reported(steps, sensor, 9)

    assert steps.next_complete(SENSORS, now=0.0).time == 9 * STEP
