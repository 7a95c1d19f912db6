import gzip
import io
import math
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import InvalidInputError
from streamridge.errors import StreamRidgeError
from streamridge.files import raw_table
from tests.support.input_files import BOTH, EIGHT, NINE, SAME, assert_same, read_readings, values_of

WIDE = f"time,a,b\n{EIGHT},1,2.5\n{NINE},,4\n"
LONG = f"unique_id,ds,y\na,{EIGHT},1\nb,{EIGHT},2.5\na,{NINE},\nb,{NINE},4\n"
PEMS = "06/13/2021 08:00:00,716078,7,210,W,ML,.5,40,100,31,.05,64,31\n"


@pytest.fixture
def flow(tmp_path, monkeypatch):
    """Write a file and stand beside it, so that messages name it as it is typed."""
    monkeypatch.chdir(tmp_path)

    def write(content, name="flow.csv"):
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return write


def with_cells(cells, head="time,a"):
    """Return a wide file with one row per cell of its only sensor."""
    return "\n".join([head, *(f"2021-06-{day:02},{cell}" for day, cell in enumerate(cells, 1))])


ACCEPTED = {
    "wide": (WIDE, SAME),
    "long": (LONG, SAME),
    "byte order mark": (b"\xef\xbb\xbf" + WIDE.encode(), SAME),
    "line ends of Windows": (WIDE.replace("\n", "\r\n"), SAME),
    "line ends of old Macs": (WIDE.replace("\n", "\r"), SAME),
    "no line end at the end": (WIDE.rstrip(), SAME),
    "semicolons": (WIDE.replace(",", ";"), SAME),
    "tabs": (WIDE.replace(",", "\t"), SAME),
    "bars": (WIDE.replace(",", "|"), SAME),
    "decimal commas by semicolons": (WIDE.replace(",", ";").replace(".", ","), SAME),
    "decimal commas by tabs": (WIDE.replace(",", "\t").replace(".", ","), SAME),
    "decimal commas in quotes": (WIDE.replace(",", ";").replace("2.5", '"2,5"'), SAME),
    "quoted cells": ('"time","a"\n"2021-06-13","1"\n', {"a": [1]}),
    "a comma in a quoted name": ('time,"a, b"\n2021-06-13,1\n', {"a, b": [1]}),
    "a semicolon in a name": ("time,a;b\n2021-06-13,1\n", {"a;b": [1]}),
    "a comma in a name by semicolons": ("time;a,b\n2021-06-13;1\n", {"a,b": [1]}),
    "a line end in a name": ('time,"a\nb"\n2021-06-13,1\n', {"a\nb": [1]}),
    "names with accents": ("time,Zähler_Süd\n2021-06-13,1\n", {"Zähler_Süd": [1]}),
    "spaces around cells": (" time , a \n 2021-06-13 , 1 \n", {"a": [1]}),
    "blank lines": ("\n \ntime,a\n\n2021-06-13,1\n , \n,\n", {"a": [1]}),
    "numbers as names": (
        "time,716078,20210613\n2021-06-13,1,2\n",
        {"716078": [1], "20210613": [2]},
    ),
    "a first column without a name": (
        ",773869,767541\n2021-06-13,1,2\n",
        {"773869": [1], "767541": [2]},
    ),
    "a numbered row": (",time,a\n0,2021-06-13,1\n1,2021-06-14,2\n", {"a": [1, 2]}),
    "a delimiter at each end": ("time,a,\n2021-06-13,1,\n", {"a": [1]}),
    "a first column of another name": ("when,a\n2021-06-13,1\n", {"a": [1]}),
    "a time that is not first": ("a,Timestamp\n1,2021-06-13\n", {"a": [1]}),
    "time and value alone": ("date_time,traffic_volume\n2021-06-13,1\n", {"traffic_volume": [1]}),
    "long in any case": ("Value,DateTime,Station_ID\n1,2021-06-13,7\n", {"7": [1]}),
    "long with more columns": ("ds,y,unique_id,holiday\n2021-06-13,1,a,Easter\n", {"a": [1]}),
    "missing values": (
        with_cells(["", "nan", "NaN", "NA", "null", "None", " "]),
        {"a": [math.nan] * 7},
    ),
    "forms of numbers": (
        with_cells(["1.", ".5", "-1e3", "+2E-1", "007"]),
        {"a": [1, 0.5, -1000, 0.2, 7]},
    ),
    "a PeMS station file": (PEMS, {"716078": [31]}),
    "gzip": (gzip.compress(WIDE.encode()), SAME),
    "two gzip members": (
        gzip.compress(WIDE[:20].encode()) + gzip.compress(WIDE[20:].encode()),
        SAME,
    ),
}

HEADER = r"flow\.csv line 1 must be a header that names the columns, got "
DAMAGED = r"flow\.csv must be a file that can be read, got: "
NOT_TEXT = r"flow\.csv must be CSV, NDJSON or Parquet with rows, got "
SKIP = r"Pass --gap skip \(gap=\"skip\" in Python\) to drop such "
CELLS = (
    SKIP + r"cells, or --missing n/a \(missing=\"n/a\" in Python\) if that stands for no value\.$"
)
ROWS = SKIP + r"rows\.$"
NO_READING = r"flow\.csv must have at least one reading, got none\."

REFUSED = {
    "an empty file": ("", NOT_TEXT + "an empty file"),
    "blank lines only": ("\n\n \n", NOT_TEXT + "an empty file"),
    "an empty file in gzip": (gzip.compress(b""), NOT_TEXT + "an empty file"),
    "zeros": (b"\0" * 100, NOT_TEXT + "null characters"),
    "a bad byte far below": (
        WIDE.encode() * 1000 + b"\xff",
        r"flow\.csv line 3001 must be text in UTF-8, got byte 0xff",
    ),
    "a header alone": ("time,a\n", NO_READING),
    "rows without a header": (f"{EIGHT},1\n{NINE},2\n", HEADER + f"'{EIGHT}', '1'"),
    "long rows without a header": (f"a,{EIGHT},1\n", HEADER + "'a'"),
    "numbers only": ("1\n2\n", HEADER + "'1'"),
    "no sensor": ("time\n2021-06-13\n", r"must have a time column and a column for each sensor"),
    "one word": ("hello", NO_READING),
    "columns of one name": (
        "time,a,b,a\n2021-06-13,1,2,3\n",
        "distinct names, got more than one named 'a'",
    ),
    "a row that is short": (
        WIDE + EIGHT,
        r"line 4 must have 3 cells like the first line, got 1\. " + ROWS,
    ),
    "a row that is long": (WIDE + f"{EIGHT},1,2,3\n", "line 4 must have 3 cells"),
    "a decimal comma by commas": (with_cells(["1,5"]), "line 2 must have 2 cells"),
    "a quote that is never closed": (WIDE + '"2021,1,2\n1,2', "line 5 must have 3 cells"),
    "a cell without end": (
        f"time,a\n2021-06-13,{'1' * 200_000}",
        r"flow\.csv line 2 must be CSV, got: field larger .* Is a quote left open\?",
    ),
    "text for a number": (
        "time,flow\n2021-06-13,n/a\n",
        r"^flow\.csv line 2, column flow: must be a number, got 'n/a'\. " + CELLS,
    ),
    "infinity": (with_cells(["1", "inf"]), "line 3, column a: must be a number, got 'inf'"),
    "minus infinity": (with_cells(["-Infinity"]), "must be a number, got '-Infinity'"),
    "a number beyond all": (with_cells(["1e400"]), "must be a number, got '1e400'"),
    "underscores": (with_cells(["1_000"]), "must be a number, got '1_000'"),
    "digits of another script": (with_cells(["١٢"]), "must be a number, got '١٢'"),
    "hexadecimal": (with_cells(["0x1F"]), "must be a number, got '0x1F'"),
    "true": (with_cells(["true"]), "must be a number, got 'true'"),
    "a bad cell below blank lines": ("\n\ntime,a\n\n2021-06-13,x\n", "line 5, column a"),
    "a bad cell below a long one": ('time,"a\nb"\n2021-06-13,1\n2021-06-14,x\n', "line 4, column"),
    "a bad cell of a long file": (LONG + f"a,{NINE},x\n", "line 6, column y: must be a number"),
    "a bad time": (
        "time,a\n2021-13-01,1\n",
        "line 2, column time: must be an ISO 8601 time such as .*, got '2021-13-01'",
    ),
    "no time": ("time,a\n,1\n", "line 2, column time: must be an ISO 8601 time such as .* got ''"),
    "a time beyond all": ("time,a\n9999-12-31T23:30-01:00,1\n", "line 2, column time"),
    "a leap second": ("ds,unique_id,y\n2016-12-31T23:59:60Z,a,1\n", "line 2, column ds: must be"),
    "no name in a long row": (
        LONG + f",{NINE},1\n",
        "line 6, column unique_id: must be the name of a sensor",
    ),
    "offsets in some rows": (
        f"time,a\n{EIGHT},1\n{NINE}Z,2\n",
        "times of sensor 'a' must all have an offset",
    ),
    "half a gzip": (gzip.compress(WIDE.encode())[:-20], DAMAGED + "Compressed file ended"),
    "a gzip with a wrong sum": (
        gzip.compress(WIDE.encode())[:-8] + bytes(8),
        DAMAGED + "CRC check",
    ),
    "a gzip of noise": (b"\x1f\x8b\x08" + b"\xff" * 50, DAMAGED),
    "two bytes of gzip": (b"\x1f\x8b", DAMAGED),
    "four bytes of Parquet": (b"PAR1", r"flow\.csv must be a whole Parquet file, got "),
    "noise between the marks of Parquet": (b"PAR1" + b"\xff" * 50 + b"PAR1", "whole Parquet file"),
}


@pytest.mark.parametrize(("content", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_unusual_files_are_read(content, expected, flow):
    readings = read_readings(flow(content))

    assert_same(readings, expected)
    assert all(one.skipped == 0 for one in readings)


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_unreadable_files_are_refused_with_the_place_of_the_problem(content, message, flow):
    with pytest.raises(InvalidInputError, match=message):
        read_readings(flow(content))


def test_rows_keep_the_order_of_the_source(flow):
    content = f"sensor,time,value\na,{NINE},3\na,{EIGHT},1\nb,{EIGHT},5\na,{NINE},3\na,{NINE},4\n"

    first, second = read_readings(flow(content))

    np.testing.assert_array_equal(first.values, [3, 1, 3, 4])
    np.testing.assert_array_equal(
        first.times, np.array([NINE, EIGHT, NINE, NINE], "datetime64[us]")
    )
    np.testing.assert_array_equal(second.values, [5])


def test_parts_of_any_size_give_the_same_readings(flow, monkeypatch):
    path = flow(LONG)
    whole = values_of(read_readings(path))

    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", 1)

    assert_same(read_readings(path), whole)


def test_some_sensors_may_have_times_with_an_offset_and_others_without(flow):
    content = f"sensor,time,value\na,{EIGHT},1\nb,{EIGHT}+02:00,2\nb,{EIGHT}Z,3\n"

    first, second = read_readings(flow(content))

    assert (first.time_format.zoned, second.time_format.zoned) == (False, True)
    np.testing.assert_array_equal(
        second.times, np.array(["2021-06-13T06:00", EIGHT], "datetime64[us]")
    )


def test_sensors_are_returned_in_the_requested_order(flow):
    wide, long = flow(WIDE), flow(LONG, "long.csv")

    for path in (wide, long):
        assert_same(read_readings(path, sensors=["b", "a"]), {"b": [2.5, 4], "a": [1, math.nan]})
        assert_same(read_readings(path, sensors="b"), {"b": [2.5, 4]})


@pytest.mark.parametrize(
    "content",
    [f"time,a,weather\n{EIGHT},1,rain\n", f"sensor,time,value\na,{EIGHT},1\nb,never,x\n"],
    ids=["wide", "long"],
)
def test_bad_cells_of_other_sensors_than_the_requested_ones_do_not_matter(content, flow):
    assert_same(read_readings(flow(content), sensors=["a"]), {"a": [1]})


def test_an_unknown_sensor_is_refused_with_ten_that_are_known(flow):
    head = ",".join(["time", *(f"s{i}" for i in range(12))])
    path = flow(f"{head}\n2021-06-13{',1' * 12}\n")

    message = "sensors must be among 's0', 's1', .*'s9' and 2 more, got 'x'"
    with pytest.raises(InvalidInputError, match=message):
        read_readings(path, sensors=["s1", "x"])


def test_extras_are_read_with_the_readings(flow):
    wide = flow(f"time,a,rain,b\n{EIGHT},1,0,2\n{NINE},3,0.5,4\n")
    long = flow(f"sensor,time,value,rain\na,{EIGHT},1,0\nb,{NINE},4,0.5\n", "long.csv")

    for one in read_readings(wide, extras=["rain"]):
        np.testing.assert_array_equal(one.extras["rain"], [0, 0.5])
    first, second = read_readings(long, extras="rain")

    assert (first.extras["rain"].tolist(), second.extras["rain"].tolist()) == ([0], [0.5])


@pytest.mark.parametrize("content", [WIDE, LONG], ids=["wide", "long"])
def test_an_extra_that_is_not_a_column_is_refused(content, flow):
    message = r"extras must be columns of flow\.csv, got 'rain'\. It has '"

    with pytest.raises(InvalidInputError, match=message):
        read_readings(flow(content), extras=["rain"])


def test_with_skip_a_bad_cell_is_left_out_of_its_sensor_alone(flow):
    path = flow(f"time,a,b\n{EIGHT},x,1\n{NINE},2,3\n")

    first, second = read_readings(path, gap="skip")

    np.testing.assert_array_equal(first.times, [np.datetime64(NINE)])
    assert_same([first, second], {"a": [2], "b": [1, 3]})
    assert (first.skipped, second.skipped) == (1, 0)


@pytest.mark.parametrize(
    "bad",
    ["never,1,2", f"{EIGHT},1", f"{EIGHT},1,2,3"],
    ids=["bad time", "short", "long"],
)
def test_with_skip_a_bad_row_is_left_out_of_every_sensor(bad, flow):
    readings = read_readings(flow(WIDE + bad), gap="skip")

    assert_same(readings, SAME)
    assert [one.skipped for one in readings] == [1, 1]


def test_with_skip_a_bad_extra_removes_its_reading(flow):
    path = flow(f"time,a,rain\n{EIGHT},1,wet\n{NINE},2,0\n")

    [readings] = read_readings(path, extras=["rain"], gap="skip")

    assert (readings.values.tolist(), readings.skipped) == ([2], 1)


def test_with_skip_rows_of_a_long_file_count_for_their_sensor_or_for_all(flow):
    bad = [f"a,{EIGHT},x", "a,never,1", f",{EIGHT},1", f"a,{EIGHT}"]

    readings = read_readings(flow(LONG + "\n".join(bad)), gap="skip")

    assert_same(readings, SAME)
    assert [one.skipped for one in readings] == [4, 2]


def test_with_skip_a_file_without_a_good_row_is_refused(flow):
    with pytest.raises(InvalidInputError, match=r"skip .* dropped 2 cells that could not be read"):
        read_readings(flow("time,a\nnever,1\n2021-06-13\n"), gap="skip")


def test_files_are_joined_in_the_order_given(flow):
    second = flow(WIDE.replace("06-13", "06-12"), "second.csv")
    packed = flow(gzip.compress(f"time;b;c\n{EIGHT};1,5;2".encode()), "third.csv.gz")

    readings = read_readings([flow(WIDE), Path(second), packed])

    assert_same(readings, {"a": SAME["a"] * 2, "b": [2.5, 4, 2.5, 4, 1.5], "c": [2]})
    assert readings[0].times[2] == np.datetime64("2021-06-12T08:00")


def test_an_empty_file_among_others_is_not_an_error(flow):
    assert_same(read_readings([flow("time,a\n", "none.csv"), flow(WIDE)]), SAME)


@pytest.mark.parametrize("sources", [[], ()])
def test_no_sources_at_all_are_refused(sources):
    with pytest.raises(InvalidInputError, match="all 0 sources together must have at least one"):
        read_readings(sources)


def test_a_dash_is_standard_input(monkeypatch):
    packed = gzip.compress(WIDE.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))

    assert_same(read_readings("-"), SAME)


def test_a_bad_cell_of_standard_input_is_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"time,a\n2021-06-13,x\n")))

    with pytest.raises(InvalidInputError, match=r"^standard input line 2, column a: must be"):
        read_readings("-")


def test_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)

    with pytest.raises(InvalidInputError, match="standard input must be open, got a closed one"):
        read_readings("-")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere.csv", "No such file or directory"),
        (".", "Is a directory"),
        ("flow.csv/flow.csv", "Not a directory"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_a_path_that_is_not_a_file_is_named(path, reason, flow):
    flow(WIDE)

    with pytest.raises(InvalidInputError, match=f"must be a file that can be read, got: {reason}"):
        read_readings(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layout": "tall"}, "layout must be one of None, wide, long, pems, got 'tall'"),
        ({"gap": "fill"}, "gap must be one of error, skip, got 'fill'"),
        ({"layout": "long"}, r"flow\.csv must have a column named one of 'unique_id', .* 'b'\."),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message, flow):
    with pytest.raises(InvalidInputError, match=message):
        read_readings(flow(WIDE), **settings)


def test_the_layout_can_be_chosen(flow):
    path = flow(f"station,time,flow\n7,{EIGHT},1\n")

    assert_same(read_readings(path), {"7": [1]})
    assert_same(read_readings(path, layout="wide"), {"station": [7], "flow": [1]})
    assert_same(read_readings(flow(PEMS), layout="long"), {"716078": [31]})


def parquet_bytes():
    content = io.BytesIO()
    frame = pl.DataFrame({"sensor": [*"abab"], "time": BOTH * 2, "value": [1.0, 2.5, None, 4.0]})
    frame.write_parquet(content)
    return content.getvalue()


SEEDS = {
    "wide": WIDE.encode(),
    "long": LONG.encode(),
    "pems": PEMS.encode() * 3,
    "gzip": gzip.compress(WIDE.encode()),
    "parquet": parquet_bytes(),
}
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 8),
        st.binary(max_size=4)
        | st.sampled_from([b",", b";", b'"', b"\n", b"\r", b"\0", b"9", b"Z"]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("gap", ["error", "skip"])
@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
@given(edits=EDITS)
def test_a_mutated_file_is_read_or_refused(gap, seed, edits, tmp_path_factory):
    for place, cut, insert in edits:
        at = round(place * len(seed))
        seed = seed[:at] + insert + seed[at + cut :]
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(seed)

    try:
        readings = read_readings(path, gap=gap)
    except StreamRidgeError:
        return

    assert all(len(one.times) == len(one.values) for one in readings)
    assert not any(np.isinf(one.values).any() or np.isnat(one.times).any() for one in readings)
