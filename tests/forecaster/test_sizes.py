"""Sizes of the default model, and what a budget chooses among them."""

import numpy as np
import pytest

from streamridge import (
    Forecaster,
    InvalidInputError,
    KernelRidge,
    NystromRidge,
    Remembering,
    affordable,
)
from streamridge.forecaster.sizes import NAMED, SIZES, Choice, parse_budget
from streamridge.series.lengths import parse_step


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.1s/sensor/day", 0.1),
        ("80ms/sensor/day", 0.08),
        (" 2 min / sensor / day ", 120.0),
        ("1.5s/day", 1.5),
        (".5s/sensor/day", 0.5),
    ],
)
def test_budgets_are_read(text, seconds):
    assert parse_budget(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "0.1", "0.1s", "0s/sensor/day", "-1s/day", "1s/sensor/hour", "1s/day extra", 0.25]
)
def test_bad_budgets_are_refused(text):
    with pytest.raises(InvalidInputError, match=r"budget must be processor time such as '0\.1s/"):
        parse_budget(text)


def test_more_money_never_buys_more_error():
    budgets = [0.01 * 1.3**i for i in range(25)]
    errors = []
    for seconds in budgets:
        try:
            choice = affordable(f"{seconds:.6f}s/sensor/day")
        except InvalidInputError:
            assert not errors, "what was affordable stays so"
            continue
        assert choice.seconds <= seconds
        errors.append(choice.size.measured.error)

    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) > 4
    assert errors[-1] == min(size.measured.error for size in SIZES)


def test_a_budget_that_is_too_small_says_what_is_needed():
    with pytest.raises(
        InvalidInputError, match=r"budget must be at least \d+ms/sensor/day"
    ) as told:
        affordable("0.1ms/sensor/day", "5min")

    least = str(told.value).split("at least ")[1].split(" ")[0]
    assert affordable(least, "5min").seconds <= parse_budget(least)


def test_a_day_of_longer_steps_costs_less():
    fine, coarse, daily = (
        Choice.of(NAMED["default"], parse_step(step), 1).seconds for step in ("6h", "12h", "1d")
    )

    assert fine == pytest.approx(2 * coarse)
    assert daily < 1.1 * (NAMED["default"].measured.refit / 24)


def test_an_index_has_no_days_to_pay_for():
    with pytest.raises(InvalidInputError, match="budget must be left out for an integer index"):
        Forecaster(1, budget="1s/sensor/day")


def test_no_window_is_longer_than_its_training_set():
    choices = [affordable(f"{seconds:.3f}s/day", "1min") for seconds in np.geomspace(0.8, 9, 30)]

    assert all(choice.update_every <= choice.size.train_size for choice in choices)


def test_with_no_more_rows_than_landmarks_the_model_is_fitted_to_all_rows():
    few, many = (Forecaster(train_size=size).settings.preset for size in (400, 401))

    assert isinstance(few.model.model, KernelRidge)
    assert isinstance(many.model.model, NystromRidge)


def test_finer_steps_cost_more():
    costs = [affordable("10s/sensor/day", step).seconds for step in ("1h", "15min", "5min")]

    assert costs == sorted(costs)


def test_a_budget_sets_size_and_cadence():
    choice = affordable("0.06s/sensor/day")

    settings = Forecaster(budget="0.06s/sensor/day").settings

    assert settings.train_size == choice.size.train_size
    assert settings.update_every == choice.update_every
    assert settings.preset.model.model.landmarks == choice.size.landmarks
    assert "a refit every" in str(choice)
    assert "RMSE than the default model" in str(choice)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train_size": 960}, "train_size must be left out with a budget"),
        ({"update_every": 96}, "update_every must be left out with a budget"),
        ({"model": "compact"}, "model must be left out with a budget"),
        ({"preset": Forecaster().settings.preset}, "budget must be left out with a preset"),
    ],
)
def test_what_a_budget_decides_is_not_given_beside_it(given, message):
    with pytest.raises(InvalidInputError, match=message):
        Forecaster(budget="1s/sensor/day", **given)


def test_an_unknown_size_is_refused():
    with pytest.raises(InvalidInputError, match="model must be one of 'default', 'compact'"):
        Forecaster(model="huge")


def test_the_long_model_knows_more_and_forgets_at_two_rates():
    settings = Forecaster(model="long").settings

    kernel = settings.preset.model.model.kernel
    assert settings.train_size == NAMED["long"].train_size > Forecaster().settings.train_size
    assert isinstance(settings.preset.model.model, NystromRidge)
    assert isinstance(kernel.kernels[0], Remembering)
    assert {"remembering.rates[0]", "remembering.rates[1]"} <= set(
        settings.preset.model.space.names
    )


@pytest.mark.slow
def test_a_training_set_may_be_as_long_as_a_year():
    days = 40
    t = np.arange(96 * days)
    values = 100 + 50 * np.sin(2 * np.pi * t / 96) + 10 * np.sin(2 * np.pi * t / 672)
    forecaster = Forecaster(model="long", train_size=35_040, warmup=96 * (days - 1))
    start = np.datetime64("2026-01-05T00:00")
    for step, value in enumerate(values):
        forecaster.observe(start + np.timedelta64(15 * step, "m"), value)

    forecast = forecaster.predict()

    assert forecast.source == "model"
    assert abs(forecast.value[0] - 100) < 10
    again = Forecaster.from_bytes(forecaster.to_bytes())
    assert again.predict().value == forecast.value
