"""Time differences: exact on any grid, and stored in the most compact form."""

import numpy as np
import pytest

from streamridge.kernels.base import Weights
from streamridge.kernels.drifting import FreeLags, TabledLags, ToeplitzLags, time_lags

GRID = np.arange(6.0)
CASES = {
    "0.1 % off the grid": (np.array([0.0, 1.0, 2.001, 3.002]), np.array([0.0, 1.0]), FreeLags),
    "0.1 % off, fast": (1e-8 * np.array([0.0, 1.0, 2.001]), 1e-8 * np.arange(2.0), FreeLags),
    "another step on the other side": (GRID, 1.5 * np.arange(3.0), FreeLags),
    "twice the step on the other side": (GRID, 2 * np.arange(3.0), TabledLags),
    "half steps on the other side": (np.array([0.0, 1.0, 3.0]), np.array([0.5, 1.5]), FreeLags),
    "half steps on this side": (np.array([0.5, 1.5, 4.5]), np.array([0.0, 1.0]), FreeLags),
    "apart": (GRID + 900.0, GRID[:2], ToeplitzLags),
    "in seconds of today": (900 * GRID + 1.7e9, 900 * GRID[:2] + 1.7e9, ToeplitzLags),
    "gaps": (np.array([0.0, 1.0, 5.0]), np.array([3.0, 9.0]), TabledLags),
    "one on the other side": (GRID, np.array([2.0]), ToeplitzLags),
    "none on the other side": (GRID, np.empty(0), FreeLags),
}


@pytest.mark.parametrize(("t", "other", "kind"), CASES.values(), ids=CASES)
def test_time_differences_are_exact_in_every_form(t, other, kind):
    lags = time_lags(t, other)

    assert isinstance(lags, kind)
    np.testing.assert_allclose(lags.expand(lags.distinct), t[:, None] - other, rtol=1e-12, atol=0)


@pytest.mark.parametrize("low_rank", [True, False])
@pytest.mark.parametrize(("t", "other", "kind"), CASES.values(), ids=CASES)
def test_collect_sums_the_entries_that_share_a_difference(t, other, kind, low_rank, rng):
    lags = time_lags(t, other)
    left, right = rng.normal(size=(len(t), 2)), rng.normal(size=(len(other), 2))
    W = Weights(left, right, None if low_rank else rng.normal(size=(len(t), len(other))))

    gathered = lags.collect(W)

    assert gathered.shape == lags.distinct.shape
    # The expansion of a unit vector selects the entries with the same difference.
    for k in np.ndindex(lags.distinct.shape):
        one = np.zeros(lags.distinct.shape)
        one[k] = 1.0
        assert gathered[k] == pytest.approx((W.dense * lags.expand(one)).sum(), abs=1e-12)


@pytest.mark.parametrize(("gap", "kind"), [(250.0, TabledLags), (260.0, FreeLags)])
def test_a_table_that_saves_nothing_is_not_built(gap, kind):
    # Two rows a side may have 64 entries each: differences from -1 to the gap.
    assert isinstance(time_lags(np.array([0.0, gap]), np.array([0.0, 1.0])), kind)
