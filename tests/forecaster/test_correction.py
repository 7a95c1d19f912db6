import numpy as np
import pytest

from streamridge.forecaster.correction import ErrorCorrection


def corrected(errors):
    """Return what is left of one-step errors after the correction that was known in time."""
    correction, left = ErrorCorrection.start(horizon=1), []
    for error in errors:
        left.append(error - correction.offsets()[0])
        correction = correction.learn(0, error, correction.mean).observe(error)
    return np.array(left)


def test_errors_that_follow_each_other_are_corrected():
    rng = np.random.default_rng(0)
    errors = rng.standard_normal(5000)
    for t in range(1, len(errors)):
        errors[t] += 0.8 * errors[t - 1]

    left = corrected(errors)

    assert np.std(left) < 0.8 * np.std(errors)


def test_errors_without_a_pattern_are_left_alone():
    errors = np.random.default_rng(1).standard_normal(5000)

    assert np.std(corrected(errors)) < 1.01 * np.std(errors)


def test_errors_that_alternate_are_not_made_worse():
    errors = np.tile([1.0, -1.0], 2000) + 0.1 * np.random.default_rng(2).standard_normal(4000)

    assert np.std(corrected(errors)) < 1.01 * np.std(errors)


def test_errors_near_zero_make_no_trouble():
    np.testing.assert_array_equal(corrected(np.zeros(50)), np.zeros(50))


def test_a_gap_lets_old_errors_fade():
    correction = ErrorCorrection.start(horizon=1)
    for _ in range(50):
        correction = correction.learn(0, 5.0, correction.mean).observe(5.0)
    before = correction.offsets()[0]

    for _ in range(9):
        correction = correction.forget()

    assert correction.offsets()[0] == pytest.approx(before / 8)
