"""Laws that every learner must pass."""

from io import BytesIO

import numpy as np
import pytest

from streamridge import (
    ARD,
    AutoregressiveRidge,
    Chart,
    ConstantStep,
    Drifting,
    Features,
    KernelRidge,
    Linear,
    Matern,
    OnlineLearner,
    Periodic,
    RollingLearner,
    run,
)
from streamridge.tuners import HOAG, RandomSearch
from tests.support.tiers import each_horizon

N, M, LAGS = 40, 6, 3
SCALES = np.full(LAGS, 0.2)

LEARNERS = {
    "paper": lambda history: OnlineLearner(
        KernelRidge(Periodic(11.0, period_bounds=(5, 20)) + ARD(SCALES)),
        history,
        train_size=N,
        update_every=M,
        step=ConstantStep(1e-3),
        coordinates=Chart.natural,
    ),
    "default": lambda history: OnlineLearner(
        KernelRidge(Drifting(Periodic(12.0) + Matern(SCALES) + Linear())),
        history,
        train_size=N,
        update_every=M,
    ),
    "float32": lambda history: OnlineLearner(
        KernelRidge(Periodic(12.0) + Matern(SCALES), factor_dtype=np.float32),
        history,
        train_size=N,
        update_every=M,
    ),
    "fixed": lambda history: OnlineLearner(
        KernelRidge(Matern(SCALES)), history, train_size=N, update_every=M, learn=False
    ),
    "autoregressive": lambda history: OnlineLearner(
        AutoregressiveRidge(np.ones(LAGS)), history, train_size=N, update_every=M
    ),
    "rolling random": lambda history: RollingLearner(
        KernelRidge(Periodic(12.0) + Matern(SCALES)),
        history,
        RandomSearch(3),
        train_size=N // 2,
        update_every=M,
        tune_every=M + 2,
        validation_size=N // 2,
    ),
    "rolling hoag": lambda history: RollingLearner(
        KernelRidge(Matern(SCALES)),
        history,
        HOAG(iterations=3),
        train_size=N // 2,
        update_every=M,
        tune_every=2 * M,
        validation_size=N // 2,
    ),
}

every_learner = pytest.mark.parametrize("build", LEARNERS.values(), ids=LEARNERS)
horizons = pytest.mark.parametrize("horizon", [1, 3])


def make_stream(rng, horizon):
    t = np.arange(N + 40)
    series = np.sin(2 * np.pi * t / 12) + 0.3 * rng.normal(size=len(t))
    samples = Features(lags=LAGS).samples(series, horizon=horizon)
    for array in (samples.t, samples.x, samples.y):
        array.flags.writeable = False  # whoever writes to an argument fails
    return samples[:N], samples[N:]


def snapshot(learner):
    """Return the state as the bytes of a file that can hold nothing but numbers."""
    file = BytesIO()
    np.savez(file, allow_pickle=False, **learner.state())
    return file.getvalue()


@every_learner
@horizons
def test_predicting_changes_nothing(build, horizon, rng):
    history, stream = make_stream(rng, horizon)
    learner = build(history)
    for _ in run(learner, stream[:10]):
        pass
    before = snapshot(learner)

    first = learner.predict(stream.t[10], stream.x[10])
    second = learner.predict(stream.t[10], stream.x[10])

    assert first.shape == (horizon,)
    np.testing.assert_array_equal(first, second)
    assert snapshot(learner) == before


@every_learner
@each_horizon(1, 3)
def test_a_restored_learner_continues_bit_for_bit_from_every_step(build, horizon, rng):
    history, stream = make_stream(rng, horizon)
    stops, more = 2 * M + 2, M + 2
    learner = build(history)
    states, forecasts = [snapshot(learner)], []
    for each in run(learner, stream[: stops + more]):
        forecasts.append(each.forecast)
        states.append(snapshot(learner))
    for stop in range(stops):
        twin = build(history)

        twin.restore(np.load(BytesIO(states[stop]), allow_pickle=False))

        rest = run(twin, stream[stop : stop + more])
        for one, other in zip(forecasts[stop : stop + more], rest, strict=True):
            np.testing.assert_array_equal(one, other.forecast)
        assert snapshot(twin) == states[stop + more]


@every_learner
@each_horizon(1, 3)
def test_releasing_changes_no_forecast(build, horizon, rng):
    history, stream = make_stream(rng, horizon)
    plain, released = build(history), build(history)

    for one, other in zip(run(plain, stream), run(released, stream), strict=True):
        released.release()
        np.testing.assert_array_equal(one.forecast, other.forecast)


@every_learner
def test_hyperparameters_stay_feasible_and_constants_stay_constant(build, rng):
    history, stream = make_stream(rng, 1)
    learner = build(history)
    start = learner.hyperparameters

    for _ in run(learner, stream):
        weights = [v for name, v in learner.hyperparameters.items() if name.startswith("weight")]
        assert not weights or abs(sum(weights) - 1) <= 1e-12
        assert min(learner.hyperparameters.values()) >= 0

    if "periodic.period" in start and start["periodic.period"] == 12.0:
        assert learner.hyperparameters["periodic.period"] == 12.0


@every_learner
def test_the_same_stream_gives_the_same_forecasts(build, rng):
    history, stream = make_stream(rng, 1)

    first, second = ([s.forecast for s in run(build(history), stream)] for _ in range(2))

    np.testing.assert_array_equal(first, second)
