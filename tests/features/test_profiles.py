"""Rows of a timeline against slow independent ones."""

from datetime import timedelta

import numpy as np
import pytest

from streamridge import Features, InvalidInputError, Profiles
from streamridge.features.base import samples_at, samples_reading
from streamridge.features.past import Past
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock, parse_zone

DAY = 8
START = 5000


def past_of(values, trusted=None, zone=None, capacity=None):
    timeline = Timeline(capacity or len(values))
    timeline.start_at(START)
    trusted = np.ones(len(values), bool) if trusted is None else trusted
    for value, is_trusted in zip(values, trusted, strict=True):
        timeline.push(value, read=True, trusted=bool(is_trusted))
    return Past(timeline, Clock(timedelta(hours=24 / DAY), zone=parse_zone(zone)))


def slow_profile(values, trusted, t, season, count, now):
    seen = [
        values[t - season * k]
        for k in range(1, count + 1)
        if 0 <= t - season * k < now and trusted[t - season * k]
    ]
    return np.mean(seen) if seen else None


def slow_row(values, trusted, t, features):
    def daily(s):
        return slow_profile(values, trusted, s, features.day, features.days, t)

    def weekly(s):
        found = slow_profile(values, trusted, s, 7 * features.day, features.weeks, t)
        return daily(s) if found is None else found

    row = [values[t - 1]]
    for course, lags in ((daily, features.lags), (weekly, features.week_lags)):
        row += [values[t - i] - course(t - i) for i in range(1, lags + 1)]
        row.append(course(t))
        row += [course(t + j) - course(t + j - 1) for j in range(features.ahead + 1)]
    angles = [2 * np.pi * (START + t) / period for period in (features.day, 7 * features.day)]
    return np.array([*row, *np.sin(angles), *np.cos(angles)])


@pytest.mark.parametrize("ahead", [1, 3, DAY + 2])
def test_a_row_holds_what_its_blocks_say(ahead, rng):
    values = rng.normal(100, 20, 40 * DAY)
    trusted = rng.random(len(values)) < 0.9
    features = Profiles(day=DAY, lags=5, week_lags=3, ahead=ahead)
    past = past_of(values, trusted)
    steps = np.arange(29 * DAY, 40 * DAY - ahead)

    x, complete = features.rows(past, START + steps)

    assert x.shape[1] == features.layout.width == len(features.layout.names)
    for row, t in zip(x, steps, strict=True):
        np.testing.assert_allclose(row, slow_row(values, trusted, t, features), atol=1e-9)
    lags = steps[:, None] - np.arange(1, 6)
    np.testing.assert_array_equal(complete, trusted[lags].all(axis=1))


def test_in_the_first_week_days_stand_for_weeks():
    values = np.arange(3.0 * DAY)
    features = Profiles(day=DAY, lags=2, week_lags=2)

    x, complete = features.rows(past_of(values), np.array([START + 2 * DAY + 3]))

    assert complete.all()
    blocks = dict(zip(features.layout.names, x[0], strict=True))
    assert blocks["week profile 1"] == blocks["day profile 1"] == np.mean([3.0, DAY + 3.0])


def test_no_row_sees_its_own_value_or_later(rng):
    values = rng.normal(size=30 * DAY)
    changed = values.copy()
    changed[20 * DAY :] += 100
    steps = START + np.arange(10 * DAY, 20 * DAY + 1)

    for features in (
        Profiles(day=DAY, lags=4),
        Profiles(day=DAY, lags=4, ahead=2 * DAY),
        Features(lags=4, seasonal=(DAY,), calendar=(DAY,)),
    ):
        before, _ = features.rows(past_of(values), steps)
        after, _ = features.rows(past_of(changed), steps)
        np.testing.assert_array_equal(before, after)


def test_batch_and_stream_make_the_same_rows(rng):
    values = rng.normal(100, 20, 30 * DAY)
    features = Profiles(day=DAY, lags=4)

    at_once, _ = features.rows(past_of(values), START + np.arange(29 * DAY, 30 * DAY))
    one_by_one = [
        features.rows(past_of(values[:t]), np.array([START + t]))[0][0]
        for t in range(29 * DAY, 30 * DAY)
    ]

    np.testing.assert_allclose(at_once, one_by_one)


def test_rows_of_a_timeline_are_those_of_the_whole_series(rng):
    values = rng.normal(100, 20, 10 * DAY)
    features = Features(lags=3, seasonal=(DAY, 2 * DAY), calendar=(DAY,))
    whole = features.samples(values, horizon=2, start=START)

    rows = samples_at(features, past_of(values), whole.t.astype(int), horizon=2)

    np.testing.assert_allclose(rows.x, whole.x)
    np.testing.assert_array_equal(rows.y, whole.y)


def test_only_rows_that_a_step_completes_are_returned(rng):
    values = rng.normal(100, 20, 12 * DAY)
    features = Features(lags=3, seasonal=(DAY,))

    rows = samples_reading(features, past_of(values), START + 5 * DAY, horizon=2)

    expected = [-1, 0, 1, 2, 3, DAY]
    assert (rows.t - START - 5 * DAY).astype(int).tolist() == expected


@pytest.mark.parametrize("name", ["day", "lags", "week_lags", "days", "weeks", "ahead"])
def test_counts_are_counts(name):
    with pytest.raises(
        InvalidInputError, match=f"{name} must be a whole number of at least 1, got 0"
    ):
        Profiles(**{"day": DAY, name: 0})
