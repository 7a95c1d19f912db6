from dataclasses import replace
from datetime import timedelta

import pytest

from streamridge import Drifting, Forecaster, InvalidInputError, KernelRidge, Linear, Periodic
from streamridge.forecaster.methods import (
    METHODS,
    YARDSTICKS,
    method_of,
    needs_model,
    parse_methods,
    starting_at,
    tuned_by,
)
from streamridge.tuners.random_search import RandomSearch
from tests.forecaster.test_forecaster import small


def test_methods_are_read_from_texts_with_commas_each_once():
    assert parse_methods(["OHL, fixed", "random,ohl", " grid "]) == (
        *("ohl", "fixed", "random", "grid"),
    )


@pytest.mark.parametrize(
    ("names", "got"), [(["ohl", "magic"], "'magic'"), ([3], "'3'"), ([], "none"), ([" , "], "none")]
)
def test_an_unknown_method_or_none_is_refused(names, got):
    with pytest.raises(
        InvalidInputError, match=rf"method must be one of 'ohl', 'ohl\+', .*'week', got {got}"
    ):
        parse_methods(names)


TUNING = [method for method in METHODS if needs_model(method)]


@pytest.mark.parametrize("method", TUNING)
def test_settings_of_a_method_are_called_by_its_name(method):
    assert method_of(tuned_by(method, small().settings)) == method


@pytest.mark.parametrize("method", METHODS)
def test_methods_differ_in_nothing_but_how_they_tune(method):
    settings = small(seed=5, tune_every=48).settings

    tuned = tuned_by(method, settings)

    assert replace(tuned, tuner=None, learn=True, start="default") == settings
    assert tuned.learn == (method not in ("fixed", *YARDSTICKS))


def test_without_a_season_nothing_can_be_a_week_ago():
    settings = Forecaster(1).settings

    assert tuned_by("last", settings).seasons == ()
    with pytest.raises(
        InvalidInputError, match=r"without seasons, got 'week'\. Or say its seasons"
    ):
        tuned_by("week", settings)


def test_a_method_takes_the_place_of_another():
    searched = tuned_by("random", small().settings)

    assert tuned_by("fixed", searched).tuner is None
    assert tuned_by("hoag", tuned_by("fixed", searched)).learn


def test_ohl_plus_searches_its_start_and_has_the_steps_of_the_default_model():
    paper, default = Forecaster.paper().settings, Forecaster().settings

    plus = tuned_by("ohl+", tuned_by("random", paper))

    assert (plus.learn, plus.tuner, plus.start) == (True, None, "search")
    assert plus.preset.coordinates == "log"
    assert plus.preset.step_rule == default.preset.step_rule != paper.preset.step_rule
    assert replace(plus, preset=paper.preset, start="default") == paper
    assert tuned_by("ohl+", default) == replace(default, start="search")


def test_a_tuner_of_ones_own_is_called_by_its_class():
    class Lucky(RandomSearch):
        pass

    assert method_of(replace(small().settings, tuner=Lucky())) == "lucky"


def test_hoag_descends_in_the_coordinates_of_the_model():
    step = timedelta(minutes=15)

    paper = tuned_by("hoag", Forecaster.paper(step).settings)
    default = tuned_by("hoag", Forecaster(step).settings)

    assert (paper.tuner.coordinates, default.tuner.coordinates) == ("natural", "log")


def test_the_grid_leaves_periods_alone():
    grid = tuned_by("grid", Forecaster.paper().settings).tuner

    assert grid.over == ("weight", "ard.inverse_scales", "regularization")


def test_the_grid_leaves_the_periods_of_several_kernels_alone():
    settings = Forecaster.paper().settings
    kernel = Linear() + Drifting(Periodic(96.0) + Periodic(672.0))
    preset = replace(settings.preset, model=KernelRidge(kernel))

    grid = tuned_by("grid", replace(settings, preset=preset)).tuner

    assert grid.over == ("weight", "drifting.rate", "drifting.weight", "regularization")


@pytest.mark.parametrize("model", [Forecaster, Forecaster.paper])
def test_a_start_by_name_moves_that_hyperparameter_alone(model):
    settings = model("15min").settings

    off = Forecaster.of(starting_at({"regularization": 0.05}, settings)).hyperparameters

    usual = Forecaster.of(settings).hyperparameters
    assert off["regularization"] == 0.05 != usual["regularization"]
    assert {**off, "regularization": usual["regularization"]} == usual


def test_no_start_leaves_the_settings_as_they_are():
    settings = small().settings

    assert starting_at({}, settings) is settings


def test_a_start_with_an_unknown_name_is_refused():
    with pytest.raises(InvalidInputError, match="got 'ridge'"):
        starting_at({"ridge": 0.01}, small().settings)


@pytest.mark.parametrize("start", [float("nan"), float("inf"), -1.0])
def test_a_start_that_no_model_can_have_is_refused(start):
    with pytest.raises(InvalidInputError, match="regularization"):
        starting_at({"regularization": start}, small().settings)
