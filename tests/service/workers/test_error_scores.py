"""Errors by hour and day, and the figures of the last day and of four weeks."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge_service.plan import DAY, HOUR, MINUTE
from streamridge_service.workers.error_scores import (
    LAST_DAY,
    USUAL,
    ErrorHistory,
    ErrorSums,
    Scores,
    anomaly_score,
)

START = 20_000 * DAY
waits = st.integers(1, 3 * DAY // MINUTE).map(lambda minutes: minutes * MINUTE)
errors = st.lists(st.tuples(waits, st.floats(-1e6, 1e6), st.booleans()), min_size=1, max_size=80)


def mean_square(rows):
    return sum(error * error for _, error, _ in rows) / len(rows)


@given(errors)
def test_scores_are_means_over_the_hours_and_days_of_their_names(rows):
    history, time, known = ErrorHistory(), START, []
    for wait, error, outside in rows:
        time += wait
        known.append((time, error, outside))
        history = history.after(time, error, outside=outside)

    day = [row for row in known if time // HOUR - row[0] // HOUR < LAST_DAY]
    month = [row for row in known if time // DAY - row[0] // DAY < USUAL]
    scores = history.scores
    assert scores.count == len(month)
    assert scores.error == pytest.approx(sqrt(mean_square(day)))
    assert scores.usual == pytest.approx(sqrt(mean_square(month)))
    assert scores.outside == pytest.approx(sum(outside for *_, outside in day) / len(day))


def test_sums_never_grow_beyond_their_buckets():
    sums = ErrorSums()

    for bucket in range(100):
        sums = sums.after(bucket, 1.0, outside=False, most=24)

    assert len(sums.packed) == len(ErrorSums().after(0, 1.0, outside=False, most=24).packed) * 24
    assert sums.total(24) == (24, 0, 24.0)


@pytest.mark.parametrize(("last", "trend"), [(2.0, "up"), (0.5, "down"), (1.0, "flat")])
def test_a_trend_compares_the_last_day_with_three_days(last, trend):
    history = ErrorHistory()

    for hour in range(72):
        error = last if hour >= 48 else 1.0
        history = history.after(START + hour * HOUR, error, outside=False)

    assert history.scores.trend == trend


def test_without_a_reading_in_the_last_day_only_the_usual_error_is_known():
    scores = Scores(count=300, error=2.0, usual=4.0, outside=0.1, trend="up")

    assert scores.ratio == 0.5
    assert scores.without_last_day == Scores(count=300, usual=4.0)
    assert scores.without_last_day.ratio is None


@pytest.mark.parametrize(
    ("value", "score"), [(10.0, 0.0), (12.0, 1.0), (16.0, 3.0), (9.0, 0.25), (2.0, 2.0)]
)
def test_an_anomaly_score_is_a_distance_in_units_of_the_band(value, score):
    assert anomaly_score(value, 10.0, 6.0, 12.0) == score


def test_a_band_without_width_gives_no_score_except_at_the_forecast():
    assert anomaly_score(11.0, 10.0, 6.0, 10.0) is None
    assert anomaly_score(10.0, 10.0, 10.0, 10.0) == 0.0
