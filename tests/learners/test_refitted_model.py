"""The state of a learner: nothing is shared with it, and what cannot be is refused."""

import numpy as np
import pytest

from streamridge import AutoregressiveRidge, OnlineLearner, StateError
from tests.support.samples import make_samples

UPDATE_EVERY = 4


@pytest.fixture
def learner(rng):
    history = make_samples(rng, 30, horizon=2)
    model = AutoregressiveRidge(np.ones(5))
    learner = OnlineLearner(model, history, train_size=20, update_every=UPDATE_EVERY)
    for t in range(30, 30 + UPDATE_EVERY):
        learner.observe(t, rng.normal(size=5), rng.normal())
    return learner


def test_a_window_that_should_have_ended_is_refused(learner):
    state = {**learner.state(), "steps": UPDATE_EVERY}

    with pytest.raises(StateError, match="must have fewer than 4 steps since its refit, got 4"):
        learner.restore(state)


def test_a_gap_that_is_longer_than_the_window_ends_it_with_the_next_observation(learner):
    learner.observe(34, np.ones(5), 1.0)
    for t in range(35, 40):
        learner.pass_over(t)
    refits = learner.refits
    assert not learner.refit_due

    learner.restore(learner.state())
    learner.observe(40, np.ones(5), 1.0)

    assert learner.refits == refits + 1


def test_a_gap_right_after_a_refit_counts_from_the_next_observation(learner):
    learner.pass_over(34, steps=1)
    learner.pass_over(99, steps=65)

    assert not learner.refit_due
    learner.observe(100, np.ones(5), 1.0)
    assert not learner.refit_due


def test_a_state_with_less_than_no_steps_is_refused(learner):
    with pytest.raises(StateError, match="steps must be a whole number of at least 0, got -1"):
        learner.restore({**learner.state(), "steps": -1})


def test_arrays_of_a_state_may_be_changed_after_it_was_restored(learner):
    state = {name: np.array(value) for name, value in learner.state().items()}
    x, wanted = np.ones(5), learner.predict(40.0, np.ones(5))
    learner.restore(state)

    for name in ("current.lam", *(name for name in state if name.startswith("current.fit."))):
        state[name][...] = 7.0

    assert not np.any(learner.lam == 7.0)
    np.testing.assert_array_equal(learner.predict(40.0, x), wanted)


def test_at_rest_the_fit_is_not_in_memory(learner):
    learner.rest()

    assert learner.progress.current.held is None
