from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.series.clock import Clock
from streamridge.series.lengths import parse_step, step_name
from streamridge.series.zones import parse_zone


@pytest.mark.parametrize(
    ("step", "minutes"),
    [("15min", 15), ("1h", 60), ("h", 60), ("1d", 1440), ("30 s", 0.5), ("5MIN", 5), ("7d", 10080)],
)
def test_a_step_is_read_as_people_write_it(step, minutes):
    assert parse_step(step) == timedelta(minutes=minutes)


@pytest.mark.parametrize("minutes", [1, 5, 7, 15, 60, 1440, 10080, 365.25 * 120])
def test_the_name_of_a_step_is_read_back(minutes):
    step = timedelta(minutes=minutes)

    assert parse_step(step_name(step)) == step


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("0min", "step must be positive, got '0min'"),
        (0, "step must be positive, got 0"),
        (timedelta(minutes=-15), "step must be positive"),
        (timedelta(seconds=1.5), "step must be a whole number of seconds"),
        ("quarter", "step must be a time such as 15min, 1h, 7d or 1mo, or a whole number"),
        (True, "step must be a time such as 15min"),
        (1.5, "step must be a time such as 15min"),
        (None, "step must be a time such as 15min"),
        (np.timedelta64("NaT"), "step must be a time such as 15min"),
        ("1.5h", "step must be a time such as 15min"),
        ("9" * 400 + "min", "step must be a time such as 15min"),
    ],
)
def test_other_steps_are_refused(step, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_step(step)


@pytest.mark.parametrize("tz", ["Mars/Olympus", "", "../etc/passwd", "x" * 5000])
def test_an_unknown_zone_is_refused(tz):
    with pytest.raises(InvalidInputError, match="tz must be the name of a time zone"):
        parse_zone(tz)


def test_times_go_to_the_nearest_step_and_back():
    clock = Clock(timedelta(minutes=15), phase=timedelta(minutes=5))
    times = np.array(["2021-06-13T00:05", "2021-06-13T00:12", "2021-06-13T00:13"], "M8[us]")

    steps = clock.steps(times)

    assert np.diff(steps).tolist() == [0, 1]
    assert clock.times(steps)[0] == times[0]


@pytest.mark.parametrize(
    ("zone", "before", "after", "hours"),
    [
        ("Europe/London", "2014-03-30T00:45", "2014-03-30T01:00", 1.0),
        ("Europe/London", "2014-10-26T00:45", "2014-10-26T01:00", -1.0),
        ("America/Los_Angeles", "2017-03-12T09:45", "2017-03-12T10:00", 1.0),
        ("Australia/Lord_Howe", "2021-10-02T15:15", "2021-10-02T15:30", 0.5),
        ("America/St_Johns", "2010-03-14T03:30", "2010-03-14T03:45", 1.0),
        ("Antarctica/Casey", "2020-10-03T16:00", "2020-10-03T16:15", 3.0),
    ],
)
def test_the_local_clock_jumps_when_the_zone_does(zone, before, after, hours):
    clock = Clock(timedelta(minutes=15), zone=ZoneInfo(zone))

    shifts = clock.shifts(clock.steps(np.array([before, after], "M8[us]")))

    assert np.diff(shifts).tolist() == [4 * hours]
