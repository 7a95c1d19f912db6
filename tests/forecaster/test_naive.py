"""The band of the forecast that needs no model."""

import numpy as np
import pytest

from streamridge.forecaster.naive import SeasonalNaive

MULTIPLE = 1.3 * 1.6448536269514722 / 0.53  # of a band of 90 %, before anything is known


def of_size(size):
    """Return the state after a first error of some size."""
    return SeasonalNaive.start(0.9).observe(size, least=1e-9)


def test_before_any_error_the_band_reaches_as_far_as_the_values():
    below, above = SeasonalNaive.start(0.9).offsets(np.array([-7.0, 5.0]), least=0.1, levels=(0.9,))

    np.testing.assert_allclose(below, -7 * MULTIPLE)
    np.testing.assert_allclose(above, 7 * MULTIPLE)


def test_before_any_error_a_value_of_zero_has_the_least_band():
    _, above = SeasonalNaive.start(0.9).offsets(np.zeros(2), least=0.1, levels=(0.9,))

    np.testing.assert_allclose(above, 0.1 * MULTIPLE)


def test_the_first_error_says_how_large_they_are_but_is_no_miss():
    naive = of_size(-40.0)

    below, above = naive.offsets(np.array([3.0]), least=0.1, levels=(0.9,))

    # One score that was not missed: at the start the rate is one, and the share 5 % a side.
    reach = 40 * MULTIPLE * np.exp(-0.05)
    np.testing.assert_allclose([below[0, 0], above[0, 0]], [-reach, reach])


@pytest.mark.parametrize("error", [20.0, -20.0])
def test_the_size_follows_by_one_and_a_half_percent(error):
    assert of_size(10.0).observe(error, least=0.1).size == pytest.approx(10.15)


def test_an_error_is_held_against_the_size_before_it():
    naive = of_size(10.0)
    edge = 10 * naive.bands.reach[0, 1, 0]

    missed, hit = (naive.observe(share * edge, least=0.1) for share in (1.0001, 0.9999))

    # The second score moves the multiples at a rate of one over the root of two.
    rate = 1 / np.sqrt(2)
    assert missed.bands.reach[0, 1] == pytest.approx(naive.bands.reach[0, 1] * np.exp(0.95 * rate))
    assert hit.bands.reach[0, 1] == pytest.approx(naive.bands.reach[0, 1] * np.exp(-0.05 * rate))


def test_the_band_is_never_narrower_than_the_least_error():
    naive = of_size(0.0)

    _, above = naive.offsets(np.array([50.0]), least=2.0, levels=(0.9,))

    assert above[0, 0] == pytest.approx(2 * MULTIPLE * np.exp(-0.05))


def test_an_error_after_none_is_held_against_the_least_error():
    naive = of_size(0.0)

    # A third of the least error is no miss, however small errors were.
    assert naive.observe(0.1, least=0.3).bands.reach[0, 1] < naive.bands.reach[0, 1]
    assert naive.observe(0.1, least=0.001).bands.reach[0, 1] > naive.bands.reach[0, 1]


def test_a_state_is_put_back():
    naive = of_size(4.0).observe(-9.0, least=0.1)

    resumed = SeasonalNaive.start(0.9).restore(naive.state())

    assert resumed.size == naive.size
    np.testing.assert_array_equal(resumed.bands.reach, naive.bands.reach)
