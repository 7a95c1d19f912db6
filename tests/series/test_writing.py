from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge.series.writing import Writing, ZonedTimes, time_columns, zone_of

NIGHT = np.array(["2023-10-29T00:30", "2023-10-29T01:30"], "M8[us]")  # 02:30 twice in Berlin
BERLIN = Writing(zoned=True, zone="Europe/Berlin")


def of(offsets, times=NIGHT):
    return Writing.of(times, np.array(offsets, float), None)


@pytest.mark.parametrize(
    ("writing", "texts", "name", "column_zone"),
    [
        (Writing(), ["2023-10-29T00:30:00", "2023-10-29T01:30:00"], None, None),
        (Writing(zone="Europe/Berlin"), ["2023-10-29T02:30:00"] * 2, "Europe/Berlin", None),
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
def test_times_are_written_as_they_came_in(writing, texts, name, column_zone):
    assert writing.texts(NIGHT) == texts
    assert (writing.name, writing.column_zone) == (name, column_zone)
    assert Writing.from_plain(writing.plain()) == writing


def test_offsets_hold_until_they_change_and_the_first_holds_before():
    writing = of([7200, 3600])
    around = NIGHT[[0, 0, 1, 1]] + np.array([-9, 1, 0, 9]) * np.timedelta64(1, "h") // 2

    np.testing.assert_array_equal(writing.ahead(around), [7200, 7200, 3600, 3600])


def test_local_times_come_with_a_column_that_tells_two_equal_ones_apart():
    columns = time_columns(NIGHT, Writing(zone="Europe/Berlin"))

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
