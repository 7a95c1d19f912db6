"""Tests of the correction by the last errors, and of the loss of corrected forecasts."""

import numpy as np
import pytest

from streamridge import AutoregressiveRidge, Forecaster, KernelRidge, Matern, Samples, Standardized
from streamridge.forecaster.correction import (
    HALF_LIVES,
    KEEPS,
    MEMORIES,
    CorrectionLog,
    ErrorCorrection,
)
from streamridge.models import hypergradient
from streamridge.models.base import Tangents
from tests.oracles import central_difference
from tests.support.tiers import each_horizon

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


def test_errors_of_several_horizons_are_learned_together_as_one_after_the_other():
    rng = np.random.default_rng(1)
    together = apart = ErrorCorrection.start(horizon=4)
    for _ in range(30):
        horizons = rng.choice(4, size=rng.integers(0, 5), replace=False).tolist()
        errors = [(h, float(rng.normal()), rng.normal(size=len(HALF_LIVES))) for h in horizons]
        together = together.learn_all(errors)
        for each in errors:
            apart = apart.learn(*each)

    for name, expected in apart.state().items():
        np.testing.assert_array_equal(together.state()[name], expected)


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


N, M = 40, 12
KERNEL_RIDGE = Standardized(KernelRidge(Matern(np.full(3, 0.3), order=1.5), regularization=0.5))


def rows(rng, count, horizon, start):
    t = start + np.arange(count)
    x = rng.standard_normal((count, 3))
    y = 50 * (np.sin(x.sum(axis=1))[:, None] + 0.3 * rng.standard_normal((count, horizon)))
    return Samples.of(t, x, y * np.arange(1, horizon + 1))


def a_log(rng, steps, horizon):
    log = CorrectionLog.start(horizon)
    for step in steps:
        pulls = rng.uniform(0, 0.3, (horizon, len(HALF_LIVES)))
        log = log.after(step, pulls, 10 * rng.standard_normal(horizon))
    return log


def issued_errors(errors, times, log):
    """Return what is left of errors if those of this window, and what came before, correct them.

    What came before is all of the offset that errors at the log do not explain.
    """

    def own(errors):
        means, own = np.zeros(len(HALF_LIVES)), []
        for t in range(int(times[0]), int(times[-1]) + 1):
            at = np.flatnonzero(log.steps == t)
            row = np.flatnonzero(times == t)
            if len(row):
                own.append(log.pulls[at[0]] @ means if len(at) else 0 * errors[0])
            told = errors[row[0], 0] if len(row) and len(at) else 0.0
            means = KEEPS * means + (1 - KEEPS) * told
        return np.array(own)

    known = np.isin(times, log.steps)
    offsets = np.zeros_like(errors)
    offsets[known] = log.offsets[np.searchsorted(log.steps, times[known])]
    before = offsets - own(errors)
    return lambda other: other - before - own(other)


def root_mean_square(errors):
    return 2 * errors.size * np.sqrt(np.mean(errors**2))


def a_stream(rng, horizon):
    """Return a training set, a window of which one step has no row, and its log.

    Of the log, the forecasts of two steps, of which one came late, are not known.
    """
    train, window = rows(rng, N, horizon, 0), rows(rng, M, horizon, N)
    window = Samples.of(*(np.delete(each, 4, axis=0) for each in (window.t, window.x, window.y)))
    return train, window, a_log(rng, [t for t in range(N + 1, N + M) if t != N + 7], horizon)


@each_horizon(1, 3)
def test_it_is_exact_with_the_refit(horizon):
    train, window, log = a_stream(np.random.default_rng(horizon), horizon)
    model = KERNEL_RIDGE
    lam = model.space.values
    units = (train.y - train.x[:, :1]).std(axis=0)

    def errors(lam):
        return window.y - model.fit(train, lam).predict(window.inputs)

    issue = issued_errors(errors(lam), window.t, log)
    g = model.fit(train, lam).loss_and_gradient(window, loss=log.loss(window.t))[1]

    def loss(lam):
        return root_mean_square(issue(errors(lam)) / units)

    np.testing.assert_allclose(g, central_difference(loss, lam), rtol=1e-6, atol=1e-7)
    plain = model.fit(train, lam).loss_and_gradient(window)[1]
    assert not np.allclose(g, plain, rtol=0.01)


def moved(samples, tangents, numbers):
    """Return samples whose rows moved along their tangents, on a curve."""
    along = np.tensordot(numbers + numbers**2, tangents, axes=1)
    return Samples.of(samples.t, samples.x + along, samples.y)


@pytest.mark.parametrize("model", [KERNEL_RIDGE, Standardized(AutoregressiveRidge(np.ones(3)))])
@each_horizon(1, 3)
def test_it_is_exact_through_the_rows_as_well(model, horizon):
    rng = np.random.default_rng(horizon)
    train, window, log = a_stream(rng, horizon)
    # The first column, the latest value, stays: units follow from it.
    tangents = [rng.standard_normal((2, *each.x.shape)) * [0, 1, 1] for each in (train, window)]
    units = (train.y - train.x[:, :1]).std(axis=0)
    z = np.append(model.space.values, [0.3, 0.1])

    def fitted(z):
        history, ahead = (
            moved(each, along, z[-2:])
            for each, along in zip((train, window), tangents, strict=True)
        )
        return model.fit(history, z[:-2]), ahead

    def errors(z):
        fit, ahead = fitted(z)
        return ahead.y - fit.predict(ahead.inputs)

    issue = issued_errors(errors(z), window.t, log)
    fit, ahead = fitted(z)
    bend = (1 + 2 * z[-2:])[:, None, None]
    along = Tangents(*(bend * each for each in tangents))
    g = fit.loss_and_gradient(ahead, along, log.loss(window.t))[1]

    def loss(z):
        return root_mean_square(issue(errors(z)) / units)

    np.testing.assert_allclose(g, central_difference(loss, z), rtol=1e-6, atol=1e-7)
    assert not np.allclose(g[-2:], fit.loss_and_gradient(ahead, along)[1][-2:], rtol=0.01)


def test_without_a_log_it_is_the_gradient_of_squared_errors_over_their_root_mean_square():
    rng = np.random.default_rng(0)
    train, window = rows(rng, N, 2, 0), rows(rng, M, 2, N)
    fit = Standardized(KernelRidge(Matern(np.full(3, 0.3), order=1.5))).fit(train)

    g = fit.loss_and_gradient(window, loss=CorrectionLog.start(2).loss(window.t))[1]

    loss, plain = fit.loss_and_gradient(window)
    np.testing.assert_allclose(g, plain / np.sqrt(loss / (2 * M)), rtol=1e-10)


def test_ten_times_smaller_errors_make_a_gradient_ten_times_smaller():
    errors = np.random.default_rng(0).standard_normal((M, 2))
    loss = CorrectionLog.start(2).loss(np.arange(float(M)))

    # The residuals are the same, and each counts as much as the error it moves with.
    np.testing.assert_allclose(loss.of(errors / 10)[1], loss.of(errors)[1], rtol=1e-12)
    assert loss.of(0 * errors)[1].tolist() == (0 * errors).tolist()


def test_a_window_too_long_to_hold_has_the_same_gradient_for_twice_the_kernels(monkeypatch):
    rng = np.random.default_rng(0)
    train, window = rows(rng, N, 2, 0), rows(rng, M, 2, N)
    fit = KernelRidge(Matern(np.full(3, 0.3), order=1.5)).fit(train)
    loss, made = a_log(rng, window.t, 2).loss(window.t), []
    rows_of = fit.rows
    monkeypatch.setattr(fit, "rows", lambda inputs: made.append(inputs) or rows_of(inputs))

    held = fit.loss_and_gradient(window, loss=loss)[1]
    once, made[:] = len(made), []
    monkeypatch.setattr(hypergradient, "HELD_ROWS", 0)
    again = fit.loss_and_gradient(window, loss=loss)[1]

    np.testing.assert_array_equal(again, held)
    assert len(made) == 2 * once


def test_residuals_of_two_errors_worked_by_hand():
    pulls = np.array([[0.0, 0.0, 0.5, 0.0]])
    log = CorrectionLog.start(1)
    for step in (5, 8):
        log = log.after(step, pulls, np.array([1.0]))

    loss, residuals = log.loss(np.array([5.0, 8.0])).of(np.array([[3.0], [7.0]]))

    # Issued errors are 2 and 6; the second was corrected by a mean of which the first is a part.
    keep = 0.5 ** (1 / 3)
    assert loss == pytest.approx(4 * np.sqrt(20))
    by_hand = np.array([[2 - 6 * 0.5 * (1 - keep) * keep**2], [6.0]]) / np.sqrt(20)
    np.testing.assert_allclose(residuals, by_hand)


def test_a_log_restarts_at_a_refit():
    log = a_log(np.random.default_rng(0), range(20), 1)

    later = log.since(15)

    assert later.steps.tolist() == [15, 16, 17, 18, 19]
    assert later.loss(np.array([14.0, 15.0])).counted.tolist() == [0, 1]
    np.testing.assert_array_equal(later.loss(np.array([16.0])).pulls, log.pulls[16:17])


def test_a_log_is_not_longer_than_a_refit_may_be_late(monkeypatch):
    monkeypatch.setattr("streamridge.forecaster.correction.MOST", 6)

    assert a_log(np.random.default_rng(0), range(20), 2).steps.tolist() == list(range(14, 20))


def test_a_forecaster_reports_its_correction():
    rng = np.random.default_rng(1)
    forecaster = Forecaster("1h", train_size=60, warmup=60, seasons=())
    assert forecaster.tuning.correction == {
        "half_life": pytest.approx(2.12, abs=0.01),
        "share": 0.0,
    }
    for i, value in enumerate(100 + np.cumsum(rng.standard_normal(150))):
        forecaster.observe(np.datetime64("2021-06-13T00", "h") + i, value)

    learned = forecaster.tuning.correction

    assert HALF_LIVES[0] < learned["half_life"] < HALF_LIVES[-1]
    assert 0 <= learned["share"] <= 1
    assert Forecaster.paper("1h").tuning.correction == {}
