"""The self-tuning model of a forecaster: rollbacks, its baseline fit, and searches for a start."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from streamridge import ConstantStep, FitError, Forecaster, Workspace
from streamridge.features.base import input_at
from streamridge.forecaster.methods import starting_at
from streamridge.learners import refitted_model
from streamridge.learners.restarts import DOUBTFUL_WINDOWS
from streamridge.learners.workspace import times_of
from streamridge.models.landmarks import drawn
from tests.support.forecasters import DAY, column, daily, live, small

WORSE = np.array([2.0, 1.0])
SEARCHED = {"start": "search", "train_size": 240, "warmup": 12 * DAY}


def fitted(**settings):
    """Return a forecaster after its first fits, with steps too small to move hyperparameters."""
    preset = replace(small(**settings).settings.preset, step_rule=ConstantStep(1e-300))
    forecaster = small(preset=preset, defer_refits=True, **settings)
    live(forecaster, daily(10 * DAY))
    forecaster.refit()
    return forecaster


def refitted(forecaster, times=DOUBTFUL_WINDOWS):
    """Return the events of refits, each after a window in which the model was worse."""
    return [forecaster._model.refit(None, None, WORSE) for _ in range(times)]


def astray():
    """Return a forecaster whose regularization is far too large."""
    forecaster = fitted()
    forecaster.tuning.set(regularization=99.0)
    return forecaster


def fail(*_):
    raise FitError("not today")


def off_from(start, **changes):
    """Return a forecaster from this regularization, after 20 refits, with another preset."""
    settings = starting_at({"regularization": start}, small().settings)
    preset = replace(settings.preset, **changes)
    forecaster = Forecaster.from_settings(replace(settings, preset=preset))
    live(forecaster, daily(23 * DAY))
    return forecaster


class TestUsualHyperparameters:
    def test_a_start_that_is_far_off_returns_sooner_than_by_gradients_alone(self):
        usual = small().hyperparameters["regularization"]

        pulled, free = (off_from(usual / 200, **own) for own in ({}, {"pull": 0.0}))

        start, reached = np.log(200), pulled.hyperparameters["regularization"]
        assert np.log(usual / reached) < 0.5 * start
        assert np.log(usual / free.hyperparameters["regularization"]) > 0.7 * start

    def test_a_forecaster_far_from_its_usual_hyperparameters_continues_after_loading(self):
        forecaster = off_from(0.01)

        loaded = Forecaster.from_bytes(forecaster.to_bytes())

        later = daily(30 * DAY)[23 * DAY :]
        one, other = (live(each, later, 23 * DAY) for each in (forecaster, loaded))
        np.testing.assert_array_equal(column(one), column(other))
        usual = small().settings.preset.usual_values
        np.testing.assert_array_equal(loaded.settings.preset.usual_values, usual)

    def test_fixed_hyperparameters_are_not_pulled(self):
        settings = starting_at({"regularization": 0.01}, small(learn=False).settings)
        forecaster = Forecaster.from_settings(settings)

        live(forecaster, daily(6 * DAY))

        assert forecaster.hyperparameters["regularization"] == pytest.approx(0.01)


class TestRollback:
    def test_tuning_that_was_worse_for_long_is_rolled_back_to_its_start(self):
        forecaster = astray()

        events = refitted(forecaster)

        assert events == [("fits",)] * (DOUBTFUL_WINDOWS - 1) + [("fits", "rollbacks")]
        start = forecaster.settings.model.space.values
        np.testing.assert_allclose(forecaster._model.lam, start)

    def test_frozen_hyperparameters_are_not_rolled_back(self):
        forecaster = astray()
        forecaster.tuning.set(**{"drifting.rate": 9e-3})
        forecaster.tuning.freeze("regularization")

        assert ("fits", "rollbacks") in refitted(forecaster)
        assert forecaster.hyperparameters["regularization"] == pytest.approx(99.0)
        assert forecaster.hyperparameters["drifting.rate"] == pytest.approx(3e-4)

    def test_a_rollback_that_cannot_be_fitted_is_tried_again(self, monkeypatch):
        forecaster = astray()
        monkeypatch.setattr(forecaster._model, "assign", fail)

        assert refitted(forecaster, DOUBTFUL_WINDOWS + 1) == [("fits",)] * (DOUBTFUL_WINDOWS + 1)
        monkeypatch.undo()

        assert refitted(forecaster, 1) == [("fits", "rollbacks")]

    def test_tuning_no_worse_than_its_start_stays_and_is_compared_again(self):
        """A short memory may be better for now, whatever the hyperparameters."""
        forecaster = fitted()

        assert refitted(forecaster) == [("fits",)] * DOUBTFUL_WINDOWS
        assert forecaster._model._comparison.worse == 0

    def test_a_setting_by_an_operator_starts_a_new_comparison(self):
        forecaster = astray()
        refitted(forecaster, DOUBTFUL_WINDOWS - 1)

        forecaster.tuning.set(regularization=98.0)

        assert refitted(forecaster, 1) == [("fits",)]

    def test_saved_and_loaded_it_continues_counting(self):
        forecaster = astray()
        refitted(forecaster, DOUBTFUL_WINDOWS - 1)

        twin = Forecaster.from_bytes(forecaster.to_bytes())

        assert refitted(twin, 1) == [("fits", "rollbacks")]


class TestBaseline:
    def inputs(self, forecaster):
        history = forecaster._history
        return input_at(forecaster._model.features, history.past(), history.next_step)

    def test_it_is_a_fit_to_the_last_quarter_at_the_start(self):
        forecaster = astray()
        model, inputs = forecaster._model, self.inputs(forecaster)
        recent = model.training[-(len(model.training) // 4) :]

        expected = model.model.fit(recent, model.model.space.values).predict(inputs)[0]

        np.testing.assert_array_equal(model.forecast(inputs)[2], expected)

    def test_released_and_restored_it_forecasts_the_same(self):
        forecaster = fitted()
        inputs = self.inputs(forecaster)
        said = forecaster._model.forecast(inputs)[2]

        forecaster.workspace = None
        twin = Forecaster.from_bytes(forecaster.to_bytes())

        for each in (forecaster, twin):
            np.testing.assert_array_equal(each._model.forecast(inputs)[2], said)

    def test_without_a_fit_it_has_no_forecast_and_no_weight(self, monkeypatch):
        forecaster = fitted()
        monkeypatch.setattr(type(forecaster._model.model), "thinned", fail)

        forecaster.refit()

        assert not forecaster._model.has_baseline
        assert forecaster._model.forecast(self.inputs(forecaster))[2] is None
        assert forecaster.tuning.experts["start"] == 0.0
        assert Forecaster.from_bytes(forecaster.to_bytes()).tuning.experts["start"] == 0.0


class TestSearch:
    def test_frozen_hyperparameters_are_not_searched(self):
        forecaster = small(**SEARCHED, defer_refits=True)
        live(forecaster, daily(11 * DAY))
        forecaster._first_fit(None)
        assert "tunings" not in forecaster.counts
        forecaster.tuning.set(regularization=99.0)
        forecaster.tuning.freeze("regularization")
        live(forecaster, daily(14 * DAY)[11 * DAY :], 11 * DAY)

        forecaster.refit()

        assert forecaster.counts["tunings"] == 1
        assert forecaster.hyperparameters["regularization"] == pytest.approx(99.0)

    def test_a_result_that_cannot_be_fitted_is_dropped(self, monkeypatch):
        forecaster = small(**SEARCHED, defer_refits=True)
        live(forecaster, daily(14 * DAY))
        start = forecaster.hyperparameters
        monkeypatch.setattr("streamridge.forecaster.self_tuning.SelfTuningModel.assign", fail)

        forecaster.refit()

        assert forecaster.counts["tunings"] == 1
        assert forecaster.hyperparameters == pytest.approx(start)


class TestGradientsOfFewerRows:
    """A large training set: gradients use every second row, and come every third window."""

    SIZE, LEAST = 240, 100

    @pytest.fixture(autouse=True)
    def least_rows(self, monkeypatch):
        monkeypatch.setattr(refitted_model, "LEAST_GRADIENT_ROWS", self.LEAST)

    @staticmethod
    @cache
    def saved(size, horizon, share, least):
        preset = replace(small(horizon=horizon).settings.preset, gradient_share=share)
        forecaster = small(train_size=size, horizon=horizon, preset=preset)
        live(forecaster, daily(14 * DAY))
        return forecaster.to_bytes()

    def lived(self, horizon=1, share=2):
        """Return a forecaster after two weeks, which are shared by tests of the same settings."""
        least = refitted_model.LEAST_GRADIENT_ROWS
        return Forecaster.from_bytes(self.saved(self.SIZE, horizon, share, least))

    def test_the_gradient_is_that_of_a_fit_to_half_of_the_rows(self):
        forecaster = self.lived(horizon=2)
        live(forecaster, daily(15 * DAY)[14 * DAY : -5], first=14 * DAY)
        model, issued = forecaster._model, forecaster._window()[0]
        progress, lam = model.progress, model.lam
        times = times_of(progress.current.runs)
        rows = model._rows.at(np.sort(times[drawn(times, len(times) // 2)]), lam)
        window = model._rows.between(progress.refit_time - 1, model.newest, lam)
        tangents = model._rows.tangents(rows.t, window.t, lam)
        fit, loss = model.model.fit(rows, lam), issued.loss(window.t)

        learned = model._learned(progress, 2, Workspace(), issued)

        wanted = fit.loss_and_gradient(window, tangents, loss)[1]
        assert len(rows) == self.SIZE // 2
        np.testing.assert_array_equal(learned.descent.g, learned.chart.pull_back(lam, wanted))

    @pytest.mark.parametrize(("share", "moves"), [(2, 2), (None, 6)])
    def test_only_every_third_window_moves_the_hyperparameters(self, share, moves):
        forecaster = self.lived(share=share)

        live(forecaster, daily(20 * DAY)[14 * DAY :], first=14 * DAY)

        values = forecaster.tuning.path.values[-7:]
        assert np.count_nonzero(np.diff(values, axis=0).any(axis=1)) == moves

    def test_refits_by_hand_do_not_switch_learning_off(self):
        forecaster = self.lived()
        before = forecaster.hyperparameters

        for day in range(14, 20):
            live(forecaster, daily((day + 1) * DAY)[day * DAY :], first=day * DAY)
            forecaster.refit()

        values = forecaster.tuning.path.values
        assert forecaster.hyperparameters != before
        assert np.count_nonzero(np.diff(values[-13:], axis=0).any(axis=1)) == 2

    def test_it_depends_neither_on_the_memory_nor_on_being_saved(self):
        values = daily(17 * DAY)[14 * DAY :]
        held, plain = self.lived(), self.lived()
        held.workspace = Workspace()

        saved = Forecaster.from_bytes(plain.to_bytes())
        forecasts = [column(live(each, values, first=14 * DAY)) for each in (held, saved, plain)]

        np.testing.assert_array_equal(forecasts[0], forecasts[2])
        np.testing.assert_array_equal(forecasts[1], forecasts[2])

    def test_small_training_sets_use_all_rows(self, monkeypatch):
        halved, exact = self.lived(), self.lived(share=None)
        monkeypatch.setattr(refitted_model, "LEAST_GRADIENT_ROWS", self.SIZE)
        small_enough = self.lived()

        assert halved.hyperparameters != exact.hyperparameters
        assert small_enough.hyperparameters == exact.hyperparameters
