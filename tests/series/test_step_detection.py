import re

import numpy as np
import pytest

from streamridge.errors import InvalidInputError
from streamridge.series.grid import to_series
from streamridge.series.lengths import parse_step, step_name
from streamridge.series.series import Readings
from streamridge.series.times import INDEX_ORIGIN

START = np.datetime64("2021-03-01T00:00", "us")
N = 192


def at_minutes(minutes, values=None):
    times = START + (np.asarray(minutes) * 60e6).astype("m8[us]")
    values = np.arange(len(times)) % 89 if values is None else values
    return Readings("a", times, np.asarray(values, float))


def changing(first, then, count=2.0):
    """Return counts, so many a minute, that come every `first` minutes and later every `then`."""
    days = N * 15
    minutes = [np.arange(0, days, first), np.arange(days, 2 * days, then)]
    values = [np.full(len(minutes[0]), count * first), np.full(len(minutes[1]), count * then)]
    return at_minutes(np.concatenate(minutes), np.concatenate(values))


def events():
    return at_minutes(np.cumsum(np.random.default_rng(0).exponential(10, 500)))


def remedy(readings, **options):
    """Return the step and the aggregate that a message tells to pass."""
    with pytest.raises(InvalidInputError) as refused:
        to_series(readings, **options)
    step, aggregate = re.search(r"--step (\w+)(?: --aggregate (\w+))?", str(refused.value)).groups()
    return {"step": parse_step(step), "aggregate": aggregate}


@pytest.mark.parametrize("lost", [0.5, 0.6, 0.8, 0.9])
@pytest.mark.parametrize("minutes", [7, 15])
def test_a_step_is_found_although_most_readings_are_lost(minutes, lost):
    rng = np.random.default_rng(1)
    kept = np.sort(rng.choice(3000, round(3000 * (1 - lost)), replace=False))

    series = to_series(at_minutes(kept * minutes))

    assert step_name(series.clock.step) == f"{minutes}min"
    assert series.counts.missing == len(series) - len(kept)


@pytest.mark.parametrize(("first", "then"), [(15, 5), (5, 15), (15, 10), (60, 15)])
def test_a_change_of_rate_is_named_with_its_time(first, then):
    place = f"{step_name(parse_step(f'{then}min'))} from 2021-03-03T00:00"

    with pytest.raises(InvalidInputError, match=f"got {step_name(parse_step(f'{first}min'))} from"):
        to_series(changing(first, then))
    with pytest.raises(InvalidInputError, match=place):
        to_series(changing(first, then))


@pytest.mark.parametrize(("first", "then"), [(15, 5), (5, 15), (15, 10), (60, 15)])
def test_the_remedy_for_a_change_of_rate_sums_each_segment_at_its_own_rate(first, then):
    readings = changing(first, then)
    asked = remedy(readings)

    series = to_series(readings, **asked)

    assert set(series.values.tolist()) == {2.0 * asked["step"].total_seconds() / 60}
    assert series.counts.rate_changes == 1
    assert not series.counts.conflicts


def test_the_finest_step_leaves_gaps_where_readings_are_rarer():
    series = to_series(changing(15, 5), step=parse_step("5min"))

    assert series.counts.missing == 2 * N


@pytest.mark.parametrize("minutes", [5, 10, 14])
def test_a_step_finer_than_the_readings_is_refused_with_their_own(minutes):
    readings = at_minutes(np.arange(N) * 15)

    asked = remedy(readings, step=parse_step(f"{minutes}min"))

    assert len(to_series(readings, **asked)) == N


def test_an_odd_step_is_refused_with_one_that_works():
    readings = at_minutes(np.arange(N) * 7)

    asked = remedy(readings, step=parse_step("15min"), aggregate="mean")

    assert len(to_series(readings, **asked)) == N


@pytest.mark.parametrize("rule", ["sum", "mean", "last"])
def test_the_remedy_for_events_loses_no_reading(rule):
    readings = events()
    asked = remedy(readings) | {"aggregate": rule}

    series = to_series(readings, **asked)

    assert series.counts.binned == len(readings.times)
    if rule == "sum":
        assert np.nansum(series.values) == readings.values.sum()


def test_two_sensors_in_one_column_are_refused():
    readings = at_minutes(np.repeat(np.arange(N) * 15, 2))

    with pytest.raises(InvalidInputError, match=r"one reading at a time, got .* pass --id"):
        to_series(readings)


def test_an_exact_stamp_wins_over_one_off_the_grid():
    minutes = np.arange(20.0) * 15
    minutes[0] = 8

    series = to_series(at_minutes(minutes))

    assert series.values[0] == 1
    assert series.counts.conflicts == 1


def test_a_change_of_rate_is_found_in_an_index_too():
    index = np.concatenate([np.arange(0, 600, 6), np.arange(600, 1200, 2)])
    times = INDEX_ORIGIN + index * np.timedelta64(1, "us")

    with pytest.raises(InvalidInputError, match=r"got 6 from 0, 2 from 600. Pass --step 6 "):
        to_series(Readings("a", times, np.ones(len(times))))
