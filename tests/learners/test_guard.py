import numpy as np
import pytest

from streamridge import (
    ConstantStep,
    Features,
    FitError,
    KernelRidge,
    NotPositiveDefiniteError,
    OnlineLearner,
    SquaredExponential,
)
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

    def test_earlier_windows_count_for_four_fifths(self):
        shadow = Shadow(np.ones(2)).judged(np.array([10.0, 5.0])).judged(np.array([1.0, 2.0]))

        assert shadow.losses.tolist() == [9.0, 6.0]
        assert (shadow.age, shadow.worse) == (2, 2)

    @pytest.mark.parametrize(("tuned", "worse"), [(102.0, 0), (102.1, 1)])
    def test_two_percent_more_is_just_not_worse(self, tuned, worse):
        assert Shadow(np.ones(2)).judged(np.array([tuned, 100.0])).worse == worse


class Watched:
    """A model that keeps the times and the hyperparameters of its fits."""

    def __init__(self):
        self.space, self.times, self.lams = MODEL.space, [], []

    def fit(self, samples, lam, *_):
        self.times.append(samples.t.tolist())
        self.lams.append(lam.copy())
        return MODEL.fit(samples, lam)


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

    # The first window belongs to the fit before the change, and five worse ones follow.
    assert rolled_back == [6]
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


def test_small_fits_see_a_quarter_of_the_rows_and_none_of_the_window(learner_and_stream):
    learner, stream = learner_and_stream
    small = Watched()

    walk(learner, Guard(small, learner), stream[:40])

    first = stream.t[0]  # windows begin here and 20 steps later
    last_rows = [list(np.arange(end - 50, end)) for end in (first, first, first + 20, first + 20)]
    assert small.times == last_rows


def test_tuning_is_judged_by_the_hyperparameters_in_force_in_the_window(learner_and_stream):
    learner, stream = learner_and_stream
    small, in_force = Watched(), []
    guard = Guard(small, learner)

    for start in range(0, 60, 20):
        in_force.append(learner.lam)
        walk(learner, guard, stream[start : start + 20])

    np.testing.assert_array_equal(small.lams[0::2], in_force)
    np.testing.assert_array_equal(small.lams[1::2], [in_force[0]] * 3)
    assert (in_force[1] != in_force[0]).any()


def test_the_losses_are_the_squared_errors_of_the_window(learner_and_stream):
    learner, stream = learner_and_stream
    guard = Guard(MODEL, learner)
    start = learner.lam
    recent = learner.training[-50:]

    walk(learner, guard, stream[:20])

    errors = stream[:20].y - MODEL.fit(recent, start).predict(stream[:20].inputs)
    np.testing.assert_allclose(guard.state()["losses"], np.sum(errors**2))


def test_a_shadow_is_renewed_after_seven_windows_if_tuning_is_not_worse(learner_and_stream):
    learner, stream = learner_and_stream
    guard = Guard(MODEL, learner)
    start = learner.lam

    walk(learner, guard, stream[: 6 * 20])
    np.testing.assert_array_equal(guard.state()["lam"], start)
    walk(learner, guard, stream[6 * 20 : 7 * 20])

    np.testing.assert_array_equal(guard.state()["lam"], learner.lam)
    assert guard.state()["windows"].tolist() == [0, 0]
    assert guard.state()["losses"].tolist() == [0.0, 0.0]


def test_after_a_rollback_the_judgement_starts_anew(learner_and_stream):
    stream = learner_and_stream[1]
    still = ConstantStep(1e-300)
    learner = OnlineLearner(MODEL, stream[:200], train_size=200, update_every=20, step=still)
    guard = Guard(MODEL, learner)
    learner.assign({"regularization": 90.0})

    walk(learner, guard, stream[200 : 200 + 20 * (PATIENCE + 1)])

    assert guard.state()["windows"].tolist() == [0, 0]
    np.testing.assert_array_equal(guard.state()["tuned"], learner.lam)


def test_what_is_trusted_is_judged_from_then_on_only(learner_and_stream):
    learner, stream = learner_and_stream
    guard = Guard(MODEL, learner)
    walk(learner, guard, stream[:60])
    for t, x, y in zip(stream.t[60:70], stream.x[60:70], stream.y[60:70, 0], strict=True):
        learner.observe(t, x, y)
    learner.assign({"regularization": 5.0})

    guard.trust()

    state = guard.state()
    for name in ("lam", "tuned"):
        np.testing.assert_array_equal(state[name], learner.lam)
    assert state["windows"].tolist() == [0, 0]
    assert state["end"] == stream.t[69]


def test_a_window_without_rows_says_nothing(learner_and_stream):
    learner, stream = learner_and_stream
    guard = Guard(MODEL, learner)

    for t, y in zip(stream.t[:20], stream.y[:20, 0], strict=True):
        learner.observe(t, None, y)

    assert not guard.watch()
    assert guard.state()["losses"].tolist() == [0.0, 0.0]


def test_small_fits_without_a_factor_say_nothing(learner_and_stream):
    learner, stream = learner_and_stream

    class Unfit(Watched):
        def fit(self, *_):
            raise NotPositiveDefiniteError("K + regularization * I", 1.0, "regularization", 1, 0)

    guard = Guard(Unfit(), learner)

    assert walk(learner, guard, stream[:40]) == []
    assert guard.state()["losses"].tolist() == [0.0, 0.0]


def test_a_state_goes_on_bit_for_bit(learner_and_stream):
    learner, stream = learner_and_stream
    guard = Guard(MODEL, learner)
    walk(learner, guard, stream[:90])
    other = OnlineLearner(MODEL, stream[:50], train_size=200, update_every=20)
    resumed = Guard(MODEL, other)

    other.restore(learner.state())
    resumed.restore(guard.state())
    for each in range(90, 150, 20):
        walk(learner, guard, stream[each : each + 20])
        walk(other, resumed, stream[each : each + 20])

        for name, value in guard.state().items():
            np.testing.assert_array_equal(value, resumed.state()[name])


def test_a_rollback_to_where_no_fit_exists_is_left_out_and_tried_again(
    learner_and_stream, monkeypatch
):
    stream = learner_and_stream[1]
    still = ConstantStep(1e-300)
    learner = OnlineLearner(MODEL, stream[:200], train_size=200, update_every=20, step=still)
    good, guard = learner.lam, Guard(MODEL, learner)
    learner.assign({"regularization": 90.0})

    def fails(_):
        raise FitError("the solver did not converge.")

    with monkeypatch.context() as broken:
        broken.setattr(learner, "assign", fails)
        assert walk(learner, guard, stream[200:340]) == []
    assert learner.hyperparameters["regularization"] == pytest.approx(90.0)

    assert walk(learner, guard, stream[340:]) == [1]
    np.testing.assert_allclose(learner.lam, good)
