"""A learner while it runs: rows that come late, labels without a row, hyperparameters by name."""

import numpy as np
import pytest

from streamridge import (
    Chart,
    ConstantStep,
    Features,
    InvalidInputError,
    KernelRidge,
    Linear,
    Mixture,
    OnlineLearner,
    Periodic,
    SquaredExponential,
)

MODEL = KernelRidge(Mixture([SquaredExponential(0.3), Linear()]))
N, M = 60, 10


@pytest.fixture
def samples():
    rng = np.random.default_rng(1)
    return Features(lags=4).samples(np.sin(np.arange(200) / 5) + 0.1 * rng.standard_normal(200))


def make(samples, **options):
    return OnlineLearner(MODEL, samples[:N], train_size=N, update_every=M, **options)


def walk(learner, part):
    for t, x, y in zip(part.t, part.x, part.y[:, 0], strict=True):
        learner.observe(t, x, y)


def test_a_value_without_a_row_is_not_trained_on_but_counts_as_a_step(samples):
    learner = make(samples)

    for i, (t, x, y) in enumerate(zip(*part_of(samples[N : N + M]), strict=True)):
        learner.observe(t, None if i == 3 else x, y)

    assert learner.refits == 2
    assert samples.t[N + 3] not in learner.training.t
    assert samples.t[N + 4] in learner.training.t


def test_a_value_without_a_row_labels_the_rows_before_it():
    series = np.sin(np.arange(120) / 5)
    samples = Features(lags=4).samples(series, horizon=3)
    learner = make(samples)

    for i, (t, x, y) in enumerate(zip(*part_of(samples[N : N + 2 * M]), strict=True)):
        learner.observe(t, None if i == 5 else x, y)

    trained = learner.training
    before = np.flatnonzero(trained.t == samples.t[N + 4])
    np.testing.assert_array_equal(trained.y[before[0]], samples.y[N + 4])
    assert samples.t[N + 5] not in trained.t


def test_setting_a_hyperparameter_refits_at_once(samples):
    learner = make(samples)
    walk(learner, samples[N : N + 4])

    learner.assign({"regularization": 7.0})

    expected = MODEL.fit(samples[4 : N + 4], learner.lam)
    inputs = samples[N + 4 : N + 5].inputs
    assert learner.hyperparameters["regularization"] == pytest.approx(7.0)
    np.testing.assert_allclose(learner.fit.predict(inputs), expected.predict(inputs))


def test_a_frozen_hyperparameter_stays_and_a_weight_holds_its_simplex(samples):
    learner = make(samples)

    learner.freeze("regularization", "weight.linear")
    before = learner.hyperparameters
    walk(learner, samples[N : N + 3 * M])

    assert learner.frozen == ("weight.squaredexponential", "weight.linear", "regularization")
    after = learner.hyperparameters
    for name in learner.frozen:
        assert after[name] == before[name]
    assert after["squaredexponential.inverse_scale"] != before["squaredexponential.inverse_scale"]


def test_frozen_hyperparameters_stay_frozen_in_a_state(samples):
    learner, other = make(samples), make(samples)
    learner.freeze("regularization")

    other.restore(learner.state())

    assert other.frozen == ("regularization",)


def test_an_unfrozen_hyperparameter_is_learned_again(samples):
    learner = make(samples)
    learner.freeze("regularization")
    learner.unfreeze("regularization")
    before = learner.hyperparameters["regularization"]

    walk(learner, samples[N : N + M])

    assert learner.frozen == ()
    assert learner.hyperparameters["regularization"] != before


def learning_a_period(samples, coordinates):
    """Return a learner whose steps are far too long, but for the trust in its period."""
    kernel = Periodic(30.0, period_bounds=(5.0, 200.0), period_trust=0.04)
    return OnlineLearner(
        KernelRidge(kernel),
        samples[:N],
        train_size=N,
        update_every=M,
        step=ConstantStep(1e9),
        coordinates=coordinates,
    )


# As it is, a period of 30 moves by 4 % of 30; in logarithms, by a factor of exp(0.04).
TRUSTED = {"natural": (Chart.natural, (28.8, 31.2)), "log": (Chart.log, 30 * np.exp([-0.04, 0.04]))}


@pytest.mark.parametrize(("coordinates", "within"), TRUSTED.values(), ids=TRUSTED)
def test_a_trusted_change_is_relative(samples, coordinates, within):
    learner = learning_a_period(samples, coordinates)

    walk(learner, samples[N : N + M])

    moved = learner.hyperparameters["period"]
    assert min(abs(moved - edge) for edge in within) < 1e-9


@pytest.mark.parametrize(("coordinates", "within"), TRUSTED.values(), ids=TRUSTED)
def test_an_unfrozen_hyperparameter_keeps_to_its_trusted_change(samples, coordinates, within):
    learner = learning_a_period(samples, coordinates)
    learner.freeze("period")
    learner.unfreeze("period")

    walk(learner, samples[N : N + M])

    moved = learner.hyperparameters["period"]
    assert min(abs(moved - edge) for edge in within) < 1e-9


def test_what_a_window_taught_is_forgotten_when_hyperparameters_are_set(samples):
    learner = make(samples, step=ConstantStep(0.01))
    walk(learner, samples[N : N + 6])

    learner.assign({"regularization": 2.0})
    lam, fit = learner.lam, learner.fit
    window = samples[N + 6 : N + 6 + M]
    _, g = fit.loss_and_gradient(window)
    walk(learner, window)

    # The mean gradient of the ten rows since, in logarithms, is all that moves it.
    expected = np.log(lam[-1]) - 0.01 * g[-1] * lam[-1] / M
    assert np.log(learner.hyperparameters["regularization"]) == pytest.approx(expected, rel=1e-12)


def test_rows_that_had_all_labels_before_a_setting_teach_nothing():
    rng = np.random.default_rng(1)
    series = np.sin(np.arange(120) / 5) + 0.1 * rng.standard_normal(120)
    samples = Features(lags=4).samples(series, horizon=3)
    learner = make(samples, step=ConstantStep(0.01))
    walk(learner, samples[N : N + M])
    start = N + M + 2
    for t, _, y in zip(*part_of(samples[N + M : start]), strict=True):
        learner.observe(t, None, y)  # the last labels of the window, and no row that would wait

    learner.assign({"regularization": 2.0})
    lam, fit = learner.lam, learner.fit
    walk(learner, samples[start : start + M])

    # Of the ten rows since, eight have all three labels at the window's end.
    _, g = fit.loss_and_gradient(samples[start : start + M - 2])
    expected = np.log(lam[-1]) - 0.01 * g[-1] * lam[-1] / (M - 2)
    assert np.log(learner.hyperparameters["regularization"]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("act", ["freeze", "unfreeze"])
def test_an_unknown_name_is_refused(act, samples):
    with pytest.raises(InvalidInputError, match=r"hyperparameter must be one of .*, got 'nu'"):
        getattr(make(samples), act)("nu")


def test_a_refit_after_setting_keeps_rows_that_wait_for_labels():
    samples = Features(lags=4).samples(np.sin(np.arange(120) / 5), horizon=3)
    learner = make(samples)
    walk(learner, samples[N : N + M + 1])

    learner.assign({"regularization": 1.0})
    walk(learner, samples[N + M + 1 : N + 3 * M])

    trained = set(learner.training.t)
    assert set(samples.t[N : N + M]) <= trained


@pytest.mark.parametrize("into_the_window", [1, M - 1])
def test_rows_that_wait_for_labels_teach_by_the_fit_of_the_new_setting(into_the_window):
    rng = np.random.default_rng(1)
    series = np.sin(np.arange(120) / 5) + 0.1 * rng.standard_normal(120)
    samples = Features(lags=4).samples(series, horizon=3)
    learner = make(samples, step=ConstantStep(0.01))
    start = N + into_the_window
    walk(learner, samples[N:start])

    learner.assign({"regularization": 2.0})
    lam, fit = learner.lam, learner.fit
    walk(learner, samples[start : start + M])

    # Two rows waited for labels when it was fitted, and two wait at the window's end.
    _, g = fit.loss_and_gradient(samples[start - 2 : start + M - 2])
    expected = np.log(lam[-1]) - 0.01 * g[-1] * lam[-1] / M
    assert np.log(learner.hyperparameters["regularization"]) == pytest.approx(expected, rel=1e-12)
    assert set(samples.t[N:start]) <= set(learner.training.t)


def part_of(samples):
    return samples.t, samples.x, samples.y[:, 0]
