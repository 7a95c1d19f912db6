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


@pytest.mark.parametrize(
    ("products", "offset"),
    [(-8.0, 0.0), (0.0, 0.0), (8.0, 1.5), (16.0, 3.0), (80.0, 3.0)],
)
def test_a_share_is_between_nothing_and_all(products, offset):
    # Evidence: six of the mean squared, and ten times a variance of one.
    correction = ErrorCorrection(3.0, *(np.array([part]) for part in (products, 6.0, 1.0)))

    assert correction.offsets() == [offset]


def test_a_lasting_error_twice_its_mean_is_not_corrected_by_more_than_the_mean():
    correction = ErrorCorrection.start(horizon=1)

    for _ in range(400):  # the mean fades in gaps, so that it lags behind
        correction = correction.learn(0, 2.0, 1.0)
    correction = correction.observe(1.0)

    assert correction.offsets() == [correction.mean]


def test_two_errors_worked_by_hand():
    correction = ErrorCorrection.start(horizon=2).learn(1, 4.0, 2.0).learn(1, -3.0, 5.0)

    faded = 1 - 1 / 96
    assert correction.products.tolist() == [0.0, faded * 8 - 15]
    assert correction.squares.tolist() == [0.0, faded * 4 + 25]
    np.testing.assert_allclose(correction.variance, [0.0, 0.995 * 16 + 0.005 * 9], rtol=1e-14)


def test_an_error_weighs_what_half_of_it_leaves_after_three_steps():
    correction = ErrorCorrection.start(horizon=1).observe(8.0)

    assert correction.mean == pytest.approx(8 * (1 - 0.5 ** (1 / 3)))
    assert correction.forget().forget().forget().mean == pytest.approx(correction.mean / 2)
