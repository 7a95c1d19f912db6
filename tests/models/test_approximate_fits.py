import numpy as np
import pytest

import streamridge.models.systems
from streamridge import ARD, KernelRidge, Linear, Matern, Periodic, Standardized
from streamridge.kernels.base import Arena
from streamridge.models.conjugate_gradients import BLOCK_ROWS
from streamridge.models.ridge import Center
from streamridge.models.systems import Guesses, IteratedSystem, Ridge, fill
from tests.support.samples import make_samples

KERNEL = Periodic(period=7.3) + Matern([0.3, 0.05, 0.7, 0.2, 0.4]) + Linear(("lags",))
MODEL = KernelRidge(KERNEL)


def make_ridge(dtype=np.float64):
    return Ridge(KERNEL, 0.3, lower_bound=0.03, dtype=np.dtype(dtype))


def make_system(samples, tolerance=1e-12, guesses=None, **settings):
    ridge = make_ridge(**settings)
    embedding = KERNEL.embed(samples.inputs)
    memory = Arena(ridge.dtype)
    A, blocks = fill(ridge, embedding, memory)
    return IteratedSystem(A, blocks, memory, tolerance, guesses or Guesses())


def gram(samples):
    return KERNEL(samples.inputs, samples.inputs) + 0.3 * np.eye(len(samples))


@pytest.fixture
def products(monkeypatch):
    """Return a list with one entry per product of a matrix and a vector."""
    counted = []
    solve = streamridge.models.systems.conjugate_gradients

    def counting(product, b, start, tolerance):
        def once_more(x):
            counted.append(tolerance)
            return product(x)

        return solve(once_more, b, start, tolerance)

    monkeypatch.setattr(streamridge.models.systems, "conjugate_gradients", counting)
    return counted


def spent(products, act, *arguments):
    """Return the number of products of a call."""
    before = len(products)
    act(*arguments)
    return len(products) - before


@pytest.mark.parametrize("size", [1, 2, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 7])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_tight_tolerance_gives_the_solution(size, columns, rng):
    samples = make_samples(rng, size)
    B = rng.normal(size=(size, columns))
    system = make_system(samples)

    solutions = system.solve(B), system.solve_adjoint(B)

    expected = np.linalg.solve(gram(samples), B)
    for X in solutions:
        np.testing.assert_allclose(X, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-5])
@pytest.mark.parametrize("horizon", [1, 3])
def test_dual_weights_solve_their_system_to_the_tolerance(tolerance, horizon, rng):
    samples = make_samples(rng, 150, horizon=horizon)
    center = Center.of(samples)

    fit = MODEL.approximate(samples, MODEL.space.values, tolerance)

    y = samples.y - center.y
    centered = type(samples.inputs)(samples.t, samples.x - center.x, samples.inputs.layout)
    A = KERNEL(centered, centered) + 0.3 * np.eye(150)
    residuals = np.linalg.norm(A @ fit.theta - y, axis=0)
    assert (residuals <= tolerance * np.linalg.norm(y, axis=0) * (1 + 1e-6)).all()
    assert residuals.max() > 1e-3 * tolerance * np.linalg.norm(y)  # and not to much more than that


def test_weights_and_adjoint_have_separate_guesses(products, rng):
    system = make_system(make_samples(rng, 100), tolerance=1e-6)
    y, u = rng.normal(size=(2, 100, 1))
    weights, adjoint = system.solve(y), system.solve_adjoint(u)

    again = [
        spent(products, system.solve, y),
        spent(products, system.solve_adjoint, u),
    ]

    assert again == [1, 1]  # the residual of the guess, and nothing else
    np.testing.assert_array_equal(system.guesses.weights, weights)
    np.testing.assert_array_equal(system.guesses.adjoint, adjoint)


def test_a_guess_of_another_shape_is_not_used(products, rng):
    y = rng.normal(size=(60, 1))
    samples = make_samples(rng, 60)
    cold = spent(products, make_system(samples).solve, y)
    stale = Guesses(weights=np.ones((61, 1)), adjoint=np.ones((60, 2)))
    system = make_system(samples, guesses=stale)

    assert spent(products, system.solve, y) == cold
    assert spent(products, system.solve_adjoint, y) == cold


def test_a_single_precision_system_is_solved_to_its_precision(rng):
    samples = make_samples(rng, 150)
    B = rng.normal(size=(150, 2))

    X = make_system(samples, tolerance=1e-4, dtype=np.float32).solve(B)

    assert X.dtype == np.float64
    residuals = np.linalg.norm(gram(samples) @ X - B, axis=0)
    assert (residuals <= 1.1e-4 * np.linalg.norm(B, axis=0)).all()


def test_solving_does_not_write_to_its_arguments(rng):
    samples = make_samples(rng, 60)
    B, guess = rng.normal(size=(2, 60, 2))
    B.flags.writeable = guess.flags.writeable = False

    X = make_system(samples, guesses=Guesses(weights=guess)).solve(B)

    assert not np.shares_memory(X, guess)


@pytest.mark.parametrize("model", [MODEL, Standardized(MODEL)], ids=["plain", "standardized"])
def test_a_fit_that_starts_from_the_previous_fit_needs_fewer_products(model, products, rng):
    train, window = make_samples(rng, 150), make_samples(rng, 40, start=150.0)
    lam = model.space.values
    near = model.space.feasible.project(lam * (1 + 1e-5))
    before = model.approximate(train, lam, 1e-4)
    before.loss_and_gradient(window)

    def fit_and_gradient(previous):
        model.approximate(train, near, 1e-4, previous).loss_and_gradient(window)

    warm = spent(products, fit_and_gradient, before)
    cold = spent(products, fit_and_gradient, None)

    assert warm < cold / 3


def test_both_systems_of_a_fit_start_from_the_previous_solutions(products, rng):
    train, window = make_samples(rng, 150), make_samples(rng, 40, start=150.0)
    lam = MODEL.space.values
    before = MODEL.approximate(train, lam, 1e-8)
    before.loss_and_gradient(window)

    fits = []
    solving = spent(products, lambda: fits.append(MODEL.approximate(train, lam, 1e-6, before)))
    adjoint = spent(products, fits[0].loss_and_gradient, window)

    assert (solving, adjoint) == (1, 1)


def test_an_approximate_fit_takes_over_the_memory_of_the_previous_fit(rng):
    train = make_samples(rng, 150)
    fit = MODEL.approximate(train, MODEL.space.values, 0.01)
    first, held = fit.system.A, fit.system.memory.size

    for _ in range(3):
        fit = MODEL.approximate(train, MODEL.space.values, 0.01, fit)

    assert fit.system.memory.size == held
    assert np.shares_memory(fit.system.A, first)


def test_an_exact_fit_leaves_no_guesses(rng):
    train = make_samples(rng, 60)

    guesses = MODEL.fit(train).guesses

    assert guesses == Guesses(None, None)


def test_an_approximate_fit_computes_no_factor(monkeypatch, rng):
    train, window = make_samples(rng, 60), make_samples(rng, 20, start=60.0)

    def refuse(*_):
        raise AssertionError("a factor was made")

    monkeypatch.setattr(streamridge.models.systems, "get_lapack_funcs", refuse)

    fit = MODEL.approximate(train, MODEL.space.values, 0.01)

    assert np.isfinite(fit.loss_and_gradient(window)[1]).all()


def test_looser_tolerances_cost_fewer_products(products, rng):
    train = make_samples(rng, 150)
    model = KernelRidge(ARD([0.3] * 5), regularization=0.01)

    counts = [
        spent(products, model.approximate, train, model.space.values, tolerance)
        for tolerance in (1e-1, 1e-3, 1e-6)
    ]

    assert 1 < counts[0] < counts[1] < counts[2]
