"""Rows computed in bulk equal rows computed one by one, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamridge import Features, Profiles
from streamridge.features.base import Past, input_at
from streamridge.features.seasons import Season, calendar_at, calendar_of
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock
from streamridge.series.holidays import Holidays
from tests.support.features import AUTUMN, HOURLY, SPRING, past_of, profiles


def assert_one_by_one(features, past, steps):
    x, complete = features.rows(past, steps)

    for row, is_complete, step in zip(x, complete, steps, strict=True):
        alone, alone_complete = features.rows(past, np.array([step]))
        assert alone[0].tobytes() == row.tobytes(), step
        assert alone_complete[0] == is_complete
        assert input_at(features, past, int(step)).x.tobytes() == row.tobytes(), step


@pytest.mark.parametrize(
    "features",
    [
        profiles(24, lags=16),
        profiles(24, lags=3, week_lags=5, ahead=4, days=10, weeks=9),
        profiles(24, lags=2, ahead=30),
        profiles(24, lags=3, ahead=2, forgetting=0.3),
        profiles(1, lags=2, week_lags=1, ahead=3),
        Profiles((), lags=4),
        Profiles((Season("odd", 17.3, 5, 3), Season("long", 200, 3, 2, beside=4, apart=5))),
        Features(lags=5, seasonal=(24, 168), calendar=(24, 168, 205.7, np.pi)),
    ],
    ids=[
        "usual",
        "many days",
        "a day ahead and more",
        "forgetting",
        "steps of a day",
        "none",
        "any",
        "lags",
    ],
)
@pytest.mark.parametrize(
    ("zone", "start"), [(None, 0), ("Europe/Berlin", SPRING), ("Europe/Berlin", AUTUMN)]
)
def test_rows_in_bulk_equal_single_rows(features, zone, start):
    past = past_of(1, start=start, zone=zone)
    newest = past.timeline.newest
    steps = np.concatenate(
        [np.arange(newest - 1250, newest - 1190), np.arange(newest - 60, newest)]
    )

    assert_one_by_one(features, past, steps)


@pytest.mark.parametrize("start", [SPRING, AUTUMN])
def test_rows_in_bulk_equal_single_rows_if_profiles_reach_ahead(start):
    """The day after clocks went forward, a day ago is 23 hours ago."""
    past = past_of(5, start=start, zone="Europe/Berlin")

    assert_one_by_one(profiles(24, lags=2, ahead=23), past, past.timeline.newest - np.arange(260))


@pytest.mark.parametrize("ahead", [1, 30])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_rows_in_bulk_equal_single_rows_around_holidays(zone, ahead):
    days = np.arange("2021-03-03", "2021-04-05", 5, dtype="M8[D]")
    past = past_of(4, zone=zone, holidays=Holidays(tuple(map(str, days))))

    assert_one_by_one(profiles(24, lags=4, ahead=ahead), past, past.timeline.newest - np.arange(80))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 99),
    back=st.lists(st.integers(-2, 1299), min_size=1, max_size=40),
    ahead=st.sampled_from([1, 4]),
    zone=st.sampled_from([None, "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"]),
)
def test_rows_in_bulk_equal_single_rows_at_any_steps(seed, back, ahead, zone):
    features = profiles(24, lags=6, ahead=ahead, extras=("rain", "sun"))
    past = past_of(seed, zone=zone, extras=2)

    assert_one_by_one(features, past, past.timeline.newest - np.array(back))


@pytest.mark.parametrize("extras_ahead", [1, 3])
def test_rows_of_long_horizons_are_made_in_parts_that_fit_into_memory(extras_ahead, monkeypatch):
    monkeypatch.setattr("streamridge.features.profiles.MOST_VALUES", 5000)
    features = replace(profiles(24, lags=2, ahead=30, extras=("rain",)), extras_ahead=extras_ahead)
    past = past_of(9, extras=1)
    steps = past.timeline.newest - np.arange(60)[::-1]
    sizes = []
    seen = Profiles._seen
    monkeypatch.setattr(
        Profiles, "_seen", lambda *given: sizes.append(seen(*given)[0].size) or seen(*given)
    )

    assert_one_by_one(features, past, steps)

    assert len(sizes) > 60 + 5
    assert max(sizes) <= 5000


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("since", [2, 300, 900])
def test_rows_in_bulk_equal_single_rows_around_a_long_gap(zone, since):
    features, past = profiles(24, lags=6, ahead=2, forgetting=0.2), past_of(6, zone=zone)
    past.timeline.append_gap(3000, 24, needed=400)
    rng = np.random.default_rng(since)
    for value in rng.normal(100, 30, since):
        past.timeline.push(value, read=True, trusted=rng.random() < 0.98)

    steps = past.timeline.newest + 1 - np.array([0, 1, 5, 250, 420, 700, 890, 1300, 4000, 4300])
    assert_one_by_one(features, past, steps)


def test_a_distrusted_reading_changes_the_row():
    timeline = Timeline()
    for value in np.random.default_rng(7).normal(100, 30, 1300):
        timeline.push(value, read=True, trusted=True)
    features = profiles(24, lags=6, forgetting=0.2)
    past = Past(timeline, Clock(HOURLY))
    steps = np.arange(timeline.newest - 5, timeline.newest + 2)

    assert_one_by_one(features, past, steps)
    whole = features.rows(past, steps)[0]
    timeline.distrust(np.array([timeline.newest - 24]))
    assert_one_by_one(features, past, steps)
    assert not np.array_equal(features.rows(past, steps)[0], whole)


def test_other_rates_of_forgetting_change_a_single_row():
    timeline = Timeline()
    for value in np.random.default_rng(8).normal(100, 30, 1300):
        timeline.push(value, read=True, trusted=True)
    past, features = Past(timeline, Clock(HOURLY)), profiles(24, lags=6, forgetting=0.2)
    step = np.array([timeline.newest + 1])

    assert_one_by_one(features, past, step)
    faster = features.at(np.full(len(features.space.names), 1.5))

    assert_one_by_one(faster, past, step)
    assert not np.array_equal(faster.rows(past, step)[0], features.rows(past, step)[0])


def test_rows_around_a_gap_of_years_take_little_memory():
    features, past = profiles(24), past_of(2)
    steps = np.array([past.timeline.newest - 10**12, past.timeline.newest])

    x, complete = features.rows(past, steps)

    assert x.shape == (2, features.layout.width)
    assert not complete[0]


def test_without_steps_there_are_no_rows():
    for zone in (None, "Europe/Berlin"):
        x, complete = profiles(24).rows(past_of(3, zone=zone), np.array([], dtype=int))

        assert x.shape == (0, profiles(24).layout.width)
        assert complete.shape == (0,)


@pytest.mark.parametrize("period", [96, 7 * 288, 1440 / 7, 365.25, 100 * np.pi])
def test_a_calendar_coordinate_depends_only_on_its_step(period):
    steps = 1_700_000 + np.arange(1003)

    at_once = calendar_at(steps, (period,))

    assert at_once.tobytes() == b"".join(
        calendar_at(s, (period,)).tobytes() for s in steps[:, None]
    )
    assert at_once.tolist() == [calendar_of(step, (period,)) for step in steps.tolist()]
    turns = steps % period / period
    wanted = np.column_stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])
    np.testing.assert_allclose(at_once, wanted, atol=1e-9)
