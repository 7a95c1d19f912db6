import io
import sys

import pandas as pd
import pytest

import streamridge as sr
from streamridge import InvalidInputError
from streamridge.files import raw_table
from tests.support.input_files import read_readings, times, times_column, written

DAY, MONTH = "dayfirst", "monthfirst"

# The cells and the times they stand for.
READ = {
    "the day first": (["05/06/2021", "25/06/2021"], ["2021-06-05T00:00:00", "2021-06-25T00:00:00"]),
    "the month first": (
        ["05/06/2021 8:15", "06/25/2021 24:00"],
        ["2021-05-06T08:15:00", "2021-06-26T00:00:00"],
    ),
    "dashes": (
        ["05-06-2021 08:15", "13-06-2021 08:15"],
        ["2021-06-05T08:15:00", "2021-06-13T08:15:00"],
    ),
    "dots": (["05.06.2021 08:15"], ["2021-06-05T08:15:00"]),
    "day and month alike": (["05/05/2021"], ["2021-05-05T00:00:00"]),
    "the year first": (["2021/06/05 8:15:30.5"], ["2021-06-05T08:15:30"]),
    "no zeros": (["2021-6-5 8:15"], ["2021-06-05T08:15:00"]),
    "before noon": (["25/06/2021 12:05 AM"], ["2021-06-25T00:05:00"]),
    "after noon": (
        ["25/06/2021 12:05 pm", "25/06/2021 1:05 p.m."],
        ["2021-06-25T12:05:00", "2021-06-25T13:05:00"],
    ),
    "halves of days in ISO": (["2021-06-25 08:05 PM"], ["2021-06-25T20:05:00"]),
    "a date of eight digits": (["20210605"], ["2021-06-05T00:00:00"]),
}
UTC = {
    "seconds": (["1623571200", "1623572100"], ["2021-06-13T08:00:00", "2021-06-13T08:15:00"]),
    "seconds with a fraction": (["1623571200.0"], ["2021-06-13T08:00:00"]),
    "milliseconds": (["1623571200000"], ["2021-06-13T08:00:00"]),
    "microseconds": (["1623571200000000"], ["2021-06-13T08:00:00"]),
    "nanoseconds": (["1623571200000000000"], ["2021-06-13T08:00:00"]),
    "seconds after 2030": (
        ["1923571200", "1923572100"],
        ["2030-12-15T13:20:00", "2030-12-15T13:35:00"],
    ),
    "seconds of 2050": (["2540793600"], ["2050-07-07T08:00:00"]),
    "milliseconds after 2030": (["1923571200000"], ["2030-12-15T13:20:00"]),
    "microseconds after 2030": (["1923571200000000"], ["2030-12-15T13:20:00"]),
    "nanoseconds after 2030": (["1923571200000000000"], ["2030-12-15T13:20:00"]),
    "offsets": (["25/06/2021 10:00+02:00"], ["2021-06-25T08:00:00"]),
    "the letter Z": (["25/06/2021 08:00Z"], ["2021-06-25T08:00:00"]),
}
REFUSED = {
    "one date": (
        ["05/06/2021"],
        "line 2, column time: must be a date that can be read in one way only, got '05/06/2021', "
        "and no cell .*--date-format dayfirst or --date-format monthfirst",
    ),
    "the form of Caltrans": (["05/06/2021 08:00:00"], "day or the month comes first"),
    "dashes": (["05-06-2021"], "day or the month comes first"),
    "both orders": (
        ["25/06/2021", "06/25/2021"],
        "line 3, column time: must be a time written as '25/06/2021' above, got '06/25/2021'",
    ),
    "two digits of a year": (["25/06/21"], "got '25/06/21'.*--date-format %d/%m/%y"),
    "two digits and dots": (["05.06.21"], "got '05.06.21'"),
    "a thirteenth month": (["05.13.2021"], "got '05.13.2021'"),
    "an hour beyond noon": (["25/06/2021 13:00 PM"], "got '25/06/2021 13:00 PM'"),
    "minutes": (["25/06/2021 08:61"], "got '25/06/2021 08:61'"),
    "beyond midnight": (["25/06/2021 24:01"], "got '25/06/2021 24:01'"),
    "the name of a month": (["13 June 2021"], "got '13 June 2021'"),
    "hours without marks": (["2021061308"], "got '2021061308'"),
    "minutes without marks": (["202106130815"], "got '202106130815'"),
    "minutes and a short year without marks": (["2106130815", "2106130830"], "got '2106130815'"),
    "hours up to 24 without marks": (["2021061323", "2021061324"], "got '2021061323'"),
    "hundredths without marks": (["2021061308150000", "2021061308300000"], "got '20210613081500"),
    "seconds that may be a date": (["1901120400"], "got '1901120400'"),
    "counts of two units": (["1623571200", "1623571200000"], "got '1623571200"),
    "a count that is small": (["1623571200", "5"], "got '"),
    "a time of day": (["08:15"], "got '08:15'"),
}


@pytest.fixture(params=[1, 500_000], ids=["row by row", "at once"])
def any_block(request, monkeypatch):
    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", request.param)


@pytest.mark.parametrize(("cells", "expected"), READ.values(), ids=READ)
def test_dates_in_other_orders_are_read(cells, expected, any_block, tmp_path):
    assert times(written(times_column(cells), tmp_path)) == (expected, False)


@pytest.mark.parametrize(("cells", "expected"), UTC.values(), ids=UTC)
def test_counts_since_1970_and_offsets_are_in_utc(cells, expected, any_block, tmp_path):
    assert times(written(times_column(cells), tmp_path)) == (expected, True)


def test_counts_since_1970_of_which_some_may_be_dates_are_read_as_the_others(tmp_path):
    cells = ["1901120400", "1901124000", "1901127600"]

    assert times(written(times_column(cells), tmp_path))[0] == [
        "2030-03-30T17:00:00",
        "2030-03-30T18:00:00",
        "2030-03-30T19:00:00",
    ]


@pytest.mark.parametrize(("cells", "message"), REFUSED.values(), ids=REFUSED)
def test_ambiguous_times_are_refused(cells, message, any_block, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        times(written(times_column(cells), tmp_path))


@pytest.mark.parametrize(
    ("date_format", "cell", "expected"),
    [
        (DAY, "05/06/2021", "2021-06-05T00:00:00"),
        (MONTH, "05/06/2021", "2021-05-06T00:00:00"),
        (DAY, "2021-06-05", "2021-06-05T00:00:00"),
        ("%d/%m/%y %H:%M", "05/06/21 08:15", "2021-06-05T08:15:00"),
        ("%d %B %Y", "13 June 2021", "2021-06-13T00:00:00"),
        ("%Y%m%d%H", "2021061308", "2021-06-13T08:00:00"),
        ("epoch-s", "5", "1970-01-01T00:00:05"),
        ("epoch-ms", "1623571200000", "2021-06-13T08:00:00"),
    ],
)
def test_the_format_of_times_can_be_given(date_format, cell, expected, tmp_path):
    path = written(times_column([cell], name="when"), tmp_path)

    assert times(path, date_format=date_format)[0] == [expected]


@pytest.mark.parametrize("date_format", [DAY, MONTH, "%d/%m/%Y", "epoch-s", "index"])
def test_a_time_in_another_format_than_given_is_refused(date_format, tmp_path):
    path = written(times_column(["13/13/2021"]), tmp_path)

    with pytest.raises(InvalidInputError, match=f"written as {date_format}, got '13/13"):
        times(path, date_format=date_format)


def test_whole_numbers_are_an_index_unless_the_name_says_otherwise(tmp_path):
    counted, dated = (times_column(["0", "1", "2"], name) for name in ("time", "date"))

    [readings] = read_readings(written(counted, tmp_path))

    assert readings.indexed
    with pytest.raises(InvalidInputError, match=r"column date: must be an ISO 8601 .* got '0'"):
        read_readings(written(dated, tmp_path))
    [readings] = read_readings(written(dated, tmp_path), date_format="index")
    assert readings.indexed


def test_a_count_since_1970_needs_a_column_named_like_a_time(tmp_path):
    with pytest.raises(InvalidInputError, match="column id: must be an ISO 8601 time"):
        read_readings(written(times_column(["1623571200"], "id"), tmp_path))


def test_the_cell_that_decides_the_order_is_noted(tmp_path):
    path = written(times_column(["05/06/2021", "25/06/2021"]), tmp_path)

    [note] = sr.read(path, step="1d").notes

    assert note == f"{path}: dates are read as day/month/year, as '25/06/2021' shows"


@pytest.mark.parametrize(("order", "last"), [(DAY, "25/06/2021"), (MONTH, "06/25/2021")])
def test_a_stream_is_read_only_once(order, last, monkeypatch):
    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", 1)
    content = times_column(["05/06/2021", last]).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    if order == DAY:
        assert len(times("-")[0]) == 2
        return
    with pytest.raises(InvalidInputError, match="standard input line 3, column time: '06/25/2021'"):
        times("-")


def test_ambiguous_times_of_frames_are_refused():
    frame = pd.DataFrame({"time": ["05/06/2021"], "a": [1]})

    with pytest.raises(InvalidInputError, match="DataFrame row 0, column time: must be a date"):
        read_readings(frame)
    assert times(frame, date_format=DAY)[0] == ["2021-06-05T00:00:00"]
