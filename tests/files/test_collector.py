"""Readings are collected part by part, whatever the size of the parts, in little memory."""

import gzip
import io
import subprocess
import sys
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import InvalidInputError
from streamridge.files import layouts, raw_table
from streamridge.files.collector import Collector
from streamridge.files.reading_options import ReadingOptions
from tests.support.input_files import read_readings

START = datetime(2021, 6, 13)
LONG = "sensor,time,value\nb,2021-06-13,1\na,2021-06-13,2\nb,2021-06-14,3\n"
TIMES = np.array(["2021-06-13T08:15", "2021-06-13T08:30"], "datetime64[us]")


def assert_equal(left, right):
    assert (left.sensor, left.time_format.zoned, left.skipped, left.imputed, left.aggregate) == (
        right.sensor,
        right.time_format.zoned,
        right.skipped,
        right.imputed,
        right.aggregate,
    )
    np.testing.assert_array_equal(left.times, right.times)
    np.testing.assert_array_equal(left.values, right.values)
    assert list(left.extras) == list(right.extras)
    for name, column in left.extras.items():
        np.testing.assert_array_equal(column, right.extras[name])


@pytest.fixture
def small_parts(monkeypatch):
    """Read row by row."""
    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", 1)


CELLS = st.sampled_from(["1", "2.5", "-7e3", "", "NA", "x"])
STAMPS = st.integers(0, 20).map(lambda hours: (START + timedelta(hours=hours)).isoformat())
LONG_ROWS = st.tuples(st.sampled_from(["a", "b", "c", ""]), STAMPS, CELLS, CELLS)
WIDE_ROWS = st.tuples(STAMPS | st.just("never"), CELLS, CELLS, CELLS)
TEXTS = st.one_of(
    st.lists(LONG_ROWS, max_size=12).map(lambda rows: [("sensor", "time", "y", "rain"), *rows]),
    st.lists(WIDE_ROWS, max_size=12).map(lambda rows: [("time", "a", "rain", "c"), *rows]),
).map(lambda rows: "".join(",".join(row) + "\n" for row in rows))


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    cells=st.integers(1, 60),
    extras=st.sampled_from([(), ("rain",)]),
    sensors=st.sampled_from([None, ["c", "a"]]),
)
def test_parts_of_any_size_change_nothing(texts, cells, extras, sensors, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    paths = [folder / f"{i}.csv" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)

    def outcome():
        try:
            return read_readings(paths, sensors=sensors, extras=extras, gap="skip")
        except InvalidInputError as error:
            return str(error)

    whole = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_table, "CELLS_IN_A_PART", cells)
        parted = outcome()

    if isinstance(whole, str):
        assert parted == whole
        return
    assert len(parted) == len(whole)
    for left, right in zip(parted, whole, strict=True):
        assert_equal(left, right)


READ = """
import re, sys
from pathlib import Path
import pyarrow.parquet
import streamridge as sr
from streamridge.files import raw_table

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1000

few, source, *extras = sys.argv[1:]
raw_table.CELLS_IN_A_PART = 10_000
pyarrow.set_cpu_count(1)  # each thread takes memory of its own
sr.read(few, extras=extras)  # the first use of a library takes memory once
before = peak()
print(sum(each.counts.readings for each in sr.read(source, extras=extras).series.values()))
print(peak() - before)
"""


def read_elsewhere(few, source, extras=(), **settings):
    """Return how many readings a new process reads, and by how many bytes it grows meanwhile."""
    command = [sys.executable, "-c", READ, few, source, *extras]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, **settings).stdout
    return tuple(map(int, output.split()))


def wide_table(rows, sensors):
    time = np.datetime64(START, "us") + np.arange(rows) * np.timedelta64(1, "m")
    return pa.table(
        {"time": time} | dict.fromkeys(map(str, range(sensors)), np.arange(float(rows)))
    )


def long_table(rows, sensors=30):
    """Return readings of many sensors in turn."""
    time = np.datetime64(START, "us") + np.arange(rows) // sensors * np.timedelta64(1, "m")
    sensor = [f"s{row % sensors}" for row in range(rows)]
    return pa.table({"sensor": sensor, "time": time, "value": np.arange(float(rows))})


@pytest.mark.parametrize("rows", [4_000, pytest.param(8_000, marks=pytest.mark.slow)])
def test_a_wide_file_is_read_from_standard_input_in_little_memory(rows, tmp_path):
    table, few, many = wide_table(rows, 100), tmp_path / "few.csv", tmp_path / "many.csv"
    pl.from_arrow(table).write_csv(many)
    pl.from_arrow(table[:1000]).write_csv(few)

    with many.open("rb") as stdin:
        readings, growth = read_elsewhere(few, "-", stdin=stdin)

    assert readings == rows * 100
    assert growth < 4 * 8 * readings  # a value as read and on its grid, and arrays of small parts


@pytest.mark.parametrize(
    ("table", "many", "few", "groups"),
    [
        pytest.param(long_table, [200_000], [20_000], 20_000, id="many row groups"),
        pytest.param(
            long_table,
            [600_000],
            [60_000],
            20_000,
            id="more row groups",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            wide_table,
            [10_000, 200],
            [10_000, 60],
            10_000,
            id="many columns",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_parquet_file_is_read_in_little_memory(table, many, few, groups, tmp_path):
    pq.write_table(table(*few), tmp_path / "few", row_group_size=groups)
    pq.write_table(table(*many), tmp_path / "many", row_group_size=groups)

    readings, growth = read_elsewhere(tmp_path / "few", tmp_path / "many")

    # A time, an offset and a value; while a sensor is put on its grid, some of its own once more.
    assert growth < 4.5 * 8 * readings


def collected(*parts, extras=()):
    """Return the readings of sensor a, collected from parts of times and offsets."""
    collector = Collector(ReadingOptions(extras=extras))
    collector.add_names(["a"], loose=1)
    for times, offset, more in parts:
        columns = [np.arange(float(len(times)))] * len(extras)
        offsets = np.full(len(times), offset)
        collector.add("a", times, offsets, np.arange(float(len(times))), columns, **more)
    collector.require_readings("here")
    return collector.take("a")


def test_parts_are_joined_in_order():
    late = TIMES + np.timedelta64(1, "D")

    readings = collected(
        (late, np.nan, {"skipped": 2}), (TIMES, np.nan, {"imputed": 4}), extras=("rain",)
    )

    np.testing.assert_array_equal(readings.times, [*late, *TIMES])
    np.testing.assert_array_equal(readings.values, [0, 1, 0, 1])
    np.testing.assert_array_equal(readings.extras["rain"], [0, 1, 0, 1])
    assert (readings.sensor, readings.time_format.zoned) == ("a", False)
    assert (readings.skipped, readings.imputed) == (3, 4)


def test_an_empty_part_does_not_decide_whether_times_carry_an_offset():
    assert collected((TIMES[:0], np.nan, {}), (TIMES, 0.0, {})).time_format.zoned


def test_times_with_and_without_an_offset_do_not_mix():
    with pytest.raises(InvalidInputError, match="times of sensor 'a' must all have an offset"):
        collected((TIMES, np.nan, {}), (TIMES, 0.0, {}))


def test_the_sensors_of_a_wide_table_share_their_times(tmp_path, small_parts):
    (tmp_path / "flow.csv").write_text("time,a,b\n2021-06-13,1,2\n2021-06-14,3,x\n")

    a, b = read_readings(tmp_path / "flow.csv", gap="skip")

    assert (len(a.times), len(b.times)) == (2, 1)
    assert (a.skipped, b.skipped) == (0, 1)


def test_times_that_do_not_fit_together_are_refused_before_any_sensor_is_taken(tmp_path):
    (tmp_path / "flow.csv").write_text(LONG + "a,2021-06-15T00:00Z,1\n")

    with pytest.raises(InvalidInputError, match="times of sensor 'a' must all have an offset"):
        read_readings(tmp_path / "flow.csv")


def test_parquet_in_parts_of_any_size_gives_the_same_readings(small_parts, tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "SENSORS_TOGETHER", 2)
    times = [START, START + timedelta(hours=1)]
    columns = {name: [number, None] for number, name in enumerate("cab.d")}
    frame = pl.DataFrame({"rain": [0.5, 1.0], " time ": times} | columns)
    frame.write_parquet(tmp_path / "wide.parquet", row_group_size=1)

    parted = read_readings(tmp_path / "wide.parquet", extras=["rain"])

    whole = read_readings(frame, extras=["rain"])
    assert [one.sensor for one in parted] == ["c", "a", "b", ".", "d"]
    for left, right in zip(parted, whole, strict=True):
        assert_equal(left, right)


@pytest.mark.parametrize("first", ["sensor", "other"], ids=["long", "wide"])
def test_a_bad_cell_of_parquet_is_found_in_any_row_group(first, small_parts, tmp_path):
    times = [START + timedelta(hours=hour) for hour in range(4)]
    columns = {first: ["1"] * 4, "value": ["1", "2", "3", "x"]}
    pq.write_table(pa.table({"time": times} | columns), tmp_path / "flow", row_group_size=2)

    with pytest.raises(InvalidInputError, match=r"flow row 3, column value: must be .*, got 'x'"):
        read_readings(tmp_path / "flow")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_parquet_is_read_from_standard_input(pack, monkeypatch):
    content = io.BytesIO()
    pl.DataFrame({"time": [START], "a": [1.5]}).write_parquet(content)
    stdin = io.TextIOWrapper(io.BytesIO(pack(content.getvalue())))
    monkeypatch.setattr(sys, "stdin", stdin)

    [readings] = read_readings("-")

    assert readings.values.tolist() == [1.5]
    assert not stdin.closed


def test_parquet_with_columns_of_one_name_is_refused(tmp_path):
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "flow")

    with pytest.raises(InvalidInputError, match="flow must have columns with distinct names"):
        read_readings(tmp_path / "flow")


def test_parquet_without_rows_has_no_reading(tmp_path):
    pl.DataFrame({"time": [], "a": []}).write_parquet(tmp_path / "flow")

    with pytest.raises(InvalidInputError, match="flow must have at least one reading, got none"):
        read_readings(tmp_path / "flow")


def test_standard_input_stays_open(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(LONG.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)

    read_readings("-")

    assert not stdin.closed
    assert stdin.read() == ""
