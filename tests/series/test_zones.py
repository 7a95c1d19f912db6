from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge.series.zones import offset_at, offsets_at, to_utc

ZONES = {
    "America/Los_Angeles": ("2017-03-12T02:30", "2017-11-05T01:30", 60),
    "Europe/London": ("2014-03-30T01:30", "2014-10-26T01:30", 60),
    "Australia/Lord_Howe": ("2021-10-03T02:15", "2021-04-04T01:45", 30),
}
every_zone = pytest.mark.parametrize(("zone", "when"), ZONES.items(), ids=ZONES)


@every_zone
def test_a_day_with_a_repeated_hour_loses_and_merges_nothing(zone, when):
    middle = np.datetime64(when[1], "m")
    utc = np.arange(-12 * 60, 12 * 60, 15) + _utc(middle, zone)
    local = _local(utc, zone)

    back, exists = to_utc(local.astype("M8[us]"), ZoneInfo(zone))

    assert exists.all()
    np.testing.assert_array_equal(back, utc.astype("M8[us]"))


@every_zone
def test_a_time_that_clocks_skip_does_not_exist(zone, when):
    _, exists = to_utc(np.array([when[0]], "M8[us]"), ZoneInfo(zone))

    assert not exists.any()


@every_zone
def test_the_fold_can_be_given(zone, when):
    local = np.array([when[1]], "M8[us]")

    first, _ = to_utc(local, ZoneInfo(zone), "first")
    second, _ = to_utc(local, ZoneInfo(zone), "second")

    assert (second - first)[0] == np.timedelta64(when[2], "m")


def _utc(local, zone):
    return to_utc(np.array([local], "M8[us]"), ZoneInfo(zone), "first")[0][0].astype("M8[m]")


def _local(utc, zone):
    return np.array(
        [
            time.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
            for time in utc.astype("M8[us]").tolist()
        ],
        dtype="M8[us]",
    )


# These zones have changed their offset within a half hour of UTC: the first second of the new one.
WITHIN_HALF_HOURS = {
    "America/St_Johns": "2010-03-14T03:31:00",
    "America/Goose_Bay": "2010-11-07T03:01:00",
    "America/Moncton": "2005-10-30T03:01:00",
    "Antarctica/Casey": "2020-10-03T16:01:00",
    "Asia/Gaza": "2012-03-29T22:00:00",
    "Australia/Eucla": "2009-03-28T17:15:00",
}


def seconds(time):
    return int(np.datetime64(time, "s").astype(np.int64))


def python_offset(moment, zone):
    """Return what Python's own zones say."""
    offset = datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    return offset // timedelta(seconds=1)


@pytest.mark.parametrize(("zone", "change"), WITHIN_HALF_HOURS.items(), ids=WITHIN_HALF_HOURS)
def test_an_offset_changes_at_the_exact_second(zone, change):
    moments = seconds(change) + np.array([-1, 0, 1, 1799])

    found = offsets_at(moments, ZoneInfo(zone))

    assert found.tolist() == [python_offset(each, zone) for each in moments.tolist()]
    assert found[0] != found[1]
    assert [offset_at(each, ZoneInfo(zone)) for each in moments.tolist()] == found.tolist()


@given(
    zone=st.sampled_from([*WITHIN_HALF_HOURS, *ZONES, "Africa/Casablanca", "Africa/Freetown"]),
    moments=st.lists(st.integers(seconds("1880-01-01"), seconds("2060-01-01")), min_size=1),
)
def test_offsets_agree_with_python(zone, moments):
    found = offsets_at(np.array(moments), ZoneInfo(zone))

    assert found.tolist() == [python_offset(each, zone) for each in moments]


def test_times_at_the_ends_of_the_calendar_have_an_offset():
    ends = np.array(["0001-01-01", "9999-12-31T23:59:59"], "M8[s]").astype(np.int64)

    assert offsets_at(ends, ZoneInfo("UTC")).tolist() == [0, 0]
