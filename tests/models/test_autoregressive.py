import numpy as np
import pytest

from streamridge import AutoregressiveRidge, InvalidInputError, NotPositiveDefiniteError, Samples
from tests.support.samples import make_samples


def test_the_filter_is_ridge_regression_with_one_penalty_per_lag(rng):
    samples = make_samples(rng, 80)
    alpha = np.array([0.5, 1.0, 2.0, 0.1, 3.0])

    w = AutoregressiveRidge(alpha).fit(samples).w

    # The certificate: the gradient of the penalized squares vanishes.
    gradient = samples.x.T @ (samples.x @ w - samples.y) + alpha[:, None] * w
    np.testing.assert_allclose(gradient, 0.0, atol=1e-11)


def test_a_large_penalty_switches_its_lag_off(rng):
    samples = make_samples(rng, 80)

    w = AutoregressiveRidge([1e6, 1.0, 1.0, 1.0, 1.0]).fit(samples).w

    assert abs(w[0, 0]) < 1e-3


@pytest.mark.parametrize("x", [np.ones((40, 2)), np.full((40, 2), 1e200)])
def test_a_system_without_a_factor_is_refused(x):
    samples = Samples.of(np.arange(40.0), x, np.ones(40))
    model = AutoregressiveRidge([1e-17, 1e-17], penalties_bounds=(1e-17, 1.0))

    with (
        np.errstate(over="ignore"),
        pytest.raises(
            NotPositiveDefiniteError,
            match=r"X\^T X \+ diag\(penalties\) has no Cholesky factor at t=39 "
            r"\(penalties=1e-17\)\. Raise its lower bound, now 1e-17\.",
        ),
    ):
        model.fit(samples)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: AutoregressiveRidge([0.0]), r"penalties must be positive, got 0\.0"),
        (lambda: AutoregressiveRidge([1e9]), "penalties must lie within its bounds"),
        (
            lambda: AutoregressiveRidge([1.0]).fit(Samples.of([0], [[1.0, 2.0]], [1.0])),
            "x must have 1 features, one per penalty, got 2",
        ),
    ],
)
def test_bad_input_is_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()
