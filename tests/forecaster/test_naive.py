"""The naive forecasts: which was the best of late, and the band of that one."""

import numpy as np
import pytest

from streamridge.forecaster.naive import Naive
from streamridge.forecaster.recent import KEEP

MULTIPLE = 1.3 * 1.6448536269514722 / 0.53  # of a band of 90 %, before anything is known
START = Naive.start(seasons=2, level=0.9)


def of_sizes(*sizes):
    """Return the state after first errors of these sizes: of week, day and last reading."""
    return START.observe(0, sizes[0], np.array(sizes), least=1e-9)


def offsets(naive, values=(50.0,), least=0.1, best=0):
    return naive.offsets(best, np.array(values), least, (0.9,))


def test_before_any_error_the_band_reaches_as_far_as_the_values():
    below, above = offsets(START, (-7.0, 5.0))

    np.testing.assert_allclose(below, -7 * MULTIPLE)
    np.testing.assert_allclose(above, 7 * MULTIPLE)


def test_before_any_error_a_value_of_zero_has_the_least_band():
    np.testing.assert_allclose(offsets(START, (0.0, 0.0))[1], 0.1 * MULTIPLE)


@pytest.mark.parametrize(
    ("sizes", "best", "seasonal"),
    [((9.0, 5.0, 1.0), 2, 1), ((1.0, 5.0, 9.0), 0, 0), ((2.0, 2.0, 2.0), 0, 0)],
)
def test_the_best_has_the_smallest_errors_of_late_and_of_equals_the_longest_season(
    sizes, best, seasonal
):
    naive = of_sizes(*sizes)

    assert naive.best(seasonal=False) == best
    assert naive.best(seasonal=True) == seasonal


def test_without_a_season_the_last_reading_is_all_there_is():
    assert Naive.start(seasons=0, level=0.9).best(seasonal=True) == 0


def test_the_first_error_says_how_large_they_are_but_is_no_miss():
    below, above = offsets(of_sizes(40.0, 1.0, 1.0))

    np.testing.assert_allclose([below[0, 0], above[0, 0]], [-40 * MULTIPLE, 40 * MULTIPLE])


def test_the_band_is_that_of_the_best():
    _, above = offsets(of_sizes(40.0, 3.0, 1.0), best=1)

    assert above[0, 0] == pytest.approx(3 * MULTIPLE)


def test_sizes_follow_the_errors_of_late():
    naive = of_sizes(10.0, 1.0, 1.0).observe(0, 20.0, np.array([20.0, 1.0, 1.0]), least=0.1)

    assert naive.errors.means[0] == pytest.approx((10 * KEEP + 20) / (KEEP + 1))


@pytest.mark.parametrize(("share", "rate"), [(1.0001, 0.95), (0.9999, -0.05)])
def test_an_error_is_held_against_the_size_before_it(share, rate):
    naive = of_sizes(10.0, 1.0, 1.0)
    error = share * 10 * MULTIPLE

    after = naive.observe(0, error, np.full(3, error), least=0.1)

    # The first score moves the multiples at a rate of one.
    assert after.bands.reach[0, 1, 0] == pytest.approx(MULTIPLE * np.exp(rate))


def test_the_band_is_never_narrower_than_the_least_error():
    _, above = offsets(of_sizes(0.0, 0.0, 0.0), least=2.0)

    assert above[0, 0] == pytest.approx(2 * MULTIPLE)


def test_an_error_after_none_is_held_against_the_least_error():
    naive, sizes = of_sizes(0.0, 0.0, 0.0), np.full(3, 0.1)

    # A third of the least error is no miss, however small errors were.
    assert naive.observe(0, 0.1, sizes, least=0.3).bands.reach[0, 1] < MULTIPLE
    assert naive.observe(0, 0.1, sizes, least=0.001).bands.reach[0, 1] > MULTIPLE


def test_a_state_is_put_back():
    naive = of_sizes(4.0, 2.0, 1.0).observe(2, -9.0, np.array([9.0, 1.0, 9.0]), least=0.1)

    resumed = START.restore(naive.state())

    np.testing.assert_array_equal(resumed.errors.means, naive.errors.means)
    np.testing.assert_array_equal(resumed.bands.reach, naive.bands.reach)
