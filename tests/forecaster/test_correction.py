import numpy as np
import pytest

from streamridge.forecaster.correction import HALF_LIVES, KEEPS, MEMORIES, ErrorCorrection

CANDIDATES = (1, len(MEMORIES), len(HALF_LIVES))


def corrected(errors):
    """Return what is left of one-step errors after the correction that was known in time."""
    correction, left = ErrorCorrection.start(horizon=1), []
    for error in errors:
        left.append(error - correction.offsets()[0])
        correction = correction.learn(0, error, correction.means).observe(error)
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
        correction = correction.learn(0, 5.0, correction.means).observe(5.0)
    before = correction.means

    for _ in range(6):
        correction = correction.forget()

    np.testing.assert_allclose(correction.means, before * 0.5 ** (6 / HALF_LIVES))


def test_many_steps_without_an_error_are_like_one_after_the_other():
    correction = one_by_one = ErrorCorrection.start(horizon=1).observe(7.0)

    for _ in range(50):
        one_by_one = one_by_one.forget()

    np.testing.assert_array_equal(correction.forget(50).means, one_by_one.means)
    assert (correction.forget(10**9).means < 1e-300).all()


@pytest.mark.parametrize(
    ("products", "offset"),
    [(-8.0, 0.0), (0.0, 0.0), (8.0, 1.5), (16.0, 3.0), (80.0, 3.0)],
)
def test_a_share_is_between_nothing_and_all(products, offset):
    # Evidence: six of the mean squared, and ten times a variance of one.
    sums = (np.full(CANDIDATES, part) for part in (products, 6.0, 0.0))
    correction = ErrorCorrection(np.full(len(HALF_LIVES), 3.0), *sums, np.zeros(1), np.ones(1))

    assert correction.offsets() == pytest.approx([offset])


def test_two_errors_worked_by_hand():
    means = np.arange(1.0, 5.0)
    correction = ErrorCorrection.start(horizon=2).learn(1, 4.0, means).learn(1, -3.0, 2 * means)

    # No share was learned before the first error; the second met shares of the first one's sums.
    shares = np.clip(4 * means / (means**2 + 10 * 16), 0, 1)
    left = -3 - shares * 2 * means
    for memory, products, squares, losses in zip(
        (32, 96, 288),
        correction.products[1],
        correction.squares[1],
        correction.losses[1],
        strict=True,
    ):
        faded = 1 - 1 / memory
        np.testing.assert_allclose(products, faded * 4 * means - 6 * means)
        np.testing.assert_allclose(squares, faded * means**2 + 4 * means**2)
        np.testing.assert_allclose(losses, (1 - 1 / 96) * 16 + left**2)
    np.testing.assert_allclose(correction.seen, [0.0, 2 - 1 / 96])
    np.testing.assert_allclose(correction.variance, [0.0, 0.995 * 16 + 0.005 * 9], rtol=1e-14)
    assert not correction.products[0].any()


@pytest.mark.parametrize(("place", "half_life"), list(enumerate(HALF_LIVES)))
def test_an_error_weighs_what_half_of_it_leaves_after_its_half_life(place, half_life):
    correction = ErrorCorrection.start(horizon=1).observe(8.0)

    assert correction.means[place] == pytest.approx(8 * (1 - 0.5 ** (1 / half_life)))
    later = correction.forget(6).means[place]
    assert later == pytest.approx(correction.means[place] * 0.5 ** (6 / half_life))


def test_a_candidate_weighs_the_likelihood_of_its_squared_errors():
    losses = np.full(CANDIDATES, 2.0)
    losses[0, 0, 1] = 1.0
    none = np.zeros(CANDIDATES)
    correction = ErrorCorrection(
        np.zeros(len(HALF_LIVES)), none, none, losses, np.array([6.0]), np.ones(1)
    )

    weights = correction.weights()[0]

    others = len(MEMORIES) * len(HALF_LIVES) - 1
    assert weights[0, 1] == pytest.approx(8 / (8 + others))  # (2 / 1)^(6 / 2)
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("fading", "shortest"), [(0.2, True), (0.99, False)])
def test_the_half_life_follows_the_stream(fading, shortest):
    rng = np.random.default_rng(3)
    level, correction = 0.0, ErrorCorrection.start(horizon=1)
    for _ in range(1500):
        noise = 0.1 if shortest else 6.0
        level = fading * level + rng.standard_normal()
        error = level + noise * rng.standard_normal()
        correction = correction.learn(0, error, correction.means).observe(error)

    middle = np.exp(np.log(HALF_LIVES).mean())
    assert (correction.half_life < middle) == shortest
    assert HALF_LIVES[0] <= correction.half_life <= HALF_LIVES[-1]
    assert 0 < correction.share <= 1


def test_the_correction_is_never_farther_than_the_means_of_the_last_errors():
    rng = np.random.default_rng(4)
    correction = ErrorCorrection.start(horizon=1)
    for error in rng.standard_cauchy(500):
        correction = correction.learn(0, error, correction.means).observe(error)
        least, most = min(correction.means.min(), 0), max(correction.means.max(), 0)
        assert least <= correction.offsets()[0] <= most


def test_a_step_keeps_what_its_half_life_leaves():
    np.testing.assert_allclose(KEEPS**HALF_LIVES, 0.5)
