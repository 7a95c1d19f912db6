"""The mean of recent errors: later ones count more, and few say little."""

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.forecaster.recent import FEW, HALF_LIFE, RecentErrors


def after(sizes):
    """Return the means after some sizes of errors, one forecast in each column."""
    errors = RecentErrors.start(np.shape(sizes)[1])
    for each in sizes:
        errors = errors.observe(np.array(each))
    return errors


def test_an_error_counts_half_after_so_many_later_ones():
    sizes = np.random.default_rng(0).exponential(size=(100, 3))

    errors = after(sizes)

    weights = 0.5 ** (np.arange(100)[::-1] / HALF_LIFE)
    np.testing.assert_allclose(errors.means, np.average(sizes, axis=0, weights=weights))


def test_before_any_error_a_mean_is_infinite():
    errors = after([[1.0, np.nan], [3.0, np.nan]])

    assert errors.means[0] < errors.means[1] == np.inf


def test_a_forecast_that_was_not_made_keeps_its_mean():
    errors = after([[2.0, 8.0]] * 5)

    assert errors.observe(np.array([np.nan, np.nan])).means.tolist() == errors.means.tolist()


@pytest.mark.parametrize("count", [0, 1, FEW - 1, FEW, FEW + 1])
def test_few_errors_say_little(count):
    assert after(np.ones((count, 1))).are_few == (count < FEW)


def test_a_state_is_put_back():
    errors = after([[2.0, 8.0]] * 5)

    resumed = RecentErrors.start(2).restore(errors.state())

    np.testing.assert_array_equal(resumed.means, errors.means)


@pytest.mark.parametrize("bad", [np.ones(3), np.array([np.nan, 1.0])], ids=["more", "not finite"])
def test_a_state_that_does_not_fit_is_refused(bad):
    with pytest.raises(InvalidInputError):
        RecentErrors.start(2).restore({"totals": bad, "weights": bad})
