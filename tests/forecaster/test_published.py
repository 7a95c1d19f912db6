"""The paper's model: every number that section 6.2 prints, and every one that it leaves open."""

from datetime import timedelta

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.forecaster.published import PRINTED, PROTOTYPE, steps_a_day
from tests.forecaster.test_forecaster import DAY, live

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
    [(Forecaster.paper, PAPER), (Forecaster.prototype, CODE)],
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

    def test_what_is_given_counts(self, make, table):
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
    assert Forecaster.prototype().settings.warmup == 60 * 96 + 20  # bkt.py, teststart


def test_the_presets_differ_in_the_period_alone():
    printed, code = space_of(Forecaster.paper()), space_of(Forecaster.prototype())

    assert {name for name in printed if printed[name] != code[name]} == {"periodic.period"}


@pytest.mark.parametrize("published", [PRINTED, PROTOTYPE])
def test_a_period_can_be_kept_and_a_unit_chosen(published):
    preset = published.preset(unit=10.0, learn_period=False)

    (period,) = [g for g in preset.model.space.groups if g.name == "periodic.period"]
    assert (preset.model.unit, period.learned) == (10.0, False)


def test_a_step_that_does_not_divide_a_day_has_a_fraction_of_it():
    assert steps_a_day(timedelta(minutes=7)) == pytest.approx(1440 / 7)
    assert Forecaster.paper("7min").settings.update_every == 206
