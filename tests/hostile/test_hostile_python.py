"""Arguments of the wrong kind or out of range: errors of this library, never Python's own."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import streamridge as sr

HOURS = pd.date_range("2021-06-13", periods=48, freq="h")
VALUES = 100.0 + HOURS.hour.to_numpy()
SERIES = pd.Series(VALUES, HOURS, name="a")
FRAME = pd.DataFrame({"time": HOURS, "a": VALUES})
PAIRS = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
A_SOURCE = r'sources must be a path, "-", a list of paths, or a DataFrame'
A_VALUE = "DataFrame row 0, column a: must be a number"


def forecaster(**settings):
    return sr.Forecaster("1h", train_size=24, warmup=24, **settings)


def replay(source, **options):
    return sr.replay(forecaster(), source, **options)


def column(values):
    return FRAME.assign(a=values)


def observe(*reading):
    forecaster().observe(*reading)


def after(first, *second):
    known = forecaster()
    known.observe(first, 1.0)
    known.observe(*second)


# A call, and a part of the message.
REFUSED = {
    "nothing to replay": (lambda: replay(None), A_SOURCE),
    "a number to replay": (lambda: replay(5), A_SOURCE),
    "bytes to replay": (lambda: replay(b"flow.csv"), A_SOURCE),
    "an array to replay": (lambda: replay(VALUES), A_SOURCE),
    "a dictionary to replay": (lambda: replay({"time": HOURS, "a": VALUES}), A_SOURCE),
    "an empty list to replay": (lambda: replay([]), "must hold at least one sensor, got none"),
    "an empty frame": (lambda: replay(pd.DataFrame()), "must have a time column"),
    "a frame without rows": (lambda: replay(FRAME[:0]), "must have at least one reading"),
    "a series without times": (
        lambda: replay(pd.Series([1.0, 2.0])),
        "step must be a whole number",
    ),
    "a series with two indices": (
        lambda: replay(pd.Series(VALUES, pd.MultiIndex.from_product([["a"], HOURS]))),
        "got a Series without an index of times",
    ),
    "columns in two rows": (
        lambda: replay(pd.DataFrame(np.ones((48, 2)), HOURS, PAIRS)),
        "sensor must be one of .*, got none",
    ),
    "a column twice": (
        lambda: replay(pd.concat([FRAME, FRAME[["a"]]], axis=1)),
        "columns with distinct names, got more than one named 'a'",
    ),
    "words in a column": (lambda: replay(column("x")), f"{A_VALUE}, got 'x'"),
    "lists in a column": (lambda: replay(column([[1]] * 48)), f"{A_VALUE}, got '.1.'"),
    "truth in a column": (lambda: replay(column(True)), f"{A_VALUE}, got 'True'"),
    "complex numbers in a column": (lambda: replay(column(1j)), f"{A_VALUE}, got '1j'"),
    "durations in a column": (lambda: replay(column(pd.Timedelta("1s"))), A_VALUE),
    "infinity in a column": (lambda: replay(column(np.inf)), f"{A_VALUE}, got 'inf'"),
    "nothing in a column": (lambda: replay(column(np.nan)), "must hold at least one value"),
    "no time in a row": (
        lambda: replay(FRAME.assign(time=[pd.NaT, *HOURS[1:]])),
        "DataFrame row 0, column time: must be an ISO 8601 time",
    ),
    "whole numbers that no float holds": (
        lambda: replay(column(2**53 + 1)),
        r"at 2021-06-13T00:00:00: value must be at most 1e\+12 in size",
    ),
    "whole numbers that no machine holds": (
        lambda: replay(column([2**70] * 48)),
        r"value must be at most 1e\+12 in size",
    ),
    "no forecaster": (
        lambda: sr.replay(None, FRAME),
        "forecaster must be one such as .*, got None",
    ),
    "the class of forecasters": (lambda: sr.replay(sr.Forecaster, FRAME), "forecaster must be one"),
    "a sensor by its number": (
        lambda: replay(FRAME, sensor=5),
        "sensors must be among 'a', got '5'",
    ),
    "sensors by a number": (lambda: replay(FRAME, sensors=5), "sensors must be among 'a', got '5'"),
    "a span that is a number": (lambda: replay(FRAME, exclude=5), "exclude must be START/END"),
    "an end before the start": (
        lambda: replay(FRAME, from_="2021-06-14", to="2021-06-13"),
        r"to= in Python\) must not be before --from",
    ),
    "a start that is no time": (
        lambda: sr.Forecaster.start(FRAME, from_="soon"),
        r"from_= in Python\) must be an ISO 8601 time",
    ),
    "steps below zero": (lambda: replay(FRAME, steps=-1), "steps must be a whole number"),
    "half a step": (lambda: replay(FRAME, steps=1.5), "steps must be a whole number"),
    "truth for steps": (lambda: replay(FRAME, steps=True), "steps must be a whole number"),
    "a warm-up in words": (lambda: replay(FRAME, warmup="x"), "warmup must be a whole number"),
    "an option that nobody knows": (lambda: replay(FRAME, colour="red"), "got 'colour'"),
    "no methods": (lambda: sr.compare(FRAME, []), "method must be one of .*, got none"),
    "methods by a number": (lambda: sr.compare(FRAME, 5), "method must be one of .*, got '5'"),
    "nothing to compare": (lambda: sr.compare(None, "last"), A_SOURCE),
    "nothing to start from": (lambda: sr.Forecaster.start(None), A_SOURCE),
    "a file by its number": (lambda: sr.Forecaster.load(5), "must be the name of a file, got 5"),
    "no step": (lambda: sr.Forecaster(None), "step must be a time such as .*, got None"),
    "a step of nothing": (lambda: sr.Forecaster("0min"), "step must be positive"),
    "a step that is no number": (lambda: sr.Forecaster(np.nan), "step must be .*, got nan"),
    "half a step ahead": (lambda: forecaster(horizon=0.5), "horizon must be a whole number"),
    "a level in words": (lambda: forecaster(level="high"), "level must be a number, got 'high'"),
    "one bound": (lambda: forecaster(bounds=5), "bounds must be two numbers"),
    "a zone by its number": (lambda: forecaster(tz=5), "tz must be the name of a time zone"),
    "no time": (lambda: observe(None, 1.0), "time must be .*, got None"),
    "a time that is none": (lambda: observe(pd.NaT, 1.0), "time must be .*, got NaT"),
    "a time in words": (lambda: observe("yesterday", 1.0), "time must be .*, got 'yesterday'"),
    "a time that is a number": (lambda: observe(1.5, 1.0), "time must be .*, got 1.5"),
    "an infinite value": (lambda: observe("2021-06-13", np.inf), "value must be finite"),
    "a value in quotes": (lambda: observe("2021-06-13", "5"), "value must be a number, got '5'"),
    "two values": (lambda: observe("2021-06-13", [1, 2]), "value must be one number"),
    "a complex value": (lambda: observe("2021-06-13", 1j), "value must be a number"),
    "truth for a value": (lambda: observe("2021-06-13", True), "value must be a number, got True"),
    "a value of 400 digits": (lambda: observe("2021-06-13", 10**400), "value must be a number"),
    "a value that is too large": (lambda: observe("2021-06-13", 5e12), r"at most 1e\+12 in size"),
    "extras that nobody asked for": (
        lambda: observe("2021-06-13", 1.0, {"rain": 1}),
        "extras must give nothing, got rain",
    ),
    "extras by a number": (lambda: forecaster().predict(5), "extras must map names to numbers"),
    "an offset after none": (
        lambda: after("2021-06-13T00:00", "2021-06-13T01:00Z", 1.0),
        "time must have no offset, as the times before it",
    ),
    "a time of another millennium": (
        lambda: after("2021-06-13", "2921-06-13", 1.0),
        "time must be between the years 1000 and 2500",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_argument_is_refused_with_a_message(call, message):
    with pytest.raises(sr.InvalidInputError, match=message):
        call()


READ = {
    "numbers as objects": lambda: column(VALUES.astype(object)),
    "numbers as text": lambda: column(VALUES.astype(str)),
    "decimal numbers": lambda: column([Decimal(str(value)) for value in VALUES]),
    "numbers as categories": lambda: column(pd.Categorical(VALUES.astype(str))),
    "numbers with a type for missing ones": lambda: column(pd.array(VALUES, dtype="Float64")),
    "times as an index": lambda: pd.DataFrame({"a": SERIES}),
    "times in a zone": lambda: SERIES.tz_localize("Europe/Berlin"),
    "times as text": lambda: FRAME.assign(time=HOURS.astype(str)),
    "numbers for names": lambda: pd.DataFrame({0: HOURS, 1: VALUES}),
    "rows twice": lambda: pd.concat([SERIES, SERIES]),
    "rows backwards": lambda: FRAME[::-1],
}


@pytest.mark.parametrize("make", READ.values(), ids=READ)
def test_an_unusual_frame_is_read_correctly(make):
    run = replay(make())

    np.testing.assert_array_equal(run.actual, VALUES[24:])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_a_missing_value_is_not_a_reading(missing):
    known = forecaster()
    known.observe("2021-06-13T00:00", 5.0)
    known.observe("2021-06-13T01:00", missing)

    assert known.counts == {"readings": 1, "missing": 1}
