"""New readings in frames: learned from in order, checked before anything changes."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from streamridge import Forecaster, InvalidInputError, read
from tests.support.forecasters import DAY, daily, hours, live, same, small, state_of

HISTORY, NEW = 4 * DAY, 30
VALUES = daily(HISTORY + NEW)
TIMES = pd.to_datetime(hours(0, HISTORY + NEW))


@pytest.fixture(scope="module")
def content():
    """Return the bytes of a forecaster of ramp with some days of readings."""
    forecaster = small(sensor="ramp")
    live(forecaster, VALUES[:HISTORY])
    return forecaster.to_bytes()


@pytest.fixture(scope="module")
def expected(content):
    """Return the state after all new readings, one by one."""
    forecaster = Forecaster.from_bytes(content)
    for time, value in zip(hours(HISTORY, HISTORY + NEW), VALUES[HISTORY:], strict=True):
        forecaster.observe(time, value)
    return state_of(forecaster)


FRAME = pd.DataFrame({"time": TIMES[HISTORY:], "ramp": VALUES[HISTORY:]})
SERIES = FRAME.set_index("time")["ramp"]
SAME_READINGS = {
    "pandas, wide": FRAME,
    "polars, wide": pl.from_pandas(FRAME),
    "pandas, long": FRAME.melt("time", var_name="sensor", value_name="value"),
    "a series of pandas": SERIES,
    "an index of times": SERIES.to_frame(),
    "periods": SERIES.to_period("h"),
    "a Series": read(SERIES).series["ramp"],
    "a column of one unnamed sensor": FRAME.rename(columns={"ramp": "value"}),
    "beside another sensor": FRAME.assign(other=1.0),
    "a dict": {"ramp": SERIES},
}


@pytest.mark.parametrize("frame", SAME_READINGS.values(), ids=SAME_READINGS)
def test_a_frame_is_learned_from_like_its_rows_one_by_one(frame, content, expected):
    forecaster = Forecaster.from_bytes(content)

    forecaster.observe(frame)

    state = state_of(forecaster)
    assert state.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(state[name], array, err_msg=name)


def test_rows_may_be_late_missing_or_left_out(content):
    forecaster = Forecaster.from_bytes(content)

    forecaster.observe(FRAME.iloc[[0, 3, 1]].assign(ramp=[1.0, None, 100.0]))

    assert forecaster.counts["late"] == 1
    assert forecaster.next_time == np.datetime64(TIMES[HISTORY + 4])


WRONG = {
    "a time far ahead": (
        FRAME.iloc[:3].assign(time=[*TIMES[HISTORY : HISTORY + 2], pd.Timestamp("2031-01-01")]),
        "ramp: time must be within 1000 days",
    ),
    "a value that is too large": (FRAME.assign(ramp=1e13), "ramp: value must be at most 1e"),
    "times with an offset": (
        FRAME.assign(time=FRAME["time"].dt.tz_localize("UTC")),
        "ramp: time must have no offset",
    ),
    "another sensor": (FRAME.rename(columns={"ramp": "x"}), "must have a column 'ramp', got 'x'"),
    "finer rows": (
        SERIES.resample("15min").ffill(),
        "ramp: readings must be 1h apart.*got rows 15min apart. Aggregate the rows first.",
    ),
    "rarer rows": (
        pd.Series(VALUES[:26], TIMES[HISTORY] + 2 * (TIMES[:26] - TIMES[0]), name="ramp"),
        "ramp: readings must be 1h apart.*got rows 2h apart. Start a forecaster of that step.",
    ),
    "a Series of another step": (
        read(SERIES[::2], step="2h").series["ramp"],
        "ramp: readings must be 1h apart",
    ),
    "a time alone": ("2021-06-20T00:00", "value must be given with a time"),
    "a number": (5, "sources must be"),
}


@pytest.mark.parametrize(("frame", "message"), WRONG.values(), ids=WRONG)
def test_after_an_error_nothing_has_changed(frame, message, content):
    forecaster = Forecaster.from_bytes(content)

    with pytest.raises(InvalidInputError, match=message):
        forecaster.observe(frame)

    assert forecaster.to_bytes() == content


def test_few_rows_may_have_rows_missing_between_them(content):
    forecaster = Forecaster.from_bytes(content)

    forecaster.observe(FRAME.iloc[[0, 2, 4, 6]])

    assert forecaster.next_time == np.datetime64(TIMES[HISTORY + 7])


def test_local_times_belong_to_the_zone_of_the_forecaster():
    local = pd.Series(VALUES[:5], TIMES[:5])
    forecaster, alone = (Forecaster("1h", tz="Europe/Berlin") for _ in range(2))

    forecaster.observe(local)

    for time, value in local.items():
        alone.observe(time.to_pydatetime(), value)
    same(forecaster.predict(), alone.predict())
    assert forecaster.next_time == np.datetime64("2021-06-13T03:00")


def test_whole_numbers_are_the_times_of_an_index():
    forecaster = Forecaster(1)

    forecaster.observe(pd.Series([1.0, 2.0, 4.0], [7, 8, 9]))

    assert forecaster.next_time == 10


def test_a_reading_may_be_a_decimal():
    forecaster = Forecaster("1h")

    forecaster.observe("2021-06-13T00:00", Decimal("12.5"))
    forecaster.observe("2021-06-13T01:00", Decimal("NaN"))

    assert forecaster.predict().value[0] == 12.5
