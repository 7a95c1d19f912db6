import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from streamridge import (
    ARD,
    InvalidInputError,
    KernelRidge,
    Linear,
    NotPositiveDefiniteError,
    Samples,
    SquaredExponential,
)
from streamridge.hyperparameters.feasible import chart_of
from streamridge.tuners import HOAG
from streamridge.tuners.base import Backtest
from tests.support.samples import make_samples
from tests.support.toy_models import (
    HIGH,
    LOW,
    WIDTH,
    Quadratic,
    QuadraticFit,
    Watched,
    search,
    toy_backtest,
)


def test_a_step_to_a_point_without_a_factor_is_undone():
    model = Watched(Quadratic(np.array([30.0]), np.ones(1)), refused=lambda lam: lam[0] > 20)

    found = search(HOAG(first_step=0.6), toy_backtest(model))

    assert max(lam[0] for lam in model.approximated) > 20
    assert 10 < found.lam[0] <= 20


def test_a_system_whose_entries_overflow_leaves_the_start():
    x = 1e160 * np.arange(1.0, 41.0)[:, None]
    samples = Samples.of(np.arange(40.0), x, np.arange(40.0))
    model = KernelRidge(Linear())

    with np.errstate(all="ignore"):
        found = search(HOAG(), Backtest(model, samples[:30], samples[30:]))

    np.testing.assert_array_equal(found.lam, model.space.values)
    assert found.loss == np.inf


def test_an_approximate_fit_whose_entries_overflow_is_refused():
    samples = Samples.of([0, 1], [[1e160], [2e160]], [1.0, 2.0])
    model = KernelRidge(Linear())

    with (
        np.errstate(all="ignore"),
        pytest.raises(NotPositiveDefiniteError, match="has no Cholesky factor at t=1 "),
    ):
        model.approximate(samples, model.space.values, 0.01)


def test_a_gradient_that_is_not_finite_is_not_followed():
    class Broken(Quadratic):
        def approximate(self, samples, lam, tolerance, before=None):
            fit = self.fit(samples, lam)
            fit.gradient[:] = np.nan if lam[0] > 1.5 else fit.gradient
            return fit

    found = search(HOAG(), toy_backtest(Broken(np.array([30.0]), np.ones(1))))

    assert 1.2 <= found.lam[0] <= 1.5


def test_a_coordinate_at_its_bound_does_not_slow_down_the_others():
    model = Quadratic(best=np.array([1e-9, 30.0]), bends=np.array([1e4, 1.0]))

    found = search(HOAG(stop=1e-8), toy_backtest(model), start=[LOW, 1.0])

    np.testing.assert_allclose(found.lam, [LOW, 30.0], rtol=1e-2)


def test_a_descent_without_possible_moves_ends_at_once():
    model = Watched(Quadratic(best=np.array([1e-9, 1e9]), bends=np.array([1.0, 1e4])))

    found = search(HOAG(), toy_backtest(model), start=[LOW, HIGH])

    np.testing.assert_array_equal(found.lam, [LOW, HIGH])
    assert len(model.approximated) == 1


def test_a_descent_with_all_coordinates_held_ends_at_once():
    model = Watched(Quadratic(best=np.array([1e-9, 1e9]), bends=np.array([1.0, 1e9])))
    start = model.space.values
    held = model.space.holding(start, np.ones(2, dtype=bool))

    found = search(HOAG(), toy_backtest(model, held))

    np.testing.assert_array_equal(found.lam, start)
    assert len(model.approximated) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iterations": 0}, r"^iterations must be a whole number of at least 1, got 0\.$"),
        ({"coordinates": "polar"}, r"^coordinates must be 'log' or 'natural', got 'polar'\.$"),
        (
            {"schedule": "linear"},
            r"^schedule must be one of 'quadratic', 'cubic', 'exponential', got 'linear'\.$",
        ),
        ({"tolerance": 0.0}, r"^tolerance must be positive, got 0\.0\.$"),
        ({"first_step": -1}, r"^first_step must be positive, got -1\.0\.$"),
        ({"stop": [1, 2]}, r"^stop must be one number, got \[1, 2\]\.$"),
        ({"gradients": 3}, r"^gradients must be 1 or 2, got 3\.$"),
        ({"gradients": 1.0}, r"^gradients must be a whole number of at least 1, got 1\.0\.$"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        HOAG(**settings)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("quadratic", [0.1, 0.1 / 4, 0.1 / 9, 0.1 / 16]),
        ("cubic", [0.1, 0.1 / 8, 0.1 / 27, 0.1 / 64]),
        ("exponential", [0.1, 0.1 * 0.9, 0.1 * 0.81, 0.1 * 0.729]),
    ],
)
def test_tolerances_shrink_by_their_schedule(schedule, expected):
    model = Watched(Quadratic(np.array([900.0]), np.ones(1)))
    tuner = HOAG(3, schedule=schedule, tolerance=0.1, first_step=1e-3)

    search(tuner, toy_backtest(model))

    np.testing.assert_allclose([tuner.tolerance_at(k) for k in (1, 2, 3, 4)], expected, rtol=1e-14)
    np.testing.assert_allclose(model.tolerances, expected, rtol=1e-14)


@pytest.mark.parametrize("schedule", ["quadratic", "cubic", "exponential"])
def test_the_sum_of_all_tolerances_is_finite(schedule):
    tuner = HOAG(schedule=schedule, tolerance=1.0)

    total = sum(tuner.tolerance_at(k) for k in range(1, 20_000))

    limit = {"quadratic": np.pi**2 / 6, "cubic": 1.2020569, "exponential": 10.0}[schedule]
    assert abs(total - limit) <= 1e-4


def test_two_gradients_are_computed_at_every_point_with_one_tolerance():
    model = Watched(Quadratic(np.array([900.0]), np.ones(1)))

    found = search(HOAG(2, gradients=2, tolerance=0.1, first_step=1e-3), toy_backtest(model))

    np.testing.assert_allclose(model.tolerances, [0.1, 0.1, 0.025, 0.025, 0.1 / 9, 0.1 / 9])
    points = np.array(model.approximated)[:, 0]
    assert (points[::2] == points[1::2]).all()
    assert len(np.unique(points)) == 3
    assert found.gradients == 6


def test_a_step_that_raised_the_loss_is_undone_and_halved():
    model = Watched(Quadratic(np.array([np.e]), np.ones(1)))  # loss 1 + (z - 1)^2, from z = 0

    search(HOAG(4, first_step=0.5), toy_backtest(model))

    z = np.log(np.array(model.approximated)[:, 0])
    step = WIDTH / 4  # the gradient there is -2, and the first step half of the interval
    accepted = 0.25 * 2 * step
    expected = [0, 2 * step, 0.5 * 2 * step, accepted]
    last = accepted - 1.25 * 0.25 * step * 2 * (accepted - 1)  # longer again, from there
    np.testing.assert_allclose(z, [*expected, last], atol=1e-12)


def test_a_step_beyond_a_bound_continues_from_the_bound():
    model = Watched(Quadratic(np.exp([6.0]), np.ones(1)))  # loss 1 + (z - 6)^2, from z = 0

    search(HOAG(2, first_step=0.6), toy_backtest(model))

    z = np.log(np.array(model.approximated)[:, 0])
    bound, step = np.log(HIGH), 0.6 * WIDTH / 12
    np.testing.assert_allclose(z, [0, bound, bound - 1.25 * step * 2 * (bound - 6)], atol=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_loss_does_not_matter(unit):
    class Scaled(Quadratic):
        def fit(self, samples, lam, retired=None):
            fit = super().fit(samples, lam)
            return QuadraticFit(unit * fit.loss, unit * fit.gradient)

    best, bends = np.array([3.0, 40.0]), np.array([1.0, 2.0])

    scaled, plain = (
        search(HOAG(), toy_backtest(kind(best, bends))) for kind in (Scaled, Quadratic)
    )

    np.testing.assert_allclose(scaled.lam, plain.lam, rtol=1e-6)
    assert scaled.fits == plain.fits


def test_the_first_step_moves_the_fastest_coordinate_by_its_share():
    model = Watched(Quadratic(np.array([10.0, 10.0]), np.array([4.0, 1.0])))

    search(HOAG(1, first_step=0.01), toy_backtest(model))

    moved = np.log(model.approximated[1] / model.approximated[0])
    np.testing.assert_allclose(moved, [0.01 * WIDTH, 0.0025 * WIDTH], rtol=1e-6)


def test_in_natural_coordinates_steps_are_shares_of_the_interval():
    model = Watched(Quadratic(np.array([900.0]), np.ones(1)))

    search(HOAG(1, coordinates="natural", first_step=0.01), toy_backtest(model))

    moved = model.approximated[1] - model.approximated[0]
    np.testing.assert_allclose(moved, 0.01 * (HIGH - LOW), rtol=1e-6)


def test_the_descent_ends_when_the_loss_hardly_falls():
    model = Watched(Quadratic(np.array([10.0]), np.array([1e-9])))

    search(HOAG(), toy_backtest(model))

    assert len(model.approximated) == 2


def test_the_descent_ends_when_steps_are_short():
    model = Watched(Quadratic(np.array([1.0 + 1e-9]), np.ones(1)))  # the start is the minimum

    search(HOAG(stop=1e-3, first_step=0.1), toy_backtest(model))

    # 0.1 / 2^6 is the last share above 1e-3.
    assert len(model.approximated) == 1 + 7


def test_a_descent_that_does_not_improve_the_exact_loss_is_rejected():
    class Deceived(Quadratic):
        def approximate(self, samples, lam, tolerance, before=None):
            return Quadratic(1 / self.best, self.bends).fit(samples, lam)

    found = search(HOAG(), toy_backtest(Deceived(np.array([20.0]), np.ones(1))))

    assert found.lam.tolist() == [1.0]


@pytest.mark.parametrize("iterations", [1, 7])
def test_a_descent_visits_at_most_the_start_and_one_point_per_iteration(iterations):
    model = Watched(Quadratic(np.array([900.0]), np.ones(1)))
    tuner = HOAG(iterations, first_step=1e-4)

    found = search(tuner, toy_backtest(model))

    assert len(model.approximated) == 1 + iterations
    assert found.fits == tuner.trials(model.space) == iterations + 3


def projected_gradient(model, training, validation, lam):
    """Return the length of the exact projected gradient in logarithms."""
    chart = chart_of("log", model.space.feasible)
    _, g = model.fit(training, lam).loss_and_gradient(validation)
    z = chart.encode(lam)
    step = 1e-4
    moved = z - chart.feasible.project(z - step * chart.pull_back(lam, g))
    return np.linalg.norm(moved) / step


@pytest.mark.parametrize("schedule", ["quadratic", "cubic", "exponential"])
def test_the_descent_of_kernel_ridge_ends_at_a_stationary_point(schedule, rng):
    training, validation = make_samples(rng, 80), make_samples(rng, 40, start=80.0)
    model = KernelRidge(ARD([0.3] * 5), regularization=0.01)
    tuner = HOAG(150, schedule=schedule, tolerance=1e-3, stop=1e-9)

    found = search(tuner, Backtest(model, training, validation))

    start = projected_gradient(model, training, validation, model.space.values)
    assert projected_gradient(model, training, validation, found.lam) <= 0.02 * start


def test_the_best_regularization_equals_an_exact_search(rng):
    clear = make_samples(rng, 100)
    noisy = Samples(clear.inputs, clear.y + 0.5 * rng.normal(size=clear.y.shape))
    training, validation = noisy[:60], noisy[60:]
    model = KernelRidge(SquaredExponential(0.5, inverse_scale_bounds=None), regularization=20.0)
    backtest = Backtest(model, training, validation)

    found = search(HOAG(tolerance=1e-4, stop=1e-10), Backtest(model, training, validation))

    def loss(z):
        return backtest.loss(np.array([0.5, np.exp(z)]))

    exact = minimize_scalar(loss, bounds=np.log([1e-3, 1e2]), method="bounded")
    assert np.log(1.1e-3) < exact.x < np.log(90)
    np.testing.assert_allclose(np.log(found.lam[1]), exact.x, atol=1e-2)
    assert found.lam[0] == 0.5
