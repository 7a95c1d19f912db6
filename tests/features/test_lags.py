import numpy as np
import pytest

from streamridge import Features, InvalidInputError


def test_every_block_holds_the_values_it_names():
    series = np.arange(100.0) ** 1.5
    features = Features(lags=3, seasonal=(10, 20), calendar=(24,))

    samples = features.samples(series, horizon=2, start=1000)

    row = 7
    t = int(samples.t[row]) - 1000
    assert samples.t[0] == 1020
    np.testing.assert_array_equal(samples.x[row, :3], series[[t - 1, t - 2, t - 3]])
    np.testing.assert_array_equal(samples.x[row, 3:5], series[[t - 10, t - 20]])
    angle = 2 * np.pi * (t + 1000) / 24
    np.testing.assert_allclose(samples.x[row, 5:], [np.sin(angle), np.cos(angle)], atol=1e-12)
    np.testing.assert_array_equal(samples.y[row], series[[t, t + 1]])
    assert len(samples) == 100 - 20 - 1
    assert samples.inputs.layout.blocks == (("lags", 3), ("seasonal", 2), ("calendar", 2))


def test_no_row_sees_its_own_target_or_later():
    series = np.zeros(60)
    series[40] = 1.0

    samples = Features(lags=5, seasonal=(12,)).samples(series)

    assert not samples.x[samples.t <= 40].any()


def test_a_short_series_is_refused():
    with pytest.raises(InvalidInputError, match="series must have at least 21 values, got 20"):
        Features(lags=20).samples(np.ones(20))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Features(lags=0), "lags must be a whole number of at least 1, got 0"),
        (lambda: Features(seasonal=(0,)), "seasonal must be a whole number of at least 1, got 0"),
        (lambda: Features(calendar=(0.0,)), r"calendar must be positive, got 0\.0"),
        (lambda: Features(lags=1).samples([1.0, np.nan, 2.0]), "series must be finite, got nan"),
        (lambda: Features(lags=1).samples(np.ones((3, 3))), r"series must have shape \(any,\)"),
        (lambda: Features(lags=1).samples(np.ones(9), horizon=0), "horizon must be a whole"),
    ],
)
def test_bad_input_is_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()
