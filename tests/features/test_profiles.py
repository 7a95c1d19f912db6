"""Rows of a timeline, compared with slow independent ones."""

from datetime import timedelta

import numpy as np
import pytest

from streamridge import Features, InvalidInputError, Profiles
from streamridge.features.base import Past, samples_at
from streamridge.features.seasons import Season
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock
from streamridge.series.zones import parse_zone
from tests.support.features import profiles

DAY = 8
START = 5000


def past_of(values, trusted=None, zone=None, capacity=None):
    timeline = Timeline()
    timeline.start_at(START)
    trusted = np.ones(len(values), bool) if trusted is None else trusted
    for value, is_trusted in zip(values, trusted, strict=True):
        timeline.push(value, read=True, trusted=bool(is_trusted))
    if capacity is not None:
        timeline.forget_before(timeline.newest - capacity + 1)
    return Past(timeline, Clock(timedelta(hours=24 / DAY), zone=parse_zone(zone)))


def slow_mean(values, trusted, t, season, now):
    """Return the mean of the readings whole seasons before t and their neighbours, or None."""
    at = [
        (t - round(season.period * k) + season.apart * j, np.exp(-season.forgetting * (k - 1)))
        for k in range(1, season.count + 1)
        for j in range(-season.beside, season.beside + 1)
    ]
    seen = [(values[s], weight) for s, weight in at if 0 <= s < now and trusted[s]]
    known, weights = zip(*seen, strict=True) if seen else ((), ())
    return np.average(known, weights=weights) if seen else None


def slow_course(values, trusted, t, seasons, now):
    """Return the typical value of the last season, or else of the season before it."""
    found = slow_mean(values, trusted, t, seasons[-1], now)
    return slow_course(values, trusted, t, seasons[:-1], now) if found is None else found


def slow_row(values, trusted, t, features):
    row = [values[t - 1]]
    for i, season in enumerate(features.seasons):

        def course(s, upto=features.seasons[: i + 1]):
            return slow_course(values, trusted, s, upto, t)

        row += [values[t - k] - course(t - k) for k in range(1, season.lags + 1)]
        row.append(course(t))
        row += [course(t + j) - course(t + j - 1) for j in range(features.ahead + 1)]
    angles = [2 * np.pi * (START + t) / season.period for season in features.seasons]
    return np.array([*row, *np.sin(angles), *np.cos(angles)])


@pytest.mark.parametrize("forgetting", [0.0, 0.4])
@pytest.mark.parametrize("ahead", [1, 3, DAY + 2])
def test_a_row_holds_the_values_its_blocks_name(ahead, forgetting, rng):
    values = rng.normal(100, 20, 40 * DAY)
    trusted = rng.random(len(values)) < 0.9
    features = profiles(DAY, lags=5, week_lags=3, ahead=ahead, forgetting=forgetting)
    past = past_of(values, trusted)
    steps = np.arange(29 * DAY, 40 * DAY - ahead)

    x, complete = features.rows(past, START + steps)

    assert x.shape[1] == features.layout.width == len(features.layout.names)
    for row, t in zip(x, steps, strict=True):
        np.testing.assert_allclose(row, slow_row(values, trusted, t, features), atol=1e-9)
    lags = steps[:, None] - np.arange(1, 6)
    np.testing.assert_array_equal(complete, trusted[lags].all(axis=1))


@pytest.mark.parametrize(
    "seasons",
    [
        (Season("day", 20 / 3, count=5, lags=4),),
        (Season("day", DAY, lags=2), Season("year", 61.25, count=3, lags=1, beside=2, apart=3)),
        (Season("a", 5, lags=2), Season("b", 11.5, lags=3), Season("c", 40, lags=1)),
    ],
    ids=["a fraction", "with days beside", "three"],
)
def test_a_row_holds_any_seasons(seasons, rng):
    values = rng.normal(100, 20, 250)
    trusted = rng.random(len(values)) < 0.9
    features = Profiles(seasons, ahead=2)
    steps = np.arange(20, 248)

    x, complete = features.rows(past_of(values, trusted), START + steps)

    assert complete.sum() > 100
    assert x.shape[1] == features.layout.width == len(features.layout.names)
    for row, t in zip(x[complete], steps[complete], strict=True):
        np.testing.assert_allclose(row, slow_row(values, trusted, t, features), atol=1e-9)


def test_without_seasons_a_row_holds_the_latest_changes():
    features = Profiles((), lags=3)

    x, complete = features.rows(past_of(np.arange(9.0) ** 2), np.array([START + 3, START + 9]))

    assert features.layout.blocks == (("latest", 1), ("changes", 3))
    assert features.reach == 4
    assert x[1].tolist() == [64.0, 15.0, 13.0, 11.0]
    assert complete.tolist() == [False, True]


def test_neighbouring_steps_reach_less_than_a_season():
    with pytest.raises(InvalidInputError, match="beside must reach less than a season, got 3"):
        Season("day", 6, beside=3, apart=2)


def test_in_the_first_week_the_daily_profile_replaces_the_weekly_one():
    values = np.arange(3.0 * DAY)
    features = profiles(DAY, lags=2, week_lags=2)

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
        profiles(DAY, lags=4),
        profiles(DAY, lags=4, ahead=2 * DAY),
        Features(lags=4, seasonal=(DAY,), calendar=(DAY,)),
    ):
        before, _ = features.rows(past_of(values), steps)
        after, _ = features.rows(past_of(changed), steps)
        np.testing.assert_array_equal(before, after)


def test_batch_and_stream_give_the_same_rows(rng):
    values = rng.normal(100, 20, 30 * DAY)
    features = profiles(DAY, lags=4)

    at_once, _ = features.rows(past_of(values), START + np.arange(29 * DAY, 30 * DAY))
    one_by_one = [
        features.rows(past_of(values[:t]), np.array([START + t]))[0][0]
        for t in range(29 * DAY, 30 * DAY)
    ]

    np.testing.assert_allclose(at_once, one_by_one)


def test_rows_of_a_timeline_equal_rows_of_the_whole_series(rng):
    values = rng.normal(100, 20, 10 * DAY)
    features = Features(lags=3, seasonal=(DAY, 2 * DAY), calendar=(DAY,))
    whole = features.samples(values, horizon=2, start=START)

    rows = samples_at(features, past_of(values), whole.t.astype(int), horizon=2)

    np.testing.assert_allclose(rows.x, whole.x)
    np.testing.assert_array_equal(rows.y, whole.y)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("day", r"period must be positive, got 0\.0"),
        ("lags", "lags must be a whole number of at least 1, got 0"),
        ("week_lags", "lags must be a whole number of at least 1, got 0"),
        ("days", "count must be a whole number of at least 1, got 0"),
        ("weeks", "count must be a whole number of at least 1, got 0"),
        ("ahead", "ahead must be a whole number of at least 1, got 0"),
    ],
)
def test_counts_must_be_positive_whole_numbers(name, message):
    with pytest.raises(InvalidInputError, match=message):
        profiles(**{name: 0})
