import numpy as np
import pytest

from streamridge import ConstantStep, Features, KernelRidge, OnlineLearner, SquaredExponential
from streamridge.learners.guard import PATIENCE, RENEW_AFTER, Guard, Shadow

MODEL = KernelRidge(SquaredExponential(0.1), regularization=0.1)


class TestShadow:
    def test_tuning_gives_way_after_so_many_worse_windows_in_a_row(self):
        shadow = Shadow(np.ones(2))

        for _ in range(PATIENCE):
            assert not shadow.wins
            shadow = shadow.judged(np.array([1.1, 1.0]))

        assert shadow.wins

    def test_one_better_window_starts_the_count_anew(self):
        shadow = Shadow(np.ones(2))
        for _ in range(PATIENCE - 1):
            shadow = shadow.judged(np.array([1.1, 1.0]))

        shadow = shadow.judged(np.array([1.0, 9.0]))

        assert shadow.worse == 0

    def test_a_little_worse_is_not_worse(self):
        shadow = Shadow(np.ones(2))
        for _ in range(3 * PATIENCE):
            shadow = shadow.judged(np.array([1.01, 1.0]))

        assert not shadow.worse

    def test_tuning_becomes_the_next_shadow_once_it_is_old_enough_and_not_worse(self):
        shadow = Shadow(np.ones(2))
        for _ in range(RENEW_AFTER):
            assert not shadow.is_outdated
            shadow = shadow.judged(np.array([1.0, 1.0]))

        assert shadow.is_outdated
        assert not shadow.judged(np.array([9.0, 1.0])).is_outdated


@pytest.fixture
def learner_and_stream():
    rng = np.random.default_rng(0)
    t = np.arange(900)
    series = np.sin(t / 7) + 0.1 * rng.standard_normal(len(t))
    samples = Features(lags=5).samples(series)
    learner = OnlineLearner(MODEL, samples[:200], train_size=200, update_every=20)
    return learner, samples[200:]


def walk(learner, guard, stream):
    """Observe a stream, and return after how many windows the guard rolled back."""
    rolled_back, refits, window = [], learner.refits, 0
    for t, x, y in zip(stream.t, stream.x, stream.y[:, 0], strict=True):
        learner.observe(t, x, y)
        if learner.refits != refits:
            window += 1
            if guard.watch():
                rolled_back.append(window)
            refits = learner.refits
    return rolled_back


def test_good_tuning_is_left_alone(learner_and_stream):
    learner, stream = learner_and_stream

    assert walk(learner, Guard(MODEL, learner), stream) == []


def test_bad_tuning_is_rolled_back_to_where_it_was(learner_and_stream):
    stream = learner_and_stream[1]
    still = ConstantStep(1e-300)  # tuning that has gone astray and does not come back by itself
    learner = OnlineLearner(MODEL, stream[:200], train_size=200, update_every=20, step=still)
    good, guard = learner.lam, Guard(MODEL, learner)
    learner.assign({"regularization": 90.0})

    rolled_back = walk(learner, guard, stream[200:])

    # The first window belongs to the fit before the change.
    assert rolled_back == [PATIENCE + 1]
    np.testing.assert_allclose(learner.lam, good)


def test_what_is_frozen_is_not_rolled_back(learner_and_stream):
    stream = learner_and_stream[1]
    still = ConstantStep(1e-300)
    learner = OnlineLearner(MODEL, stream[:200], train_size=200, update_every=20, step=still)
    guard = Guard(MODEL, learner)
    learner.assign({"regularization": 90.0, "inverse_scale": 0.2})
    learner.freeze("regularization")

    rolled_back = walk(learner, guard, stream[200:])

    assert rolled_back
    assert learner.hyperparameters["regularization"] == pytest.approx(90.0)
    assert learner.hyperparameters["inverse_scale"] == pytest.approx(0.1)


def test_a_state_goes_on_bit_for_bit(learner_and_stream):
    learner, stream = learner_and_stream
    guard = Guard(MODEL, learner)
    walk(learner, guard, stream[:130])
    other = OnlineLearner(MODEL, stream[:50], train_size=200, update_every=20)
    resumed = Guard(MODEL, other)

    other.restore(learner.state())
    resumed.restore(guard.state())
    walk(learner, guard, stream[130:])
    walk(other, resumed, stream[130:])

    for name, value in guard.state().items():
        np.testing.assert_array_equal(value, resumed.state()[name])
