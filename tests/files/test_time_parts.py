import pandas as pd
import pytest

from streamridge import InvalidInputError
from tests.support.input_files import read_readings, times, written

JOINED = {
    "date and hour": (
        "date,hour,flow\n2021-06-13,0,5\n2021-06-13,23,6\n",
        ["2021-06-13T00:00:00", "2021-06-13T23:00:00"],
    ),
    "hours to 24": (
        "date,hour,flow\n2021-06-13,1,5\n2021-06-13,24,6\n",
        ["2021-06-13T01:00:00", "2021-06-14T00:00:00"],
    ),
    "date and time": ("Date,Time,flow\n25/06/2021,08:15,5\n", ["2021-06-25T08:15:00"]),
    "halves of days": ("date,time,flow\n2021-06-13,8:15 PM,5\n", ["2021-06-13T20:15:00"]),
    "midnights": ("date,hour,flow\n2021-06-13 00:00:00,8,5\n", ["2021-06-13T08:00:00"]),
    "parts of dates": ("year,month,day,hour,flow\n2021,6,13,8,5\n", ["2021-06-13T08:00:00"]),
    "minutes": ("date,hour,minute,flow\n2021-06-13,8,5,5\n", ["2021-06-13T08:05:00"]),
    "months": ("year,month,flow\n2021,6,5\n", ["2021-06-01T00:00:00"]),
    "whole times beside hours": ("date,hour,flow\n2021-06-13 08:00,8,5\n", ["2021-06-13T08:00:00"]),
    "a long file": ("sensor,date,hour,value\nflow,2021-06-13,8,5\n", ["2021-06-13T08:00:00"]),
}


@pytest.mark.parametrize(("content", "expected"), JOINED.values(), ids=JOINED)
def test_columns_of_times_are_joined_and_none_becomes_a_sensor(content, expected, tmp_path):
    path = written(content, tmp_path)

    assert times(path) == (expected, False)
    assert [one.sensor for one in read_readings(path)] == ["flow"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("date,hour,flow\n2021-06-13,0,5\n2021-06-13,24,6\n", "hours from 0 to 23 or from 1 to 24"),
        (
            "date,hour,flow\n2021-06-13,25,5\n",
            "line 2, column date and hour: .* got '2021-06-13 25",
        ),
        ("date,hour,flow\n05/06/2021,8,5\n", "'05/06/2021 8:00', and no cell of the column tells"),
        ("date,hour,flow\n2021-06-13,,5\n", "line 2, column date and hour: must be"),
        ("hour,flow\n8,5\n9,6\n", "column hour: must be an ISO 8601 time"),
    ],
)
def test_columns_that_do_not_make_a_time_are_refused(content, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        read_readings(written(content, tmp_path))


def test_times_of_frames_and_parquet_may_be_in_several_columns(tmp_path):
    frame = pd.DataFrame(
        {"date": pd.to_datetime(["2021-06-13"]), "hour": [8], "flow": [5.0], "exit": [6.0]}
    )
    frame.to_parquet(tmp_path / "flow.parquet")

    for source in (frame, tmp_path / "flow.parquet"):
        assert times(source, sensors="flow")[0] == ["2021-06-13T08:00:00"]
        assert [one.sensor for one in read_readings(source)] == ["flow", "exit"]
