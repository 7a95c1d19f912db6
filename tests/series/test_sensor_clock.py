from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.forecaster.forecaster import Forecaster
from streamridge.series.lengths import parse_step
from streamridge.series.sensor_clock import SensorClock

MIDNIGHT = datetime(2021, 6, 13)
INDIA = timezone(timedelta(hours=5, minutes=30))


def quarters(offset=0.0, start=0):
    return [MIDNIGHT + timedelta(minutes=15 * i + offset) for i in range(start, 10)]


def lived(stamps, **settings):
    """Return a forecaster that has seen readings, saved and loaded after the first."""
    forecaster = Forecaster(**settings)
    forecaster.observe(stamps[0], 0.0)
    forecaster = Forecaster.from_bytes(forecaster.to_bytes())
    for value, stamp in enumerate(stamps[1:], start=1):
        forecaster.observe(stamp, float(value))
    return forecaster


@pytest.mark.parametrize("offset", [0.0, 0.05])
@pytest.mark.parametrize("zone", [None, UTC, INDIA, ZoneInfo("Europe/Berlin")])
def test_an_irregular_first_time_does_not_move_the_grid(zone, offset):
    stamps = [MIDNIGHT + timedelta(minutes=8), *quarters(offset, start=1)]

    forecaster = lived([stamp.replace(tzinfo=zone) for stamp in stamps])

    assert forecaster.counts["readings"] == 10
    assert not {"conflicts", "missing", "late"} & set(forecaster.counts)
    expected = MIDNIGHT.replace(tzinfo=zone) + timedelta(minutes=150)
    assert forecaster.predict().stamps == [expected]


@pytest.mark.parametrize("offset", [0.0, 0.2, 7.0, 14.0])
def test_a_constant_offset_stays(offset):
    forecaster = lived(quarters(offset))

    assert forecaster.counts == {"readings": 10}
    assert forecaster.predict().stamps == [MIDNIGHT + timedelta(minutes=150 + offset)]


def test_round_hours_are_local():
    hours = [MIDNIGHT.replace(tzinfo=INDIA) + timedelta(hours=i) for i in range(1, 5)]

    forecaster = lived([hours[0] - timedelta(minutes=20), *hours], step="1h")

    assert forecaster.counts == {"readings": 5}
    assert forecaster.predict().stamps[0].minute == 0


def test_an_older_second_reading_does_not_fix_the_grid():
    clock = SensorClock(timedelta(minutes=15))
    first, _ = clock.place("2021-06-13T00:08", newest=None)

    earlier, _ = clock.place("2021-06-13T00:00", newest=first)
    later, on_grid = clock.place("2021-06-13T00:15", newest=first)

    assert (earlier, later, on_grid) == (first - 1, first + 1, True)


def test_a_forecast_is_written_as_the_readings_were():
    berlin = ZoneInfo("Europe/Berlin")
    forecaster = lived([stamp.replace(tzinfo=berlin) for stamp in quarters()], horizon=2)

    forecast = forecaster.predict()

    assert [stamp.tzinfo for stamp in forecast.stamps] == [berlin] * 2
    assert str(forecast.frame("pandas")["time"].dtype) == "datetime64[us, Europe/Berlin]"
    np.testing.assert_array_equal(forecast.time[0], np.datetime64("2021-06-13T00:30"))


@pytest.mark.parametrize(("step", "days"), [(timedelta(hours=7), 1000), (timedelta(days=30), 3000)])
def test_a_time_may_lie_a_thousand_days_or_a_hundred_steps_ahead(step, days):
    clock, start = SensorClock(step), datetime(2021, 6, 13)
    newest, _ = clock.place(start, newest=None)
    ahead = timedelta(days=days) // step

    assert clock.place(start + ahead * step, newest)[0] == newest + ahead
    with pytest.raises(InvalidInputError, match=f"within {days} days of the newest reading"):
        clock.place(start + (ahead + 1) * step, newest)


@pytest.mark.parametrize("year", [1000, 1659, 1749, 2499])
def test_a_stamp_of_any_year_with_four_digits_is_placed(year):
    clock, start = SensorClock(timedelta(days=30)), datetime(year, 1, 1)
    newest, _ = clock.place(start, newest=None)

    assert clock.place(start + timedelta(days=30), newest) == (newest + 1, True)


@pytest.mark.parametrize("time", ["0021-06-13", "0999-12-31", "2500-01-01"])
def test_a_stamp_of_an_impossible_year_is_refused(time):
    with pytest.raises(InvalidInputError, match="between the years 1000 and 2500, got"):
        SensorClock(timedelta(days=1)).place(time, newest=None)


def test_months_of_an_even_grid_stay_on_it():
    step = parse_step("1mo")
    stamps = [datetime(1970, 1, 1, tzinfo=UTC) + step * i for i in range(600, 605)]

    forecaster = lived(stamps[:-1], step=step)

    assert forecaster.counts == {"readings": 4}
    assert forecaster.predict().stamps == stamps[-1:]


def test_days_of_a_zone_follow_it_and_even_days_of_utc_do_not():
    berlin = ZoneInfo("Europe/Berlin")
    local = [datetime(2021, 3, 26 + i, tzinfo=berlin) for i in range(4)]
    even = [datetime(2021, 3, 26 + i, tzinfo=UTC) for i in range(4)]

    for stamps in (local, even):
        forecaster = lived(stamps[:-1], step="1d", tz="Europe/Berlin")

        assert forecaster.counts == {"readings": 3}
        assert forecaster.predict().stamps == stamps[-1:]
