"""Large systems solved by iteration, compared with a factor in float64."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

import streamridge.models.systems
from streamridge import (
    ARD,
    Drifting,
    KernelRidge,
    Linear,
    Matern,
    NotPositiveDefiniteError,
    Periodic,
    Samples,
    SquaredExponential,
)
from streamridge.kernels.base import Arena
from streamridge.models.systems import LARGE, FactoredSystem, Ridge, fill, solvable
from tests.support.samples import make_samples
from tests.support.tiers import each_horizon, tiered

N = LARGE + 75
KERNELS = {
    "mixture": Periodic(96.0) + Matern([0.02] * 5) + Linear(("lags",)),
    "drifting": Drifting(Matern([0.05] * 5, order=1.5), rate=1e-3) + Linear(),
    "smooth": ARD([0.05] * 5),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture(scope="module")
def samples():
    return make_samples(np.random.default_rng(1), N)


@pytest.fixture(scope="module")
def window():
    return make_samples(np.random.default_rng(2), 60, start=float(N))


@pytest.fixture
def factored(monkeypatch):
    """Return a list of the dtypes of all computed factors."""
    made, cholesky = [], streamridge.models.systems.cholesky

    def noting(A):
        made.append(A.dtype)
        return cholesky(A)

    monkeypatch.setattr(streamridge.models.systems, "cholesky", noting)
    return made


def system_of(kernel, samples, lam_R=0.3, dtype=np.float64, memory=None):
    dtype = np.dtype(dtype)
    ridge = Ridge(kernel, lam_R, 1e-3, dtype)
    memory = memory or Arena(dtype)
    A, blocks = fill(ridge, kernel.embed(samples.inputs), memory)
    return solvable(ridge, A, blocks, memory, samples.t)


def gram(kernel, samples, lam_R=0.3):
    return kernel(samples.inputs, samples.inputs) + lam_R * np.eye(len(samples))


class TestInDouble:
    @every_kernel
    @pytest.mark.parametrize(
        ("lam_R", "columns"),
        tiered([0.01, 0.3, 3.0], [1, 3, 7], quick=lambda *case: case in ((0.01, 7), (3.0, 1))),
    )
    def test_solutions_equal_the_solutions_of_a_float64_factor(
        self, kernel, lam_R, columns, samples, factored, rng
    ):
        B = rng.normal(size=(N, columns))

        system = system_of(kernel, samples, lam_R)

        expected = cho_solve(cho_factor(gram(kernel, samples, lam_R), lower=True), B)
        for X in (system.solve(B), system.solve_adjoint(B)):
            assert np.abs(X - expected).max() <= 1e-10 * np.abs(expected).max()
        assert factored == [np.float32]

    def test_one_factor_is_computed_in_float32(self, samples, window, factored):
        fit = KernelRidge(KERNELS["mixture"]).fit(samples)
        fit.loss_and_gradient(window)

        assert factored == [np.float32]

    @every_kernel
    def test_forward_and_adjoint_gradients_agree(self, kernel, samples, window):
        fit = KernelRidge(kernel).fit(samples)

        adjoint = fit.loss_and_gradient(window)[1]

        forward = fit.step_gradients(window).sum(axis=0)
        np.testing.assert_allclose(adjoint, forward, rtol=1e-9, atol=1e-9 * np.abs(forward).max())

    def test_gradients_equal_central_differences(self, samples, window):
        model = KernelRidge(KERNELS["drifting"])
        lam = model.space.values
        gradient = model.fit(samples, lam).loss_and_gradient(window)[1]

        for i in (0, 3, len(lam) - 1):
            step = 1e-4 * lam[i] * np.eye(len(lam))[i]
            above, below = (model.fit(samples, lam + s).window_loss(window) for s in (step, -step))
            slope = (above - below) / (2 * step[i])
            assert slope == pytest.approx(gradient[i], rel=1e-6)

    def test_a_ridge_constant_too_small_for_float32_is_factored_in_float64(
        self, samples, factored, rng
    ):
        kernel = KERNELS["smooth"]
        B = rng.normal(size=(N, 1))

        system = system_of(kernel, samples, lam_R=1e-6)

        assert isinstance(system, FactoredSystem)
        assert factored == [np.float64]
        residual = gram(kernel, samples, 1e-6) @ system.solve(B) - B
        assert np.abs(residual).max() <= 1e-6

    @pytest.mark.parametrize("limit", [0, 1])
    def test_a_factor_is_the_fallback_of_failed_iterations(
        self, limit, samples, factored, monkeypatch, rng
    ):
        monkeypatch.setattr(streamridge.models.systems, "DOUBLE_LIMIT", limit)
        kernel, B = KERNELS["mixture"], rng.normal(size=(N, 2))
        system = system_of(kernel, samples)

        X, again = system.solve(B), system.solve(B)

        assert factored == [np.float32, np.float64]
        np.testing.assert_allclose(gram(kernel, samples) @ X, B, atol=1e-9)
        np.testing.assert_array_equal(X, again)
        np.testing.assert_allclose(system.product(X), B, atol=1e-9)  # the matrix is still there

    def test_a_matrix_without_a_float32_factor_is_factored_in_float64(
        self, samples, monkeypatch, rng
    ):
        cholesky = streamridge.models.systems.cholesky
        monkeypatch.setattr(
            streamridge.models.systems,
            "cholesky",
            lambda A: None if A.dtype == np.float32 else cholesky(A),
        )
        B = rng.normal(size=(N, 1))

        system = system_of(KERNELS["mixture"], samples)

        assert isinstance(system, FactoredSystem)
        np.testing.assert_allclose(
            gram(KERNELS["mixture"], samples) @ system.solve(B), B, atol=1e-9
        )

    def test_duplicates_with_a_tiny_regularization_are_refused(self, samples):
        twice = Samples.of(
            np.arange(2.0 * N), np.tile(samples.x, (2, 1)), np.tile(samples.y, (2, 1))
        )
        model = KernelRidge(ARD([0.3] * 5), 1e-17, regularization_bounds=(1e-17, 1.0))

        with pytest.raises(NotPositiveDefiniteError, match="now 1e-17"):
            model.fit(twice)

    def test_duplicates_with_some_regularization_are_fine(self, samples, rng):
        half = samples[: N // 2]
        twice = Samples.of(np.arange(2.0 * len(half)), np.tile(half.x, (2, 1)), np.ones(N - 1))
        B = rng.normal(size=(N - 1, 1))

        X = system_of(KERNELS["smooth"], twice, lam_R=1e-3).solve(B)

        np.testing.assert_allclose(gram(KERNELS["smooth"], twice, 1e-3) @ X, B, atol=1e-8)


class TestInSingle:
    @every_kernel
    @pytest.mark.parametrize(
        ("lam_R", "horizon"),
        tiered([0.03, 0.3, 3.0], [1, 3], quick=lambda *case: case in ((0.03, 3), (3.0, 1))),
    )
    def test_forecasts_and_gradients_stay_close_to_exact_ones(self, kernel, lam_R, horizon):
        rng = np.random.default_rng(3)
        samples = make_samples(rng, N, horizon=horizon)
        window = make_samples(rng, 60, start=float(N), horizon=horizon)

        double, single = (
            KernelRidge(kernel, lam_R, factor_dtype=dtype).fit(samples)
            for dtype in (np.float64, np.float32)
        )

        apart = single.predict(window.inputs) - double.predict(window.inputs)
        assert np.abs(apart).max() <= 1e-4 * samples.y.std()
        gradient = double.loss_and_gradient(window)[1]
        np.testing.assert_allclose(
            single.loss_and_gradient(window)[1], gradient, atol=2e-3 * np.abs(gradient).max()
        )

    def test_no_factor_is_computed(self, samples, window, factored):
        fit = KernelRidge(KERNELS["mixture"], factor_dtype=np.float32).fit(samples)
        fit.loss_and_gradient(window)
        fit.learn_spread()

        assert factored == []

    @pytest.mark.parametrize("columns", [1, 3])
    def test_residuals_are_small_in_double_precision(self, columns, samples, rng):
        far = Samples.of(samples.t, samples.x + 9.0, samples.y, samples.inputs.layout)
        B = np.sin(far.x[:, :1]) + rng.normal(size=(N, columns))

        system = system_of(KERNELS["mixture"], far, dtype=np.float32)
        X = system.solve(B)

        assert X.dtype == np.float64
        # The residual of a product in float32 would be 1e-3, for entries are large here.
        residuals = system.exact(X) - B
        assert (np.linalg.norm(residuals, axis=0) <= 1e-5 * np.linalg.norm(B, axis=0)).all()

    def test_a_small_ridge_constant_is_solved_by_a_factor(self, samples, factored):
        # Relative to 5e-3, landmarks leave much of a rough kernel unexplained.
        kernel = Matern([2.0] * 5)
        single = KernelRidge(kernel, 5e-3, factor_dtype=np.float32).fit(samples)

        assert factored == [np.float32]
        double = KernelRidge(kernel, 5e-3).fit(samples)
        apart = single.predict(samples.inputs) - double.predict(samples.inputs)
        assert np.abs(apart).max() <= 1e-3 * samples.y.std()

    def test_a_factor_is_the_fallback_of_failed_iterations(
        self, samples, factored, monkeypatch, rng
    ):
        monkeypatch.setattr(streamridge.models.systems, "SINGLE_LIMIT", 1)
        kernel, B = KERNELS["mixture"], rng.normal(size=(N, 1))

        X = system_of(kernel, samples, dtype=np.float32).solve(B)

        assert factored == [np.float32]
        residual = np.linalg.norm(gram(kernel, samples) @ X - B)
        assert residual <= 1e-4 * np.linalg.norm(B)

    def test_a_ridge_constant_that_float32_cannot_resolve_is_refused(self, samples):
        model = KernelRidge(
            SquaredExponential(1e-4), 1e-6, regularization_bounds=(1e-6, 1), factor_dtype=np.float32
        )

        with pytest.raises(NotPositiveDefiniteError, match="in float32 has no Cholesky factor"):
            model.fit(samples)


@every_kernel
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@each_horizon(1, 3)
def test_a_recomputed_system_gives_the_same_bits(kernel, dtype, horizon):
    rng = np.random.default_rng(4)
    samples = make_samples(rng, N, horizon=horizon)
    window = make_samples(rng, 60, start=float(N), horizon=horizon)
    model = KernelRidge(kernel, factor_dtype=dtype)
    fit = model.fit(samples)
    first = fit.loss_and_gradient(window)[1]
    fit.learn_spread()

    resumed = model.resume(samples, model.space.values, fit.state())
    in_old_memory = model.fit(samples, None, model.fit(samples[: N - 9]))

    # The weights are saved, and the system is recomputed, in new memory or in reused memory.
    np.testing.assert_array_equal(resumed.loss_and_gradient(window)[1], first)
    np.testing.assert_array_equal(in_old_memory.theta, fit.theta)
    np.testing.assert_array_equal(in_old_memory.loss_and_gradient(window)[1], first)
    np.testing.assert_array_equal(in_old_memory.learn_spread().phi, fit.spread.phi)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solutions_do_not_depend_on_earlier_solutions(dtype, samples, rng):
    B, other = rng.normal(size=(2, N, 1))
    system = system_of(KERNELS["mixture"], samples, dtype=dtype)
    first = system.solve(B)

    system.solve(other)

    np.testing.assert_array_equal(system.solve(B), first)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_refits_hold_no_more_memory_than_one(dtype, samples):
    model = KernelRidge(KERNELS["mixture"], factor_dtype=dtype)
    fit = model.fit(samples)
    held = fit.system.memory.size

    for _ in range(3):
        fit = model.fit(samples, None, fit)

    assert fit.system.memory.size == held
