"""The forecaster of river: its checks, also cold, equality with the library, and bad input."""

import numpy as np
import pytest
from river import checks, evaluate, metrics

import streamridge as sr
from streamridge.adapters.river import StreamRidge

FLOW = (
    100 + 50 * np.sin(2 * np.pi * np.arange(200) / 24) + np.random.default_rng(0).normal(0, 5, 200)
)
SETTINGS = {"horizon": 6, "seasons": (24,), "train_size": 96}


@pytest.mark.parametrize("settings", [{}, SETTINGS, {**SETTINGS, "extras": ("period",)}])
def test_the_checks_of_river(settings):
    model = StreamRidge(**settings)

    names = [check.__name__ for check in checks.yield_checks(model)]
    for check in checks.yield_checks(model):
        check(model.clone())

    assert {"check_learn_one", "check_forecast", "check_pickling_supports_roundtrip"} <= set(names)


def learned(model, values):
    for value in values:
        model.learn_one(value)
    return model


def test_forecasts_equal_those_of_the_library():
    own = sr.Forecaster(step=1, **SETTINGS)
    for step, value in enumerate(FLOW):
        own.observe(step, value)

    made = learned(StreamRidge(**SETTINGS), FLOW).forecast(6)

    assert made == own.predict().value.tolist()


def test_a_cold_model_forecasts_zero_and_then_the_last_value():
    model = StreamRidge()

    assert model.forecast(2) == [0.0, 0.0]
    model.learn_one(7.0)
    assert model.forecast(2) == [7.0, 7.0]


def test_a_missing_observation_is_a_gap():
    model = learned(StreamRidge(**SETTINGS), FLOW[:150])

    learned(model, [None, np.nan])

    errors = np.abs(np.array(model.forecast(6)) - FLOW[152:158])
    assert errors.mean() < 10


def test_features_that_are_known_ahead_help():
    rng = np.random.default_rng(1)
    rain = (rng.random(300) < 0.3).astype(float)
    flow = 100 + 30 * np.sin(2 * np.pi * np.arange(300) / 24) + 40 * rain
    errors = {}
    for extras in (None, ("rain",)):
        model = StreamRidge(horizon=2, seasons=(24,), extras=extras, train_size=192)
        made = []
        for step in range(299):
            made += model.forecast(1, [{"rain": rain[step], "other": 1.0}])
            model.learn_one(flow[step], {"rain": rain[step], "other": 1.0})
        errors[extras] = np.abs(made[200:] - flow[200:299]).mean()

    assert errors[("rain",)] < 0.5 * errors[None]


def test_rivers_evaluation_runs():
    data = [({}, value) for value in FLOW]

    metric = evaluate.evaluate(data, StreamRidge(**SETTINGS), metrics.MAE(), horizon=6)

    assert metric.metrics[0].get() < 15


@pytest.mark.parametrize("value", ["many", np.inf, 1e13, True, [1.0]])
def test_bad_observations_are_value_errors_and_change_nothing(value):
    model = learned(StreamRidge(**SETTINGS), FLOW[:100])
    before = model.forecast(6)

    with pytest.raises(ValueError, match="value must be"):
        model.learn_one(value)

    assert model.forecast(6) == before
    assert learned(model, FLOW[100:110]).forecast(6) == (
        learned(StreamRidge(**SETTINGS), FLOW[:110]).forecast(6)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 7}, "horizon must be at most 6, the horizon of the model, got 7"),
        ({"horizon": 3, "xs": [{}]}, "xs must hold the features of 3 steps, got 1"),
    ],
)
def test_bad_requests_are_value_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        learned(StreamRidge(**SETTINGS), FLOW[:50]).forecast(**arguments)


def test_bad_settings_are_value_errors():
    with pytest.raises(ValueError, match="train_size must be a whole number of at least 1"):
        StreamRidge(train_size=0)
