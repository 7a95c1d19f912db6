"""Holidays: what may be given, and which days they are."""

import sys
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge.series.holidays import Holidays, parse_holidays

# Bank holidays of England in 2014.
ENGLAND = ("01-01", "04-18", "04-21", "05-05", "05-26", "08-25", "12-25", "12-26")


def days(first, last):
    return np.arange(first, last, dtype="M8[D]").astype(np.int64)


@pytest.mark.parametrize(
    "given",
    [
        "2024-12-25",
        date(2024, 12, 25),
        datetime(2024, 12, 25, 23, 30),
        datetime(2024, 12, 25, 23, 30, tzinfo=UTC),
        np.datetime64("2024-12-25"),
        np.datetime64("2024-12-25T09:00", "ns"),
        pd.Timestamp("2024-12-25", tz="Asia/Tokyo"),
    ],
    ids=lambda given: f"{type(given).__name__} {given}",
)
def test_dates_of_any_kind_are_days(given):
    assert parse_holidays([given, given]) == ("2024-12-25",)


def test_dates_of_any_container_are_sorted():
    wanted = ("2024-12-25", "2024-12-26")

    assert parse_holidays(iter(wanted[::-1])) == wanted
    assert parse_holidays(pd.DatetimeIndex(wanted)) == wanted
    assert parse_holidays(np.array(wanted, "M8[D]")) == wanted
    assert parse_holidays(dict.fromkeys(wanted, "Christmas")) == wanted


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("XX", "'XX' .Country XX not available"),
        ("GB-XX", "'GB-XX' .*does not have subdivision XX"),
        ("2024-12-25", "'2024-12-25'"),
        ("", "''"),
        (5, "5"),
        (["2024-12-32"], "'2024-12-32'"),
        (["25 December"], "'25 December'"),
        ([20241225], "20241225"),
        (["2024-12-25x"], "'2024-12-25x'"),
        ([None], "None"),
        ([pd.NaT], "NaT"),
        ([np.datetime64("NaT")], "np.datetime64.'NaT'"),
    ],
)
def test_anything_but_a_holiday_is_refused(given, shown):
    with pytest.raises(InvalidInputError, match=f"^holidays must be a country's .*, got {shown}"):
        parse_holidays(given)


def test_a_country_needs_the_extra_and_dates_do_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "holidays", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'streamridge\[holidays\]'"):
        parse_holidays("DE")
    assert parse_holidays(["2024-12-25"]) == ("2024-12-25",)


def test_the_holidays_of_a_part_of_a_country_are_known():
    wanted = parse_holidays([f"2014-{day}" for day in ENGLAND])
    year = days("2014-01-01", "2015-01-01")

    found = Holidays(parse_holidays("gb-ENG")).before_sunday(year)

    np.testing.assert_array_equal(found, Holidays(wanted).before_sunday(year))
    assert parse_holidays("gb-ENG") == "GB-ENG"


def test_a_holiday_lies_before_the_sunday_of_its_week():
    week = days("2024-12-23", "2024-12-30")  # Monday to Sunday
    every = Holidays(tuple(str(day) for day in week.astype("M8[D]")))

    assert every.before_sunday(week).tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert not Holidays(()).before_sunday(week).any()
    assert Holidays(("2024-12-25",)).before_sunday(week).tolist() == [0, 0, 4, 0, 0, 0, 0]


def test_days_outside_the_calendar_are_not_holidays():
    far = np.array([[-(10**9), 0], [10**9, 10**6]])

    for plain in ("DE", ("2024-12-25",)):
        assert Holidays(plain).before_sunday(far).shape == far.shape


def test_the_holidays_of_two_years_are_found_together():
    turn = days("2023-12-24", "2024-01-03")

    found = turn[Holidays("DE").before_sunday(turn) > 0].astype("M8[D]")

    assert [str(day) for day in found] == ["2023-12-25", "2023-12-26", "2024-01-01"]
