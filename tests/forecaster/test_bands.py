import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import Inputs, InvalidInputError, KernelRidge, Linear, Samples
from streamridge.forecaster.bands import RATE, ConformalBands


def run(errors, spreads, level=0.9):
    """Return the bands after some errors, and which errors fell outside on either side."""
    bands = ConformalBands.start(horizon=1, level=level)
    low, high = [], []
    for error, spread in zip(errors, spreads, strict=True):
        below, above = bands.offsets(np.array([spread]), (level,))
        low.append(error < below[0, 0])
        high.append(error > above[0, 0])
        bands = bands.observe(0, error, spread)
    return bands, np.array(low), np.array(high)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["jump", "drift", "heavy"]))
def test_misses_come_within_the_bound_of_their_share_whatever_the_series_does(seed, kind):
    rng = np.random.default_rng(seed)
    count = 2000
    scale = {"jump": np.where(np.arange(count) < 900, 1, 20), "drift": np.geomspace(1, 9, count)}
    errors = scale.get(kind, 1.0) * rng.standard_t(3 if kind == "heavy" else 30, count)

    bands, low, high = run(errors, np.ones(count))

    # From step 400 on the rate is constant, and the sum of misses telescopes into log reach.
    start, _, _ = run(errors[:400], np.ones(400))
    for side, misses in enumerate((low, high)):
        moved = np.log(bands.reach[0, side, 0] / start.reach[0, side, 0])
        assert misses[400:].sum() - 0.05 * 1600 == pytest.approx(moved / RATE, abs=1e-6)


def test_lopsided_errors_have_a_lopsided_band():
    rng = np.random.default_rng(0)
    errors = rng.exponential(1.0, 4000) - 0.3

    bands, low, high = run(errors, np.ones(4000))

    below, above = bands.offsets(np.ones(1), (0.9,))
    assert above[0, 0] > 3 * -below[0, 0]
    assert abs(low[500:].mean() - 0.05) < 0.01
    assert abs(high[500:].mean() - 0.05) < 0.01


def test_the_band_scales_with_the_expected_size_of_error():
    bands = ConformalBands.start(horizon=2, level=0.8)

    below, above = bands.offsets(np.array([1.0, 3.0]), (0.8, 0.9))

    np.testing.assert_allclose(above[1], 3 * above[0])
    np.testing.assert_array_equal(below, -above)


def test_one_huge_error_moves_the_band_by_one_step():
    bands = ConformalBands.start(horizon=1, level=0.9)
    for _ in range(1000):
        bands = bands.observe(0, 0.1, 1.0)

    after = bands.observe(0, 1e12, 1.0)

    assert after.reach[0, 1] / bands.reach[0, 1] == pytest.approx(np.exp(RATE * 0.95))


def test_horizons_learn_apart():
    bands = ConformalBands.start(horizon=2, level=0.9)

    after = bands.observe(1, 100.0, 1.0)

    np.testing.assert_array_equal(after.reach[0], bands.reach[0])
    assert after.reach[1, 1] > bands.reach[1, 1]


@pytest.mark.parametrize("level", [0.0, 1.0, 90, -0.5, (0.8, 1.5)])
def test_a_level_is_a_share(level):
    with pytest.raises(InvalidInputError, match="level must lie between 0 and 1"):
        ConformalBands.start(horizon=1, level=level)


@pytest.mark.parametrize("level", [(), (0.8, 0.8), [[0.8, 0.9]]])
def test_levels_are_one_or_more_and_differ(level):
    with pytest.raises(InvalidInputError, match="level must be one number, or several that differ"):
        ConformalBands.start(horizon=1, level=level)


@pytest.mark.parametrize("level", ["0.9", None, (0.8, None), (0.8, [0.9]), {0.8}, True])
def test_a_level_that_is_no_number_is_refused(level):
    with pytest.raises(InvalidInputError, match="level must be"):
        ConformalBands.start(horizon=1, level=level)


def test_they_start_at_the_quantiles_of_a_gaussian():
    bands = ConformalBands.start(horizon=2, level=0.9)

    # 1.645 deviations, over the typical size of a Gaussian error, and 1.3 times as much.
    np.testing.assert_allclose(bands.reach, 1.3 * 1.6448536269514722 / 0.53)


def test_three_scores_worked_by_hand():
    bands = ConformalBands.start(horizon=1, level=(0.8, 0.95))
    start = bands.reach[0, 0]

    for error in (0.0, -100.0, 100.0):
        bands = bands.observe(0, error, spread=2.0)

    # A hit narrows a side by its share of misses, such as 10 % for the level of 80 %, and a miss
    # widens it by the rest; the rate falls like one over the root of the scores.
    assert bands.levels == (0.8, 0.9, 0.95)
    rates = 1 / np.sqrt([1, 2, 3])
    share = np.array([0.1, 0.05, 0.025])
    low, high = (np.array(missed)[:, None] - share for missed in ([0, 1, 0], [0, 0, 1]))
    np.testing.assert_allclose(bands.reach[0, 0], start * np.exp(rates @ low))
    np.testing.assert_allclose(bands.reach[0, 1], start * np.exp(rates @ high))


def test_an_error_that_just_fits_is_no_miss():
    bands = ConformalBands.start(horizon=1, level=0.9)
    edge = bands.reach[0, 1, 0]

    assert bands.observe(0, 2 * edge, spread=2.0).reach[0, 1] < edge
    assert bands.observe(0, np.nextafter(2 * edge, 99), spread=2.0).reach[0, 1] > edge


@pytest.mark.parametrize(("error", "limit"), [(0.0, 1e-3), (np.finfo(float).max, 1e6)])
def test_multiples_stay_where_they_can_come_back_from(error, limit):
    bands = ConformalBands.start(horizon=1, level=0.9)

    for _ in range(5000):
        bands = bands.observe(0, error, spread=1.0)

    assert bands.reach[0, 1] == limit


def test_the_size_of_error_to_expect_stays_within_the_sizes_seen(rng):
    x = np.linspace(-1, 1, 40)
    samples = Samples.of(np.arange(40), x[:, None], np.exp(2 * x) * rng.standard_normal(40))
    fit = KernelRidge(Linear(), regularization=1.0).fit(samples)
    residuals = np.abs(samples.y - fit.predict(samples.inputs))

    # Far beyond the training set, where errors would shrink or grow for ever.
    _, sizes = fit.predict_with_spread(Inputs.of([40, 41], [[-1e3], [1e3]]))

    np.testing.assert_allclose(sizes[:, 0], [residuals.min(), residuals.max()])
