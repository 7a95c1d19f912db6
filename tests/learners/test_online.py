"""Algorithm 2 against a literal transcription of its lines, and what its users rely on."""

from dataclasses import replace

import numpy as np
import pytest

import streamridge.models.kernel_ridge
from streamridge import (
    ARD,
    AdaGradStep,
    AgreementStep,
    AutoregressiveRidge,
    Chart,
    ConstantStep,
    Drifting,
    Features,
    FitError,
    InvalidInputError,
    KernelRidge,
    Linear,
    Matern,
    Mixture,
    NotPositiveDefiniteError,
    OnlineLearner,
    Periodic,
    Samples,
    StateError,
    local_regret,
    run,
)
from streamridge.learners.online import GradientPolicy
from tests import oracles

N, M, STEPS = 60, 8, 40


@pytest.fixture
def factored(monkeypatch):
    """Return a list that grows with every system that is made ready."""
    made, solvable = [], streamridge.models.kernel_ridge.solvable
    monkeypatch.setattr(
        streamridge.models.kernel_ridge, "solvable", lambda *args: made.append(1) or solvable(*args)
    )
    return made


@pytest.fixture
def samples(rng):
    t = np.arange(N + STEPS + 5)
    series = np.sin(2 * np.pi * t / 12) + 0.01 * t + 0.3 * rng.normal(size=len(t))
    return Features(lags=4).samples(series)


def learn(learner, samples, path=None):
    predictions = []
    for step in run(learner, samples):
        predictions.append(step.forecast[0])
        if path is not None:
            path.append(np.array(list(learner.hyperparameters.values())))
    return np.array(predictions)


@pytest.mark.parametrize("eta", [0.2, 5.0])
def test_the_papers_settings_follow_algorithm_2_line_by_line(samples, eta):
    kernel = Periodic(11.0, 1.0, period_bounds=(5, 20), period_trust=np.inf) + ARD(np.full(4, 0.2))
    model = KernelRidge(kernel, 0.3, regularization_bounds=(0.03, 3.0))
    low = np.array([0, 0, 5.0, 1e-3, *[1e-6] * 4, 0.03])
    high = np.array([1, 1, 20.0, 1e3, *[1e2] * 4, 3.0])

    def move(lam, g):
        moved = np.clip(lam - eta * g / M, low, high)
        moved[:2] = oracles.project_simplex_by_bisection((lam - eta * g / M)[:2])
        return moved

    expected, path = oracles.algorithm_2(
        oracles.paper_kernel, samples.t, samples.x, samples.y[:, 0], model.space.values,
        N=N, m=M, T=STEPS, move=move,
    )  # fmt: skip
    learner = OnlineLearner(
        model,
        samples[:N],
        train_size=N,
        update_every=M,
        step=ConstantStep(eta),
        coordinates=Chart.natural,
    )
    walked = []
    predictions = learn(learner, samples[N : N + STEPS], walked)

    np.testing.assert_allclose(predictions, expected, rtol=1e-8)
    np.testing.assert_allclose(walked[: STEPS - 1 : M], path, rtol=1e-8, atol=1e-10)
    assert np.abs(path[-1] - path[0]).max() > 0.01  # there was something to follow


def test_our_settings_follow_algorithm_2_line_by_line(samples):
    kernel = Drifting(
        Periodic(12.0, 1.0) + Matern(np.full(4, 0.2)) + Linear(), rate=1e-3, rate_bounds=(1e-6, 0.1)
    )
    model = KernelRidge(kernel, 0.3, regularization_bounds=(0.03, 3.0))
    low = np.array([1e-6, 0, 0, 0, 12.0, 1e-3, *[1e-6] * 4, 0.03])
    high = np.array([0.1, 1, 1, 1, 12.0, 1e3, *[1e2] * 4, 3.0])
    logged = np.array([True, False, False, False, *[True] * 7])
    memory = np.zeros(11)

    def move(lam, g):
        nonlocal memory
        mean = np.where(logged, lam, 1.0) * g / M
        mean[4] = 0.0  # the period is constant
        mean[1:4] -= mean[1:4].mean()  # weights gain only over each other
        memory = memory + mean**2
        step = np.divide(0.1 * mean, np.sqrt(memory), out=np.zeros(11), where=memory > 0)
        moved = np.where(logged, lam * np.exp(-step), lam - step)
        moved[1:4] = oracles.project_simplex_by_bisection(moved[1:4])
        return np.clip(moved, low, high)

    expected, path = oracles.algorithm_2(
        oracles.drifting_kernel, samples.t, samples.x, samples.y[:, 0], model.space.values,
        N=N, m=M, T=STEPS, move=move,
    )  # fmt: skip
    learner = OnlineLearner(model, samples[:N], train_size=N, update_every=M, step=AdaGradStep(0.1))
    walked = []
    predictions = learn(learner, samples[N : N + STEPS], walked)

    np.testing.assert_allclose(predictions, expected, rtol=1e-8)
    np.testing.assert_allclose(walked[: STEPS - 1 : M], path, rtol=1e-8, atol=1e-10)
    assert np.abs(np.log(path[-1][6:] / path[0][6:])).max() > 0.1


def make_learner(samples, **settings):
    model = KernelRidge(Periodic(12.0) + Matern(np.full(4, 0.2)))
    return OnlineLearner(model, samples[:N], **({"train_size": N, "update_every": M} | settings))


def test_streaming_equals_a_batch_fit_on_the_last_samples(samples):
    learner = make_learner(samples, learn=False)

    for _ in run(learner, samples[N : N + 3 * M]):
        pass

    batch = KernelRidge(Periodic(12.0) + Matern(np.full(4, 0.2))).fit(samples[3 * M : N + 3 * M])
    row = samples[N + 3 * M : N + 3 * M + 1]
    np.testing.assert_array_equal(learner.predict(row.t[0], row.x[0]), batch.predict(row.inputs)[0])


def test_one_factorization_per_window_and_none_between(samples, factored):
    learner = make_learner(samples)

    for _ in run(learner, samples[N : N + STEPS]):
        pass

    assert len(factored) == learner.refits == 1 + STEPS // M


def test_a_constant_stream_is_predicted_and_moves_nothing_far(rng):
    samples = Features(lags=4).samples(np.full(N + 60, 7.0))
    learner = make_learner(samples)

    predictions = learn(learner, samples[N:])

    np.testing.assert_allclose(predictions, 7.0)
    assert np.isfinite(list(learner.hyperparameters.values())).all()


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_units_give_sane_forecasts_through_many_windows(scale, rng):
    samples = Features(lags=4).samples(scale * rng.normal(size=N + 60))
    learner = make_learner(samples)

    predictions = learn(learner, samples[N:])

    assert np.abs(predictions).max() <= 10 * scale
    assert learner.skipped_moves == 0


def test_a_gradient_that_is_not_finite_is_skipped_and_counted(samples, monkeypatch):
    learner = make_learner(samples)
    monkeypatch.setattr(
        streamridge.models.kernel_ridge.KernelRidgeFit,
        "loss_and_gradient",
        lambda *_: (0.0, np.full(9, np.nan)),
    )
    before = learner.hyperparameters

    learn(learner, samples[N : N + 2 * M])

    assert learner.skipped_moves == 2
    assert learner.hyperparameters == before


def test_a_refit_that_keeps_failing_can_be_postponed(rng):
    seen = []
    series = np.sin(np.arange(200) / 4) + 0.2 * rng.normal(size=200)
    series[80] = 1e12  # one absurd reading: beside it the regularization is nothing
    samples = Features(lags=4).samples(series)
    model = KernelRidge(Matern(np.full(4, 0.2)) + Linear())
    learner = OnlineLearner(
        model,
        samples[:N],
        train_size=N,
        update_every=M,
        watch=lambda _, gradients: seen.append(len(gradients)),
    )
    postponed = 0

    for t, x, y in zip(samples.t[N:], samples.x[N:], samples.y[N:, 0], strict=True):
        try:
            learner.observe(t, x, y)
        except NotPositiveDefiniteError:
            postponed += 1
            learner.postpone_refit()
            learner.observe(t, x, y)

    # The reading leaves the training set in the end, and learning goes on.
    assert postponed > 0
    assert learner.training.t[0] > 80
    state = learner.state()
    assert state["newest"] == samples.t[-1]
    # The watcher has seen every row of the closed windows once, however often they were tried.
    assert sum(seen) + len(state["rows.window.t"]) == len(samples) - N


def test_a_postponed_window_is_learned_from_at_the_next_refit(rng, monkeypatch):
    series = np.sin(np.arange(N + M + 10) / 4) + 0.2 * rng.normal(size=N + M + 10)
    samples = Features(lags=4).samples(series)
    learner = OnlineLearner(
        KernelRidge(Matern(np.full(4, 0.2)) + Linear()),
        samples[:N],
        train_size=N,
        update_every=M,
    )
    start = learner.hyperparameters

    def fails(*_):
        raise FitError("not today")

    with monkeypatch.context() as failing:
        failing.setattr(streamridge.models.kernel_ridge, "solvable", fails)
        with pytest.raises(FitError, match="not today"):
            learn(learner, samples[N : N + M])
    learner.postpone_refit()

    learner.refit()

    assert learner.hyperparameters != start


def test_memory_passes_from_fit_to_fit(samples):
    learner = make_learner(samples)
    first = learner.fit.system.factor

    learn(learner, samples[N : N + M])

    assert np.shares_memory(first, learner.fit.system.factor)


@pytest.mark.parametrize(("released", "needed"), [(False, 1), (True, 2)])
def test_a_released_learner_makes_its_factor_again_when_the_window_ends(
    samples, factored, released, needed
):
    learner = make_learner(samples)
    learn(learner, samples[N : N + M - 1])
    if released:
        learner.release()
    factored.clear()

    learn(learner, samples[N + M - 1 : N + M])

    assert len(factored) == needed


def test_a_long_history_is_cut_to_the_train_size(samples):
    learner = make_learner(samples, train_size=20)

    np.testing.assert_array_equal(learner.training.t, samples.t[N - 20 : N])


def test_a_rule_without_a_rate_keeps_a_period_in_its_valley(samples):
    kernel = Periodic(11.0, period_bounds=(5, 20), period_trust=np.inf)
    settings = {"train_size": N, "update_every": M, "step": AgreementStep()}
    learner = OnlineLearner(KernelRidge(kernel), samples[:N], **settings)

    path = [learner.lam]
    for _ in run(learner, samples[N : N + 3 * M]):
        path.append(learner.lam)

    period, inverse_scale, _ = np.abs(np.diff(np.log(path), axis=0)).max(axis=0)
    assert 0 < period <= 0.005 * (1 + 1e-9)
    assert inverse_scale > 0.01


def test_a_learned_period_moves_within_its_trust_region(samples):
    model = KernelRidge(Periodic(11.0, period_bounds=(5, 20)) + Matern(np.full(4, 0.2)))
    learner = OnlineLearner(model, samples[:N], train_size=N, update_every=M, step=AdaGradStep(0.5))
    path = []

    learn(learner, samples[N : N + STEPS], path)

    periods = np.array(path)[:, 2]
    moves = np.abs(np.diff(np.log(np.append(11.0, periods))))
    assert 0 < moves.max() <= 0.005 * (1 + 1e-9)


def test_weights_that_are_not_learned_stay_put(samples):
    kernel = Mixture([Periodic(12.0), Linear()], weights=[0.7, 0.3], learn_weights=False)
    learner = OnlineLearner(KernelRidge(kernel), samples[:N], train_size=N, update_every=M)

    learn(learner, samples[N : N + STEPS])

    assert learner.hyperparameters["weight.periodic"] == 0.7
    assert learner.hyperparameters["periodic.inverse_scale"] != 1.0


@pytest.mark.parametrize("windows", [1, 3])
def test_a_policy_pulls_logarithms_and_weights_towards_usual_values(windows):
    kernel = Mixture([Periodic(12.0), Linear()], weights=[0.9, 0.1])
    space = KernelRidge(kernel, 0.01).space
    usual = KernelRidge(Mixture([Periodic(12.0), Linear()], weights=[0.5, 0.5]), 1.0).space.values
    policy = GradientPolicy.of(space, update_every=M, usual=usual, pull=0.2)

    flat = replace(policy, descent=policy.descent.add(np.zeros(len(usual))))
    moved = space.named(flat.moved(windows).lam)

    left = 0.8**windows
    assert moved["regularization"] == pytest.approx(0.01**left)
    assert moved["weight.periodic"] == pytest.approx(0.5 + 0.4 * left)
    assert moved["periodic.period"] == 12.0


def test_a_hyperparameter_at_its_bound_is_there_exactly_and_said_to_be(samples):
    bounds = (0.19, 0.2100000001)
    kernel = ARD(np.full(4, 0.2), inverse_scales_bounds=bounds)
    learner = OnlineLearner(
        KernelRidge(kernel), samples[:N], train_size=N, update_every=M, step=AdaGradStep(2.0)
    )

    learn(learner, samples[N : N + STEPS])

    scales = np.array(list(learner.hyperparameters.values()))[:4]
    assert bounds[0] <= scales.min()
    assert scales.max() <= bounds[1]
    at_bound = {f"inverse_scales[{i}]" for i in range(4)}
    assert at_bound <= set(learner.active_bounds)


def test_without_learning_no_gradient_is_computed(samples, monkeypatch):
    model = KernelRidge(Matern(np.full(4, 0.2)))
    learner = OnlineLearner(model, samples[:N], train_size=N, update_every=M, learn=False)
    monkeypatch.setattr(
        streamridge.models.kernel_ridge.KernelRidgeFit,
        "loss_and_gradient",
        lambda *_: pytest.fail("was called"),
    )

    learn(learner, samples[N : N + STEPS])

    np.testing.assert_array_equal(list(learner.hyperparameters.values()), model.space.values)


def test_learning_beats_a_misspecified_start(rng):
    t = np.arange(700)
    series = np.sin(2 * np.pi * t / 24) + 0.2 * rng.normal(size=700)
    samples = Features(lags=4).samples(series)
    errors = {}

    for learn_it in (False, True):
        model = KernelRidge(ARD(np.full(4, 1e-4)), regularization=1.0)
        learner = OnlineLearner(
            model, samples[:200], train_size=200, update_every=12, learn=learn_it
        )
        errors[learn_it] = [step.error**2 for step in run(learner, samples[200:])]

    assert np.mean(errors[True][-200:]) < 0.8 * np.mean(errors[False][-200:])


def test_history_grows_up_to_the_train_size(samples):
    learner = OnlineLearner(
        AutoregressiveRidge(np.ones(4)), samples[:5], train_size=20, update_every=4
    )

    sizes = []
    for step in run(learner, samples[5:45]):
        if step.time % 4 == 0:
            sizes.append(len(learner.training.t))

    assert sizes == [9, 13, 17, 20, 20, 20, 20, 20, 20, 20]


def test_the_watcher_sees_every_steps_gradient_and_changes_nothing(samples):
    seen = []
    watched = make_learner(samples, watch=lambda z, g: seen.append((z, g)))
    plain = make_learner(samples)

    first, second = (learn(learner, samples[N : N + STEPS]) for learner in (watched, plain))

    np.testing.assert_allclose(first, second, rtol=1e-9)
    assert [g.shape for _, g in seen] == [(M, 9)] * (STEPS // M)
    z = np.repeat([z for z, _ in seen], M, axis=0)
    g = np.vstack([g for _, g in seen])
    model = KernelRidge(Periodic(12.0) + Matern(np.full(4, 0.2)))
    feasible = Chart.log(model.space.feasible)
    np.testing.assert_allclose(seen[0][0], feasible.encode(model.space.values))
    first = model.fit(samples[:N]).step_gradients(samples[N : N + M])
    in_z = feasible.pull_back(model.space.values, first)
    np.testing.assert_allclose(seen[0][1], in_z, rtol=1e-9, atol=1e-12)
    assert local_regret(z, g, 0.1, feasible.feasible).shape == (STEPS,)


def test_active_bounds_are_reported_by_name(samples):
    kernel = Periodic(12.0) + ARD(np.full(4, 0.2), inverse_scales_bounds=(0.19, 0.21))
    learner = OnlineLearner(
        KernelRidge(kernel), samples[:N], train_size=N, update_every=M, step=AdaGradStep(0.5)
    )

    learn(learner, samples[N : N + STEPS])

    sides = learner.active_bounds
    assert sides
    assert set(sides) <= {f"ard.inverse_scales[{i}]" for i in range(4)} | {
        "weight.periodic",
        "weight.ard",
        "regularization",
    }
    assert set(sides.values()) <= {"lower", "upper"}


class TestHorizon:
    """Labels are used only once they are known, by the fit in force at the end of the window."""

    H = 3

    @pytest.fixture
    def samples(self, rng):
        t = np.arange(N + 60)
        series = np.sin(2 * np.pi * t / 12) + 0.3 * rng.normal(size=len(t))
        return Features(lags=4).samples(series, horizon=self.H)

    def make_learner(self, samples, **settings):
        model = KernelRidge(Periodic(12.0) + Matern(np.full(4, 0.2)))
        return OnlineLearner(
            model, samples[:N], **({"train_size": N, "update_every": M} | settings)
        )

    def test_the_future_cannot_be_seen(self, samples):
        later = samples.t[:, None] + np.arange(self.H) > samples.t[N - 1]
        unknown = Samples(samples.inputs, np.where(later, 1e3, samples.y))
        honest, poisoned = self.make_learner(samples), self.make_learner(unknown)
        stream = samples[N : N + 30]
        for t, x, y in zip(stream.t, stream.x, stream.y[:, 0], strict=True):
            np.testing.assert_array_equal(honest.predict(t, x), poisoned.predict(t, x))
            honest.observe(t, x, y)
            # A label enters one learner changed: every forecast before it must be the same.
            poisoned.observe(t, x, y if t < stream.t[20] else 1e3)
            if t >= stream.t[20]:
                break

    def test_a_row_is_trained_on_once_its_last_label_is_known(self, samples):
        learner = self.make_learner(samples, learn=False)

        learn(learner, samples[N : N + M])

        trained = learner.training
        # At the refit after step N + M - 1 the rows of the last two steps still wait.
        assert trained.t[-1] == samples.t[N + M - self.H]
        last = N + M - self.H
        np.testing.assert_array_equal(trained.y[-1], samples.y[last])
        assert len(learner.state()["rows.waiting.t"]) == self.H - 1

    def test_a_move_follows_the_rows_after_the_training_set_of_the_fit_in_force(self, samples):
        model = KernelRidge(Periodic(12.0) + Matern(np.full(4, 0.2)))
        learner = self.make_learner(samples, step=ConstantStep(1e-3), coordinates=Chart.natural)
        path = []
        learn(learner, samples[N : N + 2 * M], path)

        space = model.space
        # Two labels of the last two samples of the history had not come when it ended.
        first_fit = model.fit(samples[: N - 2])
        g = first_fit.loss_and_gradient(samples[N - 2 : N + M - 2])[1] * space.learned
        lam = space.feasible.project(space.values - 1e-3 * g / M)
        np.testing.assert_allclose(path[M - 1], lam, rtol=1e-9)

        second_fit = model.fit(samples[M - 2 : N + M - 2], lam)
        # The first fit predicted two of these rows. Their labels came after the refit.
        g = second_fit.loss_and_gradient(samples[N + M - 2 : N + 2 * M - 2])[1] * space.learned
        lam = space.feasible.project(lam - 1e-3 * g / M)
        np.testing.assert_allclose(path[2 * M - 1], lam, rtol=1e-9)

    def test_every_row_is_trained_on_once_and_in_order(self, samples):
        learner = self.make_learner(samples)

        learn(learner, samples[N : N + 4 * M])

        np.testing.assert_array_equal(np.diff(learner.training.t), 1.0)

    def test_late_rows_cost_no_factorization(self, samples, factored):
        learner = self.make_learner(samples)

        learn(learner, samples[N : N + 4 * M])

        assert len(factored) == learner.refits == 5

    def test_the_watcher_gets_the_gradient_of_each_row_once(self, samples):
        seen = []
        learner = self.make_learner(samples, watch=lambda z, g: seen.append((z, g)))

        learn(learner, samples[N : N + 3 * M + 1])

        points, gradients = zip(*seen, strict=True)
        assert [len(g) for g in gradients] == [M, M, M]
        assert len(np.unique(np.vstack(gradients), axis=0)) == 3 * M
        assert len(np.unique(points, axis=0)) == 3

    @pytest.mark.parametrize("after", [0, 1, 4])
    def test_after_a_new_setting_its_fit_teaches_all_rows_it_was_not_trained_on(
        self, samples, after
    ):
        seen = []
        learner = self.make_learner(samples, watch=lambda z, g: seen.append((z, len(g))))
        learn(learner, samples[N : N + M + after])
        told = len(seen)

        learner.assign({"regularization": 2.0})
        learn(learner, samples[N + M + after : N + 2 * M + after])

        # Two rows waited for labels when it was fitted.
        ((z, rows),) = seen[told:]
        assert rows == M
        assert np.exp(z[-1]) == pytest.approx(2.0)

    @pytest.mark.parametrize("after", [0, 1, 4])
    def test_after_a_new_setting_no_row_is_lost_from_the_training_set(self, samples, after):
        learner = self.make_learner(samples)
        learn(learner, samples[N : N + M + after])

        learner.assign({"regularization": 2.0})
        learn(learner, samples[N + M + after : N + 3 * M + after])

        times = learner.training.t
        np.testing.assert_array_equal(np.diff(times), 1.0)
        assert times[-1] == samples.t[N + 3 * M + after - self.H]

    @pytest.mark.parametrize(("released", "needed"), [(False, 1), (True, 2)])
    def test_a_released_learner_makes_one_factor_more_and_gives_the_same_numbers(
        self, samples, factored, released, needed
    ):
        learner, twin = self.make_learner(samples), self.make_learner(samples)
        for each in (learner, twin):
            learn(each, samples[N : N + M + 1])
        learn(twin, samples[N + M + 1 : N + 2 * M])
        if released:
            learner.release()
        factored.clear()

        learn(learner, samples[N + M + 1 : N + 2 * M])

        assert len(factored) == needed
        assert_same_state(learner.state(), twin.state())

    @pytest.mark.parametrize("after", range(1, M))
    def test_restored_in_a_window_it_continues_bit_for_bit(self, samples, after):
        learner, twin = self.make_learner(samples), self.make_learner(samples)
        learn(learner, samples[N : N + M + after])

        twin.restore(learner.state())

        for each in (learner, twin):
            learn(each, samples[N + M + after : N + 3 * M])
        assert_same_state(learner.state(), twin.state())

    def test_a_window_may_be_as_short_as_the_horizon(self, samples):
        learner = self.make_learner(samples, update_every=self.H)

        learn(learner, samples[N : N + 30])

        assert learner.refits == 11
        np.testing.assert_array_equal(np.diff(learner.training.t), 1.0)

    @pytest.mark.parametrize("step", [0.5, 900.0])
    def test_times_that_do_not_count_steps_are_refused(self, samples, step):
        odd = Samples.of(step * samples.t, samples.x, samples.y, samples.inputs.layout)

        with pytest.raises(InvalidInputError, match="history must have times in whole steps"):
            self.make_learner(odd)

    def test_a_row_between_two_steps_is_refused(self, samples):
        learner = self.make_learner(samples)

        with pytest.raises(
            InvalidInputError, match=r"time must be a whole number of steps, got 64\.5"
        ):
            learner.observe(64.5, samples.x[N], 1.0)

    def test_a_row_that_misses_a_label_is_never_learned_from(self, samples):
        learner = self.make_learner(samples)
        rows = [row for row in range(N, N + 2 * M + 1) if row != N + 3]

        for row in rows:
            learner.observe(samples.t[row], samples.x[row], samples.y[row, 0])

        trained = learner.training.t
        missed = samples.t[N + 3]
        assert not {missed - 2, missed - 1, missed} & set(trained)
        assert missed - 3 in trained
        assert missed + 1 in trained

    def test_a_history_shorter_than_the_horizon_is_refused(self, samples):
        with pytest.raises(
            InvalidInputError, match="history must hold at least 3 samples, one per horizon, got 2"
        ):
            self.make_learner(samples[:2])

    def test_a_horizon_longer_than_the_window_is_refused(self, samples):
        with pytest.raises(
            InvalidInputError, match="update_every must be at least the horizon 3, got 2"
        ):
            self.make_learner(samples, update_every=2)


BAD_ROWS = {
    "nan in x": ((100.0, [1, 2, np.nan, 4], 1.0), "x must be finite, got nan at index 2"),
    "inf in x": ((100.0, [1, 2, np.inf, 4], 1.0), "x must be finite, got inf at index 2"),
    "nan in y": ((100.0, [1, 2, 3, 4], np.nan), r"y must be finite, got nan\."),
    "text in y": ((100.0, [1, 2, 3, 4], "n/a"), "y must be a number, got 'n/a'"),
    "nothing in y": ((100.0, [1, 2, 3, 4], None), "y must be a number, got None"),
    "text for a number": ((100.0, [1, 2, 3, 4], "5"), "y must be a number, got '5'"),
    "a truth for a number": ((100.0, [1, 2, 3, 4], True), "y must be a number, got True"),
    "a list in y": ((100.0, [1, 2, 3, 4], [1.0]), r"y must be one number, got \[1\.0\]"),
    "a date": ((np.datetime64("2021-01-01"), [1, 2, 3, 4], 1.0), "time must be a number"),
    "the newest time again": ((66.0, [1, 2, 3, 4], 1.0), "time must be later than 66, got 66"),
    "few features": ((100.0, [1, 2, 3], 1.0), r"x must have 4 features \(4 lags\), got 3"),
    "a table in x": ((100.0, [[1, 2, 3, 4]], 1.0), r"x must have shape \(any,\), got \(1, 4\)"),
    "a time again": ((63.0, [1, 2, 3, 4], 1.0), "time must be later than 66, got 63"),
    "no time": ((np.nan, [1, 2, 3, 4], 1.0), r"time must be finite, got nan\."),
}


@pytest.mark.parametrize(("row", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_bad_row_is_refused_and_changes_nothing(row, message, samples):
    learner = make_learner(samples)
    learn(learner, samples[N : N + 3])
    before = learner.state()

    with pytest.raises(InvalidInputError, match=message):
        learner.observe(*row)

    assert_same_state(learner.state(), before)


def test_the_callers_arrays_may_be_reused(samples):
    plain, reused = make_learner(samples), make_learner(samples)
    x = np.empty(4)

    for row in range(N, N + 2 * M):
        plain.observe(samples.t[row], samples.x[row], samples.y[row, 0])
        x[:] = samples.x[row]
        reused.observe(samples.t[row], x, samples.y[row, 0])
        x[:] = np.nan
    reused.state()["rows.settled.x"][:] = np.nan

    assert_same_state(plain.state(), reused.state())


def test_a_refit_that_fails_changes_nothing_and_the_learner_continues(samples, monkeypatch):
    learner = make_learner(samples)
    learn(learner, samples[N : N + M - 1])
    before = learner.state()
    last = N + M - 1
    row = samples.t[last], samples.x[last], samples.y[last, 0]
    real = streamridge.models.kernel_ridge.solvable

    def fails(ridge, A, blocks, memory, times):
        memory.rewind()
        raise NotPositiveDefiniteError("A", times[-1], "regularization", 0.3, 0.03)

    # The gradient is computed with the old system; the new one has no factor.
    monkeypatch.setattr(streamridge.models.kernel_ridge, "solvable", fails)
    with pytest.raises(NotPositiveDefiniteError, match="has no Cholesky factor"):
        learner.observe(*row)
    monkeypatch.setattr(streamridge.models.kernel_ridge, "solvable", real)

    assert_same_state(learner.state(), before)
    twin = make_learner(samples)
    learn(twin, samples[N : N + M - 1])
    for each in (learner, twin):
        learn(each, samples[N + M - 1 : N + 3 * M])
    assert_same_state(learner.state(), twin.state())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda s: make_learner(s, update_every=0),
            "update_every must be a whole number of at least 1",
        ),
        (
            lambda s: make_learner(s, train_size=0),
            "train_size must be a whole number of at least 1",
        ),
        (lambda s: make_learner(s[:0]), "history must hold at least one sample, got none"),
        (lambda s: make_learner(flipped(s)), "history must have increasing times"),
    ],
)
def test_bad_settings_are_refused(build, message, samples):
    with pytest.raises(InvalidInputError, match=message):
        build(samples)


def test_a_state_without_a_part_is_refused(samples):
    learner = make_learner(samples)
    state = learner.state()
    del state["rows.window.y"]

    with pytest.raises(StateError, match=r"state must hold 'window\.y', got"):
        learner.restore(state)


def test_a_state_of_another_model_is_refused(samples):
    learner = make_learner(samples)
    other = OnlineLearner(KernelRidge(Linear()), samples[:N], train_size=N, update_every=M)

    with pytest.raises(StateError, match=r"state must hold 9 hyperparameters, got 1"):
        learner.restore(other.state())


def test_a_state_with_other_features_is_refused(samples):
    learner = make_learner(samples)
    state = learner.state()
    state["rows.settled.x"] = state["rows.settled.x"][:, :2]

    with pytest.raises(
        StateError, match="state must hold rows of 4 features and 1 labels in 'settled'"
    ):
        learner.restore(state)


DAMAGED = {
    "steps": (np.int64(99), "state must have fewer than 8 steps since its refit, got 99"),
    "refits": (None, "state is damaged: refits must be a whole number of at least 1, got None"),
    "policy.moves": (np.ones(2), "state is damaged: moves must be a whole number"),
    "rows.settled.x": (np.full((N, 4), np.nan), "state is damaged: settled.x must be finite"),
    "rows.settled.y": (np.full((N, 1), np.nan), "state is damaged: settled.y must be finite"),
    "newest": (np.nan, "state is damaged: newest must be finite, got nan"),
    "policy.z": (np.full(9, 1e9), "state is damaged: z must lie in the feasible set"),
    "policy.g": (np.zeros(3), r"state is damaged: g must have shape \(9,\), got \(3,\)"),
    "policy.memory": (np.full(9, np.inf), "state is damaged: memory must be finite"),
    "current.lam": (np.full(9, np.nan), "state is damaged: lam must be finite"),
    "current.fit.dual_weights": (np.zeros((3, 1)), "dual_weights must have shape"),
    "rows.window.t": (
        np.float64(3.0),
        "state must hold rows of 4 features and 1 labels in 'window'",
    ),
}


def test_hyperparameters_outside_their_bounds_are_refused(samples):
    learner = make_learner(samples)

    with pytest.raises(StateError, match="state must hold feasible hyperparameters, got"):
        learner.restore(learner.state() | {"current.lam": np.full(9, -5.0)})


@pytest.mark.parametrize(("name", "damage"), DAMAGED.items(), ids=DAMAGED)
def test_a_damaged_state_is_refused_and_changes_nothing(name, damage, samples):
    learner = make_learner(samples)
    before = learner.state()
    value, message = damage

    with pytest.raises(StateError, match=message):
        learner.restore(before | {name: value})

    assert_same_state(learner.state(), before)


def flipped(samples):
    return Samples.of(samples.t[::-1], samples.x, samples.y, samples.inputs.layout)


def assert_same_state(first, second):
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
