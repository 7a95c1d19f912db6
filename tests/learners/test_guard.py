import numpy as np
import pytest

from streamridge import (
    ConstantStep,
    Features,
    FitError,
    KernelRidge,
    OnlineLearner,
    SquaredExponential,
)
from streamridge.learners.companion import Companion
from streamridge.learners.guard import PATIENCE, Comparison, Guard

MODEL = KernelRidge(SquaredExponential(0.1), regularization=0.1)
START = MODEL.space.values
STILL = ConstantStep(1e-300)  # tuning that has gone astray and does not come back by itself


class TestComparison:
    def test_tuning_is_doubtful_after_so_many_worse_windows_in_a_row(self):
        comparison = Comparison()

        for _ in range(PATIENCE):
            assert not comparison.is_doubtful
            comparison = comparison.judged(np.array([1.1, 1.0]))

        assert comparison.is_doubtful

    def test_one_better_window_starts_the_count_anew(self):
        comparison = Comparison()
        for _ in range(PATIENCE - 1):
            comparison = comparison.judged(np.array([1.1, 1.0]))

        assert comparison.judged(np.array([1.0, 9.0])).worse == 0

    def test_a_little_worse_is_not_worse(self):
        comparison = Comparison()
        for _ in range(3 * PATIENCE):
            comparison = comparison.judged(np.array([1.01, 1.0]))

        assert not comparison.worse

    def test_earlier_windows_count_for_four_fifths(self):
        comparison = Comparison().judged(np.array([10.0, 5.0])).judged(np.array([1.0, 2.0]))

        assert comparison.losses.tolist() == [9.0, 6.0]
        assert comparison.worse == 2

    @pytest.mark.parametrize(("tuned", "worse"), [(102.0, 0), (102.1, 1)])
    def test_two_percent_more_is_just_not_worse(self, tuned, worse):
        assert Comparison().judged(np.array([tuned, 100.0])).worse == worse


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    t = np.arange(1100)
    return Features(lags=5).samples(np.sin(t / 7) + 0.1 * rng.standard_normal(len(t)))


def started(stream, **options):
    """Return a learner that knows the first 200 rows, its companion, and its guard."""
    learner = OnlineLearner(MODEL, stream[:200], train_size=200, update_every=20, **options)
    companion = Companion(learner, START)
    companion.renew()
    return learner, companion, Guard(learner, MODEL, START)


def walk(learner, companion, guard, stream):
    """Observe a stream, and return after how many windows the guard rolled back."""
    rolled_back, refits, window, errors = [], learner.refits, 0, []
    for at, (t, x, y) in enumerate(zip(stream.t, stream.x, stream.y[:, 0], strict=True)):
        small = companion.predict(stream[at : at + 1].inputs)
        errors.append([y - learner.predict(t, x)[0], y - small[0]])
        learner.observe(t, x, y)
        if learner.refits != refits:
            window += 1
            if guard.watch(np.mean(np.square(errors), axis=0)):
                rolled_back.append(window)
            companion.renew()
            refits, errors = learner.refits, []
    return rolled_back


def test_good_tuning_is_left_alone(stream):
    assert walk(*started(stream), stream[200:]) == []


def test_bad_tuning_is_rolled_back_to_its_start(stream):
    learner, companion, guard = started(stream, step=STILL)
    learner.assign({"regularization": 90.0})

    rolled_back = walk(learner, companion, guard, stream[200:])

    assert rolled_back == [PATIENCE]
    np.testing.assert_allclose(learner.lam, START)


def test_what_is_frozen_is_not_rolled_back(stream):
    learner, companion, guard = started(stream, step=STILL)
    learner.assign({"regularization": 90.0, "inverse_scale": 0.2})
    learner.freeze("regularization")

    assert walk(learner, companion, guard, stream[200:])
    assert learner.hyperparameters["regularization"] == pytest.approx(90.0)
    assert learner.hyperparameters["inverse_scale"] == pytest.approx(0.1)


def test_a_rollback_that_cannot_be_fitted_is_tried_again(stream, monkeypatch):
    learner, _, guard = astray(stream)
    monkeypatch.setattr(learner, "assign", _failing)

    lost = [guard.watch(np.array([2.0, 1.0])) for _ in range(PATIENCE + 1)]
    monkeypatch.undo()

    assert lost == (PATIENCE + 1) * [False]
    assert guard.watch(np.array([2.0, 1.0]))


def astray(stream):
    """Return what `started` does, with a learner that is worse than its start."""
    learner, companion, guard = started(stream, step=STILL)
    learner.assign({"regularization": 90.0})
    return learner, companion, guard


def test_what_is_no_worse_than_its_start_is_acquitted_and_compared_anew(stream):
    """A short memory may be better for now, whatever the hyperparameters."""
    _, _, guard = started(stream)

    rolled_back = [guard.watch(np.array([2.0, 1.0])) for _ in range(3 * PATIENCE)]

    assert not any(rolled_back)
    assert guard.state()["worse"] == 0


def test_too_few_rows_tell_nothing_of_tuning(stream):
    learner = OnlineLearner(MODEL, stream[:8], train_size=8, update_every=5, step=STILL)
    learner.assign({"regularization": 90.0})
    guard = Guard(learner, MODEL, START)

    assert not any(guard.watch(np.array([2.0, 1.0])) for _ in range(PATIENCE))


def _failing(values):
    raise FitError("not today")


def test_trust_starts_a_new_comparison(stream):
    guard = astray(stream)[2]
    for _ in range(PATIENCE - 1):
        guard.watch(np.array([2.0, 1.0]))

    guard.trust()

    assert not guard.watch(np.array([2.0, 1.0]))


def test_a_restored_guard_goes_on_counting(stream):
    before, after = astray(stream)[2], astray(stream)[2]
    for _ in range(PATIENCE - 1):
        before.watch(np.array([2.0, 1.0]))

    after.restore(before.state())

    assert after.watch(np.array([2.0, 1.0]))


class TestCompanion:
    def test_it_is_a_fit_to_the_last_quarter_at_the_start(self, stream):
        learner, companion, _ = started(stream)
        learner.assign({"regularization": 0.5})
        companion.renew()
        recent, ahead = learner.training[-50:], stream[200:201].inputs

        expected = MODEL.fit(recent, START).predict(ahead)[0]

        np.testing.assert_array_equal(companion.predict(ahead), expected)

    def test_at_rest_and_restored_it_says_the_same(self, stream):
        learner, companion, _ = started(stream)
        ahead = stream[200:201].inputs
        said = companion.predict(ahead)

        companion.rest()
        other = Companion(learner, START)
        other.restore(companion.state())

        np.testing.assert_array_equal(companion.predict(ahead), said)
        np.testing.assert_array_equal(other.predict(ahead), said)

    def test_without_a_fit_it_says_nothing(self, stream, monkeypatch):
        learner, companion, _ = started(stream)
        monkeypatch.setattr(learner, "companion", _unfit)

        companion.renew()

        assert not companion.is_fitted
        assert companion.predict(stream[200:201].inputs) is None
        assert companion.state() == {}


def _unfit(lam, count):
    raise FitError("not today")
