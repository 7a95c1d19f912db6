from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge.series.time_format import TimeFormat, ZonedTimes, time_columns
from streamridge.series.zones import zone_of

NIGHT = np.array(["2023-10-29T00:30", "2023-10-29T01:30"], "M8[us]")  # 02:30 twice in Berlin
BERLIN = TimeFormat(zoned=True, zone="Europe/Berlin")


def of(offsets, times=NIGHT):
    return TimeFormat.of(times, np.array(offsets, float), None)


@pytest.mark.parametrize(
    ("time_format", "texts", "name", "column_zone"),
    [
        (TimeFormat(), ["2023-10-29T00:30:00", "2023-10-29T01:30:00"], None, None),
        (TimeFormat(zone="Europe/Berlin"), ["2023-10-29T02:30:00"] * 2, "Europe/Berlin", None),
        (
            BERLIN,
            ["2023-10-29T02:30:00+02:00", "2023-10-29T02:30:00+01:00"],
            "Europe/Berlin",
            "Europe/Berlin",
        ),
        (
            of([7200, 3600]),
            ["2023-10-29T02:30:00+02:00", "2023-10-29T02:30:00+01:00"],
            "UTC+01:00 and UTC+02:00",
            "UTC",
        ),
        (
            of([-12600, -12600]),
            ["2023-10-28T21:00:00-03:30", "2023-10-28T22:00:00-03:30"],
            "UTC-03:30",
            "-03:30",
        ),
        (of([0, 0]), ["2023-10-29T00:30:00+00:00", "2023-10-29T01:30:00+00:00"], "UTC", "UTC"),
    ],
)
def test_times_are_written_in_their_own_format(time_format, texts, name, column_zone):
    assert time_format.texts(NIGHT) == texts
    assert (time_format.name, time_format.column_zone) == (name, column_zone)
    assert TimeFormat.from_json(time_format.to_json()) == time_format


def test_offsets_hold_until_they_change_and_the_first_holds_before():
    time_format = of([7200, 3600])
    around = NIGHT[[0, 0, 1, 1]] + np.array([-9, 1, 0, 9]) * np.timedelta64(1, "h") // 2

    np.testing.assert_array_equal(time_format.offsets_at(around), [7200, 7200, 3600, 3600])


def test_a_change_within_a_half_hour_is_written_exactly():
    times = np.array(["2010-03-14T03:30:59", "2010-03-14T03:31:00", "NaT"], "M8[us]")

    texts = TimeFormat(zone="America/St_Johns").texts(times)

    assert texts == ["2010-03-14T00:00:59", "2010-03-14T01:01:00", ""]


def test_equal_local_times_have_distinct_times_in_utc():
    columns = time_columns(NIGHT, TimeFormat(zone="Europe/Berlin"))

    assert columns["time"][0] == columns["time"][1]
    np.testing.assert_array_equal(np.asarray(columns["utc"]), NIGHT)


def test_an_array_of_zoned_times_is_in_utc():
    np.testing.assert_array_equal(np.asarray(ZonedTimes(NIGHT, BERLIN)), NIGHT)


@pytest.mark.parametrize(
    ("tzinfo", "zone"),
    [(ZoneInfo("Europe/Berlin"), "Europe/Berlin"), (UTC, None), (None, None)],
)
def test_the_zone_of_a_time_is_known_by_name(tzinfo, zone):
    assert zone_of(datetime(2023, 6, 13, tzinfo=tzinfo)) == zone


def test_an_inferred_zone_writes_times_to_come_and_claims_no_name():
    days = np.array(["2021-03-26T23:00", "2021-03-27T23:00", "2021-03-28T22:00"], "M8[us]")
    inferred = of([3600, 3600, 7200], days).with_inferred_zone(days)

    assert inferred.texts(NIGHT) == BERLIN.texts(NIGHT)
    assert (inferred.name, inferred.column_zone) == ("UTC+01:00 and UTC+02:00", "UTC")
    assert TimeFormat.from_json(inferred.to_json()) == inferred


@pytest.mark.parametrize("offsets", [[3600, 3600, 3600], [3600, 7200, 7200], [0, 0, 18000]])
def test_other_offsets_leave_the_zone_open(offsets):
    days = np.array(["2021-03-26T23:00", "2021-03-27T23:00", "2021-03-28T22:00"], "M8[us]")
    written = of(offsets, days)

    assert written.with_inferred_zone(days) == written
