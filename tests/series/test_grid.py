from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.series.grid import to_series
from streamridge.series.series import Readings
from streamridge.series.time_format import NAIVE, TimeFormat
from streamridge.series.times import parse_index

QUARTER = timedelta(minutes=15)


def readings(times, values, **more):
    return Readings("ramp", np.array(times, "M8[us]"), np.array(values, dtype=float), **more)


def regular(count, minutes=15, start="2021-06-13T00:00"):
    return np.datetime64(start, "us") + np.arange(count) * np.timedelta64(minutes, "m")


@pytest.mark.parametrize("minutes", [1, 5, 7, 15, 30, 60, 1440, 7 * 1440, 28 * 1440])
def test_the_step_is_found(minutes):
    series = to_series(readings(regular(20, minutes), np.arange(20)))

    assert series.clock.step == timedelta(minutes=minutes)
    np.testing.assert_array_equal(series.values, np.arange(20))


def test_the_step_is_found_through_gaps_and_jitter():
    rng = np.random.default_rng(3)
    times = regular(200) + rng.integers(-9, 10, 200).astype("m8[s]")
    kept = np.sort(rng.choice(200, 120, replace=False))

    series = to_series(readings(times[kept], kept))

    assert series.clock.step == QUARTER
    np.testing.assert_array_equal(series.values[kept - kept[0]], kept)
    assert series.counts.off_grid > 100


def test_a_series_runs_from_its_first_value_to_its_last():
    series = to_series(readings(regular(9), [np.nan, np.nan, 3, 4, np.nan, 5, 6, np.nan, np.nan]))

    np.testing.assert_array_equal(series.values, [3, 4, np.nan, 5, 6])
    assert series.counts.missing == 1


def test_a_gap_stays_a_gap():
    series = to_series(readings(np.delete(regular(10), [4, 5]), np.delete(np.arange(10.0), [4, 5])))

    assert np.flatnonzero(np.isnan(series.values)).tolist() == [4, 5]
    assert series.counts.missing == 2


def test_times_keep_their_offset_within_a_step():
    series = to_series(readings(regular(5, start="2021-06-13T00:07"), range(5)))

    assert str(series.times[0])[:16] == "2021-06-13T00:07"
    assert not series.counts.off_grid


def test_duplicates_and_conflicts_are_counted_and_the_first_reading_wins():
    times = regular(4)[[0, 1, 1, 2, 2, 3, 3]]

    series = to_series(readings(times, [1, 2, 2, 3, 9, np.nan, 4]))

    np.testing.assert_array_equal(series.values, [1, 2, 3, 4])
    assert (series.counts.duplicates, series.counts.conflicts) == (2, 1)


def test_order_does_not_matter_and_is_counted():
    order = np.array([3, 1, 0, 2, 4])

    series = to_series(readings(regular(5)[order], order))

    np.testing.assert_array_equal(series.values, range(5))
    assert series.counts.out_of_order == 3


def test_counts_of_five_minutes_equal_their_sums():
    rng = np.random.default_rng(0)
    fine = rng.integers(0, 50, 300).astype(float)

    series = to_series(readings(regular(300, 5), fine), step=QUARTER, aggregate="sum")

    np.testing.assert_allclose(series.values, fine.reshape(-1, 3).sum(axis=1))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("sum", [6.0, 13.5, np.nan]), ("mean", [2.0, 4.5, np.nan]), ("last", [3.0, 5.0, 7.0])],
)
def test_a_partly_read_bin_is_scaled_up_or_a_gap(rule, expected):
    fine = [1, 2, 3, 4, np.nan, 5, np.nan, np.nan, 7]

    series = to_series(readings(regular(9, 5), fine), step=QUARTER, aggregate=rule)

    np.testing.assert_allclose(series.values, expected)
    assert series.counts.partial == 2


def test_bins_are_aligned_to_midnight():
    series = to_series(
        readings(regular(8, 5, start="2021-06-13T00:10"), np.ones(8)),
        step=QUARTER,
        aggregate="sum",
    )

    assert str(series.times[0])[:16] == "2021-06-13T00:00"
    np.testing.assert_allclose(series.values, [np.nan, 3.0, 3.0, np.nan])


def test_local_times_become_utc_and_no_hour_is_lost():
    local = regular(60, 60, start="2023-10-28T00:00")
    repeated = np.insert(local, 27, local[26])  # 02:00 comes twice on 2023-10-29

    series = to_series(readings(repeated, range(61)), zone=ZoneInfo("Europe/Berlin"))

    np.testing.assert_array_equal(series.values, range(61))
    assert not series.counts.duplicates


def test_a_skipped_hour_is_refused_or_left_out():
    given = readings(regular(60, 60, start="2023-03-25T00:00"), range(60))
    zone = ZoneInfo("Europe/Berlin")

    with pytest.raises(
        InvalidInputError, match=r"ramp: time must exist in .*, got 2023-03-26T02:00:00"
    ):
        to_series(given, zone=zone)
    series = to_series(given, zone=zone, skip=True)

    assert series.counts.nonexistent == 1
    np.testing.assert_array_equal(series.values, np.delete(np.arange(60.0), 26))


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (readings(regular(1), [1]), {}, "step must be given for a single reading, got none"),
        (readings(regular(0), []), {}, "readings must hold at least one value, got none"),
        (
            readings(regular(9, 5), range(9)),
            {"step": QUARTER},
            "aggregate must be sum, mean or last to make steps of 15min from readings every 5min",
        ),
        (
            readings(regular(9, 10), range(9)),
            {"step": QUARTER, "aggregate": "sum"},
            "step must be a multiple of the readings' own 10min, got 15min",
        ),
        (
            readings(regular(41, 1)[[0, 7, 21, 24, 31]], range(5)),
            {},
            "readings must be equally far apart, got .* Pass --step 10min --aggregate mean",
        ),
        (
            readings(np.append(regular(9), np.datetime64("9999-01-01", "us")), range(10)),
            {},
            "stamps must be less than 1000 days apart, got 9999-01-01T00:00:00 after 2021-06-13",
        ),
    ],
)
def test_readings_that_make_no_series_are_refused(given, options, message):
    with pytest.raises(InvalidInputError, match=message):
        to_series(given, **options)


def test_a_series_is_cut_by_time():
    series = to_series(readings(regular(96), range(96)))

    part = series.between(np.datetime64("2021-06-13T06:00"), np.datetime64("2021-06-13T06:45"))

    np.testing.assert_array_equal(part.values, [24, 25, 26, 27])
    assert str(part.times[0])[:16] == "2021-06-13T06:00"
    with pytest.raises(
        InvalidInputError, match="the series from 2022-01-01 must hold at least one step, got none"
    ):
        series.between(np.datetime64("2022-01-01"), None)


def months(count, day=1):
    """Return the same day of many months."""
    first = np.datetime64("1981-01") + np.arange(count)
    return first.astype("M8[D]") + np.timedelta64(day - 1, "D")


@pytest.mark.parametrize("day", [1, 10, 15, 28])
@pytest.mark.parametrize("step", [None, timedelta(days=30), timedelta(days=31)])
def test_no_month_is_lost_or_repeated(day, step):
    values = np.arange(480.0)

    series = to_series(readings(months(480, day), values), step=step)

    np.testing.assert_array_equal(series.values, values)
    assert series.clock.step == timedelta(days=365.25 / 12)
    assert abs(series.times - months(480, day)).max() < np.timedelta64(4, "D")


def test_a_step_of_seven_minutes_keeps_its_times():
    times = regular(300, 7, "2021-06-13T00:03")

    series = to_series(readings(times, range(300)))

    np.testing.assert_array_equal(series.times, times)
    assert series.counts.found() == {"readings": 300}


def indexed(numbers, values):
    stamps = parse_index([str(number) for number in numbers])
    return Readings("ramp", stamps, np.array(values, dtype=float))


def test_whole_numbers_are_an_index():
    series = to_series(indexed([3, 4, 6, 7, 5], [0, 1, 3, 4, 2]))

    assert series.clock.step == 1
    assert series.times.tolist() == [3, 4, 5, 6, 7]
    assert series.values.tolist() == [0, 1, 2, 3, 4]


def test_an_index_may_count_by_more_than_one_and_be_summed():
    fine = indexed(range(10, 130, 10), np.ones(12))

    series = to_series(fine, step=30, aggregate="sum")

    assert to_series(fine).clock.step == 10
    assert (series.clock.step, series.values[1:-1].tolist()) == (30, [3.0, 3.0, 3.0])


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (indexed([1, 2], [1, 2]), {"step": QUARTER}, "step must be a whole number, as its times"),
        (readings(regular(3), range(3)), {"step": 1}, "step must be a time such as 15min, as its"),
        (
            indexed([1, 2], [1, 2]),
            {"zone": ZoneInfo("Europe/Berlin")},
            "tz must be left out with an integer index, got 'Europe/Berlin'",
        ),
        (
            indexed([1, 2, 9_999_999], [1, 2, 3]),
            {"step": 1},
            "stamps must be less than 1000000 steps apart, got 9999999 after 2",
        ),
    ],
)
def test_an_index_and_times_are_not_mixed(given, options, message):
    with pytest.raises(InvalidInputError, match=message):
        to_series(given, **options)


def test_an_index_is_cut_by_whole_numbers():
    series = to_series(indexed(range(9), range(9)))
    first, last = parse_index(["3", "5"])

    assert series.between(first, last).times.tolist() == [3, 4, 5]
    with pytest.raises(InvalidInputError, match="time must be a whole number, as its times are"):
        series.between(np.datetime64("2021-06-13", "us"), None)


def test_an_unusual_step_is_found_although_a_reading_is_missing():
    times = np.delete(regular(41, 7), 20)

    assert to_series(readings(times, range(40))).clock.step == timedelta(minutes=7)


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"], ids=["offsets", "zone"])
def test_local_times_of_days_begin_at_midnight(tz):
    zone = None if tz is None else ZoneInfo(tz)
    local = regular(60, 1440, "2021-03-01T00:00")
    berlin = TimeFormat(zoned=True, zone="Europe/Berlin")
    given = readings(local, range(60)) if zone else readings(berlin.utc(local), range(60))
    written = NAIVE if zone else berlin

    series = to_series(replace(given, time_format=written), zone=zone)

    np.testing.assert_array_equal(series.local_times, local)
    np.testing.assert_array_equal(series.times, berlin.utc(local))
