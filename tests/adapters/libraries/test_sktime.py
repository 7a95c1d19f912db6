"""The forecaster of sktime: its checks, a cheap update, intervals, and bad input."""

import numpy as np
import pandas as pd
import pytest
from sktime.utils.estimator_checks import check_estimator

import streamridge as sr
from streamridge.adapters.sktime import StreamRidge

pytestmark = pytest.mark.filterwarnings("ignore")  # of sktime and of pandas inside it
FH = [1, 2, 6]
SETTINGS = {"train_size": 96}


def hourly(kind: str = "dates") -> pd.Series:
    hours = np.arange(240)
    values = 100 + 50 * np.sin(2 * np.pi * hours / 24)
    index = {
        "dates": pd.date_range("2021-06-14", periods=240, freq="h"),
        "periods": pd.period_range("2021-06-14", periods=240, freq="h"),
        "numbers": pd.RangeIndex(240),
    }[kind]
    return pd.Series(values + np.random.default_rng(0).normal(0, 5, 240), index, name="flow")


def test_the_checks_of_sktime():
    results = check_estimator(StreamRidge, raise_exceptions=False, verbose=False)

    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert not failed
    assert len(results) > 700


@pytest.mark.parametrize("kind", ["dates", "periods", "numbers"])
def test_an_update_equals_the_observations_of_the_library(kind, monkeypatch):
    y = hourly(kind)
    settings = {"update_every": 24, **SETTINGS, **({"seasons": (24,)} if kind == "numbers" else {})}
    own = sr.Forecaster.start(y[:150], horizon=6, **settings)
    model = StreamRidge(**settings).fit(y[:150], fh=FH)
    monkeypatch.setattr(sr.Forecaster, "start", None)  # a new start would fail

    made = model.update(y[150:]).predict()

    own.observe(y[150:])
    assert model.forecaster_.counts["fits"] == own.counts["fits"] > 1
    np.testing.assert_array_equal(made, own.predict().value[[0, 1, 5]])
    assert made.index[0] == y.index[-1] + (1 if kind == "numbers" else y.index.freq)
    assert made.name == "flow"


def test_without_update_params_nothing_is_refitted():
    y = hourly()
    model = StreamRidge(update_every=24, **SETTINGS).fit(y[:100], fh=FH)

    made = model.update(y[100:], update_params=False).predict()

    assert model.forecaster_.counts["fits"] == 1
    assert made.index[0] == y.index[-1] + pd.Timedelta("1h")


def test_intervals_and_quantiles_are_those_of_the_library():
    y = hourly()
    model = StreamRidge(level=(0.8, 0.9), **SETTINGS).fit(y, fh=FH)

    intervals = model.predict_interval(coverage=[0.8, 0.9])
    quantiles = model.predict_quantiles(alpha=[0.1, 0.5, 0.9])

    own = model.forecaster_.predict(level=(0.8, 0.9))
    np.testing.assert_array_equal(intervals["flow", 0.8, "lower"], own.lower[[0, 1, 5], 0])
    np.testing.assert_array_equal(intervals["flow", 0.9, "upper"], own.upper[[0, 1, 5], 1])
    np.testing.assert_array_equal(quantiles["flow", 0.1], intervals["flow", 0.8, "lower"])
    np.testing.assert_array_equal(quantiles["flow", 0.5], model.predict())


def test_missing_values_are_gaps_also_at_the_end():
    y = hourly()
    y.iloc[[50, 51, 52, -2, -1]] = np.nan

    made = StreamRidge(**SETTINGS).fit(y, fh=FH).predict()

    assert made.index[0] == y.index[-1] + pd.Timedelta("1h")
    assert np.abs(made - 100).max() < 80


def test_a_late_row_fills_its_gap_and_moves_no_label():
    y = hourly()
    model = StreamRidge(**SETTINGS).fit(y.where(y.index != y.index[-3]), fh=FH)
    before = model.predict()

    after = model.update(y[-3:-2]).predict()

    pd.testing.assert_index_equal(after.index, before.index)
    assert (after != before).any()


def test_a_refused_update_moves_no_label():
    y = hourly()
    model = StreamRidge(**SETTINGS).fit(y[:200], fh=FH)
    before = model.predict()

    with pytest.raises(ValueError, match="y must be at most"):
        model.update(y[200:] * 1e13)

    pd.testing.assert_series_equal(model.predict(), before)


def test_zones_with_a_change_of_clocks():
    hours = pd.date_range("2021-10-24", periods=240, freq="h", tz="Europe/London")

    made = StreamRidge(**SETTINGS).fit(hourly().set_axis(hours), fh=FH).predict()

    assert made.index[0] == hours[-1] + pd.Timedelta("1h")


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda y: StreamRidge(train_size=0).fit(y, fh=FH), "train_size must be a whole number"),
        (lambda y: StreamRidge().fit(y * np.nan, fh=FH), "must"),
        (lambda y: StreamRidge().fit(y * 1e13, fh=FH), "must be at most 1e"),
        (
            lambda y: StreamRidge().fit(y.set_axis(pd.bdate_range("2020", periods=240)), fh=FH),
            r'got 240 rows for 336 steps.*such as asfreq\("D"\)',
        ),
        (
            lambda y: StreamRidge().fit(y.set_axis(pd.RangeIndex(0, 480, 2)), fh=FH),
            "y must have an index of consecutive whole numbers, got RangeIndex",
        ),
        (lambda y: StreamRidge().fit(y, fh=[2]).predict(fh=[1, 9]), "fh"),
        (lambda y: StreamRidge().fit(y[:100], fh=[1]).update(y[100:] * 1e13), "y must be at most"),
    ],
)
def test_bad_input_is_a_value_error(fit, message):
    with pytest.raises(ValueError, match=message):
        fit(hourly())


def test_forecasts_of_the_past_are_refused_by_sktime():
    with pytest.raises(NotImplementedError, match="can not perform in-sample prediction"):
        StreamRidge().fit(hourly(), fh=[0, 1])


@pytest.mark.parametrize("y", ["flow", ["a", "b"], {"a": 1}])
def test_other_types_are_type_errors(y):
    with pytest.raises(TypeError, match="y"):
        StreamRidge().fit(y, fh=FH)
