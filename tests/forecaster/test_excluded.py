"""Spans that are excluded: forecast through, and learned nothing from."""

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError
from tests.support.forecasters import DAY, HOUR, START, daily, hours, live, same, small
from tests.support.tiers import each_horizon

CLOSURE = range(5 * DAY, 7 * DAY)


def closed(values):
    """Return readings that fall to a tenth while a road is closed."""
    values = values.copy()
    values[CLOSURE.start : CLOSURE.stop] /= 10
    return values


def missing(values):
    """Return readings that are missing while a road is closed."""
    values = values.copy()
    values[CLOSURE.start : CLOSURE.stop] = np.nan
    return values


def exclude_closure(forecaster):
    forecaster.exclude(START + CLOSURE.start * HOUR, START + (CLOSURE.stop - 1) * HOUR)


@each_horizon(1, 3)
def test_a_span_excluded_beforehand_leaves_no_trace(horizon):
    values = daily(10 * DAY)
    excluded, lacking = small(horizon=horizon), small(horizon=horizon)
    exclude_closure(excluded)

    for one, other in zip(
        live(excluded, closed(values)), live(lacking, missing(values)), strict=True
    ):
        same(one, other)

    assert excluded.hyperparameters == lacking.hyperparameters
    assert excluded.counts.pop("excluded") == len(CLOSURE)


@each_horizon(1, 3)
def test_an_excluded_week_is_as_if_nothing_had_come_at_all(horizon):
    values, week = daily(18 * DAY), range(6 * DAY, 13 * DAY)
    excluded = small(horizon=horizon)
    live(excluded, values[: week.start])
    lacking = Forecaster.from_bytes(excluded.to_bytes())
    excluded.exclude(START + week.start * HOUR, START + (week.stop - 1) * HOUR)
    live(excluded, values[week.start : week.stop], week.start)

    later = values[week.stop :]
    after, without = live(excluded, later, week.stop), live(lacking, later, week.stop)

    for one, other in zip(after[1:], without[1:], strict=True):
        same(one, other)
    assert excluded.hyperparameters == lacking.hyperparameters


def test_a_span_excluded_afterwards_leaves_the_training_set_at_the_next_refit():
    forecaster = small()
    live(forecaster, closed(daily(9 * DAY)))
    first = forecaster._history.clock.known.steps(np.array([START]))[0]
    lags = forecaster.settings.preset.features.lags
    reading_it = np.arange(CLOSURE.start, CLOSURE.stop + lags) + first

    exclude_closure(forecaster)

    learner = forecaster._model
    assert np.isin(learner.training.t, reading_it).any()
    forecaster.refit()
    assert not np.isin(learner.training.t, reading_it).any()


@each_horizon(1, 3)
def test_when_all_readings_are_excluded_the_fit_in_force_stays(horizon):
    forecaster = small(horizon=horizon)
    values = daily(10 * DAY)
    live(forecaster, values[: 6 * DAY])
    before = forecaster.predict()

    forecaster.exclude(START, START + 6 * DAY * HOUR)
    forecaster.refit()

    assert forecaster.counts["failed_refits"] == 1
    assert forecaster.predict().source == before.source == "model"
    later = live(forecaster, values[6 * DAY :], 6 * DAY)
    assert np.isfinite([forecast.value for forecast in later]).all()
    assert forecaster.counts["fits"] > 4


def test_until_that_refit_the_fit_in_force_does_not_change(tmp_path):
    forecaster = small()
    live(forecaster, closed(daily(8 * DAY)))
    trained = forecaster._model.training

    exclude_closure(forecaster)
    forecaster.workspace = None

    np.testing.assert_array_equal(forecaster._model.training.x, trained.x)


def test_a_late_reading_of_an_excluded_step_is_not_taken():
    values = daily(5 * DAY)
    values[40] = np.nan
    forecaster = small()
    live(forecaster, values)
    forecaster.exclude(START + 40 * HOUR, START + 40 * HOUR)
    before = forecaster.predict()

    forecaster.observe(START + 40 * HOUR, 77.0)

    same(forecaster.predict(), before)
    assert forecaster.counts["excluded"] == 1


def test_spans_are_saved(tmp_path):
    forecaster = small()
    exclude_closure(forecaster)
    forecaster.save(tmp_path / "f.sr")

    loaded = Forecaster.load(tmp_path / "f.sr")

    values = closed(daily(9 * DAY))
    for one, other in zip(live(forecaster, values), live(loaded, values), strict=True):
        same(one, other)
    assert loaded.counts["excluded"] == len(CLOSURE)


def test_local_times_are_those_of_the_zone():
    forecaster = small(tz="Europe/Berlin")
    forecaster.exclude("2021-06-13T02:00", "2021-06-13T03:00")  # in UTC from midnight

    for time in hours(0, 4):
        forecaster.observe(f"{time}+00:00", 5.0)

    assert forecaster.counts["excluded"] == 2


def test_every_span_counts():
    forecaster = small()
    for step in (1, 3):
        forecaster.exclude(START + step * HOUR, START + step * HOUR)

    live(forecaster, daily(5))

    assert forecaster.counts["excluded"] == 2


def test_a_local_time_that_occurs_twice_is_excluded_both_times():
    forecaster = small(tz="Europe/Berlin")
    forecaster.exclude("2021-10-31T02:00", "2021-10-31T02:00")  # in UTC at midnight and at one

    for hour in ("30T23", "31T00", "31T01", "31T02"):
        forecaster.observe(f"2021-10-{hour}:00+00:00", 5.0)

    assert forecaster.counts["excluded"] == 2


BAD = {
    "end first": (("2021-06-14", "2021-06-13"), "end must not be before start, got 2021-06-14 to"),
    "no time": (("yesterday", "2021-06-13"), "time must be an ISO 8601 time"),
    "too early": (("0966-10-14", "2021-06-13"), "time must be between the years 1000 and 2500"),
    "an offset and none": (
        ("2021-06-13T00:00+02:00", "2021-06-14"),
        "start and end must both have an offset or none",
    ),
    "an offset after times without": (
        ("2021-06-13T00:00+02:00", "2021-06-14T00:00+02:00"),
        "time must have no offset, as the times before it",
    ),
}


@pytest.mark.parametrize(("span", "message"), BAD.values(), ids=BAD)
def test_a_bad_span_is_refused_and_nothing_changes(span, message):
    forecaster = small()
    if "before it" in message:
        live(forecaster, daily(DAY))
    before = forecaster.to_bytes()

    with pytest.raises(InvalidInputError, match=message):
        forecaster.exclude(*span)

    assert forecaster.to_bytes() == before


def test_times_must_go_on_as_a_span_was_given():
    forecaster = small()
    forecaster.exclude("2021-06-13T00:00+02:00", "2021-06-14T00:00+02:00")

    with pytest.raises(InvalidInputError, match="time must have an offset, as the times before"):
        forecaster.observe("2021-06-13T00:00", 1.0)


def test_readings_excluded_before_the_first_fit_do_not_set_the_plausible_range():
    values = daily(5 * DAY)
    values[20:60] = 5000.0
    values[64] = 900.0
    lacked = values.copy()
    lacked[20:60] = np.nan
    excluded, lacking = small(), small()
    live(excluded, values[:66])
    live(lacking, lacked[:66])

    excluded.exclude(START + 20 * HOUR, START + 59 * HOUR)

    live(excluded, values[66:], 66)
    live(lacking, lacked[66:], 66)
    judges = [each._history.plausibility for each in (excluded, lacking)]
    assert judges[0].high == judges[1].high < 900
