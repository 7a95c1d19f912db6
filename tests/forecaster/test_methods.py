"""Tests of named methods, and of the settings that the paper and its author's code publish."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import numpy as np
import pytest

from streamridge import (
    AgreementStep,
    Drifting,
    Features,
    Forecaster,
    InvalidInputError,
    KernelRidge,
    Linear,
    Periodic,
    Preset,
)
from streamridge.forecaster.methods import (
    METHODS,
    PRINTED,
    PROTOTYPE,
    YARDSTICKS,
    method_of,
    needs_model,
    parse_methods,
    starting_at,
    steps_a_day,
    tuned_by,
)
from streamridge.tuners.candidates import RandomSearch
from tests.support.forecasters import DAY, live, small


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

    off = Forecaster.from_settings(starting_at({"regularization": 0.05}, settings)).hyperparameters

    usual = Forecaster.from_settings(settings).hyperparameters
    assert off["regularization"] == 0.05 != usual["regularization"]
    assert {**off, "regularization": usual["regularization"]} == usual


def test_other_starts_leave_the_usual_hyperparameters_as_they_are():
    preset = Forecaster().settings.preset

    once = preset.starting_at(0.5 * preset.usual_values)
    twice = once.starting_at(0.1 * preset.usual_values)

    for off in (once, twice):
        np.testing.assert_array_equal(off.usual_values, preset.joint.space.values)
        assert not np.array_equal(off.usual_values, off.joint.space.values)


def test_usual_hyperparameters_are_plain_numbers():
    preset = Forecaster().settings.preset
    values = preset.usual_values.tolist()

    given = replace(preset, usual=np.array(values))

    assert given == replace(preset, usual=tuple(values))
    assert given.usual == tuple(values)


def test_the_usual_value_of_a_constant_follows_its_start():
    preset = Preset(Features(4), KernelRidge(Linear(), 1.0, None), AgreementStep())

    started = preset.starting_at(np.array([2.0]))

    assert started.usual == (2.0,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"usual": (1.0,)}, r"usual must have shape \(\d+,\), got \(1,\)"),
        ({"usual": "many"}, "usual must be a number, got .many."),
        ({"pull": 1.5}, r"pull must be at least 0 and below 1, got 1\.5\."),
    ],
)
def test_a_preset_with_a_pull_that_does_not_fit_is_refused(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        replace(Forecaster().settings.preset, **changes)


def test_usual_hyperparameters_out_of_bounds_are_refused():
    preset = Forecaster().settings.preset

    with pytest.raises(InvalidInputError, match=r"usual must lie within the bounds of the model"):
        replace(preset, usual=tuple(-preset.usual_values))


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


NU = ("ard.inverse_scales[0]", "ard.inverse_scales[19]", "periodic.inverse_scale")
# Hyperparameter: start, lower and upper bound, and where that stands.
PAPER = {
    # [96/2, 96*7], section 6.2. The start is not printed; 96 is what the code's rule makes of it.
    "periodic.period": (96.0, 48.0, 672.0),
    # [1.5*10^-2, 1.5*10^-6], section 6.2, "for kernel scales": of both kernels. Starts: the code.
    **dict.fromkeys(NU, (1.5e-4, 1.5e-6, 1.5e-2)),
    # [0.03, 3], section 6.2. Start: the code.
    "regularization": (0.3, 0.03, 3.0),
}
CODE = PAPER | {
    # test_ogd.py, test_hoag.py and test_rds.py: period = 96*2, prdLB = period/2, prdUB = period*7.
    "periodic.period": (192.0, 96.0, 1344.0),
}
# Settings of both, and where they stand.
SETTINGS = {
    "train_size": 2880,  # section 6.2, |S_t| = 2880 time-steps
    "update_every": 96,  # section 6.2, m is set to 96
    "tune_every": 672,  # section 6.2, n = 96*7
    "validation_size": 2880,  # section 6.2, the past one month
    "guard": False,
    "learn": True,
    "bounds": None,
    "horizon": 1,  # section 6.2, 15-minutes-ahead predictions
}


def space_of(forecaster):
    """Return the start, and the lower and the upper bound, of each hyperparameter."""
    space = forecaster.settings.preset.model.space
    boxes = {
        name: (low, high)
        for group in space.groups
        if group.kind != "weight"
        for name, low, high in zip(
            group.names, group.feasible.low, group.feasible.high, strict=True
        )
    }
    start = dict(zip(space.names, space.values.tolist(), strict=True))
    return {name: (start[name], *map(float, box)) for name, box in boxes.items()}


@pytest.mark.parametrize(
    ("make", "table"),
    [(Forecaster.paper, PAPER), (partial(Forecaster.paper, prototype=True), CODE)],
    ids=["paper", "prototype"],
)
class TestBoth:
    def test_starts_and_bounds_are_those_of_the_table(self, make, table):
        found = space_of(make())

        assert len(found) == 20 + 2 + 1  # eqs (7) and (9), with p = 20, and the ridge constant
        for name, numbers in table.items():
            assert found[name] == pytest.approx(numbers, rel=1e-12), name
        assert len({found[f"ard.inverse_scales[{lag}]"] for lag in range(20)}) == 1

    def test_weights_start_equal_and_move_on_the_simplex(self, make, table):
        groups = make().settings.preset.model.space.groups
        (weight,) = [group for group in groups if group.kind == "weight"]

        assert weight.names == ("weight.periodic", "weight.ard")
        assert weight.values.tolist() == [0.5, 0.5]
        assert weight.learned

    def test_settings_are_those_of_section_6_2(self, make, table):
        settings = make().settings

        assert {name: getattr(settings, name) for name in SETTINGS} == SETTINGS
        assert settings.step == timedelta(minutes=15)

    def test_it_learns_as_algorithm_2_does(self, make, table):
        preset = make().settings.preset

        assert preset.step_rule.learning_rate == 1e-4  # section 6.2, eta
        assert preset.coordinates == "natural"
        assert not preset.corrects
        (period,) = [g for g in preset.model.space.groups if g.name == "periodic.period"]
        assert period.trust == np.inf  # eq. (18) limits no move

    def test_flows_are_divided_by_100_and_centred_as_in_the_code(self, make, table):
        model = make().settings.preset.model

        assert model.unit == 100.0
        assert model.model.centered

    def test_a_day_and_a_week_fit_the_step(self, make, table):
        settings, start = make("5min").settings, space_of(make("5min"))

        assert (settings.update_every, settings.tune_every) == (288, 7 * 288)
        assert settings.warmup // 288 == 60
        assert start["periodic.period"] == tuple(3 * each for each in table["periodic.period"])
        assert (settings.train_size, settings.preset.features.lags) == (2880, 20)
        assert make("1h").settings.update_every == 24

    @pytest.mark.parametrize("step", [1, "12h", "1d", "7d"])
    def test_without_a_day_to_speak_of_steps_are_as_printed(self, step, make, table):
        settings = make(step).settings

        assert (settings.update_every, settings.tune_every) == (96, 672)
        assert space_of(make(step))["periodic.period"] == table["periodic.period"]

    def test_more_steps_ahead_than_a_day_are_refitted_as_seldom(self, make, table):
        assert make("1h", horizon=36).settings.update_every == 36

    def test_given_arguments_replace_published_ones(self, make, table):
        settings = make(lags=3, train_size=60, warmup=90, guard=True, update_every=None).settings

        assert (settings.train_size, settings.warmup, settings.guard) == (60, 90, True)
        assert settings.update_every == 96
        assert settings.preset.features.lags == 3

    @pytest.mark.parametrize(
        "given", [{"tz": "Europe/London"}, {"extras": ("rain",)}, {"preset": PRINTED.preset()}]
    )
    def test_what_it_knows_nothing_of_is_refused(self, given, make, table):
        (name,) = given

        with pytest.raises(
            InvalidInputError, match=f"{name} must be left out with the paper's model"
        ):
            make(**given)

    @pytest.mark.parametrize("given", [{"lags": 0}, {"horizon": "two"}])
    def test_counts_are_checked(self, given, make, table):
        (name,) = given

        with pytest.raises(InvalidInputError, match=f"{name} must be"):
            make(**given)

    def test_no_forecast_is_raised_to_zero(self, make, table):
        forecasts = live(quick(make), idle_nights())

        assert np.nanmin([forecast.value[0] for forecast in forecasts]) < 0

    def test_unless_the_sensor_cannot_show_less(self, make, table):
        forecasts = live(quick(make, bounds=(0, None)), idle_nights())

        assert np.nanmin([forecast.lower[0] for forecast in forecasts]) == 0


def quick(make, **settings):
    """Return a forecaster of hours that fits after three days."""
    return make("1h", lags=3, train_size=60, update_every=DAY, warmup=3 * DAY, **settings)


def idle_nights():
    """Return readings that fall to zero at dusk, steeply enough for a smooth model to overshoot."""
    return np.maximum(0.0, 800 * np.sin(2 * np.pi * np.arange(6 * DAY) / DAY))


def test_first_fits_wait_60_days_and_in_the_code_for_the_lags_too():
    assert Forecaster.paper().settings.warmup == 60 * 96
    assert Forecaster.paper(prototype=True).settings.warmup == 60 * 96 + 20  # bkt.py, teststart


def test_the_presets_differ_in_the_period_alone():
    printed, code = space_of(Forecaster.paper()), space_of(Forecaster.paper(prototype=True))

    assert {name for name in printed if printed[name] != code[name]} == {"periodic.period"}


@pytest.mark.parametrize("published", [PRINTED, PROTOTYPE])
def test_a_period_can_be_kept_and_a_unit_chosen(published):
    preset = published.preset(unit=10.0, learn_period=False)

    (period,) = [g for g in preset.model.space.groups if g.name == "periodic.period"]
    assert (preset.model.unit, period.learned) == (10.0, False)


def test_a_step_that_does_not_divide_a_day_has_a_fraction_of_it():
    assert steps_a_day(timedelta(minutes=7)) == pytest.approx(1440 / 7)
    assert Forecaster.paper("7min").settings.update_every == 206
