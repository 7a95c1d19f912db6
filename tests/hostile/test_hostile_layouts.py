"""Layouts, calendars and columns that are easily misread: each is read as meant, or refused."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

import streamridge as sr
from tests.support.hostile_files import column, stamps, written
from tests.support.tiers import tiered

BERLIN = "Europe/Berlin"


def lines(*rows):
    return "\n".join([*rows, ""])


def table(head, times, *columns):
    """Return a file with a row for each time; a column is a list or one cell for all rows."""
    cells = [each if isinstance(each, list) else [each] * len(times) for each in columns]
    rows = zip(times, *cells, strict=True)
    return lines(head, *(",".join(map(str, row)) for row in rows))


def every(minutes, count, start=datetime(2021, 6, 1)):
    return [(start + timedelta(minutes=minutes * i)).isoformat() for i in range(count)]


def dates(start, count, freq, tz=None):
    return [str(time) for time in pd.date_range(start, periods=count, freq=freq, tz=tz)]


def iso(times):
    return [time.replace(" ", "T") for time in times]


def noisy(count):
    return [round(50 + 10 * np.sin(7 * i * i), 3) for i in range(count)]


def day_rows(names):
    days = dates("2021-06-01", 4, "D")
    return table(",".join(["date", *names]), [day[:10] for day in days], *[5] * len(names))


QUARTERS = every(15, 30 * 96)
NEXT_DAY = every(60, 24, datetime(2021, 7, 1))
HOURS, N = every(60, 72), noisy(72)
CLOCK = [60 * (i % 24) for i in range(72)]
LONG = lines(
    "site,when,speed,flow",
    *(f"{name},2021-06-01 0{hour}:00,5{hour},{hour}" for hour in (1, 2) for name in "AB"),
)
NUMBERS = "773869,767541\n64.5,12.5\n60.5,14.5\n"
FIVE = {"start_time": "2021-06-01T00:00", "step": "5min"}
WINTER, SUMMER = "2021-03-27", "2021-10-30"

INTERVALS = {
    "quarters of an hour": (
        stamps("2021-06-01 07:00-07:15", "2021-06-01 07:15-07:30"),
        ["2021-06-01T07:00:00", "2021-06-01T07:15:00"],
    ),
    "hours": (
        stamps("2021-06-01 07:00-08:00", "2021-06-01 08:00-09:00"),
        ["2021-06-01T07:00:00", "2021-06-01T08:00:00"],
    ),
    "hours up to midnight": (
        stamps("2021-06-01 23:00-00:00", "2021-06-02 00:00-01:00"),
        ["2021-06-01T23:00:00", "2021-06-02T00:00:00"],
    ),
    "hours of the afternoon": (
        stamps("2021-06-01 13:00-14:00", "2021-06-01 14:00-15:00"),
        ["2021-06-01T13:00:00", "2021-06-01T14:00:00"],
    ),
    "with spaces": (
        stamps("2021-06-01 07:00 - 08:00", "2021-06-01 08:00 - 09:00"),
        ["2021-06-01T07:00:00", "2021-06-01T08:00:00"],
    ),
    "with a long dash": (
        stamps("2021-06-01 07:00\u201308:00", "2021-06-01 08:00\u201309:00"),
        ["2021-06-01T07:00:00", "2021-06-01T08:00:00"],
    ),
    "with a word": (
        stamps("2021-06-01 07:00 to 08:00", "2021-06-01 08:00 to 09:00"),
        ["2021-06-01T07:00:00", "2021-06-01T08:00:00"],
    ),
    "with seconds": (
        stamps("2021-06-01 07:00:00-07:15:00", "2021-06-01 07:15:00-07:30:00"),
        ["2021-06-01T07:00:00", "2021-06-01T07:15:00"],
    ),
    "of ISO 8601": (
        stamps("2021-06-01T07:00/2021-06-01T08:00", "2021-06-01T08:00/2021-06-01T09:00"),
        ["2021-06-01T07:00:00", "2021-06-01T08:00:00"],
    ),
    "after a date with dots": (
        stamps("13.06.2021 07:00-07:15", "13.06.2021 07:15-07:30"),
        ["2021-06-13T07:00:00", "2021-06-13T07:15:00"],
    ),
    "in a column beside the date": (
        "date,time,a\n2021-06-01,07:00-07:15,5\n2021-06-01,07:15-07:30,6\n",
        ["2021-06-01T07:00:00", "2021-06-01T07:15:00"],
    ),
}


def read(content, tmp_path, **options):
    path = tmp_path / "flow.csv"
    written(content, path)
    return sr.read(path, **options)


def texts(series):
    return series.time_format.texts(series.times)


@pytest.mark.parametrize(("content", "times"), INTERVALS.values(), ids=INTERVALS)
def test_an_interval_is_read_by_its_start(content, times, tmp_path):
    result = read(content, tmp_path)

    assert texts(result.series["a"]) == times
    assert any("are read as intervals, by their start" in note for note in result.notes)


# Times as a file has them, and the step. They must come back unchanged, also from a forecaster.
CALENDARS = {
    "months": (dates("2015-01-01", 40, "MS"), "1mo"),
    "ends of months": (dates("2015-01-31", 40, "ME"), "1mo"),
    "middles of months": (iso(f"2{y:03}-{m:02}-15" for y in (20, 21) for m in range(1, 13)), "1mo"),
    "thirtieths, and the end of February": (
        ["2021-01-30", "2021-02-28", "2021-03-30", "2021-04-30", "2021-05-30"],
        "1mo",
    ),
    "months at noon": (dates("2015-01-01 12:00", 40, "MS"), "1mo"),
    "two months": (["2021-02-01", "2021-03-01"], "1mo"),
    "quarters": (dates("2015-01-01", 20, "QS"), "3mo"),
    "ends of quarters": (dates("2015-03-31", 20, "QE"), "3mo"),
    "quarters from February": (dates("2015-02-01", 20, "QS-FEB"), "3mo"),
    "half years": (dates("2015-01-01", 20, "6MS"), "6mo"),
    "years": (dates("2001-01-01", 20, "YS"), "12mo"),
    "years without a leap year": (["2021-01-01", "2022-01-01", "2023-01-01"], "12mo"),
    "months at an offset": (dates("2019-01-01", 40, "MS", BERLIN), "1mo"),
    "days over the change in spring": (dates("2021-03-01", 60, "D", BERLIN), "1d"),
    "days over the change in autumn": (dates("2021-10-01", 60, "D", BERLIN), "1d"),
    "days behind UTC": (dates("2021-03-01", 60, "D", "America/New_York"), "1d"),
    "weeks over both changes": (dates("2021-01-03", 52, "W", BERLIN), "7d"),
    "days of UTC": (dates("2021-03-01", 60, "D", "UTC"), "1d"),
    "days at noon": (dates("2021-03-01 12:00", 60, "D", BERLIN), "1d"),
    "days of 28": (dates("2021-01-01", 20, "28D"), "28d"),
}


@pytest.mark.parametrize(("times", "step"), CALENDARS.values(), ids=CALENDARS)
def test_times_come_back_as_they_were(times, step, tmp_path):
    result = read(stamps(*times), tmp_path)

    series = result.series["a"]
    assert f"steps of {step}," in str(series)
    assert pd.to_datetime(texts(series), utc=True).equals(pd.to_datetime(times, utc=True))
    assert series.values.tolist() == list(range(5, 5 + len(times)))
    assert not series.counts.off_grid


@pytest.mark.parametrize(("times", "step"), CALENDARS.values(), ids=CALENDARS)
def test_a_forecaster_expects_the_next_time_of_the_calendar(times, step):
    forecaster = sr.Forecaster(step)
    for time in times[:-1]:
        forecaster.observe(time, 5.0)

    restored = sr.Forecaster.from_bytes(forecaster.to_bytes())

    # The offset of a time to come is unknown without a zone.
    [found] = restored.predict().stamps
    assert found.replace(tzinfo=None) == pd.Timestamp(times[-1]).replace(tzinfo=None)
    assert "off_grid" not in restored.counts


ZONES = (BERLIN, "Europe/London", "America/New_York", "America/Chicago", "Australia/Sydney")
# Starts, steps, and numbers of readings: at least one change of clocks is among them, and one is
# among the next twelve steps, or soon after them.
WRITTEN_OFFSETS = {
    "months": ("2019-01-01", "MS", 30),
    "months of less than a year": ("2019-06-01", "MS", 9),
    "weeks": ("2021-01-03", "W", 40),
    "days": ("2021-02-20", "D", 245),
    "days at noon": ("2021-02-20 12:00", "D", 245),
}


@pytest.mark.parametrize(
    ("way", "zone"),
    # On every change: each way of writing, and each zone.
    tiered(
        WRITTEN_OFFSETS,
        ZONES,
        quick=lambda *case: case in zip(WRITTEN_OFFSETS, ZONES, strict=True),
    ),
)
def test_offsets_go_on_as_in_the_zone_that_has_them(way, zone, tmp_path):
    start, step, known = WRITTEN_OFFSETS[way]
    times = dates(start, known + 53, step, zone)

    series = read(stamps(*times[:known]), tmp_path).series["a"]
    forecaster = sr.Forecaster.start(series, horizon=40, warmup=10**6)  # no model is needed
    made = forecaster.predict()
    forecaster.observe(times[known], 5.0)
    later = sr.Forecaster.from_bytes(forecaster.to_bytes()).predict()

    assert [str(stamp) for stamp in made.stamps] == times[known : known + 40]
    assert [str(stamp) for stamp in later.stamps] == times[known + 1 : known + 41]
    assert "off_grid" not in forecaster.counts


def test_a_reading_with_another_offset_ends_an_inferred_zone(tmp_path):
    times = dates("2021-02-20", 60, "D", BERLIN)
    forecaster = sr.Forecaster.start(read(stamps(*times), tmp_path).series["a"], horizon=3)

    forecaster.observe("2021-04-21T00:00+01:00", 5.0)

    expected = [f"2021-04-{day} 00:00:00+01:00" for day in (22, 23, 24)]
    assert [str(stamp) for stamp in forecaster.predict().stamps] == expected
    assert "off_grid" not in forecaster.counts


# In the years before 2011, Moscow's neighbours still changed their clocks as Greece did.
DOUBTFUL = {
    "one offset": (dates("2021-01-01", 60, "D", BERLIN), ""),
    "a change at no change of clocks": (
        [f"2021-05-{d:02}T00:00+0{1 + (d > 15)}:00" for d in range(1, 31)],
        "the offsets of its times fit no time zone",
    ),
    "zones that differ later": (
        dates("2010-02-20", 60, "D", "Europe/Athens"),
        "or several that differ later",
    ),
}


@pytest.mark.parametrize(("times", "note"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_doubtful_offsets_keep_the_last_one_and_a_note_says_so(times, note, invoke, tmp_path):
    (tmp_path / "a.csv").write_text(stamps(*times))
    expected = pd.Timestamp(times[-1]).utcoffset()

    result = invoke("forecast", "a.csv", "--horizon", "250", "--out", "o.csv")

    ahead = [pd.Timestamp(time) for time in pd.read_csv(tmp_path / "o.csv")["time"]]
    assert {time.utcoffset() for time in ahead} == {expected}
    assert note in result.stderr
    assert ("Forecasts keep the last offset; pass --tz" in result.stderr) == bool(note)


def test_two_sensors_with_other_first_times_share_the_offsets_of_their_zone(invoke, tmp_path):
    times = dates("2021-02-20", 270, "D", BERLIN)
    rows = [f"{time},{i},{i + 1 if i > 9 else ''}" for i, time in enumerate(times[:245])]
    (tmp_path / "a.csv").write_text(lines("time,a,b", *rows))

    invoke("forecast", "a.csv", "--horizon", "20", "--out", "o.csv")

    expected = [str(pd.Timestamp(time).isoformat()) for time in times[245:265]]
    assert pd.read_csv(tmp_path / "o.csv")["time"].tolist() == expected * 2


# Files, options, and the values of each sensor.
READ = {
    "years and months": (
        stamps(*(f"{2019 + i // 12}{i % 12 + 1:02}" for i in range(24)), name="month"),
        {},
        {"a": list(range(5, 29))},
        "times are read as year and month",
    ),
    "years and months under another name": (
        stamps(202011, 202012, 202101, name="x"),
        {},
        {"a": [5, 6, 7]},
        "times are read as year and month",
    ),
    "an index in the first column": (stamps(0, 1, 2, name="row"), {}, {"a": [5, 6, 7]}, ""),
    "an index by tens": (stamps(10, 20, 30, name="row"), {}, {"a": [5, 6, 7]}, ""),
    "an index with a gap, named": (
        stamps(10, 20, 40, name="row"),
        {"time": "row"},
        {"a": [5, 6, np.nan, 7]},
        "",
    ),
    "an index with a gap, as said": (
        stamps(10, 20, 40, name="row"),
        {"date_format": "index"},
        {"a": [5, 6, np.nan, 7]},
        "",
    ),
    "years": (stamps(2019, 2020, 2021, name="year"), {}, {"a": [5, 6, 7]}, ""),
    "times in the second column": (
        "a,seen\n5,2021-06-01\n6,2021-06-02\n",
        {},
        {"a": [5, 6]},
        "",
    ),
    "times in the last column, day first": (
        "a,b,seen\n5,1,13/06/2021\n6,2,14/06/2021\n",
        {},
        {"a": [5, 6], "b": [1, 2]},
        "dates are read as day/month/year",
    ),
    "a column of times by its name": (
        "time,seen,a\nx,2021-06-01,5\ny,2021-06-02,6\n",
        {"time": "seen", "sensor": "a"},
        {"a": [5, 6]},
        "",
    ),
    "a column of times by its name in capitals": (
        "seen,a\n2021-06-01,5\n2021-06-02,6\n",
        {"time": "SEEN"},
        {"a": [5, 6]},
        "",
    ),
    "a long file of other names": (
        LONG,
        {"id": "site", "value": "flow"},
        {"A": [1, 2], "B": [1, 2]},
        "column 'flow' is read, column 'speed' is left out. Pass --value speed",
    ),
    "a long file of other names, its other value": (
        LONG,
        {"id": "site", "value": "speed", "time": "when"},
        {"A": [51, 52], "B": [51, 52]},
        "column 'speed' is read, column 'flow' is left out",
    ),
    "a value beside another in a long file": (
        LONG.replace("site", "station").replace("when", "time"),
        {},
        {"A": [1, 2], "B": [1, 2]},
        "column 'flow' is read, column 'speed' is left out. Pass --value speed",
    ),
    "a long file with one other column": (
        "site,time,speed\nA,2021-06-01,5\nA,2021-06-02,6\n",
        {"id": "site"},
        {"A": [5, 6]},
        "",
    ),
    "a station and one other column": (
        "station,time,speed\n7,2021-06-01,5\n8,2021-06-01,1\n7,2021-06-02,6\n8,2021-06-02,2\n",
        {},
        {"7": [5, 6], "8": [1, 2]},
        "",
    ),
    "words beside the value of a long file": (
        "station,time,flow,weather\nA,2021-06-01,5,rain\nA,2021-06-02,6,sun\n",
        {},
        {"A": [5, 6]},
        "",
    ),
    "one value of a wide file": (
        "time,a,note\n2021-06-01,5,x\n2021-06-02,6,y\n",
        {"value": "a"},
        {"a": [5, 6]},
        "",
    ),
    "a preamble": (
        "Export of 2021\n<by hand>\n" + column(5, 6),
        {"skip_lines": 2},
        {"a": [5, 6]},
        "",
    ),
    "a preamble above records": (
        'begin\n{"time":"2021-06-01","a":5}\n{"time":"2021-06-02","a":6}\n',
        {"skip_lines": "1"},
        {"a": [5, 6]},
        "",
    ),
    "numbers under numbers": (
        NUMBERS,
        FIVE,
        {"773869": [64.5, 60.5], "767541": [12.5, 14.5]},
        "the numbers of the first row, such as 773869, name the sensors",
    ),
    "counts under numbers": (
        "773869,767541\n64,12\n60,14\n",
        FIVE,
        {"773869": [64, 60], "767541": [12, 14]},
        "",
    ),
    "numbers without a header": (
        "64.5,12\n60.5,14\n",
        FIVE,
        {"1": [64.5, 60.5], "2": [12, 14]},
        "there is no header, so sensors are named by their column",
    ),
    "a header but no times": ("a,b\n5,1\n6,2\n", FIVE, {"a": [5, 6], "b": [1, 2]}, ""),
    "records without times": ('{"a":5}\n{"a":6}\n', FIVE, {"a": [5, 6]}, ""),
    "a bad cell of a file without times": (
        "a\n5\nx\n7\n8\n",
        FIVE | {"gap": "skip"},
        {"a": [5, np.nan, 7, 8]},
        "",
    ),
    "a column for each hour, as said": (
        day_rows([str(hour) for hour in range(24)]),
        {"layout": "wide", "sensor": "7"},
        {"7": [5] * 4},
        "",
    ),
    "a sensor with one reading": (
        "time,a,b\n2021-06-01,5,\n2021-06-02,6,1\n2021-06-03,7,\n",
        {},
        {"a": [5, 6, 7]},
        "b: left out, it has one reading. Pass --step 15min",
    ),
    **{
        f"years and months such as {times[0]}": (stamps(*times), {}, {"a": [5, 6, 7]}, "")
        for times in (
            ("2020-11", "2020-12", "2021-01"),
            ("2020/11", "2020/12", "2021/01"),
            ("11/2020", "12/2020", "01/2021"),
            ("11/2020", "12/2020", "1/2021"),
            ("11-2020", "12-2020", "01-2021"),
            ("Nov 2020", "Dec 2020", "Jan 2021"),
            ("November 2020", "December 2020", "January 2021"),
        )
    },
    "months behind the values": (
        "a,when\n5,11/2020\n6,12/2020\n7,01/2021\n",
        {},
        {"a": [5, 6, 7]},
        "",
    ),
    "a sensor at no rate": (
        lines(
            "sensor,time,value",
            *(f"a,{time},{i}" for i, time in enumerate(every(60, 9))),
            *(f"b,{every(1, 200)[at]},{at}" for at in (0, 7, 31, 77, 182)),
        ),
        {},
        {"a": list(range(9))},
        "b: left out, readings must be equally far apart",
    ),
    "a constant beside a sensor": (
        table("time,a,lanes", HOURS, N, 4),
        {},
        {"a": N},
        "lanes: one value throughout, 4, left out",
    ),
    "the time of day beside a sensor": (
        table("time,a,tod", HOURS, N, CLOCK),
        {},
        {"a": N},
        "tod: it follows the clock, left out",
    ),
    "the weekday beside a sensor": (
        table("time,a,wd", HOURS, N, [1 + i // 24 for i in range(72)]),
        {},
        {"a": N},
        "wd: it follows the clock, left out",
    ),
    "the number of the row beside a sensor": (
        table("time,a,row", HOURS, N, list(range(72))),
        {},
        {"a": N},
        "row: it follows the clock, left out",
    ),
    "a constant as asked": (
        table("time,a,lanes", HOURS, N, 4),
        {"sensors": ["lanes"]},
        {"lanes": [4] * 72},
        "",
    ),
    "constants alone": (table("time,a,b", HOURS, 4, 5), {}, {"a": [4] * 72, "b": [5] * 72}, ""),
    "an export of a traffic agency": (
        table("5 Minutes,Flow,# Lane Points,% Observed,timeofday", every(5, 3), 7, 3, [1, 2, 3], 0),
        {},
        {"Flow": [7, 7, 7]},
        "columns '# Lane Points', '% Observed', 'timeofday' are left out",
    ),
    "a day of other counts, summed": (
        table("time,a", [*QUARTERS, *NEXT_DAY], [1] * len(QUARTERS) + [4] * 24),
        {"step": "1h", "aggregate": "sum"},
        {"a": [4] * (31 * 24)},
        "",
    ),
    "days of hours in local time": (
        table("time,a", dates(WINTER, 71, "h", BERLIN), 1),
        {"step": "1d", "aggregate": "sum"},
        {"a": [24, 23, 24]},
        "",
    ),
    "months of hours": (
        table("time,a", dates("2021-01-01", 59 * 24, "h"), 1),
        {"step": "1mo", "aggregate": "sum"},
        {"a": [31 * 24, 28 * 24]},
        "",
    ),
    "a last day": (
        table("time,a", every(60, 72), N),
        {"to": "2021-06-02"},
        {"a": N[:48]},
        "",
    ),
    "a last moment": (
        table("time,a", every(60, 72), N),
        {"to": "2021-06-02T00:00"},
        {"a": N[:25]},
        "",
    ),
    "one day": (
        table("time,a", every(60, 72), N),
        {"from_": "2021-06-02", "to": "2021-06-02"},
        {"a": N[24:48]},
        "",
    ),
    "a first local time of times with offsets": (
        table("time,a", dates("2021-06-01", 72, "h", BERLIN), N),
        {"from_": "2021-06-02", "to": "2021-06-02"},
        {"a": N[24:48]},
        "",
    ),
    "a first time in UTC of times with offsets": (
        table("time,a", dates("2021-06-01", 72, "h", BERLIN), N),
        {"from_": "2021-06-02T00:00Z"},
        {"a": N[26:]},
        "",
    ),
    "a first time in UTC of local times in a zone": (
        table("time,a", every(60, 72), N),
        {"from_": "2021-06-02T00:00Z", "tz": BERLIN},
        {"a": N[26:]},
        "",
    ),
}


@pytest.mark.parametrize(("content", "options", "values", "said"), READ.values(), ids=READ)
def test_a_layout_is_read_as_it_was_meant(content, options, values, said, tmp_path):
    result = read(content, tmp_path, **options)

    assert list(result.series) == list(values)
    for name, expected in values.items():
        np.testing.assert_array_equal(result.series[name].values, expected)
    assert said in "\n".join([*result.notes, *map(str, result.left_out)])


NO_TIMES = "flow.csv must have a column of times, got "
A_DAY = "got a row for each day and a column for each hour"
REFUSED = {
    "offsets that change from row to row": (
        stamps(
            *(f"2021-06-01 {7 + i:02}:00-0{i * i + 1}:00" for i in range(3)),
            "2021-06-01 11:00-07:00",
        ),
        {},
        "must be a time with an offset that rarely changes, or an interval",
    ),
    "no column of times": ("flow,speed\n120,60\n130,58\n110,59\n", {}, NO_TIMES),
    "no column of times, with decimals": ("flow,speed\n12.5,60\n13,58\n", {}, NO_TIMES + "numbers"),
    "a meter that looks like a date": (
        "meter,temp\n20210613,5\n20210619,6\n20210702,7\n",
        {},
        NO_TIMES + "a first column that does not increase by a constant step",
    ),
    "an index that goes back": (stamps(0, 1, 0, 1, name="row"), {}, NO_TIMES),
    "an index with a gap": (stamps(0, 1, 3, name="row"), {}, NO_TIMES),
    "the remedy for no times": (
        "flow,speed\n120,60\n130,58\n110,59\n",
        {},
        "--start-time (start_time= in Python) and --step",
    ),
    "a column that is not there": (
        column(5, 6),
        {"time": "when"},
        "time must be a column of",
    ),
    "a value that is not there": (column(5, 6), {"value": "flow"}, "value must be a column of"),
    "an id that is not there": (column(5, 6), {"id": "site"}, "id must be a column of"),
    "a long file without a value": (
        "site,time,a,b\nA,2021-06-01,1,2\n",
        {"id": "site"},
        "Pass --value (value= in Python)",
    ),
    "names of sensors in a column of another name": (
        "site,time,speed,load\nA,2021-06-01,5,7\nB,2021-06-01,6,8\n",
        {},
        'or --id site (id="site" in Python) if the column names sensors',
    ),
    "readings of several sensors without names": (
        table("time,a", [time for time in HOURS for _ in "ab"], [*N, *N]),
        {},
        "pass --id (id= in Python) with the column of their names",
    ),
    "a column of times that holds none": (column(5.5, 6), {"time": "a"}, "column a: must be"),
    "a start without a step": (
        NUMBERS,
        {"start_time": "2021-06-01"},
        "must come with a step such as --step 15min",
    ),
    "a start and a step of an index": (NUMBERS, FIVE | {"step": 1}, "must come with a step"),
    "a start in words": (NUMBERS, FIVE | {"start_time": "soon"}, "time must be an ISO 8601 time"),
    "a start and a column of times": (NUMBERS, FIVE | {"time": "a"}, "must be left out if rows"),
    "a start and a long layout": (NUMBERS, FIVE | {"layout": "long"}, "must be left out if rows"),
    "a start of a file with times": (column(5, 6), FIVE, "column time: must be a number"),
    "numbers that may be names or values": (
        "3,4\n5,6\n",
        FIVE,
        "line 1 must be a header that names the columns",
    ),
    "a short row of a file without times": (
        "a,b\n5,1\n6\n7,3\n",
        FIVE | {"gap": "skip"},
        "line 3 must have 2 cells",
    ),
    "numbers without times": (NUMBERS, {}, "Write a header, or pass --start-time"),
    "lines to skip in words": (
        column(5),
        {"skip_lines": "few"},
        "skip_lines must be a whole number",
    ),
    "lines to skip below zero": (
        column(5),
        {"skip_lines": -1},
        "skip_lines must be a whole number",
    ),
    "more lines to skip than there are": (column(5), {"skip_lines": 99}, "got an empty file"),
    "a column for each hour": (day_rows([str(hour) for hour in range(24)]), {}, A_DAY),
    "a column for each hour to 24": (day_rows([str(hour) for hour in range(1, 25)]), {}, A_DAY),
    "a column for each time of day": (day_rows([f"{h:02}:00" for h in range(24)]), {}, A_DAY),
    "a column for each half hour": (
        day_rows([f"{h:02}:{m:02}" for h in range(24) for m in (0, 30)]),
        {},
        A_DAY,
    ),
    "a column for each h1": (day_rows([f"h{hour}" for hour in range(1, 25)]), {}, A_DAY),
    "a column for each Hour_01": (day_rows([f"Hour_{h:02}" for h in range(1, 25)]), {}, A_DAY),
    "text above the header": (
        "Report of a station\nexported in 2021\ntime,a\n2021-06-01,5\n2021-06-02,6\n",
        {},
        'or --skip-lines 2 (skip_lines="2" in Python) if line 3 is the header',
    ),
    "quarters": (stamps("2021Q1", "2021Q2"), {}, "or write the first day of each quarter."),
    "weeks": (stamps("2021-W01", "2021-W02"), {}, "or write the first day of each week."),
    "a month among others": (stamps("2021-06", "2021-07", "x"), {}, "such as 2021-06, as the oth"),
    "a thirteenth month": (stamps("11/2020", "12/2020", "13/2020"), {}, "such as 06/2021, as the"),
    "a column for each 0000": (
        day_rows([f"{h:02}{m:02}" for h in range(24) for m in (0, 30)]),
        {},
        A_DAY,
    ),
    "a column for each interval": (
        day_rows([f"{h:02}:00-{h + 1:02}:00" for h in range(24)]),
        {},
        A_DAY,
    ),
    "a column for each 12 AM": (
        day_rows([f"{h or 12} {half}" for half in ("AM", "PM") for h in range(12)]),
        {},
        "and add the hour of each row to its date",
    ),
    "a day of hours after a month of quarters": (
        table("time,a", [*QUARTERS, *NEXT_DAY], 1),
        {},
        "got 15min from 2021-06-01T00:00, 1h from 2021-07-01T00:00",
    ),
    "a day of hours before a month of quarters": (
        table("time,a", [*every(60, 24, datetime(2021, 5, 31)), *QUARTERS], 1),
        {},
        "got 1h from 2021-05-31T00:00, 15min from 2021-06-01T00:00",
    ),
    "two hours of minutes": (
        table("time,a", [*QUARTERS, *every(5, 24, datetime(2021, 7, 1))], 1),
        {},
        "got 15min from 2021-06-01T00:00, 5min from 2021-07-01T00:00",
    ),
    "an offset of a first time": (
        column(5, 6),
        {"from_": "2021-06-01T00:00+02:00"},
        "--from (from_= in Python) must have no offset, as the times of the sensor",
    ),
    "an offset of a last time": (
        column(5, 6),
        {"to": "2021-06-01T00:00Z"},
        "or pass the zone of the sensor's times with --tz",
    ),
    "a bad sensor that was asked for": (
        "time,a,b\n2021-06-01,5,\n2021-06-02,6,1\n",
        {"sensors": ["b"]},
        "b: step must be given for a single reading",
    ),
    "bad sensors alone": (
        "time,a,b\n2021-06-01,5,\n2021-06-02,,1\n",
        {},
        "a: step must be given for a single reading",
    ),
    "two hours in a zone": (
        table("time,a", every(120, 9), noisy(9)),
        {"tz": BERLIN},
        "step must be at most 1h with tz, or 3h, 4h",
    ),
}


@pytest.mark.parametrize(("content", "options", "said"), REFUSED.values(), ids=REFUSED)
def test_a_layout_that_is_not_read_is_refused_with_a_remedy(content, options, said, tmp_path):
    with pytest.raises(sr.InvalidInputError) as refused:
        read(content, tmp_path, **options)

    assert said in str(refused.value)


NAIVE, AWARE = (pd.date_range("2021-06-01", periods=60, freq="h", tz=tz) for tz in (None, BERLIN))


def started(times, **settings):
    return sr.Forecaster.start(pd.Series(noisy(60), times, name="a"), train_size=24, **settings)


@pytest.mark.parametrize("saved", [False, True], ids=["at once", "after a restart"])
@pytest.mark.parametrize(
    ("known", "new", "said"),
    [(NAIVE, AWARE, "must have no offset"), (AWARE, NAIVE, "must have an offset")],
    ids=["naive", "aware"],
)
def test_a_time_of_the_other_kind_is_refused(known, new, said, saved):
    forecaster = started(known)
    if saved:
        forecaster = sr.Forecaster.from_bytes(forecaster.to_bytes())
    following = new[-1] + pd.Timedelta("1h")

    with pytest.raises(sr.InvalidInputError, match=rf"time {said}, .* started with tz="):
        forecaster.observe(following, 1.0)

    assert "conflicts" not in forecaster.counts


@pytest.mark.parametrize("following", [NAIVE[-1], AWARE[-1]], ids=["naive", "aware"])
def test_a_forecaster_with_a_zone_takes_both_kinds_of_times(following):
    forecaster = started(NAIVE, tz=BERLIN)
    forecaster.observe(following + pd.Timedelta("1h"), 1.0)

    assert forecaster.counts["readings"] == 61
    assert not {"conflicts", "missing"} & set(forecaster.counts)


def test_lines_cannot_be_skipped_in_a_frame():
    frame = pd.DataFrame({"time": NAIVE, "a": noisy(60)})

    with pytest.raises(sr.InvalidInputError, match="must be left out for DataFrame"):
        sr.read(frame, skip_lines=1)


def test_rows_of_several_sources_are_not_counted_as_one():
    frame = pd.DataFrame({"a": noisy(60)})

    with pytest.raises(sr.InvalidInputError, match="must be left out with several sources, got 2"):
        sr.read([frame, frame], **FIVE)
