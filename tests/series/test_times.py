from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import InvalidInputError
from streamridge.errors import StreamRidgeError
from streamridge.series.series import Readings
from streamridge.series.times import in_microseconds, parse_time

TIMES = np.array(["2021-06-13T08:15", "2021-06-13T08:30"], "datetime64[us]")
QUARTER_PAST_EIGHT = np.datetime64("2021-06-13T08:15", "us")


@pytest.mark.parametrize(
    "time",
    [
        "2021-06-13T08:15",
        "2021-06-13 08:15",
        "2021-06-13t08:15:00",
        "2021-06-13T08:15:00.000000",
        "2021-06-13T08:15:00.000000000",
        "20210613T0815",
        "  2021-06-13 08:15 ",
        "06/13/2021 08:15:00",
        " 06/13/2021 08:15:00 ",
        datetime(2021, 6, 13, 8, 15),
        pd.Timestamp("2021-06-13T08:15"),
        np.datetime64("2021-06-13T08:15"),
        np.datetime64("2021-06-13T08:15", "ns"),
    ],
)
def test_a_time_without_an_offset_is_the_wall_clock_as_written(time):
    assert parse_time(time) == (QUARTER_PAST_EIGHT, None)


@pytest.mark.parametrize(
    "time",
    [
        "2021-06-13T08:15Z",
        "2021-06-13 09:15+01:00",
        "2021-06-13T09:15:00+0100",
        "20210612T231500-0900",
        datetime(2021, 6, 13, 8, 15, tzinfo=UTC),
        datetime(2021, 6, 13, 3, 15, tzinfo=timezone(timedelta(hours=-5))),
        pd.Timestamp("2021-06-13T10:15", tz="Europe/Berlin"),
    ],
)
def test_a_time_with_an_offset_becomes_utc(time):
    stamp, offset = parse_time(time)

    assert stamp == QUARTER_PAST_EIGHT
    assert offset is not None


@pytest.mark.parametrize(
    ("time", "midnight"),
    [
        ("2021-06-13", "2021-06-13"),
        ("20210613", "2021-06-13"),
        (date(2021, 6, 13), "2021-06-13"),
        (np.datetime64("2021-06-13"), "2021-06-13"),
        ("2021-06-13T24:00", "2021-06-14"),
        ("2021-06-13 24:00:00", "2021-06-14"),
        ("2021-12-31T24:00:00.000", "2022-01-01"),
        ("06/30/2021 24:00:00", "2021-07-01"),
    ],
)
def test_a_day_starts_at_midnight_and_ends_at_the_next(time, midnight):
    stamp, offset = parse_time(time)

    assert stamp == np.datetime64(midnight)
    assert stamp.dtype == "datetime64[us]"
    assert offset is None


def test_the_end_of_the_day_may_carry_an_offset():
    assert parse_time("2021-06-13T24:00+02:00") == (np.datetime64("2021-06-13T22:00"), 7200)


@pytest.mark.parametrize(
    "time",
    [
        None,
        True,
        5,
        1623572100,
        1e300,
        float("nan"),
        b"2021-06-13",
        [],
        timedelta(hours=1),
        np.timedelta64(1, "h"),
        np.datetime64("NaT"),
        np.datetime64("NaT", "us"),
        np.datetime64(-3_000_000, "Y"),
        np.datetime64(10**12, "Y"),
        np.datetime64("10000-01-01"),
        pd.NaT,
        "",
        "now",
        "08:15",
        "1623572100",
        "2021061312345",
        "20210613081500",
        "2021-06-13_08:15",
        "2021-06-13T",
        "2021-06-13T24:15",
        "2021-06-13T24:00:30",
        "2021-06-13T25:00",
        "2021-06-13T23:59:60",
        "2021-02-29",
        "0000-01-01",
        "13/06/2021 08:15:00",
        "06/13/2021",
        "9999-12-31T23:30-01:00",
        "0001-01-01T00:30+01:00",
        "9999-12-31T24:00",
        datetime(9999, 12, 31, 23, 30, tzinfo=timezone(timedelta(hours=-1))),
        "٢٠٢١-٠٦-١٣",
    ],
    ids=repr,
)
def test_anything_but_a_time_is_refused(time):
    message = "^time must be an ISO 8601 time such as 2021-06-13T08:15, got "

    with pytest.raises(InvalidInputError, match=message):
        parse_time(time)


def test_a_message_shows_the_start_of_a_long_value():
    with pytest.raises(InvalidInputError, match=r"got 'x{59}\.\.\.\.$"):
        parse_time("x" * 1000)


# Odd minutes, odd seconds, and changes of date; to list all zones takes a second.
ZONES = ("UTC", "Asia/Kathmandu", "Africa/Monrovia", "Pacific/Apia", "Australia/Lord_Howe")
ZONED = st.datetimes(timezones=st.none() | st.sampled_from(ZONES).map(ZoneInfo))


@given(st.text() | ZONED | st.integers() | st.floats())
def test_anything_is_a_time_or_refused(time):
    try:
        stamp, offset = parse_time(time)
    except StreamRidgeError:
        return

    assert stamp.dtype == "datetime64[us]"
    zone, zero = ("", None) if offset is None else ("Z", 0)
    assert parse_time(f"{stamp}{zone}") == (stamp, zero)


@given(st.datetimes(timezones=st.none() | st.just(UTC)))
def test_a_time_written_in_iso_8601_is_read_as_itself(time):
    expected = np.datetime64(time.replace(tzinfo=None), "us"), None if time.tzinfo is None else 0

    assert parse_time(time.isoformat()) == parse_time(time) == expected


@pytest.mark.parametrize("unit", ["Y", "D", "m", "s", "ms", "us", "ns"])
def test_times_of_any_unit_become_microseconds(unit):
    times = np.array(["2021-01-01", "NaT"], f"datetime64[{unit}]")

    stamps = in_microseconds(times)

    assert stamps.dtype == "datetime64[us]"
    assert stamps[0] == np.datetime64("2021-01-01")
    assert np.isnat(stamps[1])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"times": TIMES.astype("datetime64[s]")}, r"times must be datetime64\[us\], got"),
        ({"times": TIMES[None]}, r"times must have shape \(any,\), got \(1, 2\)"),
        ({"values": np.zeros(3)}, r"values must have shape \(2,\), got \(3,\)"),
        ({"extras": {"rain": np.zeros(1)}}, r"rain must have shape \(2,\), got \(1,\)"),
    ],
)
def test_columns_of_other_shapes_are_refused(columns, message):
    with pytest.raises(InvalidInputError, match=message):
        Readings(**({"sensor": "a", "times": TIMES, "values": np.zeros(2)} | columns))
