"""Columns of forecasts far ahead, compared with slow independent ones."""

from datetime import timedelta

import numpy as np
import pytest

from streamridge.features.base import Past
from streamridge.features.seasonal_columns import Deviations, SeasonalColumns
from streamridge.features.special_days import SpecialDays
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock
from streamridge.series.holidays import Holidays
from streamridge.series.zones import parse_zone

DAY, WEEK = 8, 56
COLUMNS = SeasonalColumns(float(WEEK), float(DAY))
# A Monday, in steps of three hours.
START = int(np.datetime64("2021-03-01", "h").astype(int)) // 3


def past_of(values, trusted=None, zone=None, holidays=None):
    timeline = Timeline()
    timeline.start_at(START)
    trusted = np.ones(len(values), bool) if trusted is None else trusted
    for value, is_trusted in zip(values, trusted, strict=True):
        timeline.push(value, read=True, trusted=bool(is_trusted))
    holidays = None if holidays is None else Holidays(holidays)
    return Past(timeline, Clock(timedelta(hours=3), zone=parse_zone(zone), holidays=holidays))


def random_values(weeks=10, seed=0):
    return 100 + np.random.default_rng(seed).normal(size=weeks * WEEK).cumsum()


def known_before(values, trusted, origin, step, period, count):
    """Return the last `count` readings whole periods before a step, up to the origin."""
    k = 1
    while step - k * period > origin:
        k += 1
    at = [step - (k + i) * period for i in range(count)]
    return [values[s] if s >= 0 and trusted[s] else np.nan for s in at]


def slow_row(values, trusted, deviations, origin, lead):
    """Return the reference and the columns of one row; steps count from 0."""
    step = origin + lead
    seasons = known_before(values, trusted, origin, step, WEEK, 8)
    days = known_before(values, trusted, origin, step, DAY, 7)
    reference = np.nanmedian(seasons)

    def mean_of(first, end):
        return np.mean(deviations[first:end])

    ago_day, ago_week = (step - period * -(-lead // period) for period in (DAY, WEEK))
    hour, day = mean_of(origin, origin + 1), mean_of(origin + 1 - DAY, origin + 1)
    ahead = (lead - 1) / DAY
    same = [deviations[ago_day - DAY * i] for i in range(7)]
    return reference, [
        *(hour * np.exp(-ahead / fade) for fade in (0.02, 0.08, 0.33, 1.3)),
        *(day * np.exp(-ahead / fade) for fade in (0.33, 1.3, np.inf)),
        mean_of(origin + 1 - WEEK, origin + 1),
        deviations[ago_week],
        np.nanmean(seasons[:4]) - reference,
        seasons[0] - reference if not np.isnan(seasons[0]) else 0.0,
        same[0],
        np.mean(same[:3]),
        np.mean(same),
        mean_of(ago_day - 1, min(ago_day + 1, origin) + 1),
        days[0] - reference if not np.isnan(days[0]) else 0.0,
        np.nanmedian(days[:3]) - reference,
        np.nanmedian(days) - reference,
    ]


@pytest.mark.parametrize("lead", [1, 3, DAY, DAY + 1, 20, WEEK, WEEK + 1])
def test_a_row_equals_the_slow_one(lead):
    values, rng = random_values(), np.random.default_rng(1)
    trusted = rng.random(len(values)) > 0.05
    drawn = rng.normal(size=len(values))
    deviations = Deviations(START + len(values) - 1, drawn, size=0.6)
    origin = len(values) - 1

    rows = COLUMNS.rows(
        past_of(values, trusted),
        deviations,
        SpecialDays(),
        np.array([START + origin]),
        np.array([lead]),
    )

    reference, columns = slow_row(values, trusted, np.clip(drawn, -1.2, 1.2), origin, lead)
    assert rows.reference[0] == pytest.approx(reference, rel=1e-12)
    assert rows.columns[0, : len(columns)] == pytest.approx(columns, rel=1e-9, abs=1e-7)
    assert not rows.columns[0, len(columns) :].any()


def test_a_row_does_not_depend_on_values_after_its_origin():
    values = random_values()
    origins = START + len(values) - 1 - np.arange(3 * DAY)
    leads = 1 + np.arange(3 * DAY)
    drawn = np.random.default_rng(2).normal(size=len(values))
    newest = START + len(values) - 1
    for origin, lead in zip(origins.tolist(), leads.tolist(), strict=True):
        later = np.arange(START, newest + 1) > origin
        poisoned = np.where(later, 1e9, values), np.where(later, 1e9, drawn)

        rows = [
            COLUMNS.rows(
                past_of(each),
                Deviations(newest, deviation, size=0.6),
                SpecialDays(),
                np.array([origin]),
                np.array([lead]),
            )
            for each, deviation in ((values, drawn), poisoned)
        ]

        assert np.array_equal(rows[0].columns, rows[1].columns)
        assert rows[0].reference == rows[1].reference


def test_the_reference_follows_local_time_across_a_change_of_the_clock():
    # A local pattern of three-hour steps; clocks change by an hour, a third of a step, so the
    # steps of an hour are used instead.
    steps = np.arange(10 * 168)
    timeline, clock = Timeline(), Clock(timedelta(hours=1), zone=parse_zone("Europe/Berlin"))
    start = int(np.datetime64("2021-02-01", "h").astype(int))
    timeline.start_at(start)
    local = steps + start + clock.shifts(steps + start)
    for value in (local % 24).tolist():
        timeline.push(float(value), read=True, trusted=True)
    past, newest = Past(timeline, clock), timeline.newest

    reference, _ = SeasonalColumns(168.0, 24.0).reference(
        past, np.full(48, newest), np.arange(1, 49)
    )

    ahead = newest + np.arange(1, 49)
    assert reference.tolist() == ((ahead + clock.shifts(ahead)) % 24).tolist()


def test_a_declared_holiday_is_like_the_last_sundays_and_left_out_of_its_weekday():
    values = np.tile(np.repeat([5.0, 5, 5, 5, 5, 3, 1], DAY), 9)
    holidays = ("2021-04-26", "2021-05-05")  # a Monday in the past, and the next Wednesday
    monday = int((np.datetime64("2021-04-26") - np.datetime64("2021-03-01")).astype(int)) * DAY
    values[monday : monday + DAY] = 1.0
    past, newest = past_of(values, holidays=holidays), START + len(values) - 1
    ahead = np.arange(1, 4 * DAY + 1)

    reference, seasons = COLUMNS.reference(past, np.full(len(ahead), newest), ahead)

    assert reference[:DAY].tolist() == [5.0] * DAY  # Monday
    assert np.isnan(seasons[0, :DAY]).all()
    assert reference[2 * DAY : 3 * DAY].tolist() == [1.0] * DAY  # the holiday on Wednesday


class TestSpecialDays:
    def days(self, changes=None):
        means = np.tile([50.0, 50, 50, 50, 50, 30, 20], 60)
        means = means + np.random.default_rng(0).normal(size=len(means))
        for day, mean in (changes or {}).items():
            means[day] = mean
        special = SpecialDays()
        for day, mean in enumerate(means.tolist()):
            special = special.after(1000 + day, mean)
        return special

    def test_a_special_day_a_year_ago_is_found_on_its_date(self):
        special = self.days({100: 20.0})

        change, strength = special.a_year_ago(np.array([1000 + 99, 1000 + 100]) + 365)

        assert change[1] == pytest.approx(-0.6, abs=0.05)
        assert strength[1] < -10 < -4 < strength[0] < 4

    def test_nothing_is_known_of_days_without_a_year_before(self):
        change, strength = self.days().a_year_ago(np.array([1000 + 20, 10**6]))

        assert not change.any()
        assert not strength.any()

    def test_skipped_days_are_missing(self):
        special = SpecialDays().after(10, 1.0).after(13, 2.0)

        assert np.isnan(special.means[1:3]).all()
        assert special.means[[0, 3]].tolist() == [1.0, 2.0]

    def test_old_days_are_forgotten(self):
        special = self.days()
        for day in range(2000, 2400):
            special = special.after(day, 1.0)

        assert len(special.means) == 477
        assert special.newest == 2399
