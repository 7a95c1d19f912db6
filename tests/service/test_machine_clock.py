"""A jump of the machine's clock is not believed at once."""

from random import Random

import pytest

from streamridge_service.plan import HOUR, MINUTE, SECOND
from streamridge_service.service.machine_clock import LATER, SENSORS, SOON
from tests.support.service.machine_times import START

DELAY = 25 * MINUTE  # how late a reading may be: a step and the grace


def jump(times, clock, hours):
    times.wall += hours * HOUR
    return clock.check()


def after(times, clock, span, *, readings=()):
    """Let time pass, with readings of sensors at times relative to the machine's clock."""
    for sensor, ago in readings:
        clock.add_reading(sensor, times.wall - ago, DELAY)
    times.pass_seconds(span // SECOND)
    return clock.check()


def test_drift_is_not_a_jump(times, clock):
    for _ in range(100):
        times.pass_seconds(60)
        times.wall += 20 * SECOND

        assert clock.check() is None
        assert (clock.jump, clock.now()) == (0, times.wall)


@pytest.mark.parametrize("hours", [12, -12])
def test_the_time_before_a_jump_stays_in_use(times, clock, hours):
    assert "jumped by" in jump(times, clock, hours)
    assert clock.check() is None
    times.pass_seconds(60)

    assert clock.jump == hours * HOUR
    assert clock.now() == START + MINUTE


def test_it_stays_in_use_before_the_next_check(times, clock):
    times.wall += 12 * HOUR

    assert clock.now() == START


def test_a_clock_that_returns_is_trusted_at_once(times, clock):
    jump(times, clock, 12)

    assert jump(times, clock, -12) == "the clock has returned"
    assert clock.jump == 0


@pytest.mark.parametrize("second", [12, -24, 1])
def test_a_second_jump_is_not_believed_either(times, clock, second):
    jump(times, clock, 12)
    agreeing = [(sensor, MINUTE) for sensor in range(SENSORS)]
    after(times, clock, SOON - MINUTE, readings=agreeing)

    assert "jumped by" in jump(times, clock, second)
    assert after(times, clock, 2 * MINUTE) is None
    assert clock.jump == (12 + second) * HOUR
    assert clock.now() == START + SOON + MINUTE


def test_without_readings_a_jump_is_never_believed(times, clock):
    jump(times, clock, 12)

    for _ in range(100):
        assert after(times, clock, HOUR) is None
    assert clock.now() == START + 100 * HOUR


def test_a_jump_that_readings_of_several_sensors_confirm_is_believed(times, clock):
    jump(times, clock, 12)
    agreeing = [(sensor, MINUTE) for sensor in range(SENSORS)]

    assert after(times, clock, SOON - SECOND, readings=agreeing) is None
    assert "confirm" in after(times, clock, SECOND)
    assert (clock.jump, clock.now()) == (0, times.wall)


def test_one_sensor_confirms_a_jump_later(times, clock):
    jump(times, clock, 12)

    assert after(times, clock, LATER - SECOND, readings=[(1, MINUTE)]) is None
    assert "confirm" in after(times, clock, SECOND)


def test_readings_of_the_time_before_contradict_a_jump(times, clock):
    jump(times, clock, 12)
    agreeing = [(sensor, MINUTE) for sensor in range(SENSORS)]
    old = [(sensor, 12 * HOUR + MINUTE) for sensor in range(10, 10 + SENSORS)]

    for _ in range(100):
        assert after(times, clock, MINUTE, readings=[*agreeing, *old]) is None
    assert clock.jump == 12 * HOUR


def test_an_operator_may_confirm_a_jump(times, clock):
    jump(times, clock, 12)

    clock.trust()

    assert (clock.check(), clock.jump, clock.now()) == (None, 0, START + 12 * HOUR)


def test_a_hundred_wrong_jumps_never_change_the_time(times, clock, record_property):
    record_property("row", "B5")
    record_property("cases", 100)
    luck, truth = Random(5), START
    for _ in range(100):
        times.wall += luck.choice([-12, -1, 1, 12]) * HOUR
        for _ in range(luck.randrange(1, 30)):
            assert clock.now() == truth
            clock.check()
            for sensor in range(10):  # their readings have the true time
                clock.add_reading(sensor, truth - luck.randrange(MINUTE), DELAY)
            times.pass_seconds(60)
            truth += MINUTE
