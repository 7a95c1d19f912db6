"""The column of times: found by its name, its type or its cells, or counted from row to row."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamridge import InvalidInputError, read
from streamridge.files import raw_table
from tests.support.input_files import read_readings, written

TIMES = [datetime(2021, 6, 13) + timedelta(hours=i) for i in range(4)]
BACKENDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
FIVE = {"start_time": "2021-06-13T00:00", "step": "5min"}


@pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)
def test_a_column_of_times_is_found_by_its_type(make):
    frame = make({"a": [1, 2, 3, 4], "seen": TIMES, "ended": TIMES, "b": [5, 6, 7, 8]})

    result = read(frame)

    assert list(result.series) == ["a", "b"]
    assert result.series["a"].times.tolist() == TIMES
    assert "column 'ended' is left out" in result.notes[0]


@pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)
def test_a_type_wins_over_a_name(make):
    result = read(make({"time": [3, 1, 4, 1], "seen": TIMES}))

    assert result.series["time"].values.tolist() == [3, 1, 4, 1]


def test_a_column_of_text_with_the_name_of_times_wins_over_a_type():
    texts = [f"2021-06-1{day}" for day in range(4)]

    result = read(pd.DataFrame({"uploaded": TIMES, "time": texts, "a": [1, 2, 3, 4]}))

    assert str(result.series["a"].times[1])[:10] == "2021-06-11"


def test_a_column_of_times_of_parquet_may_stand_anywhere(tmp_path):
    names = [f"s{at}" for at in range(70)]  # more than are read at a time
    frame = pd.DataFrame({name: [1.0, 2.0, 3.0, 4.0] for name in names} | {"seen": TIMES})
    frame.to_parquet(tmp_path / "flow.parquet")

    found = read(tmp_path / "flow.parquet").series

    assert list(found) == names
    assert all(series.times.tolist() == TIMES for series in found.values())


@pytest.mark.parametrize("cells", [1, 4, 500_000])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "frame"])
def test_rows_are_counted_in_files_of_several_parts(kind, cells, tmp_path, monkeypatch):
    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", cells)
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0) + 1})
    path = tmp_path / "flow"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "json":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False)

    found = read(frame if kind == "frame" else path, **FIVE).series

    assert [str(series) for series in found.values()] == [
        f"{name}: 9 steps of 5min, 2021-06-13T00:00 to 2021-06-13T00:40" for name in "ab"
    ]
    assert found["b"].values.tolist() == list(range(1, 10))


@pytest.mark.parametrize(
    ("start", "step", "tz", "last"),
    [
        ("2021-06-13T00:00+02:00", "1h", None, "2021-06-13T03:00:00+02:00"),
        ("2021-10-31T01:00", "1h", "Europe/Berlin", "2021-10-31T03:00:00+01:00"),
        ("2021-10-29", "1d", "Europe/Berlin", "2021-11-01T00:00:00+01:00"),
        ("2021-01-31", "1mo", None, "2021-04-30T00:00:00"),
        (datetime(2021, 6, 13), timedelta(minutes=15), None, "2021-06-13T00:45:00"),
    ],
)
def test_a_start_may_be_in_a_zone_and_steps_may_be_of_any_length(start, step, tz, last, tmp_path):
    path = written("a\n1\n2\n3\n4\n", tmp_path)

    series = read(path, start_time=start, step=step, tz=tz).series["a"]

    assert series.time_format.texts(series.times)[-1] == last
    assert series.values.tolist() == [1, 2, 3, 4]


def test_an_interval_that_a_late_cell_explains_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", 1)
    path = written("time,a\n2021-06-13 07:00-08:00,1\n2021-06-13 08:00-09:00,2\n", tmp_path)

    [readings] = read_readings(path)

    assert not readings.time_format.zoned
    assert readings.times.astype("M8[h]").astype(str).tolist() == ["2021-06-13T07", "2021-06-13T08"]


def test_one_offset_is_no_interval(tmp_path):
    path = written("time,a\n2021-06-13 07:00-08:00,1\n2021-06-14 07:00-08:00,2\n", tmp_path)

    assert read_readings(path)[0].time_format.name == "UTC-08:00"


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_a_zone_of_a_frame_is_known_by_name(zone):
    times = pd.date_range("2021-06-13", periods=3, freq="h", tz=zone)

    [readings] = read_readings(pd.DataFrame({"time": times, "a": [1, 2, 3]}))

    assert readings.time_format.zone == zone
    assert readings.times[0] == times[0].tz_convert("UTC").tz_localize(None).to_numpy()


def test_a_column_that_follows_the_clock_is_not_the_only_sensor_that_is_read():
    hours = pd.date_range("2021-06-13", periods=72, freq="h")
    flow = np.random.default_rng(0).normal(size=72)
    frame = pd.DataFrame({"time": hours, "flow": flow, "tod": hours.hour, "wet": 0})

    [left_out_first, *_] = read(frame).left_out

    assert str(left_out_first) == "tod: it follows the clock, left out"
    assert list(read(frame, sensors=["tod"]).series) == ["tod"]
    with pytest.raises(InvalidInputError, match="time must be a column of DataFrame, got 'when'"):
        read(frame, time="when")
