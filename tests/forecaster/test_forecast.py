"""Bands of several levels: which are learned, which are derived, and what they leave alone."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamridge import Forecaster, InvalidInputError, StateError, replay
from streamridge.datasets import simulate_roads
from streamridge.files.checkpoint import read_checkpoint, write_checkpoint
from streamridge.forecaster.bands import ConformalBands
from tests.support.forecasters import DAY, HOUR, START, daily, live, same, small
from tests.support.tiers import each_horizon

SHARES = st.floats(1e-6, 1 - 1e-9)


def z(level):
    return NormalDist().inv_cdf((1 + level) / 2)


def troubled(days=7):
    """Return readings with noise, gaps, outliers, a jump and a stuck stretch."""
    values = daily(days * DAY, noise=6.0)
    values[[80, 81, 120, 121, 122]] = np.nan
    values[[90, 100, 131]] += 200, -300, 5e4
    values[140:152] = values[140]
    values[155:] += 60
    return values


def bands_of(forecast):
    """Return the ends of each level's band."""
    lower, upper = (ends.reshape(len(forecast), -1).T for ends in (forecast.lower, forecast.upper))
    return dict(zip(forecast.levels, zip(lower, upper, strict=True), strict=True))


def assert_nested(forecast):
    """Assert that bands hold their forecast, and those of lower levels."""
    ends = bands_of(forecast)
    inner = (forecast.value, forecast.value)
    for level in sorted(ends):
        assert (ends[level][0] <= inner[0]).all()
        assert (ends[level][1] >= inner[1]).all()
        inner = ends[level]


class TestShapes:
    @pytest.mark.parametrize("values", [[], daily(5), daily(4 * DAY)], ids=len)
    def test_several_levels_are_columns_in_the_order_given(self, values):
        forecaster = small(horizon=3, level=(0.95, 0.8))
        live(forecaster, values)

        forecast = forecaster.predict()

        assert forecast.levels == (0.95, 0.8)
        assert forecast.value.shape == (3,)
        assert forecast.lower.shape == forecast.upper.shape == (3, 2)
        assert not len(values) or (forecast.lower[:, 0] < forecast.lower[:, 1]).all()

    @pytest.mark.parametrize("level", [0.8, (0.8,), [0.8], np.array([0.8])], ids=repr)
    @pytest.mark.parametrize("values", [[], daily(4 * DAY)], ids=len)
    def test_one_level_is_no_column(self, level, values):
        forecaster = small(horizon=3, level=level)
        live(forecaster, values)

        for forecast in (forecaster.predict(), forecaster.predict(level=level)):
            assert forecast.levels == (0.8,)
            assert forecast.lower.shape == forecast.upper.shape == (3,)
        assert forecaster.settings.level == 0.8


class TestWhatTheyLeaveAlone:
    @each_horizon(1, 3)
    def test_forecasts_and_the_band_of_90_percent_do_not_depend_on_the_levels(self, horizon):
        values = troubled()
        reference = small(horizon=horizon)
        expected = live(reference, values)

        for level in (0.5, (0.8, 0.95), (0.9, 0.3, 0.99)):
            forecaster = small(horizon=horizon, level=level)
            for time, value, wanted in zip(
                START + np.arange(len(values)) * HOUR, values, expected, strict=True
            ):
                same(forecaster.predict(level=0.9), wanted)
                np.testing.assert_array_equal(forecaster.predict().value, wanted.value)
                forecaster.observe(time, value)
            assert forecaster.counts == reference.counts
            assert forecaster.hyperparameters == reference.hyperparameters

    def test_asking_for_other_levels_changes_nothing(self):
        values = troubled()
        asked, plain = small(), small()

        forecasts = []
        for time, value in zip(START + np.arange(len(values)) * HOUR, values, strict=True):
            asked.predict(level=(0.2, 0.99))
            with pytest.raises(InvalidInputError, match="level must lie between 0 and 1, got 2"):
                asked.predict(level=2)
            forecasts.append(asked.predict())
            asked.observe(time, value)

        for one, other in zip(forecasts, live(plain, values), strict=True):
            same(one, other)

    def test_a_wrong_level_is_refused_before_the_first_reading_too(self):
        with pytest.raises(InvalidInputError, match="level must be one number, or several"):
            small().predict(level=())

    def test_settings_of_one_level_read_as_ever(self):
        described = small().settings.described()

        assert described["level"] == 0.9
        assert "bounds" not in described


class TestNesting:
    @pytest.mark.parametrize("level", [0.9, (0.95, 0.8, 0.5)])
    def test_forecasts_are_always_nested(self, level):
        values = troubled()
        forecaster = small(level=level, horizon=2)
        asked = (0.01, 0.5, 0.8, 0.89, 0.9, 0.91, 0.95, 0.9999)

        for time, value in zip(START + np.arange(len(values)) * HOUR, values, strict=True):
            if forecaster.next_time is not None:
                assert_nested(forecaster.predict(level=asked))
                assert_nested(forecaster.predict())
            forecaster.observe(time, value)

    @given(
        st.lists(SHARES, max_size=4, unique=True),
        st.lists(SHARES, min_size=2, max_size=6, unique=True),
        st.data(),
    )
    def test_bands_are_always_nested(self, learned, asked, data):
        bands = ConformalBands.start(horizon=1, level=(0.9, *(set(learned) - {0.9})))
        reach = data.draw(arrays(float, bands.reach.shape, elements=st.floats(1e-3, 1e6)))
        crossed = ConformalBands(bands.levels, reach, bands.seen)

        below, above = crossed.offsets(np.array([0.7]), tuple(sorted(asked)))

        assert (np.diff(-below) >= 0).all()
        assert (np.diff(above) >= 0).all()
        assert (below < 0).all()

    def test_bands_that_cross_give_way_to_the_one_that_readings_are_judged_by(self):
        bands = ConformalBands.start(horizon=1, level=(0.5, 0.8, 0.95, 0.99))
        crossed = ConformalBands(
            bands.levels, np.tile([9.0, 1.0, 5.0, 4.0, 6.0], (1, 2, 1)), bands.seen
        )

        _, above = crossed.offsets(np.ones(1), (0.5, 0.8, 0.9, 0.95, 0.99))

        assert above.tolist() == [[1.0, 1.0, 5.0, 5.0, 6.0]]
        assert crossed.reach[0, 0].tolist() == [9.0, 1.0, 5.0, 4.0, 6.0]


class TestDerivedLevels:
    @pytest.mark.parametrize("level", [0.05, 0.5, 0.99, 1 - 1e-12])
    def test_from_one_level_they_are_in_proportion_to_gaussian_quantiles(self, level):
        forecaster = small(horizon=2)
        live(forecaster, daily(5 * DAY, level=1e4))  # far from zero, where nothing is clipped

        known, derived = (forecaster.predict(level=each) for each in (0.9, level))

        ratio = z(level) / z(0.9)
        np.testing.assert_allclose(
            derived.value - derived.lower, ratio * (known.value - known.lower)
        )
        np.testing.assert_allclose(
            derived.upper - derived.value, ratio * (known.upper - known.value)
        )

    def test_between_two_levels_they_lie_on_a_line_over_the_quantiles(self):
        bands = ConformalBands.start(horizon=1, level=0.5)
        learned = ConformalBands((0.5, 0.9), np.array([[[1.0, 3.0], [2.0, 7.0]]]), bands.seen)

        below, above = learned.offsets(np.array([10.0]), (0.7,))

        share = (z(0.7) - z(0.5)) / (z(0.9) - z(0.5))
        assert -below[0, 0] == pytest.approx(10 * (1 + 2 * share))
        assert above[0, 0] == pytest.approx(10 * (2 + 5 * share))

    def test_below_the_lowest_and_above_the_highest_they_are_in_proportion(self):
        bands = ConformalBands.start(horizon=1, level=0.5)
        learned = ConformalBands((0.5, 0.9), np.array([[[1.0, 3.0], [2.0, 7.0]]]), bands.seen)

        _, above = learned.offsets(np.ones(1), (0.2, 0.99))

        np.testing.assert_allclose(above[0], [2 * z(0.2) / z(0.5), 7 * z(0.99) / z(0.9)])

    @pytest.mark.parametrize("level", [1e-300, float(np.nextafter(1, 0))])
    def test_levels_next_to_none_and_to_all_have_finite_bands(self, level):
        forecaster = small(level=(level, 0.5))
        live(forecaster, daily(4 * DAY))

        assert_nested(forecaster.predict())
        assert np.isfinite(forecaster.predict(level=level).upper).all()


def test_a_learned_level_has_its_own_band():
    forecaster = small(level=(0.8, 0.95))
    live(forecaster, daily(5 * DAY))

    both, low, high = (forecaster.predict(level=each) for each in ((0.8, 0.95), 0.8, 0.95))

    np.testing.assert_array_equal(both.lower[:, 0], low.lower)
    np.testing.assert_array_equal(both.upper[:, 1], high.upper)
    same(both, forecaster.predict())


@pytest.mark.slow
def test_every_level_covers_its_share_of_a_road():
    roads = simulate_roads(np.random.default_rng(3), detectors=1, days=20)
    levels = (0.5, 0.8, 0.95)

    run = replay(Forecaster(level=levels, train_size=100), roads.frame())

    # Shares of misses come ever nearer to those wanted; after 1600 steps, within 1 % on all of
    # several roads that were tried.
    assert len(run.actual) > 1600
    for level, share in run.coverages.items():
        assert share == pytest.approx(level, abs=0.015), level


class TestFiles:
    def test_a_saved_forecaster_continues_bit_for_bit(self, tmp_path):
        values = troubled()
        forecaster = small(level=(0.95, 0.5), horizon=2)
        live(forecaster, values[:100])
        forecaster.save(tmp_path / "f.sr")

        loaded = Forecaster.load(tmp_path / "f.sr")

        assert loaded.settings == forecaster.settings
        for one, other in zip(
            live(forecaster, values[100:], 100), live(loaded, values[100:], 100), strict=True
        ):
            same(one, other)

    def test_a_state_of_other_levels_is_refused(self, tmp_path):
        forecaster = small(level=(0.8, 0.95))
        forecaster.save(tmp_path / "f.sr")
        header, state = read_checkpoint(tmp_path / "f.sr")
        header["settings"]["level"] = 0.8
        write_checkpoint(tmp_path / "f.sr", header, state)

        with pytest.raises(StateError, match=r"reach must have shape \(1, 2, 2\), got \(1, 2, 3\)"):
            Forecaster.load(tmp_path / "f.sr")
