"""The engine's claims at the size of the paper's study: N = 2880 and 26 features."""

import numpy as np
import pytest

from streamridge import (
    Drifting,
    Features,
    Forecaster,
    KernelRidge,
    Linear,
    Matern,
    OnlineLearner,
    Periodic,
    run,
)
from streamridge.datasets import simulate_roads

N, DAY, WEEK = 2880, 96, 672

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def samples():
    flows = simulate_roads(np.random.default_rng(0), days=45).flows[:, 0]
    features = Features(lags=20, seasonal=(DAY, WEEK), calendar=(DAY, WEEK))
    return features.samples((flows - flows.mean()) / flows.std())


@pytest.fixture(scope="module")
def kernel():
    return Drifting(Periodic(DAY) + Matern(np.full(26, 0.02)) + Linear(("lags",)))


def test_forward_and_adjoint_gradients_are_equal(samples, kernel):
    fit = KernelRidge(kernel).fit(samples[:N])
    window = samples[N : N + DAY]

    adjoint = fit.loss_and_gradient(window)[1]

    forward = fit.step_gradients(window).sum(axis=0)
    np.testing.assert_allclose(adjoint, forward, rtol=1e-9, atol=1e-9 * np.abs(forward).max())


@pytest.mark.parametrize("regularization", [0.03, 0.3, 3.0])
def test_float32_forecasts_stay_within_a_thousandth_of_a_deviation(samples, kernel, regularization):
    window = samples[N : N + DAY].inputs

    double, single = (
        KernelRidge(kernel, regularization, factor_dtype=dtype).fit(samples[:N]).predict(window)
        for dtype in (np.float64, np.float32)
    )

    assert np.abs(single - double).max() <= 1e-3 * samples.y.std()


def test_a_restored_learner_continues_bit_for_bit(samples, kernel):
    def build():
        return OnlineLearner(KernelRidge(kernel), samples[:N], train_size=N, update_every=DAY)

    learner, twin = build(), build()
    for _ in run(learner, samples[N : N + DAY + 40]):
        pass
    twin.restore(learner.state())

    rest = samples[N + DAY + 40 : N + 3 * DAY]
    for one, other in zip(run(learner, rest), run(twin, rest), strict=True):
        np.testing.assert_array_equal(one.forecast, other.forecast)
    assert learner.hyperparameters == twin.hyperparameters


def test_a_full_size_forecaster_fits_into_a_megabyte_and_continues_bit_for_bit(tmp_path):
    roads = simulate_roads(np.random.default_rng(0), detectors=1, days=42)
    readings = list(zip(roads.times, roads.flows[:, 0], strict=True))
    forecaster = Forecaster("15min", warmup=40 * DAY)
    for time, flow in readings[: 40 * DAY + 50]:
        forecaster.observe(time, flow)

    forecaster.save(tmp_path / "road.sr")
    resumed = Forecaster.load(tmp_path / "road.sr")

    assert (tmp_path / "road.sr").stat().st_size < 1e6
    for time, flow in readings[40 * DAY + 50 :]:
        one, other = forecaster.predict(), resumed.predict()
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(one.upper, other.upper)
        forecaster.observe(time, flow)
        resumed.observe(time, flow)
    assert forecaster.counts == resumed.counts
    assert forecaster.counts["fits"] == 3
