"""A fit at rest, the memory of refits, and times as runs."""

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
from streamridge.learners.fitted import Fitted, runs_of, times_of
from streamridge.learners.record import KeptRows
from tests.conftest import make_samples

MODEL = AutoregressiveRidge(np.ones(5))


class Asked(KeptRows):
    """A record that writes down which training sets it is asked for."""

    asked: tuple = ()

    def at(self, times, refits_ago):
        object.__setattr__(self, "asked", (*self.asked, refits_ago))
        return super().at(times, refits_ago)


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


def fitted_to(samples, model=MODEL):
    """Return a fit that has just been made, and has learned nothing else."""
    lam = MODEL.space.values
    held = samples, MODEL.fit(samples, lam)
    return Fitted.made(model, Asked(samples), lam, float(samples.t[-1]), held)


@pytest.fixture
def samples(rng):
    return make_samples(rng, 20)


class TestFitted:
    def test_at_rest_it_holds_its_numbers_alone_and_wakes_the_same(self, samples):
        fitted = fitted_to(samples)
        wanted, numbers = fitted.fit.predict(samples.inputs), fitted.numbers

        fitted.release()

        assert fitted._held is None
        assert fitted.numbers.keys() == numbers.keys()
        np.testing.assert_array_equal(fitted.fit.predict(samples.inputs), wanted)

    def test_it_is_woken_once(self, samples):
        fitted = fitted_to(samples)
        fitted.release()

        assert fitted.fit is fitted.fit
        assert fitted.samples is fitted.samples

        assert fitted.record.asked == (0,)

    def test_released_twice_it_still_has_its_numbers(self, samples):
        fitted = fitted_to(samples)

        fitted.release()
        fitted.release()

        assert len(fitted.numbers)

    def test_its_rows_are_those_of_its_refit(self, samples):
        fitted = fitted_to(samples)
        fitted.release()
        fitted.refits_ago = 1

        fitted.wake()

        assert fitted.record.asked == (1,)

    def test_it_spans_its_rows(self, samples):
        fitted = fitted_to(samples[3:])

        assert fitted.first == 3.0
        np.testing.assert_array_equal(fitted.times, samples.t[3:])

    def test_what_can_be_made_again_is_not_pickled(self, samples):
        fitted = Fitted(MODEL, KeptRows(samples), samples.t, MODEL.space.values, 0.0, {})
        fitted._held = samples, MODEL.fit(samples, fitted.lam)

        again = pickle.loads(pickle.dumps(fitted))

        assert again._held is None
        assert again.numbers.keys() == fitted.numbers.keys()

    def test_numbers_that_are_missing_are_named(self, samples):
        fitted = Fitted(MODEL, KeptRows(samples), samples.t, MODEL.space.values, 0.0, {})

        with pytest.raises(StateError, match=r"state of a fit must hold '.*', got none"):
            fitted.wake()


class TestWorkspace:
    def test_a_fit_that_is_still_there_is_not_made_again(self, samples):
        model, workspace = CountedModel(), Workspace()
        fitted = fitted_to(samples, model)
        workspace.own(fitted)

        assert workspace.solved(fitted).fit is fitted.fit

        assert model.given == []

    def test_one_that_is_not_there_is_made_once(self, samples):
        model, workspace = CountedModel(), Workspace()
        fitted, other = fitted_to(samples, model), fitted_to(samples, model)
        workspace.own(other)

        first = workspace.solved(fitted)

        assert first.fit is not other.fit
        assert workspace.solved(fitted).fit is first.fit
        assert model.given == [], "it was resumed, not fitted"

    @pytest.mark.parametrize("kind", [KernelRidge, NystromRidge])
    def test_it_takes_over_the_memory_of_another(self, samples, kind):
        model, workspace = Standardized(kind(Matern(0.3))), Workspace()
        lam = model.space.values
        fits = [model.fit(samples, lam) for _ in range(2)]
        fitted, other = (
            Fitted.made(model, Asked(samples), lam, float(samples.t[-1]), (samples, fit))
            for fit in fits
        )
        memory = other.fit.fit.system.memory
        workspace.own(other)

        solved = workspace.solved(fitted).fit

        assert solved.fit.system.memory is memory
        expected = fits[0].gradient_of(samples)
        np.testing.assert_array_equal(solved.gradient_of(samples), expected)

    def test_the_next_fit_takes_over_the_memory_and_no_other_is_held(self, samples):
        model, workspace = CountedModel(), Workspace()
        first, second = fitted_to(samples, model), fitted_to(samples, model)
        workspace.own(first)
        workspace.own(second)

        workspace.fit(model, samples, first.lam)
        workspace.fit(model, samples, first.lam)

        assert model.given == [first.fit, None]

    def test_a_fit_that_is_spared_stays(self, samples):
        model, workspace = CountedModel(), Workspace()
        spared = fitted_to(samples, model)
        workspace.own(spared)

        workspace.fit(model, samples, spared.lam, spared)

        assert model.given == [None]
        assert workspace.solved(spared).fit is spared.fit

    def test_memory_of_another_kind_of_model_is_not_taken(self, samples):
        model, workspace = CountedModel(), Workspace()
        workspace.own(fitted_to(samples, OtherModel()))

        workspace.fit(model, samples, MODEL.space.values)

        assert model.given == [None]

    def test_cleared_it_holds_nothing(self, samples):
        model, workspace = CountedModel(), Workspace()
        workspace.own(fitted_to(samples, model))

        workspace.clear()
        workspace.fit(model, samples, MODEL.space.values)

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
