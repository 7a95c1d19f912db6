import base64
import gzip
import math
import sys
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamridge import InvalidInputError, read
from streamridge.errors import MissingExtraError
from streamridge.series.lengths import step_name
from streamridge.series.times import index_of
from tests.support.input_files import BOTH, SAME, assert_same, read_readings

BACKENDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)
def test_frames_are_read_like_files(make):
    wide = make({"time": BOTH, "a": [1, None], "b": [2.5, 4.0]})
    long = make(
        {"unique_id": [*"abab"], "ds": [BOTH[0]] * 2 + [BOTH[1]] * 2, "y": [1.0, 2.5, None, 4.0]}
    )

    for frame in (wide, long):
        readings = read_readings(frame)

        assert_same(readings, SAME)
        np.testing.assert_array_equal(readings[0].times, np.array(BOTH, "datetime64[us]"))


@pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 2], [1, 2]),
        ([2**60, None], [2.0**60, math.nan]),
        (["1.5", "NA"], [1.5, math.nan]),
        ([None, None], [math.nan, math.nan]),
    ],
    ids=["whole", "large", "text", "nothing"],
)
def test_columns_of_frames_may_be_of_any_kind(make, column, expected):
    assert_same(read_readings(make({"time": BOTH, "a": column})), {"a": expected})


@pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize(
    "times",
    [[date(2021, 6, 13), date(2021, 6, 14)], ["2021-06-13", "2021-06-14 00:00"]],
    ids=["dates", "texts"],
)
def test_times_of_frames_may_be_dates_or_texts(make, times):
    [readings] = read_readings(make({"time": times, "a": [1, 2]}))

    np.testing.assert_array_equal(
        readings.times, np.array(["2021-06-13", "2021-06-14"], "datetime64[us]")
    )


@pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"time": BOTH, "a": ["1", "x"]},
            r"row 1, column a: must be a number, got 'x'\. Pass --gap skip \(gap=.skip. in",
        ),
        ({"time": BOTH, "a": [1.0, math.inf]}, "row 1, column a: must be a number, got 'inf'"),
        ({"time": BOTH, "a": [True, False]}, "row 0, column a: must be a number, got 'True'"),
        ({"time": BOTH, "a": BOTH}, "row 0, column a: must be a number, got '2021-06-13"),
        ({"time": [BOTH[0], None], "a": [1, 2]}, "row 1, column time: must be .* got None"),
        (
            {"when": [1_700_000_000, 1_700_000_900], "a": [1, 2]},
            "row 0, column when: must be .* got '1700000000'",
        ),
        (
            {"sensor": ["a", None], "time": BOTH, "y": [1, 2]},
            "row 1, column sensor: must be the name",
        ),
        ({"time": BOTH}, "must have a time column and a column for each sensor, got 'time'"),
        ({"time": [], "a": []}, "must have at least one reading, got none"),
        ({}, "must have a time column and a column for each sensor, got none"),
    ],
)
def test_a_bad_frame_is_refused_with_its_row(make, columns, message):
    with pytest.raises(InvalidInputError, match=f"^(DataFrame|Table) {message}"):
        read_readings(make(columns))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[BOTH[0], 1, 2]], columns=["time", "a", "a"]),
        pd.DataFrame([[BOTH[0], 1, 2]], columns=["time", 0, "0"]),
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
    ],
    ids=["pandas", "as texts", "pyarrow"],
)
def test_columns_of_one_name_are_refused_in_frames(frame):
    with pytest.raises(InvalidInputError, match=r"distinct names, got more than one named '.'"):
        read_readings(frame)


@pytest.mark.parametrize("name", [None, "when", "time"])
def test_a_datetime_index_is_the_time(name):
    index = pd.DatetimeIndex(BOTH, name=name)

    assert_same(read_readings(pd.DataFrame({"a": [1, None]}, index=index)), {"a": SAME["a"]})
    assert_same(read_readings(pd.Series([1, None], index=index)), {"value": SAME["a"]})
    assert_same(read_readings(pd.Series([1, 2], index=index, name="a")), {"a": [1, 2]})


def test_a_datetime_index_takes_precedence_over_a_column_of_times():
    frame = pd.DataFrame({"time": ["x", "y"], "a": [1, 2]}, index=pd.DatetimeIndex(BOTH))

    assert_same(read_readings(frame), {"a": [1, 2]})


@pytest.mark.parametrize(
    "series", [pl.Series([1.0]), pd.Series([1.0], index=["a"])], ids=["polars", "pandas"]
)
def test_a_series_without_times_is_refused(series):
    with pytest.raises(InvalidInputError, match=r"Series must have times, .* Pass a DataFrame"):
        read_readings(series)


@pytest.mark.parametrize("index", [None, [3, 4, 6]])
def test_whole_numbers_are_the_index_of_a_series(index):
    (read,) = read_readings(pd.Series([1.0, 2.0, 3.0], index=index))

    assert read.indexed
    assert index_of(read.times).tolist() == (index or [0, 1, 2])


@pytest.mark.parametrize(
    "times",
    [
        pd.Series(BOTH).dt.tz_localize("Europe/Berlin"),
        pl.Series(BOTH).dt.replace_time_zone("Europe/Berlin"),
        ["2021-06-13T08:00+02:00", "2021-06-13T09:00+02:00"],
    ],
    ids=["pandas", "polars", "texts"],
)
def test_times_with_a_zone_become_utc(times):
    frame = (pl if isinstance(times, pl.Series) else pd).DataFrame({"time": times, "a": [1, 2]})

    [readings] = read_readings(frame)

    assert readings.time_format.zoned
    np.testing.assert_array_equal(
        readings.times, np.array(["2021-06-13T06:00", "2021-06-13T07:00"], "datetime64[us]")
    )


@pytest.mark.parametrize(
    "beyond",
    [pa.array([10**14], pa.timestamp("s")), pa.array([10**8], pa.int32()).cast(pa.date32())],
    ids=["time", "date"],
)
def test_times_outside_the_calendar_are_refused(beyond):
    with pytest.raises(InvalidInputError, match=r"Table row 0, column time: must be .* got '\d+-"):
        read_readings(pa.table({"time": beyond, "a": [1]}))


@pytest.mark.parametrize(("freq", "step"), [("h", "1h"), ("D", "1d"), ("W", "7d"), ("M", "1mo")])
def test_periods_are_times_of_a_series_and_of_a_frame(freq, step):
    index = pd.period_range("2021-01-04", periods=40, freq=freq)
    series = pd.Series(np.arange(40.0), index, name="a")
    sources = (series, series.to_frame(), pd.DataFrame({"time": index, "a": series.array}))

    found = [read(each).series["a"] for each in sources]

    assert {step_name(each.clock.step) for each in found} == {step}
    assert all(each.values.tolist() == series.tolist() for each in found)
    assert len({each.digest for each in found[:2]}) == 1


@pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)
def test_decimals_are_numbers_whatever_their_digits(make):
    numbers = [Decimal("1.195"), None, Decimal("3"), Decimal("2.5")]
    times = [datetime(2021, 6, 13, hour) for hour in range(4)]

    series = read(make({"time": times, "a": numbers})).series["a"]

    np.testing.assert_array_equal(series.values, [1.195, np.nan, 3.0, 2.5])


def test_the_keys_of_a_dict_name_its_series():
    index = pd.date_range("2021-06-13", periods=4, freq="h")
    north = pd.Series(np.arange(4.0), index)

    for series in (north, read(north).series["value"]):
        found = read({"north": series, "south": series})

        assert [each.sensor for each in found.series.values()] == ["north", "south"]


@pytest.mark.parametrize("source", [None, 5, {"a": [1]}, b"flow.csv", pl.LazyFrame()], ids=type)
def test_an_object_that_is_not_a_source_is_refused(source):
    with pytest.raises(
        InvalidInputError, match=r'sources must be a path, "-", a list of paths, or'
    ):
        read_readings(source)


def test_parquet_is_recognized_by_its_content(tmp_path):
    path = tmp_path / "flow.csv"
    pl.DataFrame({"time": BOTH, "a": [1, None], "b": [2.5, 4.0]}).write_parquet(path)
    (tmp_path / "packed").write_bytes(gzip.compress(path.read_bytes()))

    assert_same(read_readings(path), SAME)
    assert_same(read_readings(tmp_path / "packed"), SAME)


@pytest.mark.parametrize("name", [None, "time"])
def test_parquet_of_pandas_may_have_its_times_in_the_index(name, tmp_path):
    frame = pd.DataFrame({"a": [1, None], "b": [2.5, 4]}, index=pd.DatetimeIndex(BOTH, name=name))
    frame.to_parquet(tmp_path / "flow.parquet")

    assert_same(read_readings(tmp_path / "flow.parquet"), SAME)


def test_a_bad_cell_of_parquet_is_named_by_its_row(tmp_path):
    path = tmp_path / "flow.parquet"
    pl.DataFrame({"time": BOTH, "a": ["1", "x"]}).write_parquet(path)

    message = r"flow\.parquet row 1, column a: must be a number, got 'x'\. Pass --gap skip"
    with pytest.raises(InvalidInputError, match=message):
        read_readings(path)


def test_parquet_with_a_broken_name_of_a_zone_is_refused(tmp_path):
    path = tmp_path / "flow.parquet"
    times = pa.array(BOTH, pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"time": times, "a": [1, 2]}), path)
    schema = pq.read_metadata(path).metadata[b"ARROW:schema"]
    broken = base64.b64encode(base64.b64decode(schema).replace(b"Berlin", b"Berl\xffn"))
    path.write_bytes(path.read_bytes().replace(schema, broken))

    with pytest.raises(InvalidInputError, match=r"flow\.parquet must be a whole Parquet file"):
        read_readings(path)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "flow.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'streamridge\[parquet\]'"):
        read_readings(tmp_path / "flow.parquet")
