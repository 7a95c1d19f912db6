"""Known bounds: nothing is forecast beyond them, and nothing beyond them is believed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamridge import Forecaster, InvalidInputError, replay
from tests.support.forecasters import DAY, HOUR, START, daily, live, same, small
from tests.support.series import frame


def tiny(**choices):
    """Return a forecaster that fits soon and often."""
    return small(**{"lags": 3, "train_size": 60, "warmup": 2 * DAY, **choices})


def walk(forecaster, values, first=0):
    """Return all forecasts, each with several levels, on the way through readings."""
    forecasts = []
    for i, value in enumerate(values, start=first):
        if forecaster.next_time is not None:
            forecasts += [forecaster.predict(), forecaster.predict(level=(0.999, 0.3))]
        forecaster.observe(START + i * HOUR, value)
    return forecasts


def assert_within(forecasts, lower, upper):
    for forecast in forecasts:
        for part in (forecast.value, forecast.lower, forecast.upper):
            assert np.isfinite(part).all()
            assert (part >= lower).all()
            assert (part <= upper).all()


def nasty(seed, count, lower, upper):
    """Return readings that touch their bounds, break them, stop, and stick."""
    rng = np.random.default_rng(seed)
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    wave = middle + 1.2 * half * np.sin(2 * np.pi * np.arange(count) / DAY)
    values = np.clip(wave + 0.3 * half * rng.standard_normal(count), lower, upper)
    values[rng.random(count) < 0.05] = np.nan
    values[rng.random(count) < 0.03] = upper + 10.0 ** rng.integers(-3, 9)
    values[rng.random(count) < 0.03] = lower - 10.0 ** rng.integers(-3, 9)
    stop = rng.integers(0, count)
    values[stop : stop + 30] = rng.choice([lower, upper, np.nan])
    return values


class TestForecasts:
    @settings(max_examples=settings.default.max_examples // 8)
    @given(
        st.integers(0, 2**32 - 1),
        st.sampled_from([(0.0, 100.0), (-5.0, -4.0), (1e6, 1e6 + 1)]),
        st.booleans(),
        st.sampled_from([0.9, (0.5, 0.99)]),
    )
    def test_they_hold_for_all_that_is_forecast_and_filled(self, seed, bounds, guard, level):
        forecaster = tiny(bounds=bounds, guard=guard, level=level, horizon=3)

        forecasts = walk(forecaster, nasty(seed, 5 * DAY, *bounds))

        assert_within(forecasts, *bounds)
        timeline = forecaster._history.timeline
        past = timeline.values(np.arange(timeline.oldest, timeline.newest + 1))
        assert ((past >= bounds[0]) & (past <= bounds[1])).all()

    @pytest.mark.parametrize(("bounds", "value"), [((0, None), 0.0), ((None, 7.5), 7.5)])
    def test_a_series_that_never_leaves_its_bound(self, bounds, value):
        forecasts = walk(tiny(bounds=bounds, horizon=2), np.full(4 * DAY, value))

        lower, upper = bounds
        assert_within(
            forecasts, -np.inf if lower is None else lower, np.inf if upper is None else upper
        )

    def test_they_hold_through_a_long_silence(self):
        forecaster = tiny(bounds=(80, 120), horizon=2)
        walk(forecaster, np.clip(daily(4 * DAY), 80, 120))

        forecaster.observe(START + 20 * DAY * HOUR, None)

        assert_within([forecaster.predict(level=(0.9, 0.999))], 80, 120)

    def test_far_bounds_change_nothing(self):
        values = daily(5 * DAY, level=0.0)

        with_bounds = live(tiny(bounds=(-1e9, 1e9)), values)

        for one, other in zip(with_bounds, live(tiny(), values), strict=True):
            same(one, other)

    def test_what_was_clipped_before_is_still_clipped(self):
        forecaster = tiny(bounds=(-50, None))
        values = np.abs(daily(4 * DAY, level=0.0))

        forecasts = live(forecaster, values)

        # No recent reading was below zero, so neither is a forecast or a band.
        assert_within(forecasts[2 * DAY + 1 :], 0.0, np.inf)


class TestReadingsBeyond:
    @pytest.mark.parametrize("guard", [True, False])
    def test_they_are_as_good_as_none_but_counted(self, guard):
        values = daily(6 * DAY)
        at = [10, 11, 50, 80, *range(100, 115)]  # before the first fit, after it, and many in a row
        broken, missing = values.copy(), values.copy()
        broken[at], missing[at] = np.resize([-0.001, 1e9, 250.1, -999.0], len(at)), np.nan
        one, other = (tiny(bounds=(0, 250), guard=guard) for _ in range(2))

        for mine, yours in zip(live(one, broken), live(other, missing), strict=True):
            same(mine, yours)

        assert one.counts["implausible"] == len(at)
        assert "missing" not in one.counts
        assert other.counts["missing"] == len(at)

    @pytest.mark.parametrize("guard", [True, False])
    @pytest.mark.parametrize("steps", [5, 4 * DAY])
    def test_late_ones_are_dropped_and_counted(self, guard, steps):
        forecaster = tiny(bounds=(0, None), guard=guard)
        values = daily(steps)
        values[-2] = np.nan
        live(forecaster, values)
        before = forecaster.predict()

        forecaster.observe(START + (steps - 2) * HOUR, -3.0)

        same(forecaster.predict(), before)
        assert forecaster.counts["implausible"] == 1
        assert "late" not in forecaster.counts

    def test_a_right_one_that_comes_after_takes_the_place(self):
        forecaster = tiny(bounds=(0, None))
        live(forecaster, [5.0, 6.0, -1.0])

        forecaster.observe(START + 2 * HOUR, 7.0)

        assert forecaster.counts["late"] == 1
        assert forecaster.predict().value == [7.0]

    def test_the_first_one_starts_nothing(self):
        forecaster = tiny(bounds=(0, None))

        forecaster.observe(START, -5.0)

        assert forecaster.next_time is None
        assert forecaster.predict().source == "none"
        assert forecaster.counts == {"readings": 1, "implausible": 1}
        forecaster.observe(START + 3 * HOUR, 7.0)
        assert forecaster.predict().value == [7.0]
        assert "missing" not in forecaster.counts

    def test_what_touches_a_bound_is_believed(self):
        forecaster = tiny(bounds=(0, 10))

        live(forecaster, [0.0, 10.0, 0.0])

        assert "implausible" not in forecaster.counts

    def test_they_are_not_scored(self):
        values = daily(4 * DAY)
        values[3 * DAY + 5] = -998.0

        run = replay(small(bounds=(0, None)), frame(values))

        assert np.isnan(run.actual[5])
        assert run.rmse < 50
        assert (run.record()["missing"], run.counts["implausible"]) == (1, 1)


class TestSettings:
    def test_they_are_saved_and_loaded(self, tmp_path):
        forecaster = tiny(bounds=[0, None])
        live(forecaster, daily(3 * DAY))
        forecaster.save(tmp_path / "f.sr")

        loaded = Forecaster.load(tmp_path / "f.sr")

        assert loaded.settings.bounds == (0.0, None)
        assert loaded.settings == forecaster.settings
        loaded.observe(START + 3 * DAY * HOUR, -5.0)
        assert loaded.counts["implausible"] == 1

    def test_the_papers_model_takes_them_too(self):
        assert Forecaster.paper(bounds=(0, 100)).settings.bounds == (0.0, 100.0)

    @pytest.mark.parametrize(
        ("bounds", "message"),
        [
            (0, r"bounds must be two numbers, or None for either, got 0\. Pass \(0, None\)"),
            ((0,), "bounds must be two numbers"),
            ((0, 1, 2), "bounds must be two numbers"),
            ("01", "bounds must be two numbers"),
            (("0", "1"), "bounds must be a number, got '0'"),
            ((None, None), "bounds must hold at least one number"),
            ((0, np.inf), "bounds must be finite, got inf"),
            ((np.nan, 0), "bounds must be finite, got nan"),
            ((5, 5), r"bounds must have the lower below the upper, got \(5, 5\)"),
            ((5, -5), r"bounds must have the lower below the upper, got \(5, -5\)"),
        ],
    )
    def test_bounds_that_make_no_sense_are_refused(self, bounds, message):
        with pytest.raises(InvalidInputError, match=message):
            Forecaster(bounds=bounds)
