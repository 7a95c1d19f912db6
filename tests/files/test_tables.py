import gzip
import math
import string
import sys
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamridge import InvalidInputError
from streamridge.errors import MissingExtraError
from streamridge.files.atomic import replacing
from streamridge.files.layouts import HOURS
from streamridge.files.tables import open_table, write_table
from tests.support.input_files import read_readings

ENDINGS = [".csv", ".csv.gz", ".parquet"]
TIMES = np.array(["2021-06-13T08:15", "2021-06-13T08:30"], "datetime64[m]")
# A lone carriage return ends a line for any reader.
NAMES = st.text(string.printable.replace("\r", ""), min_size=1).map(str.strip).filter(len)


def same_readings(left, right):
    """Return whether two lists of values agree to the last bit, NaN included."""
    return np.array_equal(np.array(left), np.array(right), equal_nan=True)


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ([0.1, 1e300, -0.0], ["0.1", "1e+300", "-0.0"]),
        ([1 / 3, math.nan], ["0.3333333333333333", '""']),
        ([1, 2], ["1", "2"]),
        (["a", 'say "b", c'], ["a", '"say ""b"", c"']),
        ([None, "a"], ['""', "a"]),
        (TIMES, ["2021-06-13T08:15:00", "2021-06-13T08:30:00"]),
        (np.array(["NaT"], "datetime64[ns]"), ['""']),
        (
            [datetime(2021, 6, 13, 8, 15, 7), date(2021, 6, 13)],
            ["2021-06-13T08:15:07", "2021-06-13"],
        ),
        (pl.Series([1.5, None]), ["1.5", '""']),
    ],
)
def test_written_cells_are_read_back(column, cells, tmp_path):
    write_table(tmp_path / "table.csv", {"a": column})

    assert (tmp_path / "table.csv").read_text().splitlines() == ["a", *cells]


def test_a_missing_value_among_others_is_an_empty_cell(tmp_path):
    write_table(tmp_path / "table.csv", {"time": TIMES, "a": [math.nan, 1.0], "b": [2.0, 3.0]})

    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines == ["time,a,b", "2021-06-13T08:15:00,,2.0", "2021-06-13T08:30:00,1.0,3.0"]


def test_the_same_table_gives_the_same_packed_bytes(tmp_path):
    for name in ("one.csv.gz", "two.csv.gz"):
        write_table(tmp_path / name, {"a": [1, 2]})

    packed = (tmp_path / "one.csv.gz").read_bytes()
    assert packed == (tmp_path / "two.csv.gz").read_bytes()
    assert gzip.decompress(packed) == b"a\n1\n2\n"


def test_parquet_keeps_types_and_has_nulls_for_missing_values(tmp_path):
    columns = {"time": TIMES, "sensor": ["a", "b"], "value": [math.nan, 1.5], "horizon": [1, 2]}

    write_table(str(tmp_path / "table.parquet"), columns)

    table = pl.read_parquet(tmp_path / "table.parquet")
    assert table.dtypes == [pl.Datetime("us"), pl.String, pl.Float64, pl.Int64]
    assert table["value"].to_list() == [None, 1.5]


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_are_appended_to_one_table(ending, tmp_path):
    path = tmp_path / f"table{ending}"
    with open_table(path) as append:
        append({"name": ["a", "b"], "value": [1.5, math.nan]})
        assert not path.exists()
        append({"name": ["c"], "value": [2.5]})

    read = pd.read_parquet if ending == ".parquet" else pd.read_csv
    table = read(path)
    assert table.name.tolist() == ["a", "b", "c"]
    assert same_readings(table.value, [1.5, math.nan, 2.5])


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_interrupted_table_leaves_no_file(ending, tmp_path):
    def break_off():
        with open_table(tmp_path / f"table{ending}") as append:
            append({"a": [1]})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [*ENDINGS, ".CSV", ".Csv.GZ"])
@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(
    # A column of hours belongs to the times.
    name=NAMES.filter(lambda name: name != "time" and name.lower() not in HOURS),
    rows=st.dictionaries(
        st.datetimes(min_value=datetime(2, 1, 1)).map(lambda time: time.replace(microsecond=0)),
        st.floats(allow_infinity=False),
        min_size=1,
    ),
)
def test_what_is_written_is_read_back(ending, name, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / f"table{ending}"
    times, values = np.array(list(rows), "datetime64[us]"), list(rows.values())

    write_table(path, {"time": times, name: values})
    [readings] = read_readings(path)

    assert readings.sensor == name
    np.testing.assert_array_equal(readings.times, times)
    assert same_readings(readings.values, values)


def test_a_file_replaces_an_old_one_without_leftovers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    write_table(path, {"a": [1]})

    assert path.read_text() == "a\n1\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "other").touch()

    write_table(tmp_path / "table.csv", {"a": [1]})

    assert (tmp_path / "table.csv").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_an_error_keeps_the_old_file_without_leftovers(ending, tmp_path):
    path = tmp_path / f"table{ending}"
    path.write_text("old")

    with pytest.raises(InvalidInputError, match="cannot hold these columns: 'utf-8'"):
        write_table(path, {"a": ["\ud800"]})

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", ["table", "table.txt", "table.csv.zip", "", "csv"])
def test_another_ending_is_refused(path):
    message = rf"path must end in \.csv, \.csv\.gz, \.parquet, got '{path or '.'}'"

    with pytest.raises(InvalidInputError, match=message):
        write_table(path, {"a": [1]})


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("nowhere", "No such file or directory"),
        ("taken", "Not a directory"),
        ("nu\0ll", "embedded null byte"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(ending, folder, reason, tmp_path):
    (tmp_path / "taken").touch()

    with pytest.raises(InvalidInputError, match=f"must be a file that can be written, .*{reason}"):
        write_table(tmp_path / folder / f"table{ending}", {"a": [1]})


def test_a_folder_with_the_name_of_the_file_is_refused(tmp_path):
    (tmp_path / "table.csv").mkdir()

    with pytest.raises(InvalidInputError, match=r"table\.csv must be a file that can be written"):
        write_table(tmp_path / "table.csv", {"a": [1]})

    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, 2], "b": [1]}, r"b must have shape \(2,\), got \(1,\)"),
        ({"a": [[1, 2]]}, r"a must have shape \(any,\), got \(1, 2\)"),
        ({"a": 1}, r"a must have shape \(any,\), got \(\)"),
        ({"a": [[1], [1, 2]]}, "a must be a column of single values, got lists of different"),
    ],
)
def test_columns_of_other_shapes_are_refused(columns, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        write_table(tmp_path / "table.csv", columns)


def test_parquet_refuses_a_column_of_mixed_kinds(tmp_path):
    with pytest.raises(InvalidInputError, match="each column must hold values of one kind, got:"):
        write_table(tmp_path / "table.parquet", {"a": np.array([1, "b"], object)})

    assert not list(tmp_path.iterdir())


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'streamridge\[parquet\]'"):
        write_table(tmp_path / "table.parquet", {"a": [1]})

    assert not list(tmp_path.iterdir())


def test_a_series_of_pandas_is_a_column(tmp_path):
    write_table(tmp_path / "table.csv", {"a": pd.Series([1.5, 2.5], index=[7, 8])})

    assert (tmp_path / "table.csv").read_text() == "a\n1.5\n2.5\n"


def test_a_closed_pipe_is_not_reported_as_an_error_of_the_file(tmp_path):
    with pytest.raises(BrokenPipeError), replacing(tmp_path / "p.csv"):
        raise BrokenPipeError

    assert not list(tmp_path.iterdir())
