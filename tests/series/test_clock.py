from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.series.clock import Clock
from streamridge.series.clock_fitting import clock_of_times, times_ahead
from streamridge.series.lengths import parse_step, step_name
from streamridge.series.time_format import NAIVE, TimeFormat
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


def days(*texts):
    return np.array(texts, "M8[us]")


@pytest.mark.parametrize(
    ("times", "step", "following"),
    [
        (days("2021-01-31", "2021-02-28"), "1mo", "2021-03-31"),
        (days("2021-01-30", "2021-02-28", "2021-03-30"), "1mo", "2021-04-30"),
        (days("2020-01-29T06:00", "2020-02-29T06:00"), "1mo", "2020-03-29T06:00"),
        (days("2021-02-15", "2021-05-15"), "3mo", "2021-08-15"),
        (days("2020-02-29", "2021-02-28"), "12mo", "2022-02-28"),
    ],
)
def test_months_keep_their_day(times, step, following):
    clock = clock_of_times(times, parse_step(step), None, NAIVE)

    steps = clock.steps(times)

    np.testing.assert_array_equal(clock.times(steps), times)
    assert np.diff(steps).tolist() == [1] * (len(times) - 1)
    assert clock.times(steps[-1:] + 1)[0] == np.datetime64(following)
    assert clock.nearest(int(times[0].astype(np.int64))) == (steps[0], True)


@pytest.mark.parametrize("late", [-14, -3, 3, 14])
def test_a_stamp_belongs_to_the_nearest_month(late):
    clock = clock_of_times(days("2021-01-15", "2021-02-15"), parse_step("1mo"), None, NAIVE)
    moved = days("2021-07-15") + np.timedelta64(late, "D")

    assert clock.times(clock.steps(moved))[0] == np.datetime64("2021-07-15")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia"])
def test_days_follow_the_local_clock(zone):
    local = np.datetime64("2010-01-01", "us") + np.arange(3000) * np.timedelta64(1, "D")
    written = TimeFormat(zoned=True, zone=zone)
    exists = written.local(written.utc(local)) == local  # some midnights and days are skipped

    clock = clock_of_times(written.utc(local[exists]), timedelta(days=1), None, written)

    assert clock.follows_calendar
    np.testing.assert_array_equal(np.diff(clock.steps(written.utc(local))[exists]) >= 1, True)
    np.testing.assert_array_equal(
        written.local(clock.times(clock.steps(written.utc(local[exists])))), local[exists]
    )


def test_times_that_are_even_in_utc_stay_so():
    berlin = TimeFormat(zoned=True, zone="Europe/Berlin")
    times = np.datetime64("2021-03-01", "us") + np.arange(200) * np.timedelta64(6, "h")

    clock = clock_of_times(times, timedelta(hours=6), None, berlin)

    assert not clock.follows_calendar
    np.testing.assert_array_equal(clock.times(clock.steps(times)), times)


def test_the_times_ahead_follow_the_calendar():
    times = days("2021-01-31", "2021-02-28")

    ahead = times_ahead(times, parse_step("1mo"), 2, NAIVE)

    np.testing.assert_array_equal(
        ahead, [days("2021-01-31", "2021-02-28"), days("2021-02-28", "2021-03-31")]
    )
    assert times_ahead(times[:0], parse_step("1mo"), 2, NAIVE).shape == (0, 2)
