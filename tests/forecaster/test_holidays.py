"""Holidays of a forecaster: what they change, what they leave, and how they are kept."""

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError, compare, replay
from streamridge.features.base import Past
from streamridge.features.timeline import Timeline
from streamridge.forecaster.settings import Settings
from streamridge.series.clock import Clock
from streamridge.series.holidays import Holidays
from streamridge.series.lengths import parse_step
from streamridge.series.zones import parse_zone
from tests.support.features import profiles
from tests.support.forecasters import DAY, START, small
from tests.support.series import frame

WEEK = 7 * DAY
# Wednesdays of the sixth and the seventh week; the first day is a Sunday.
DATES = ("2021-07-21", "2021-07-28")


def working_week(weeks, dates=DATES):
    """Return flows that are high at work, and low on Sundays, Saturdays and holidays."""
    hours = START + np.arange(weeks * WEEK) * np.timedelta64(60, "m")
    day = hours.astype("M8[D]")
    free = (np.arange(len(hours)) // DAY % 7 == 0) | np.isin(day, np.array(dates, "M8[D]"))
    wave = np.sin(np.pi * (np.arange(len(hours)) % DAY) / DAY)
    noise = np.random.default_rng(0).standard_normal(len(hours))
    return 50 + np.where(free, 40, 200) * wave + 3 * noise, np.isin(day, np.array(dates, "M8[D]"))


def past_of(values, *, start, zone=None, holidays=None):
    """Return a past of hourly values from a time on."""
    clock = Clock(parse_step("1h"), zone=parse_zone(zone), holidays=holidays)
    timeline = Timeline()
    timeline.start_at(int(clock.steps(np.array([start], "M8[us]"))[0]))
    for value in values:
        timeline.push(float(value), read=True, trusted=True)
    return Past(timeline, clock)


def test_a_holiday_is_forecast_better_and_other_days_as_well():
    values, free = working_week(7)
    settings = {"train_size": 400, "warmup": 4 * WEEK, "update_every": 4 * DAY}

    plain = replay(small(**settings), frame(values))
    told = replay(small(holidays=DATES, **settings), frame(values))

    off = free[4 * WEEK :]
    errors = {name: each.errors_in_time**2 for name, each in (("plain", plain), ("told", told))}
    assert errors["told"][off].mean() < 0.6 * errors["plain"][off].mean()
    assert errors["told"][~off].mean() < 1.02 * errors["plain"][~off].mean()


def test_without_a_holiday_in_reach_forecasts_are_the_same_to_the_last_bit():
    values, _ = working_week(2, dates=())

    plain = replay(small(), frame(values))
    told = replay(small(holidays=["2020-12-25", "2021-12-25"]), frame(values))

    np.testing.assert_array_equal(told.value, plain.value)
    np.testing.assert_array_equal(told.upper, plain.upper)


@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_the_profile_of_a_holiday_uses_the_last_sundays(zone):
    # From a Sunday on; in New York it begins four hours after that of UTC.
    start = np.datetime64("2021-06-13T00" if zone is None else "2021-06-13T04")
    local = np.arange(6 * WEEK)
    values = 100 * (local // DAY % 7) + 1000 * (local // WEEK)  # by weekday, and by week
    past = past_of(values, start=start, zone=zone, holidays=Holidays(("2021-07-21",)))
    features = profiles(DAY, lags=1)
    first = past.timeline.start
    wednesdays = first + np.array([5, 6]) * WEEK + 3 * DAY

    x, _ = features.rows(past, np.concatenate([wednesdays, wednesdays + DAY]))

    typical = x[:, features.layout.spans["week_profile"]][:, 0]
    sundays, fewer = np.mean([5, 4, 3, 2]) * 1000, np.mean([4, 3, 2]) * 1000 + 300
    assert typical[0] == sundays  # of the holiday itself
    assert typical[1] == fewer  # a week later the holiday is left out
    assert typical[2] == np.mean([4, 3, 2, 1]) * 1000 + 400  # the day after is as ever


def test_the_calendar_shows_a_holiday_as_a_sunday():
    start = np.datetime64("2021-06-13T00")
    past = past_of(np.ones(6 * WEEK), start=start, holidays=Holidays(("2021-07-21",)))
    features = profiles(DAY, lags=1)
    holiday = past.timeline.start + 5 * WEEK + 3 * DAY + 7  # 7:00

    x, _ = features.rows(past, np.array([holiday, past.timeline.start + 4 * WEEK + 7]))

    calendar = x[:, features.layout.spans["calendar"]]
    np.testing.assert_array_equal(calendar[0], calendar[1])


def test_before_the_first_fit_a_holiday_repeats_the_last_sunday():
    values, _ = working_week(6, dates=DATES[:1])
    forecaster = small(warmup=10 * WEEK, train_size=10 * WEEK, holidays=DATES[:1])
    at = 5 * WEEK + 3 * DAY + 12

    for hour, value in enumerate(values[:at]):
        forecaster.observe(START + hour * np.timedelta64(60, "m"), value)

    # On this morning a day ago was wrong; a week ago was not, where that is the last Sunday.
    assert forecaster.predict().value[0] == values[5 * WEEK + 12]


@pytest.mark.parametrize("given", [DATES, "DE", "GB-ENG"])
def test_holidays_are_saved_and_loaded(given, tmp_path):
    forecaster = small(holidays=given)
    forecaster.observe(START, 1.0)

    forecaster.save(tmp_path / "sensor.sr")

    assert forecaster.settings.holidays == given
    assert Forecaster.load(tmp_path / "sensor.sr").settings == forecaster.settings


def test_settings_without_holidays_are_described_as_ever():
    for none in (None, []):
        settings = small(holidays=none).settings
        assert "holidays" not in settings.described()
        assert Settings.of(settings.described()).holidays is None


def test_bad_holidays_are_an_error():
    with pytest.raises(InvalidInputError, match=r"^holidays must be a country's .*, got 'XX'"):
        small(holidays="XX")
    with pytest.raises(InvalidInputError, match="holidays must be left out with the paper's model"):
        Forecaster.paper(holidays=DATES)


@pytest.mark.parametrize(
    "settings", [{"step": "1h", "seasons": ("1d",)}, {"step": "7d"}, {"step": 1}], ids=str
)
def test_holidays_without_a_week_are_an_error(settings):
    with pytest.raises(InvalidInputError, match="holidays must be left out where no season is a"):
        Forecaster(**settings, holidays=DATES)


@pytest.mark.parametrize("step", ["1d", "6h", "7min"])
def test_holidays_go_with_any_step_that_has_a_week(step):
    forecaster = Forecaster(step, holidays=DATES[:1], warmup=5000, seasons=("7d",))
    length = np.timedelta64(forecaster.settings.step)
    times = np.arange(np.datetime64("2021-06-13", "us"), np.datetime64("2021-07-21"), length)

    for time in times[-1500:]:  # each weekday has a value of its own, Sunday that of zero
        forecaster.observe(time, float((time.astype("M8[D]").astype(int) - 3) % 7) ** 2)

    forecast = forecaster.predict()
    assert forecast.time[0].astype("M8[D]") == np.datetime64(DATES[0])
    assert forecast.source == "seasonal"
    assert forecast.value[0] == 0.0


def test_compare_finds_a_bad_country_before_it_reads_a_file():
    with pytest.raises(InvalidInputError, match=r"holidays must be .*, got 'XX'"):
        compare("not-there.csv", holidays="XX")
