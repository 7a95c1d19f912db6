"""Fits that are rebuilt from numbers, the memory of refits, and times as runs."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import (
    AutoregressiveRidge,
    KernelRidge,
    Matern,
    NystromRidge,
    Standardized,
    StateError,
    Workspace,
)
from streamridge.learners.workspace import RebuildableFit, runs_of, times_of
from tests.support.samples import make_samples

MODEL = AutoregressiveRidge(np.ones(5))


class CountedModel:
    """A model that writes down in which fit's memory each of its fits was made."""

    def __init__(self):
        self.given = []

    def __getattr__(self, name):
        return getattr(MODEL, name)

    def fit(self, samples, lam, before=None):
        self.given.append(before)
        return MODEL.fit(samples, lam)


class OtherModel(CountedModel):
    """A model of another kind."""


def fitted_to(samples):
    """Return a fit that has just been made, and has learned nothing else."""
    lam = MODEL.space.values
    return RebuildableFit(lam, runs_of(samples.t), held=(samples, MODEL.fit(samples, lam)))


@pytest.fixture
def samples(rng):
    return make_samples(rng, 20)


class TestRebuildableFit:
    def test_released_it_holds_only_its_numbers_and_is_rebuilt_the_same(self, samples):
        fitted = fitted_to(samples)
        wanted, numbers = fitted.held[1].predict(samples.inputs), fitted.numbers

        fitted.release()
        assert fitted.held is None
        assert fitted.numbers.keys() == numbers.keys()
        _, fit = fitted.rebuild(MODEL, samples)

        np.testing.assert_array_equal(fit.predict(samples.inputs), wanted)
        assert fitted.held == (samples, fit)

    def test_released_twice_it_still_has_its_numbers(self, samples):
        fitted = fitted_to(samples)

        fitted.release()
        fitted.release()

        assert len(fitted.numbers)

    def test_it_knows_the_times_of_its_rows(self, samples):
        np.testing.assert_array_equal(times_of(fitted_to(samples[3:]).runs), samples.t[3:])

    def test_a_pickle_holds_numbers_and_no_matrices(self, samples):
        fitted = fitted_to(samples)

        again = pickle.loads(pickle.dumps(fitted))

        assert again.held is None
        assert again.numbers.keys() == fitted.numbers.keys()

    def test_missing_numbers_are_named(self, samples):
        fitted = RebuildableFit(MODEL.space.values, runs_of(samples.t), {})

        with pytest.raises(StateError, match=r"state of a fit must hold '.*', got none"):
            fitted.rebuild(MODEL, samples)


def keep(workspace, model, fitted):
    workspace.keep(fitted, model, fitted.held[1])


class TestWorkspace:
    def test_a_fit_in_memory_is_not_rebuilt(self, samples):
        model, workspace = CountedModel(), Workspace()
        fitted = fitted_to(samples)
        keep(workspace, model, fitted)

        assert workspace.solved(fitted, model, samples) is fitted.held[1]

        assert model.given == []

    def test_one_that_is_not_there_is_made_once(self, samples):
        model, workspace = CountedModel(), Workspace()
        fitted, other = fitted_to(samples), fitted_to(samples)
        keep(workspace, model, other)

        first = workspace.solved(fitted, model, samples)

        assert first is not other.held[1]
        assert workspace.solved(fitted, model, samples) is first
        assert model.given == [], "it was resumed, not fitted"

    @pytest.mark.parametrize("kind", [KernelRidge, NystromRidge])
    def test_it_takes_over_the_memory_of_another(self, samples, kind):
        model, workspace = Standardized(kind(Matern(0.3))), Workspace()
        lam = model.space.values
        fits = [model.fit(samples, lam) for _ in range(2)]
        fitted, other = (
            RebuildableFit(lam, runs_of(samples.t), held=(samples, fit)) for fit in fits
        )
        memory = other.held[1].fit.system.memory
        keep(workspace, model, other)

        solved = workspace.solved(fitted, model, samples)

        assert solved.fit.system.memory is memory
        expected = fits[0].loss_and_gradient(samples)[1]
        np.testing.assert_array_equal(solved.loss_and_gradient(samples)[1], expected)

    def test_the_next_fit_takes_over_the_memory_and_no_other_is_held(self, samples):
        model, workspace = CountedModel(), Workspace()
        first, second = fitted_to(samples), fitted_to(samples)
        keep(workspace, model, first)
        keep(workspace, model, second)

        model.fit(samples, first.lam, workspace.spare(model))
        model.fit(samples, first.lam, workspace.spare(model))

        assert model.given == [first.held[1], None]

    def test_memory_of_another_kind_of_model_is_not_taken(self, samples):
        model, workspace = CountedModel(), Workspace()
        workspace.keep(fitted_to(samples), OtherModel(), None)

        model.fit(samples, MODEL.space.values, workspace.spare(model))

        assert model.given == [None]

    def test_cleared_it_holds_nothing(self, samples):
        model, workspace = CountedModel(), Workspace()
        keep(workspace, model, fitted_to(samples))

        workspace.clear()
        model.fit(samples, MODEL.space.values, workspace.spare(model))

        assert model.given == [None]


@given(st.sets(st.integers(-50, 50), min_size=1), st.sampled_from([0.0, 0.5]))
def test_runs_hold_every_time_and_no_other(steps, offset):
    times = np.array(sorted(steps)) + offset

    runs = runs_of(times)

    np.testing.assert_array_equal(times_of(runs), times)
    breaks = np.flatnonzero(np.diff(times) != 1) + 1
    assert len(runs) == (len(times) if offset else len(breaks) + 1)


def test_times_that_are_no_whole_steps_are_kept_as_they_are():
    times = np.array([0.1, 1.1, 2.1])  # 0.1 + 2 is not 2.1 in every rounding

    assert times_of(runs_of(times)).tobytes() == times.tobytes()
