from datetime import timedelta

import pytest

from streamridge import InvalidInputError
from streamridge.series.lengths import default_seasons, parse_seasons, parse_step, season_name

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ("1s", []),
        ("10s", ["day"]),
        ("1min", ["day", "week"]),
        ("7min", ["day", "week"]),
        ("15min", ["day", "week"]),
        ("1h", ["day", "week"]),
        ("12h", ["day", "week"]),
        ("1d", ["week", "year"]),
        ("7d", ["year"]),
        ("30d", ["year"]),
        ("1mo", ["year"]),
        ("200d", []),
        (1, []),
    ],
)
def test_seasons_follow_from_the_step(step, names):
    assert [season_name(each) for each in default_seasons(parse_step(step))] == names


def test_seasons_of_any_form_are_sorted():
    assert parse_seasons(["7d", DAY], timedelta(hours=1)) == (DAY, 7 * DAY)
    assert parse_seasons((12, 4), 1) == (4, 12)
    assert parse_seasons((), DAY) == ()
    assert parse_seasons(None, DAY) == default_seasons(DAY)


@pytest.mark.parametrize(
    ("seasons", "step", "message"),
    [
        ("1d", DAY, r"seasons must be a tuple of times such as \('1d', '7d'\), got '1d'"),
        (7, DAY, "seasons must be a tuple of times"),
        (("7d", "7d"), DAY, r"seasons must be distinct, got \('7d', '7d'\)"),
        (("168h", "7d"), DAY, "seasons must be distinct"),
        (("1d",), DAY, "season must be 2 to 20160 steps of 1d long, got '1d'"),
        (("365d",), timedelta(minutes=1), "season must be 2 to 20160 steps of 1min long"),
        (("2d", "3d", "4d", "5d"), DAY, "seasons must be at most 3, got 4"),
        (("soon",), DAY, "season must be a time such as 15min, .* got 'soon'"),
        ((12,), DAY, "season must be a time such as 1d, as the step 1d is, got 12"),
        (("7d",), 1, "season must be a whole number, as the step 1 is, got '7d'"),
        ((timedelta(days=2, seconds=0.5),), DAY, "season must be a whole number of seconds"),
    ],
)
def test_other_seasons_are_refused(seasons, step, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_seasons(seasons, step)


@pytest.mark.parametrize(
    ("text", "same"), [("15m", "15min"), ("1w", "7d"), ("2W", "14d"), ("m", "1min")]
)
def test_minutes_and_weeks_have_short_names(text, same):
    assert parse_step(text) == parse_step(same)


@pytest.mark.parametrize("text", ["15M", "M"])
def test_a_capital_m_may_mean_minutes_or_months(text):
    with pytest.raises(InvalidInputError, match="M may mean minutes or months"):
        parse_step(text)
