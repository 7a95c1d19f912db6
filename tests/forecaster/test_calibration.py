"""Which forecasts teach the correction and the bands, and by which of their errors."""

from dataclasses import replace

import numpy as np
import pytest

from streamridge.forecaster.calibration import Calibration, ModelForecast
from streamridge.forecaster.correction import HALF_LIVES, KEEPS, MEMORIES, ErrorCorrection

ONE = np.ones(1)
NO_LIMITS = (-np.inf, np.inf)
# The place of the half-life of three steps.
THREE = HALF_LIVES.tolist().index(3)


def started(horizon=1):
    return Calibration.start(horizon, 0.9, corrects=True)


def too_low_by_two(steps):
    """Return the state after so many forecasts of zero, as a model makes them, of values of two."""
    state = started()
    for step in range(steps):
        made = state.forecast(step, np.zeros(1), ONE, NO_LIMITS)
        state = state.observe(step, 2.0, made, learns=True)
    return state


def made_at(step, *, raw, values, spreads, mean=0.0):
    parts = (np.array(part, dtype=float) for part in (raw, values, spreads))
    ones = np.ones(len(raw))
    return ModelForecast(step, *parts, ones, ones, np.full(len(HALF_LIVES), mean))


class TestCorrection:
    # Where errors count half after three steps, the mean of twos is 2 (1 - 1/2), then 2 (1 - 1/4).
    @pytest.mark.parametrize(("steps", "mean"), [(3, 1.0), (6, 1.5)])
    def test_its_means_are_of_errors_before_correction(self, steps, mean):
        assert too_low_by_two(steps).correction.means[THREE] == pytest.approx(mean)

    def test_its_share_is_learned_from_errors_before_correction(self):
        state = too_low_by_two(7)

        means = [2 * (1 - 0.5 ** (k / 3)) for k in range(7)]
        for i, memory in enumerate(MEMORIES):
            faded = [(1 - 1 / memory) ** (6 - k) for k in range(7)]
            products, squares = (
                sums[0, i, THREE] for sums in (state.correction.products, state.correction.squares)
            )
            assert products == pytest.approx(2 * np.dot(faded, means))
            assert squares == pytest.approx(np.dot(faded, np.square(means)))

    def test_its_share_is_learned_at_the_mean_when_the_forecast_was_made(self):
        earlier = made_at(0, raw=[0, 0], values=[0, 0], spreads=[1, 1], mean=3.0)
        later = ErrorCorrection.start(2).observe(9.0)
        state = replace(started(horizon=2), correction=later, pending=(earlier,))

        after = state.observe(1, 5.0, None, learns=True)

        assert after.correction.products[:, 0, 0].tolist() == [0.0, 15.0]
        assert after.correction.squares[:, 0, 0].tolist() == [0.0, 9.0]
        assert after.correction.variance.tolist() == [0.0, 25.0]

    def test_a_doubted_value_teaches_it_nothing_and_lets_its_mean_fade(self):
        state = too_low_by_two(6)
        made = state.forecast(6, np.zeros(1), ONE, NO_LIMITS)

        after = state.observe(6, 1e6, made, learns=False)

        np.testing.assert_array_equal(after.correction.means, KEEPS * state.correction.means)
        assert after.correction.products is state.correction.products
        assert after.correction.variance is state.correction.variance

    def test_a_forecast_that_was_not_in_time_lets_its_mean_fade(self):
        state = too_low_by_two(6)

        after = state.observe(6, 2.0, None, learns=True)

        np.testing.assert_array_equal(after.correction.means, KEEPS * state.correction.means)

    def test_three_steps_without_a_value_halve_its_mean(self):
        state = too_low_by_two(6)

        for _ in range(3):
            state = state.skip()

        assert state.correction.means[THREE] == pytest.approx(0.75)

    def test_a_forecast_holds_the_means_it_was_made_at(self):
        state = too_low_by_two(6)

        made = state.forecast(6, np.array([40.0]), ONE, NO_LIMITS)

        assert made.means[THREE] == pytest.approx(1.5)
        assert made.raw == 40.0
        assert made.values == 40 + state.correction.offsets()
        assert 0 < state.correction.offsets()[0] < 2.0

    def test_without_it_forecasts_stay_as_the_model_makes_them(self):
        state = Calibration.start(1, 0.9, corrects=False)
        state = state.observe(
            0, 5.0, state.forecast(0, np.zeros(1), ONE, NO_LIMITS), learns=True
        ).skip()

        made = state.forecast(1, np.array([7.0]), ONE, NO_LIMITS)

        assert made.values == made.raw == 7.0
        assert state.correction is None


class TestBands:
    def test_they_learn_from_the_corrected_error(self):
        state = started()
        reach = state.bands.reach[0, 1, 0]
        # As the model made it the forecast would have been missed; corrected, it is hit.
        made = made_at(0, raw=[0], values=[reach], spreads=[1])

        after = state.observe(0, 1.5 * reach, made, learns=True)

        assert (after.bands.reach < state.bands.reach).all()

    def test_each_horizon_learns_by_its_own_size_of_error(self):
        state = started(horizon=2)
        reach = state.bands.reach[0, 1, 0]
        earlier = made_at(0, raw=[0, 0], values=[0, 0], spreads=[100, 1])
        state = replace(state, pending=(earlier,))

        after = state.observe(1, 2 * reach, None, learns=True)

        assert after.bands.seen.tolist() == [0, 1]
        assert after.bands.reach[1, 1] > reach > after.bands.reach[1, 0]

    def test_a_forecast_that_was_not_in_time_teaches_them_nothing(self):
        after = started().observe(0, 1e6, None, learns=True)

        assert after.bands.seen == [0]

    def test_a_doubted_value_teaches_them_too(self):
        state = started()

        after = state.observe(0, 1e6, state.forecast(0, np.zeros(1), ONE, NO_LIMITS), learns=False)

        assert after.bands.seen == [1]
        assert after.bands.reach[0, 1] > state.bands.reach[0, 1]

    def test_every_forecast_of_a_step_teaches_its_own_horizon(self):
        state = started(horizon=3)
        for step in range(10):
            made = state.forecast(step, np.zeros(3), np.ones(3), NO_LIMITS)
            state = state.observe(step, 0.0, made, learns=True)

        assert state.bands.seen.tolist() == [10, 9, 8]
        assert [made.step for made in state.pending] == [9, 8]

    def test_after_a_gap_forecasts_of_long_ago_teach_nothing(self):
        state = started(horizon=3)
        made = state.forecast(0, np.zeros(3), np.ones(3), NO_LIMITS)
        state = state.observe(0, 0.0, made, learns=True)

        after = state.skip().skip().skip().observe(4, 0.0, None, learns=True)

        assert after.bands.seen.tolist() == [1, 0, 0]
        assert after.pending == ()


def test_a_state_continues_bit_for_bit():
    state, rng = started(horizon=3), np.random.default_rng(0)
    for step in range(8):
        made = state.forecast(step, rng.normal(size=3), np.ones(3), NO_LIMITS)
        state = state.observe(step, rng.normal(), made, learns=True)

    resumed = started(horizon=3).restore(state.state())

    for step in range(8, 16):
        value, raw = rng.normal(), rng.normal(size=3)
        state, resumed = (
            each.observe(step, value, each.forecast(step, raw, np.ones(3), NO_LIMITS), learns=True)
            for each in (state, resumed)
        )
    for name, array in state.state().items():
        np.testing.assert_array_equal(array, resumed.state()[name])


class TestSizes:
    def test_the_first_ones_are_those_of_the_model(self):
        np.testing.assert_allclose(started(horizon=2).smoothed(np.array([3.0, 4.0])), [3.0, 4.0])

    def test_they_are_smooth_in_time(self):
        state, widths = started(), []
        for step, spread in enumerate(20 * [1.0, 9.0]):
            sizes = state.smoothed(np.array([spread]))
            made = state.forecast(step, np.zeros(1), sizes, NO_LIMITS)
            state = state.observe(step, 0.0, made, learns=True)
            widths.append(sizes.item())

        # The ratio of neighbours is the cube root of nine, not nine.
        ratios = np.array(widths[11:]) / np.array(widths[10:-1])
        np.testing.assert_allclose(np.maximum(ratios, 1 / ratios), 9 ** (1 / 3), rtol=1e-3)

    def test_they_grow_with_the_steps_ahead_and_hardly_shrink(self):
        sizes = started(horizon=4).smoothed(np.array([2.0, 8.0, 1.0, 9.0]))

        np.testing.assert_allclose(sizes, [2.0, 8.0, 8 * np.exp(-0.1), 9.0])

    def test_a_silence_does_not_count_as_a_size(self):
        state = started()
        made = state.forecast(0, np.zeros(1), np.ones(1), NO_LIMITS, wider=np.array([5.0]))

        after = state.observe(0, 0.0, made, learns=True)

        assert made.spreads == [5.0]
        assert after.smoothed(np.ones(1)) == [1.0]


class TestVolatility:
    def test_larger_recent_errors_widen_the_next_bands(self):
        state = started()
        for step in range(60):
            made = state.forecast(step, np.zeros(1), ONE, NO_LIMITS)
            state = state.observe(step, 1.0 if step < 50 else 6.0, made, learns=False)

        made = state.forecast(60, np.zeros(1), ONE, NO_LIMITS)

        assert made.spreads[0] == made.factors[0] > 1.3
        assert made.spreads / made.factors == pytest.approx([1.0])

    def test_it_learns_from_errors_in_sizes_that_the_model_expects(self):
        state = started()
        made = replace(
            state.forecast(0, np.zeros(1), ONE, NO_LIMITS), spreads=6 * ONE, factors=3 * ONE
        )

        after = state.observe(0, 4.0, made, learns=True)

        assert after.volatility.usual == state.volatility.observe(0, 2.0).usual

    def test_a_glitch_does_not_change_it(self):
        state = started()

        after = state.observe(
            0, 1e9, state.forecast(0, np.zeros(1), ONE, NO_LIMITS), learns=False, plausible=False
        )

        assert after.volatility is state.volatility
