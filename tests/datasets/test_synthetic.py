import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.datasets.synthetic import ar_coefficients, drifting_series, synthetic_series


@pytest.mark.parametrize(("norm", "radius"), [(1, 0.952), (2, 1.053)])
def test_the_two_interpretations_of_the_norm_are_stable_and_explosive(norm, radius):
    companion = np.eye(20, k=-1)
    companion[0] = ar_coefficients(norm)

    assert abs(np.abs(np.linalg.eigvals(companion)).max() - radius) < 1e-3


def test_the_series_follows_its_recursion():
    noise = 0.3
    series = synthetic_series(200, np.random.default_rng(4), noise=noise)

    drift = 2 * (series - 1 - 0.5 * np.sin(np.arange(200) / 5))
    shocks = [drift[t] - ar_coefficients() @ drift[t - 20 : t][::-1] for t in range(20, 200)]
    expected = noise * np.random.default_rng(4).standard_normal(200)[20:]
    np.testing.assert_allclose(shocks, expected, atol=1e-12)


def test_the_drifting_series_follows_its_recursion():
    noise = 0.3
    series = drifting_series(200, np.random.default_rng(4), noise=noise)

    past = np.array([ar_coefficients(2) @ series[t - 20 : t][::-1] for t in range(20, 200)])
    shocks = series[20:] - 1 - 0.5 * past - 0.5 * np.sin(np.arange(20, 200) / 5)
    expected = noise * np.random.default_rng(4).standard_normal(200)[20:]
    np.testing.assert_allclose(shocks, expected, atol=1e-12)


@pytest.mark.parametrize(("norm", "radius", "level"), [(1, 0.910, 4 / 3), (2, 0.9985, 49.5)])
def test_the_drifting_series_is_stable_and_climbs_to_its_level(norm, radius, level):
    companion = np.eye(20, k=-1)
    companion[0] = 0.5 * ar_coefficients(norm)
    series = drifting_series(6000, np.random.default_rng(0), norm=norm, noise=1e-9)

    assert abs(np.abs(np.linalg.eigvals(companion)).max() - radius) < 1e-3
    assert abs(series[-1000:].mean() / level - 1) < 0.02


def test_the_same_seed_gives_the_same_series():
    first, second = (synthetic_series(50, np.random.default_rng(1)) for _ in range(2))

    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"norm": 3}, "norm must be 1 or 2, got 3"),
        ({"period": 0.0}, r"period must be positive, got 0\.0"),
        ({"noise": -1.0}, r"noise must be positive, got -1\.0"),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        synthetic_series(**({"steps": 10, "rng": np.random.default_rng(0)} | settings))
