"""Tests of sizes of errors, of bands, and of the errors of naive forecasts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import Inputs, InvalidInputError, KernelRidge, Linear, Samples
from streamridge.forecaster.bands import (
    EXPECTED,
    HALF_LIFE,
    HALF_LIVES,
    KEEP,
    LEAST,
    LEAST_SCORE,
    MOST,
    RATE,
    ConformalBands,
    NaiveErrors,
    RecentErrors,
    Volatility,
)


def means_after(sizes):
    """Return the means after some sizes of errors, one forecast in each column."""
    errors = RecentErrors.start(np.shape(sizes)[1])
    for each in sizes:
        errors = errors.observe(list(each))
    return errors


def test_an_error_counts_half_after_its_half_life():
    sizes = np.random.default_rng(0).exponential(size=(100, 3))

    errors = means_after(sizes)

    weights = 0.5 ** (np.arange(100)[::-1] / HALF_LIFE)
    np.testing.assert_allclose(errors.means, np.average(sizes, axis=0, weights=weights))


def test_before_any_error_a_mean_is_infinite():
    errors = means_after([[1.0, np.nan], [3.0, np.nan]])

    assert errors.means[0] < errors.means[1] == np.inf


def test_a_forecast_that_was_not_made_keeps_its_mean():
    errors = means_after([[2.0, 8.0]] * 5)

    assert errors.observe([np.nan, np.nan]).means.tolist() == errors.means.tolist()


def test_an_expected_size_counts_as_four_errors():
    errors = RecentErrors.start(1).expecting(3.0).observe([8.0])

    assert errors.means == pytest.approx([(4 * KEEP * 3 + 8) / (4 * KEEP + 1)])


def test_recent_errors_restore_their_state():
    errors = means_after([[2.0, 8.0]] * 5)

    resumed = RecentErrors.start(2).restore(errors.state())

    np.testing.assert_array_equal(resumed.means, errors.means)


@pytest.mark.parametrize("bad", [np.ones(3), np.array([np.nan, 1.0])], ids=["more", "not finite"])
def test_recent_errors_refuse_a_state_of_another_size(bad):
    with pytest.raises(InvalidInputError):
        RecentErrors.start(2).restore({"totals": bad, "weights": bad})


def volatility_after(scores, horizon=1):
    volatility = Volatility.start(horizon)
    for score in scores:
        volatility = volatility.observe(0, score)
    return volatility


def test_scores_as_usual_change_nothing():
    assert volatility_after(300 * [2.5]).factors() == pytest.approx([1.0], abs=0.02)


def test_larger_scores_widen_and_smaller_ones_narrow():
    assert volatility_after(300 * [1.0] + 10 * [4.0]).factors()[0] > 1.4
    assert volatility_after(300 * [1.0] + 10 * [0.25]).factors()[0] < 0.75


def test_scores_that_stay_six_times_as_large_widen_six_times_within_a_day():
    rng = np.random.default_rng(1)
    calm, rough = rng.exponential(1.0, 500), rng.exponential(6.0, 96)

    factors = [volatility_after([*calm, *rough[:count]]).factors()[0] for count in (24, 48, 96)]

    assert all(3.5 < factor < 9 for factor in factors)


def test_one_large_score_widens_by_the_root_only():
    calm = np.random.default_rng(1).exponential(1.0, 500)

    before, after = (volatility_after([*calm, *more]).factors()[0] for more in ((), (6.0,)))

    assert after / before < 1.5


def test_the_usual_score_follows_a_change_slowly():
    assert volatility_after(400 * [1.0] + 96 * [6.0]).usual[0] < 1.4


def test_a_single_glitch_is_forgotten_within_a_day():
    calm = 500 * [1.0]

    glitch = volatility_after([*calm, 1e9])

    assert glitch.factors()[0] < np.sqrt(MOST)
    later = volatility_after([*calm, 1e9, *(96 * [1.0])])
    assert later.factors() == pytest.approx([1.0], abs=0.1)


def test_sizes_stay_positive_when_every_forecast_is_right():
    still = volatility_after(3000 * [0.0])

    assert np.isfinite(still.factors()).all()
    assert still.factors()[0] > 0
    assert (still.recent >= LEAST - 1e-12).all()
    awake = volatility_after([*(3000 * [0.0]), *(400 * [1.0])])
    assert 0.5 < awake.factors()[0] < 1 / LEAST_SCORE


def test_each_horizon_has_its_own_volatility():
    volatility = volatility_after(100 * [1.0] + 20 * [5.0], horizon=2)

    assert volatility.factors()[0] > 1.3
    assert volatility.factors()[1] == 1.0


@pytest.mark.parametrize("length", [3, 200])
def test_half_lives_follow_the_length_of_volatile_spells(length):
    rng = np.random.default_rng(0)
    sizes = np.repeat(np.exp(1.2 * rng.standard_normal(4000 // length + 1)), length)[:4000]

    half_life = volatility_after(sizes * rng.standard_exponential(4000)).half_life

    middle = np.exp(np.log(HALF_LIVES).mean())
    assert (half_life > middle) == (length == 200)


def test_two_scores_worked_by_hand():
    volatility = volatility_after([2.0, 3.0])

    # The first counts for a ninth or more: eight scores of one count as seen before.
    usual = [1.0, 1 + 1 / 8]
    recent = [1.0, 1 + (1 - 0.5**0.5)]
    factor = np.sqrt(recent[1] / usual[1])
    second = -np.log(factor) - 3 / (factor * usual[1])
    assert volatility.usual == pytest.approx([usual[1] + (2 * usual[1] - usual[1]) / 9])
    assert volatility.recent[0, 0] == pytest.approx(recent[1] + (1 - 0.5**0.5) * (3 - recent[1]))
    assert volatility.fits[0, 0] == pytest.approx((1 - 1 / 200) * -2 + second)
    whole = recent[1] / usual[1]  # the power of the other candidates is one
    second = -np.log(whole) - 3 / (whole * usual[1])
    assert volatility.fits[0, len(HALF_LIVES)] == pytest.approx((1 - 1 / 200) * -2 + second)
    assert volatility.seen == [2]


def test_volatility_restores_its_state():
    volatility = volatility_after([1.0, 3.0, 0.5])

    restored = Volatility.start(1).restore(volatility.state())

    for name, array in vars(volatility).items():
        np.testing.assert_array_equal(getattr(restored, name), array)


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
def test_the_share_of_misses_is_within_its_bound_for_every_series(seed, kind):
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
    rates = 1 / np.sqrt([8, 9, 10])
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


MULTIPLE = 1.3 * 1.6448536269514722 / 0.53  # of a band of 90 %, before anything is known
START = NaiveErrors.start(seasons=2, level=0.9)


def of_sizes(*sizes, expected=5.0):
    """Return the state after first errors of these sizes: of week, day and last reading."""
    return START.observe(0, sizes[0], list(sizes), least=1e-9, expected=expected)


def mean_of(*sizes, expected=5.0):
    """Return the mean of the errors that are expected, and of others one after the other."""
    total, weight = EXPECTED * expected, EXPECTED
    for size in sizes:
        total, weight = KEEP * total + size, KEEP * weight + 1
    return total / weight


def test_before_any_error_it_is_as_large_as_the_value():
    assert START.size(0, -7.0, least=0.1) == 7.0


def test_before_any_error_a_value_of_zero_has_the_least():
    assert START.size(0, 0.0, least=0.1) == 0.1


@pytest.mark.parametrize(
    ("sizes", "best", "seasonal"),
    [((9.0, 5.0, 1.0), 2, 1), ((1.0, 5.0, 9.0), 0, 0), ((2.0, 2.0, 2.0), 0, 0)],
)
def test_the_best_has_the_smallest_recent_errors_and_ties_prefer_the_longest_season(
    sizes, best, seasonal
):
    naive = of_sizes(*sizes)

    assert naive.best(seasonal=False) == best
    assert naive.best(seasonal=True) == seasonal


def test_without_a_season_the_last_reading_is_all_there_is():
    assert NaiveErrors.start(seasons=0, level=0.9).best(seasonal=True) == 0


@pytest.mark.parametrize("best", [0, 1])
def test_first_errors_count_beside_the_size_that_is_expected(best):
    naive = of_sizes(40.0, 3.0, 1.0).observe(0, 20.0, [20.0, 6.0, 1.0], least=0.1, expected=99.0)

    assert naive.size(best, 50.0, least=0.1) == pytest.approx(
        (mean_of(40.0, 20.0), mean_of(3.0, 6.0))[best]
    )


def test_the_size_that_is_expected_fades():
    naive = START
    for _ in range(400):
        naive = naive.observe(0, 1.0, [1.0, 1.0, 1.0], least=0.1, expected=5.0)

    assert naive.size(0, 50.0, least=0.1) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("share", "rate"), [(1.0001, 0.95), (0.9999, -0.05)])
def test_an_error_is_held_against_the_size_before_it(share, rate):
    naive = of_sizes(10.0, 1.0, 1.0)
    error = share * mean_of(10.0) * MULTIPLE

    after = naive.observe(0, error, 3 * [error], least=0.1, expected=5.0)

    # The first score moves the multiples at a rate of one over the root of eight.
    assert after.bands.reach[0, 1, 0] == pytest.approx(MULTIPLE * np.exp(rate / np.sqrt(8)))


def test_it_is_never_smaller_than_the_least_error():
    assert of_sizes(0.0, 0.0, 0.0).size(0, 50.0, least=9.0) == 9.0


def test_an_error_after_none_is_held_against_the_least_error():
    naive, sizes = of_sizes(0.0, 0.0, 0.0, expected=0.0), 3 * [0.1]

    # A third of the least error is no miss, however small errors were.
    assert naive.observe(0, 0.1, sizes, least=0.3, expected=0.0).bands.reach[0, 1] < MULTIPLE
    assert naive.observe(0, 0.1, sizes, least=0.001, expected=0.0).bands.reach[0, 1] > MULTIPLE


def test_a_state_is_restored():
    naive = of_sizes(4.0, 2.0, 1.0).observe(2, -9.0, [9.0, 1.0, 9.0], least=0.1, expected=5.0)

    resumed = START.restore(naive.state())

    np.testing.assert_array_equal(resumed.errors.means, naive.errors.means)
    np.testing.assert_array_equal(resumed.bands.reach, naive.bands.reach)
