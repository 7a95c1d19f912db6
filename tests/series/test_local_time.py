from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge.series.local_time import to_utc

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
def test_the_fold_can_be_said(zone, when):
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
