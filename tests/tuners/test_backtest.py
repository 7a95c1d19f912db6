import numpy as np
import pytest

from streamridge import ARD, Box, KernelRidge, Linear, Samples, Simplex
from streamridge.hyperparameters.space import Space, positive_group
from streamridge.tuners.base import Backtest, split
from tests.support.samples import make_samples
from tests.support.toy_models import Quadratic, Watched, toy_backtest

MODEL = KernelRidge(ARD([0.3] * 5) + Linear())


@pytest.mark.parametrize(
    ("known", "train_size", "validation_size", "sizes"),
    [
        (100, 50, 20, (50, 20)),
        (100, 500, 20, (80, 20)),
        (100, 30, 500, (30, 50)),  # at most half is forecast
        (101, 500, 500, (51, 50)),
        (2, 1, 1, (1, 1)),
    ],
)
def test_the_latest_samples_are_forecast_and_earlier_ones_fitted(
    known, train_size, validation_size, sizes, rng
):
    samples = make_samples(rng, known)

    training, validation = split(samples, train_size, validation_size)

    assert (len(training), len(validation)) == sizes
    both = np.concatenate([training.t, validation.t])
    np.testing.assert_array_equal(both, samples.t[-sum(sizes) :])


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_no_fitted_label_lies_in_the_time_of_the_validation_set(horizon, rng):
    samples = make_samples(rng, 60, horizon=horizon, start=1000.0)

    training, validation = split(samples, 20, 15)

    assert (len(training), len(validation)) == (20, 15)
    assert training.t[-1] + horizon - 1 == validation.t[0] - 1
    assert validation.t[-1] == samples.t[-1]


def test_with_missing_samples_only_labels_that_reach_too_far_are_left_out(rng):
    whole = make_samples(rng, 16, horizon=4)
    t = np.array([*range(8), *range(20, 28)])
    samples = Samples.of(t, whole.x, whole.y, whole.inputs.layout)

    at_the_gap, after_it = split(samples, 99, 8), split(samples, 99, 6)

    assert at_the_gap[0].t.tolist() == [*range(8)]
    assert at_the_gap[1].t.tolist() == [*range(20, 28)]
    assert after_it[0].t.tolist() == [*range(8)]
    assert after_it[1].t.tolist() == [*range(22, 28)]


def test_samples_keep_their_features_and_labels(rng):
    samples = make_samples(rng, 30, horizon=3)

    training, validation = split(samples, 8, 10)

    np.testing.assert_array_equal(validation.x, samples.x[20:])
    np.testing.assert_array_equal(validation.y, samples.y[20:])
    np.testing.assert_array_equal(training.x, samples.x[10:18])
    np.testing.assert_array_equal(training.y, samples.y[10:18])


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_loss_is_the_mean_squared_error_of_the_validation_set(horizon, rng):
    training = make_samples(rng, 40, horizon=horizon)
    validation = make_samples(rng, 20, horizon=horizon, start=40.0)
    lam = MODEL.space.values

    loss = Backtest(MODEL, training, validation).loss(lam)

    errors = validation.y - MODEL.fit(training, lam).predict(validation.inputs)
    np.testing.assert_allclose(loss, np.sum(errors**2) / 20, rtol=1e-12)


def test_the_gradient_belongs_to_the_loss(rng):
    training, validation = make_samples(rng, 40), make_samples(rng, 20, start=40.0)
    backtest = Backtest(MODEL, training, validation)
    lam = MODEL.space.values

    loss, gradient = backtest.loss_and_gradient(lam, 1e-12)

    exact = MODEL.fit(training, lam).loss_and_gradient(validation)
    np.testing.assert_allclose(loss, exact[0] / 20, rtol=1e-8)
    np.testing.assert_allclose(gradient, exact[1] / 20, rtol=1e-6, atol=1e-10)


def test_fits_pass_on_their_memory_and_approximate_fits_their_solutions(rng):
    handed = []

    class Spying(Watched):
        def fit(self, samples, lam, retired=None):
            handed.append(("exact", retired))
            return super().fit(samples, lam, retired)

        def approximate(self, samples, lam, tolerance, before=None):
            handed.append(("approximate", before))
            return super().approximate(samples, lam, tolerance, before)

    model = Spying(MODEL)
    backtest = Backtest(model, make_samples(rng, 40), make_samples(rng, 20, start=40.0))
    lam = MODEL.space.values

    for _ in range(2):
        backtest.loss(lam)
        backtest.loss_and_gradient(lam, 0.01)

    kinds, fits = zip(*handed, strict=True)
    assert kinds == ("exact", "approximate") * 2
    assert fits[:2] == (None, None)
    assert all(fits[2:])
    assert fits[2] is not fits[3]


def test_after_a_failure_fits_do_not_reuse_earlier_fits():
    model = Watched(Quadratic(np.ones(1), np.ones(1)), refused=lambda lam: lam[0] > 2)
    backtest = toy_backtest(model)

    losses = [backtest.loss(np.array([lam])) for lam in (1.0, 3.0, 1.0)]
    pairs = [backtest.loss_and_gradient(np.array([lam]), 0.1) for lam in (1.0, 3.0, 1.0)]

    assert losses == [1.0, np.inf, 1.0]
    assert [loss for loss, _ in pairs] == [1.0, np.inf, 1.0]
    assert pairs[1][1].tolist() == [0.0]
    assert (backtest.fits, backtest.gradients) == (6, 2)


@pytest.mark.parametrize("broken", ["loss", "gradient"])
def test_a_fit_without_finite_results_is_not_reused(broken):
    before_each = []

    class Broken(Quadratic):
        def approximate(self, samples, lam, tolerance, before=None):
            before_each.append(before)
            fit = self.fit(samples, lam)
            factor = np.nan if lam[0] > 2 else 1.0
            setattr(fit, broken, factor * getattr(fit, broken))
            return fit

    backtest = toy_backtest(Broken(np.ones(1), np.ones(1)))

    losses = [backtest.loss_and_gradient(np.array([lam]), 0.1)[0] for lam in (1.0, 3.0, 1.0)]

    assert losses == [1.0, np.inf, 1.0]
    assert before_each[1] is not None
    assert before_each[2] is None


def test_a_backtest_searches_the_space_of_the_model_by_default():
    model = Quadratic(np.ones(2), np.ones(2))
    other = model.space.holding(np.ones(2), np.array([True, False]))

    assert toy_backtest(model).space.feasible.parts[0].low.tolist() == [1e-3, 1e-3]
    assert toy_backtest(model, other).space is other


def test_held_members_of_a_box_are_fixed_and_the_others_keep_their_bounds():
    space = Space((positive_group("scales", "scale", [1.0, 2.0, 3.0], (0.1, 9.0)),))

    held = space.holding(np.array([1.5, 2.5, 3.5]), np.array([False, True, False]))

    (group,) = held.groups
    assert group.feasible.low.tolist() == [0.1, 2.5, 0.1]
    assert group.feasible.high.tolist() == [9.0, 2.5, 9.0]
    assert group.learned
    assert held.names == space.names


def test_a_held_weight_holds_its_simplex_and_no_other_group():
    space = MODEL.space
    lam = space.feasible.project(np.array([0.3, 0.7, *space.values[2:]]))

    held = space.holding(lam, np.arange(len(lam)) == 1)

    assert held.groups[0].feasible.low.tolist() == [0.3, 0.7]
    assert held.groups[0].feasible.high.tolist() == [0.3, 0.7]
    assert not held.groups[0].learned
    assert held.groups[1:] == space.groups[1:]


def test_holding_nothing_keeps_the_space():
    space = MODEL.space

    held = space.holding(space.values, np.zeros(len(space.values), dtype=bool))

    assert held.groups == space.groups
    assert isinstance(held.groups[0].feasible, Simplex)


def test_a_box_held_as_a_whole_is_constant():
    space = Space((positive_group("rate", "scale", 1.0, (0.1, 9.0)),))

    (group,) = space.holding(np.array([4.0]), np.array([True])).groups

    assert isinstance(group.feasible, Box)
    assert group.feasible.low.tolist() == group.feasible.high.tolist() == [4.0]
    assert not group.learned
