from weakref import ref

import numpy as np
import pytest

import streamridge.models.kernel_ridge
import streamridge.models.systems
from streamridge import (
    ARD,
    Drifting,
    InvalidInputError,
    KernelRidge,
    Linear,
    Matern,
    NotPositiveDefiniteError,
    Periodic,
    Samples,
    SquaredExponential,
)
from streamridge.kernels.base import Arena
from streamridge.models.conjugate_gradients import BLOCK_ROWS
from streamridge.models.systems import Ridge, fill, solvable
from tests.support.samples import make_samples

KERNEL = Periodic(period=7.3) + Matern([0.3, 0.05, 0.7, 0.2, 0.4]) + Linear(("lags",))
SIZES = [1, 2, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS + 7]


def make_ridge(regularization=0.3, dtype=np.float64, kernel=KERNEL):
    return Ridge(kernel, regularization, lower_bound=0.03, dtype=np.dtype(dtype))


def fit(samples, **settings):
    ridge = make_ridge(**settings)
    model = KernelRidge(
        ridge.kernel,
        ridge.regularization,
        regularization_bounds=(min(0.03, ridge.regularization / 2), 1e2),
        centered=False,
        factor_dtype=ridge.dtype.name,
    )
    return model.fit(samples)


def make_system(ridge, samples, memory):
    A, blocks = fill(ridge, KERNEL.embed(samples.inputs), memory)
    return solvable(ridge, A, blocks, memory, samples.t)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("horizon", [1, 3])
def test_dual_weights_solve_the_normal_equations(size, horizon, rng):
    samples = make_samples(rng, size, horizon=horizon)

    theta = fit(samples).theta

    A = KERNEL(samples.inputs, samples.inputs) + 0.3 * np.eye(size)
    np.testing.assert_allclose(A @ theta, samples.y, atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_the_factor_reproduces_the_matrix(size, rng):
    samples = make_samples(rng, size)
    ridge = make_ridge()

    system = make_system(ridge, samples, Arena())

    A = KERNEL(samples.inputs, samples.inputs) + 0.3 * np.eye(size)
    L = np.tril(system.factor)
    # Backward error of a Cholesky factorization: at most about N roundings.
    assert np.abs(L @ L.T - A).max() <= 10 * size * np.finfo(float).eps * np.abs(A).max()


def test_the_solution_minimizes_the_penalized_squares(rng):
    samples = make_samples(rng, 60)
    K = KERNEL(samples.inputs, samples.inputs)

    def objective(theta):
        residual = samples.y[:, 0] - K @ theta
        return residual @ residual + 0.3 * theta @ K @ theta  # eq. (5)

    theta = fit(samples).theta[:, 0]

    least = objective(theta)
    for _ in range(50):
        assert objective(theta + 1e-3 * rng.normal(size=60)) > least


def test_kernel_ridge_with_a_linear_kernel_is_ridge_regression(rng):
    samples = make_samples(rng, 80)
    new = make_samples(rng, 9, start=80.0)

    dual = KernelRidge(Linear(), regularization=0.5).fit(samples).predict(new.inputs)

    x_mean, y_mean = samples.x.mean(axis=0), samples.y.mean(axis=0)
    X = samples.x - x_mean
    w = np.linalg.solve(X.T @ X + 0.5 * np.eye(5), X.T @ (samples.y - y_mean))
    np.testing.assert_allclose(dual, y_mean + (new.x - x_mean) @ w, rtol=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("horizon", [1, 3])
def test_a_float32_factor_is_refined_to_float64_weights(size, horizon, rng):
    samples = make_samples(rng, size, horizon=horizon)

    theta = fit(samples, dtype=np.float32).theta

    # Single precision rounds each entry of K by 6e-8 before anything is solved.
    exact = fit(samples).theta
    assert np.abs(theta - exact).max() <= 3e-5 * np.abs(exact).max()


def test_float32_forecasts_stay_within_a_thousandth_of_a_deviation(rng):
    samples, new = make_samples(rng, 700), make_samples(rng, 100, start=700.0)
    kernel = Drifting(Periodic(96.0) + Matern([0.3] * 5) + Linear(("lags",)))

    for regularization in (0.03, 0.3, 3.0):
        settings = {"regularization": regularization}
        single = KernelRidge(kernel, **settings, factor_dtype=np.float32).fit(samples)
        double = KernelRidge(kernel, **settings).fit(samples)
        apart = single.predict(new.inputs) - double.predict(new.inputs)
        assert np.abs(apart).max() <= 1e-3 * new.y.std()
        scale = np.abs(double.loss_and_gradient(new)[1]).max()
        np.testing.assert_allclose(
            single.loss_and_gradient(new)[1], double.loss_and_gradient(new)[1], atol=2e-3 * scale
        )


def test_duplicate_rows_with_a_tiny_regularization_have_no_factor(rng):
    rows = make_samples(rng, 40)
    twice = Samples.of(np.arange(80.0), np.tile(rows.x, (2, 1)), np.tile(rows.y, (2, 1)))
    model = KernelRidge(ARD([0.3] * 5), 1e-17, regularization_bounds=(1e-17, 1.0))

    with pytest.raises(
        NotPositiveDefiniteError,
        match=r"^K \+ regularization \* I has no Cholesky factor at t=79 "
        r"\(regularization=1e-17\)\. Raise its lower bound, now 1e-17\.",
    ):
        model.fit(twice)


def test_duplicate_rows_with_some_regularization_are_fine(rng):
    rows = make_samples(rng, 40)
    twice = Samples.of(np.arange(80.0), np.tile(rows.x, (2, 1)), np.tile(rows.y, (2, 1)))

    fitted = KernelRidge(ARD([0.3] * 5), regularization=1e-3).fit(twice)

    assert np.abs(fitted.predict(rows.inputs) - rows.y).max() < 0.5


def test_the_error_names_float32_when_it_cannot_resolve_the_regularization(rng):
    samples = make_samples(rng, 300)
    model = KernelRidge(
        SquaredExponential(1e-4), 1e-6, regularization_bounds=(1e-6, 1), factor_dtype=np.float32
    )

    with pytest.raises(NotPositiveDefiniteError, match=r"\* I in float32 has no Cholesky factor"):
        model.fit(samples)


def test_a_constant_series_is_predicted_exactly(rng):
    samples = Samples.of(np.arange(50.0), np.full((50, 3), 7.0), np.full(50, 7.0))

    fitted = KernelRidge(Periodic(24.0) + ARD([1.0] * 3)).fit(samples)

    np.testing.assert_allclose(fitted.predict(samples.inputs), 7.0)
    np.testing.assert_allclose(fitted.loss_and_gradient(samples)[1], 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_values_are_predicted_within_their_range(scale, rng):
    rows = make_samples(rng, 60)
    samples = Samples.of(rows.t, scale * rows.x, scale * rows.y)

    fitted = KernelRidge(Periodic(24.0) + Matern([0.3] * 5)).fit(samples)

    predicted = fitted.predict(samples.inputs)
    assert np.abs(predicted).max() <= 2 * np.abs(samples.y).max()
    assert np.isfinite(fitted.loss_and_gradient(samples)[1]).all()


def test_a_linear_kernel_on_values_of_1e12_is_refused(rng):
    rows = make_samples(rng, 60)
    samples = Samples.of(rows.t, 1e12 * rows.x, 1e12 * rows.y)

    with pytest.raises(NotPositiveDefiniteError, match="has no Cholesky factor"):
        KernelRidge(Linear()).fit(samples)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: KernelRidge(Linear(), regularization=0.0), r"regularization must be positive"),
        (
            lambda: KernelRidge(Linear(), 5.0, regularization_bounds=(0.1, 1.0)),
            r"regularization must lie within its bounds \(0\.1, 1\.0\), got 5\.0\.",
        ),
        (
            lambda: KernelRidge(Linear(), regularization_bounds=(1.0, 0.1)),
            r"regularization_bounds must run from low to high, got \(1\.0, 0\.1\)\.",
        ),
        (
            lambda: KernelRidge(Linear(), factor_dtype=np.float16),
            r"factor_dtype must be float64 or float32, got .*float16",
        ),
        (
            lambda: KernelRidge(Linear(), factor_dtype="foo"),
            "factor_dtype must be float64 or float32, got foo",
        ),
        (
            lambda: KernelRidge(Linear(), regularization=[0.3, 0.4]),
            r"regularization must be one number, got \[0\.3, 0\.4\]",
        ),
    ],
)
def test_bad_settings_are_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


def test_pivots_that_rounding_cannot_resolve_are_refused():
    # The factor exists, but 1e18 absorbs a regularization of 1e-3.
    samples = Samples.of([0, 1], [[1e9], [0.0]], [1.0, 2.0])

    with pytest.raises(NotPositiveDefiniteError, match="has no Cholesky factor"):
        fit(samples, regularization=1e-3, kernel=Linear())


@pytest.mark.parametrize(("size", "resolved"), [(5, True), (50, False)])
def test_the_least_pivot_allowed_grows_with_the_size(size, resolved):
    x = np.zeros((size, 1))
    x[0] = np.sqrt(1 / (20 * np.finfo(float).eps))
    samples = Samples.of(np.arange(size), x, np.ones(size))

    if resolved:
        fit(samples, regularization=1.0, kernel=Linear())
    else:
        with pytest.raises(NotPositiveDefiniteError, match="has no Cholesky factor"):
            fit(samples, regularization=1.0, kernel=Linear())


def test_refinement_goes_on_until_the_residual_is_small(rng):
    samples = make_samples(rng, 300)

    solved = fit(samples, regularization=2e-3, dtype=np.float32, kernel=SquaredExponential(0.01))

    residual = samples.y - solved.system.product(solved.theta)
    assert np.linalg.norm(residual) <= 1e-7 * np.linalg.norm(samples.y)


def test_refinement_that_does_not_converge_is_refused(rng, monkeypatch):
    monkeypatch.setattr(streamridge.models.systems, "REFINED_LIMIT", 1)

    with pytest.raises(NotPositiveDefiniteError, match=r"in float32 has no Cholesky factor"):
        fit(
            make_samples(rng, 300),
            regularization=2e-3,
            dtype=np.float32,
            kernel=SquaredExponential(0.01),
        )


def test_chained_refits_hold_no_more_memory_than_one(rng):
    model = KernelRidge(KERNEL)
    fitted = model.fit(make_samples(rng, 300))
    held = fitted.system.memory.size
    first = fitted.system.factor

    for _ in range(4):
        fitted = model.fit(make_samples(rng, 300), None, fitted)

    assert fitted.system.memory.size == held
    assert np.shares_memory(fitted.system.factor, first)


def test_memory_of_another_number_format_is_not_taken_over(rng):
    samples = make_samples(rng, 100)
    single = KernelRidge(KERNEL, factor_dtype=np.float32).fit(samples)

    fitted = KernelRidge(KERNEL).fit(samples, None, single)

    assert fitted.system.factor.dtype == np.float64


def test_a_released_fit_holds_neither_system_nor_embedding(rng):
    fitted = fit(make_samples(rng, 100))
    system, embedding = ref(fitted.system), ref(fitted.embedding)

    fitted.release()

    assert system() is None
    assert embedding() is None


def test_a_released_fit_recomputes_the_same_factor_once(monkeypatch, rng):
    made = []
    monkeypatch.setattr(
        streamridge.models.kernel_ridge, "solvable", lambda *args: made.append(1) or solvable(*args)
    )
    fitted = fit(make_samples(rng, 100))
    before = fitted.system.factor.copy()

    fitted.release()
    again = [fitted.system.factor, fitted.system.factor]

    assert len(made) == 2
    np.testing.assert_array_equal(again, [before, before])


def test_no_rows_give_no_predictions(rng):
    samples = make_samples(rng, 30, horizon=2)

    assert KernelRidge(KERNEL).fit(samples).predict(samples[:0].inputs).shape == (0, 2)


def test_a_factorization_overwrites_its_matrix(rng):
    arena = Arena()
    ridge = make_ridge()

    system = make_system(ridge, make_samples(rng, 300), arena)

    slab = arena.empty((1,)).base
    while slab.base is not None:
        slab = slab.base
    assert np.shares_memory(system.factor, slab)


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_spread_regresses_the_logarithmic_size_of_the_residuals(horizon, rng):
    samples, rows = make_samples(rng, 70, horizon=horizon), make_samples(rng, 9, start=70.0)
    fitted = fit(samples)

    _, spreads = fitted.predict_with_spread(rows.inputs)

    K = KERNEL(samples.inputs, samples.inputs)
    residuals = np.abs(samples.y - K @ fitted.theta)
    sizes = np.log(np.maximum(residuals, 1e-3 * np.median(residuals, axis=0)))
    phi = np.linalg.solve(K + 0.3 * np.eye(70), sizes - sizes.mean(axis=0))
    logs = sizes.mean(axis=0) + KERNEL(rows.inputs, samples.inputs) @ phi
    expected = np.clip(logs, sizes.min(axis=0), sizes.max(axis=0))
    np.testing.assert_allclose(np.log(spreads), expected, rtol=1e-6)  # in single precision


def test_the_spread_is_larger_where_residuals_are(rng):
    samples = make_samples(rng, 300)
    noisy = samples.x[:, 0] > 0
    y = samples.y + np.where(noisy, 2.0, 0.02)[:, None] * rng.standard_normal((300, 1))
    fitted = fit(Samples(samples.inputs, y), kernel=SquaredExponential(0.5), regularization=1.0)

    _, spreads = fitted.predict_with_spread(samples.inputs)

    assert np.median(spreads[noisy]) > 3 * np.median(spreads[~noisy])
