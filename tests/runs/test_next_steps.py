"""The next steps of all sensors of a frame or a file, in one frame."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamridge as sr
from tests.support.forecasters import DAY, daily, hours

STEPS = 5 * DAY
FLOWS = pd.DataFrame(
    {"time": pd.to_datetime(hours(0, STEPS)), "a": daily(STEPS), "b": daily(STEPS, seed=1)}
)
SMALL = {"horizon": DAY, "train_size": 60, "lags": 6}
COLUMNS = ["sensor", "time", "value", "lower", "upper"]


def test_each_sensor_is_forecast_as_by_a_forecaster_that_starts_with_it():
    made = sr.forecast(FLOWS, **SMALL)

    assert list(made.columns) == COLUMNS
    assert made["sensor"].tolist() == DAY * ["a"] + DAY * ["b"]
    for name, part in made.groupby("sensor"):
        alone = sr.Forecaster.start(FLOWS, sensor=name, **SMALL).predict()
        for column in ("time", "value", "lower", "upper"):
            np.testing.assert_array_equal(part[column], getattr(alone, column))
    assert made["time"].iloc[0] == FLOWS["time"].iloc[-1] + pd.Timedelta("1h")


def test_every_kind_of_source_gives_the_same_numbers(tmp_path):
    FLOWS.to_csv(tmp_path / "flows.csv", index=False)
    series = FLOWS.set_index("time")
    sources = {
        "path": tmp_path / "flows.csv",
        "polars": pl.from_pandas(FLOWS),
        "long": FLOWS.melt("time", var_name="sensor"),
        "dict": {name: series[name] for name in "ab"},
        "periods": series.to_period("h"),
    }

    frames = {name: sr.forecast(source, **SMALL) for name, source in sources.items()}

    expected = sr.forecast(FLOWS, **SMALL)
    assert isinstance(frames["polars"], pl.DataFrame)
    for name, frame in frames.items():
        assert list(frame.columns) == COLUMNS, name
        for column in ("sensor", "value", "lower", "upper"):
            assert frame[column].to_list() == expected[column].to_list(), name


def test_engines_and_several_levels_change_no_forecast():
    with ThreadPoolExecutor(2) as executor:
        made = sr.forecast(FLOWS, engine=executor, level=(0.5, 0.9), **SMALL)

    assert list(made.columns)[3:] == ["lower_50", "upper_50", "lower_90", "upper_90"]
    assert made["value"].tolist() == sr.forecast(FLOWS, **SMALL)["value"].tolist()


def test_a_sensor_that_fails_is_named_and_costs_only_itself():
    broken = FLOWS.assign(b=FLOWS["b"].where(FLOWS.index != 7, 1e13))

    with pytest.warns(RuntimeWarning, match="b: value must be at most 1e"):
        made = sr.forecast(broken, **SMALL)

    assert set(made["sensor"]) == {"a"}
    with (
        pytest.raises(sr.StreamRidgeError, match="every forecast failed, the first one: b: value"),
    ):
        sr.forecast(broken, sensors="b", **SMALL)


def test_a_short_series_has_a_naive_forecast():
    with pytest.warns(UserWarning, match="a: the history is too short for a model, which needs"):
        made = sr.forecast(FLOWS[:30], sensor="a", **SMALL)

    np.testing.assert_array_equal(made["value"][:6], FLOWS["a"][6:12])


def test_decisions_about_columns_are_warnings():
    rows = FLOWS.melt("time", var_name="sensor", value_name="flow").assign(speed=50.5)

    with pytest.warns(UserWarning, match="'flow' is read, column 'speed' is left out"):
        made = sr.forecast(rows, **SMALL)

    assert len(made) == 2 * DAY


def test_a_sensor_that_stopped_early_is_named():
    stopped = FLOWS.assign(b=FLOWS["b"].where(FLOWS.index < STEPS - 9))

    with pytest.warns(
        UserWarning, match="^b: its last reading is of 2021-06-17T14:00. The forecast"
    ):
        made = sr.forecast(stopped, **SMALL)

    assert made["time"].iloc[DAY] == FLOWS["time"].iloc[STEPS - 9]


def test_times_with_offsets_and_zones_stay_as_they_are():
    zoned = FLOWS.assign(time=FLOWS["time"].dt.tz_localize("Europe/Berlin"))
    texts = FLOWS.assign(time=FLOWS["time"].dt.strftime("%Y-%m-%dT%H:%M+02:00"))

    assert str(sr.forecast(zoned, **SMALL)["time"].dtype).endswith("Europe/Berlin]")
    assert sr.forecast(texts, **SMALL)["time"].iloc[0].isoformat() == "2021-06-18T00:00:00+02:00"
    local = sr.forecast(FLOWS, tz="Europe/Berlin", **SMALL)
    assert list(local.columns) == ["sensor", "time", "utc", "value", "lower", "upper"]


def test_offsets_that_differ_between_sensors_become_utc():
    rows = FLOWS.melt("time", var_name="sensor")
    offset = rows["sensor"].map({"a": "+02:00", "b": "+01:00"})
    rows["time"] = rows["time"].dt.strftime("%Y-%m-%dT%H:%M") + offset

    made = sr.forecast(rows, **SMALL)

    first = made.groupby("sensor")["time"].first()
    assert first["a"].isoformat() == "2021-06-17T22:00:00+00:00"
    assert first["b"].isoformat() == "2021-06-17T23:00:00+00:00"


def test_rows_after_the_last_reading_tell_the_extras_ahead():
    rain = np.random.default_rng(0).random(STEPS).round(2)
    table = FLOWS[["time"]].assign(a=FLOWS["a"] - 100 * rain, rain=rain)
    table.loc[STEPS - 4 :, "a"] = np.nan
    small = {**SMALL, "horizon": 4, "train_size": 96}

    made = sr.forecast(table, extras="rain", **small)

    start = sr.Forecaster.start(table, extras=("rain",), **small)
    assert made["value"].tolist() == start.predict({"rain": rain[-4:]}).value.tolist()
    with pytest.raises(sr.StreamRidgeError, match="rain must be known at every step ahead, got no"):
        sr.forecast(table[:-1], extras="rain", **small)
    filled = sr.forecast(table[:-1], extras=["rain=0.5"], **small)
    stated = start.predict({"rain": [*rain[-4:-1], 0.5]})
    assert filled["value"].tolist() == stated.value.tolist()


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(sr.InvalidInputError, match="forecast must be given options among"):
        sr.forecast(FLOWS, horizont=96)
