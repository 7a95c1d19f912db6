"""Simple forecasts from earlier days and weeks, compared with lists of readings."""

from datetime import timedelta

import numpy as np
import pytest

from streamridge.features.base import Past
from streamridge.features.simple_forecasts import FURTHER, LEAST_WEEKS, SimpleForecasts
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock, IndexClock
from streamridge.series.zones import parse_zone
from tests.support.plain_past import PlainPast
from tests.support.plain_pattern import simple_forecasts

DAY, WEEK, COUNT = 30, 210, 3


def pasts(values, trusted):
    """Return a past, and the same on lists."""
    timeline, plain = Timeline(), PlainPast(None, (), COUNT, 0, 0)
    timeline.start_at(0)
    for value, is_trusted in zip(values.tolist(), trusted.tolist(), strict=True):
        for each in (timeline, plain):
            each.push(value, read=is_trusted, trusted=is_trusted)
    return Past(timeline, IndexClock(1)), plain


def plain_rows(plain, step, seasons=(DAY, WEEK)):
    rows = [simple_forecasts(plain, step + h, *seasons) for h in range(COUNT)]
    return np.array([[np.nan] * 3 if row is None else row for row in rows])


@pytest.mark.parametrize("seasons", [(DAY, WEEK), (4, 22), (6.5, 45.5), (DAY, DAY)])
def test_every_step_equals_lists_of_readings(rng, seasons):
    count = 12 * round(seasons[1])
    values, trusted = rng.normal(100, 10, count), rng.random(count) > 0.3
    trusted[-5 * round(seasons[0]) :] = False  # days without a reading
    past, plain = pasts(values[: count // 4], trusted[: count // 4])
    simple, unknown = SimpleForecasts(seasons, COUNT), 0

    for step in range(count // 4, count):
        wanted = plain_rows(plain, step, seasons)
        np.testing.assert_allclose(simple.ahead(past, step), wanted, rtol=1e-12)
        unknown += np.isnan(wanted).any()
        for each in (past.timeline, plain):
            each.push(values[step], read=bool(trusted[step]), trusted=bool(trusted[step]))

    assert 0 < unknown < count / 2


def test_forecasts_computed_in_advance_have_the_same_bits(rng):
    past, _ = pasts(rng.normal(size=10 * WEEK), rng.random(10 * WEEK) > 0.1)
    kept, step = SimpleForecasts((DAY, WEEK), COUNT), 10 * WEEK

    for at in range(step, step + 2 * FURTHER):
        alone = SimpleForecasts((DAY, WEEK), COUNT).ahead(past, at)
        assert kept.ahead(past, at).tobytes() == alone.tobytes()
        past.timeline.push(1e9, read=True, trusted=True)


CHANGES = {
    "late": lambda timeline, step: timeline.correct(step - DAY + 2, 1e3),
    "distrusted": lambda timeline, step: timeline.distrust(np.array([step - DAY + 1])),
    "excluded": lambda timeline, step: timeline.mark_missing(np.arange(step - WEEK, step)),
    "forgotten": lambda timeline, step: timeline.forget_before(step - 4 * WEEK),
    "long silence": lambda timeline, step: timeline.cut(step - 3 * WEEK, step - 2 * WEEK),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_of_the_past_are_seen_at_once(rng, change):
    trusted = np.ones(10 * WEEK, dtype=bool)
    trusted[-DAY + 2] = False
    past, _ = pasts(rng.normal(size=10 * WEEK), trusted)
    simple, step = SimpleForecasts((DAY, WEEK), COUNT), 10 * WEEK
    before = simple.ahead(past, step + 1).copy()

    change(past.timeline, step)

    after = simple.ahead(past, step + 1)
    fresh = SimpleForecasts((DAY, WEEK), COUNT).ahead(past, step + 1)
    np.testing.assert_array_equal(after, fresh)
    assert not np.array_equal(before, after, equal_nan=True)


def test_too_few_weeks_are_no_forecast(rng):
    few, enough = (
        pasts(rng.normal(size=count), np.ones(count, dtype=bool))[0]
        for count in (LEAST_WEEKS * WEEK - COUNT, LEAST_WEEKS * WEEK)
    )

    for past, is_known in ((few, False), (enough, True)):
        step = past.timeline.newest + 1
        found = SimpleForecasts((DAY, WEEK), COUNT).ahead(past, step)
        assert np.isfinite(found).all() == is_known
        assert np.isnan(found).all() != is_known


def test_days_and_weeks_are_local_ones():
    clock = Clock(timedelta(hours=1), zone=parse_zone("Europe/Berlin"))
    start = int(np.datetime64("2021-01-15T00", "h").astype(int))
    steps = start + np.arange(24 * 80)  # beyond 2021-03-28, when clocks go forward
    local = (steps + clock.shifts(steps)) % 24
    simple, timeline = SimpleForecasts((24.0, 168.0), COUNT), Timeline()
    timeline.start_at(start)

    for at, step in enumerate(steps[:-COUNT].tolist()):
        if at >= 24 * 40:
            hours = local[at : at + COUNT]
            found = simple.ahead(Past(timeline, clock), step)[hours != 2]  # an hour that is skipped
            np.testing.assert_array_equal(found.T, [hours[hours != 2]] * 3)
        timeline.push(float(local[at]), read=True, trusted=True)
