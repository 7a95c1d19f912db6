import gzip
import io
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from functools import partial
from tempfile import TemporaryFile

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import InvalidInputError
from streamridge.files import blocks, layouts, spool, store
from streamridge.files.reading import read_readings, stored_readings
from streamridge.files.spool import Spool

START = datetime(2021, 6, 13)
LONG = "sensor,time,value\nb,2021-06-13,1\na,2021-06-13,2\nb,2021-06-14,3\n"


def assert_equal(left, right):
    assert (left.sensor, left.zoned, left.skipped, left.imputed, left.aggregate) == (
        right.sensor,
        right.zoned,
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
def small_steps(monkeypatch):
    """Read row by row, keep nothing in memory, and give the temporary files that were made."""
    monkeypatch.setattr(blocks, "CELLS_IN_A_BLOCK", 1)
    monkeypatch.setattr(spool, "SPILL_ABOVE", 0)
    made = []

    def new_file(make=TemporaryFile):
        made.append(make())
        return made[-1]

    monkeypatch.setattr(store, "Spool", lambda: Spool(new_file))
    return made


CELLS = st.sampled_from(["1", "2.5", "-7e3", "", "NA", "x"])
TIMES = st.integers(0, 20).map(lambda hours: (START + timedelta(hours=hours)).isoformat())
LONG_ROWS = st.tuples(st.sampled_from(["a", "b", "c", ""]), TIMES, CELLS, CELLS)
WIDE_ROWS = st.tuples(TIMES | st.just("never"), CELLS, CELLS, CELLS)
TEXTS = st.one_of(
    st.lists(LONG_ROWS, max_size=12).map(lambda rows: [("sensor", "time", "y", "rain"), *rows]),
    st.lists(WIDE_ROWS, max_size=12).map(lambda rows: [("time", "a", "rain", "c"), *rows]),
).map(lambda rows: "".join(",".join(row) + "\n" for row in rows))


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    cells=st.integers(1, 60),
    spilled=st.integers(0, 500),
    extras=st.sampled_from([(), ("rain",)]),
    sensors=st.sampled_from([None, ["c", "a"]]),
)
def test_blocks_and_spills_of_any_size_change_nothing(
    texts, cells, spilled, extras, sensors, tmp_path_factory
):
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
        patch.setattr(blocks, "CELLS_IN_A_BLOCK", cells)
        patch.setattr(spool, "SPILL_ABOVE", spilled)
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
from streamridge.files import blocks, spool
from streamridge.files.reading import stored_readings

def read(source, extras):
    with stored_readings(source, extras=extras) as store:
        return sum(len(store.readings(name).times) for name in store.names)

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1000

few, source, *extras = sys.argv[1:]
blocks.CELLS_IN_A_BLOCK = 10_000
spool.SPILL_ABOVE = 500_000
pyarrow.set_cpu_count(1)  # each thread takes memory of its own
read(few, extras)  # what the first use of a library takes does not count
before = peak()
print(read(source, extras), peak() - before)
"""


def read_elsewhere(few, source, extras=(), **settings):
    """Return how many readings a new process reads, and by how many bytes it grows meanwhile."""
    command = [sys.executable, "-c", READ, few, source, *extras]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, **settings).stdout
    return tuple(map(int, output.split()))


EXTRAS = [f"extra{i}" for i in range(24)]
BYTES_OF_A_ROW = 8 * (2 + len(EXTRAS))


def long_table(rows, sensors=30):
    """Return readings of many sensors in turn, with many extras."""
    time = np.datetime64(START, "us") + np.arange(rows) // sensors * np.timedelta64(1, "m")
    sensor = [f"s{row % sensors}" for row in range(rows)]
    values = np.arange(float(rows))
    return pa.table(
        {"sensor": sensor, "time": time, "value": values} | dict.fromkeys(EXTRAS, values)
    )


def test_a_long_file_is_read_from_standard_input_in_little_memory(tmp_path):
    table, few, many = long_table(30_000), tmp_path / "few.csv", tmp_path / "many.csv"
    pl.from_arrow(table).write_csv(many)
    pl.from_arrow(table[:1000]).write_csv(few)

    with many.open("rb") as stdin:
        readings, growth = read_elsewhere(few, "-", EXTRAS, stdin=stdin)

    assert readings == 30_000
    assert growth < 30_000 * BYTES_OF_A_ROW / 4


def test_parquet_with_many_row_groups_is_read_in_little_memory(tmp_path):
    table, few, many = long_table(40_000), tmp_path / "few.parquet", tmp_path / "many.parquet"
    pq.write_table(table, many, row_group_size=2000)
    pq.write_table(table[:6000], few, row_group_size=2000)

    readings, growth = read_elsewhere(few, many, EXTRAS)

    assert readings == 40_000
    assert growth < 40_000 * BYTES_OF_A_ROW / 4


def test_parquet_with_many_columns_is_read_in_little_memory(tmp_path):
    time = np.datetime64(START, "us") + np.arange(5000) * np.timedelta64(1, "m")
    columns = dict.fromkeys(map(str, range(200)), np.arange(5000.0))
    table, few, many = pa.table({"time": time} | columns), tmp_path / "few", tmp_path / "many"
    pq.write_table(table, many)
    pq.write_table(table.select(range(60)), few)

    readings, growth = read_elsewhere(few, many)

    assert readings == 200 * 5000
    assert growth < 200 * 5000 * 16 / 4  # a time and a value each


def test_sensors_are_taken_in_any_order_and_again(small_steps, tmp_path):
    (tmp_path / "flow.csv").write_text(LONG)

    with stored_readings(tmp_path / "flow.csv") as kept:
        taken = [kept.readings(name).values.tolist() for name in ("a", "b", "a")]

        assert kept.names == ("b", "a")
        assert taken == [[2], [1, 3], [2]]
        assert len(small_steps) == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_temporary_file_is_gone_after_an_error(error, small_steps, tmp_path):
    (tmp_path / "flow.csv").write_text(LONG)

    def stop_halfway():
        with stored_readings(tmp_path / "flow.csv"):
            assert [file.closed for file in small_steps] == [False]
            raise error("enough")

    with pytest.raises(error, match="enough"):
        stop_halfway()

    assert [file.closed for file in small_steps] == [True]


def test_the_temporary_file_is_gone_when_a_source_is_bad(small_steps, tmp_path):
    (tmp_path / "flow.csv").write_text(LONG + "a,2021-06-15,x\n")

    with pytest.raises(InvalidInputError, match="line 5, column value: must be a number, got 'x'"):
        read_readings(tmp_path / "flow.csv")

    assert [file.closed for file in small_steps] == [True]


def test_a_temporary_file_has_no_name(small_steps, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with stored_readings(pl.DataFrame({"time": [START], "a": [1.0]})):
        assert small_steps
        assert not list(tmp_path.iterdir())


def test_few_bytes_never_touch_the_disk():
    kept = Spool(new_file=lambda: pytest.fail("a file was made"))

    kept.append("a", b"12")
    kept.append("b", b"3")
    kept.append("a", b"4")

    assert (kept.content("a"), kept.content("b"), kept.content("c")) == (b"124", b"3", b"")


def test_a_full_disk_is_named_with_the_way_out(monkeypatch):
    monkeypatch.setattr(spool, "SPILL_ABOVE", 0)
    full = Spool(new_file=partial(open, "/dev/full", "r+b"))

    message = "temporary files must have room .* got: No space left on device. Set TMPDIR"
    with pytest.raises(InvalidInputError, match=message):
        full.append("a", b"1")
    full.close()


def test_only_sensors_of_an_open_store_can_be_taken(tmp_path):
    (tmp_path / "flow.csv").write_text(LONG)

    unknown = pytest.raises(InvalidInputError, match="sensor must be among 'b', 'a', got 'x'")
    with stored_readings(tmp_path / "flow.csv") as kept, unknown:
        kept.readings("x")

    with pytest.raises(InvalidInputError, match="the store must be open, got a closed one"):
        kept.readings("a")


def test_times_that_do_not_fit_together_are_refused_before_any_sensor_is_taken(tmp_path):
    (tmp_path / "flow.csv").write_text(LONG + "a,2021-06-15T00:00Z,1\n")

    message = "times of sensor 'a' must all have an offset"
    with pytest.raises(InvalidInputError, match=message), stored_readings(tmp_path / "flow.csv"):
        pytest.fail("the store was handed out")


def test_parquet_of_any_blocks_gives_the_same_readings(small_steps, tmp_path, monkeypatch):
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
def test_a_bad_cell_of_parquet_is_found_in_any_row_group(first, small_steps, tmp_path):
    times = [START + timedelta(hours=hour) for hour in range(4)]
    columns = {first: ["1"] * 4, "value": ["1", "2", "3", "x"]}
    pq.write_table(pa.table({"time": times} | columns), tmp_path / "flow", row_group_size=2)

    with pytest.raises(InvalidInputError, match=r"flow row 3, column value: must be .*, got 'x'"):
        read_readings(tmp_path / "flow")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_parquet_is_read_from_standard_input(pack, small_steps, monkeypatch):
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
