"""Extra columns are known for every step ahead, and an unknown one is an error or a stated fill."""

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError, Preset, replay
from streamridge.features.lags import Features
from tests.support.forecasters import DAY, hours, same, state_of

STEPS, AHEAD = 10 * DAY, 4
RAIN = np.random.default_rng(3).random(STEPS + AHEAD).round(2)
VALUES = 100 + 40 * np.sin(2 * np.pi * np.arange(STEPS + AHEAD) / DAY) - 30 * RAIN
TIMES = pd.to_datetime(hours(0, STEPS + AHEAD))
HISTORY = pd.DataFrame({"time": TIMES, "ramp": VALUES, "rain": RAIN})[:STEPS]
COMING = pd.DataFrame({"time": TIMES, "rain": RAIN})[STEPS:]
SMALL = {"lags": 6, "train_size": 150, "horizon": AHEAD, "extras": ("rain",)}


@pytest.fixture(scope="module")
def content():
    return Forecaster.start(HISTORY, **SMALL).to_bytes()


@pytest.fixture
def forecaster(content):
    return Forecaster.from_bytes(content)


def test_a_value_for_each_step_ahead_improves_every_step(forecaster):
    without = Forecaster.start(HISTORY[["time", "ramp"]], **{**SMALL, "extras": ()})

    made = forecaster.predict({"rain": RAIN[STEPS:]})

    errors, others = (np.abs(each.value - VALUES[STEPS:]) for each in (made, without.predict()))
    assert errors.mean() < 0.5 * others.mean()


def test_only_the_values_of_a_step_change_its_forecast_much(forecaster):
    later = RAIN[STEPS:].copy()
    later[2] += 0.5

    change = (
        forecaster.predict({"rain": later}).value - forecaster.predict({"rain": RAIN[STEPS:]}).value
    )

    assert change[2] == pytest.approx(-15, abs=4)
    assert np.abs(np.delete(change, 2)).max() < 4


def test_a_frame_tells_the_steps_by_their_times(forecaster):
    shuffled = pd.concat([HISTORY[["time", "rain"]][-3:], COMING]).sample(frac=1, random_state=0)

    same(forecaster.predict(shuffled), forecaster.predict({"rain": RAIN[STEPS:].tolist()}))


WRONG = {
    "one number for four steps": ({"rain": 0.4}, "rain must have 4 values, one for each .* got 1"),
    "too many": ({"rain": [0.0] * 5}, "rain must have 4 values, .* got 5"),
    "a missing one": ({"rain": [0, 1, None, 0]}, "rain must be known .* for 2021-06-23T02:00"),
    "a frame that ends": (COMING[:3], "rain must be known .* for 2021-06-23T03:00:00"),
    "nothing": (None, "extras must give rain, got none"),
    "times with an offset": (
        COMING.assign(time=COMING["time"].dt.tz_localize("UTC")),
        "times of rain must have no offset, as the readings, got 2021-06-23T00:00:00.00:00",
    ),
    "a word": ("first", "extras must map names to numbers"),
}


@pytest.mark.parametrize(("extras", "message"), WRONG.values(), ids=WRONG)
def test_an_unknown_extra_is_an_error(extras, message, forecaster):
    with pytest.raises(InvalidInputError, match=message):
        forecaster.predict(extras)


def test_the_last_known_values_fill_on_request(forecaster):
    repeated = forecaster.predict({"rain": [RAIN[STEPS - 1]] * AHEAD})

    same(forecaster.predict("last"), repeated)


def test_a_reading_may_come_with_the_values_of_later_steps(content):
    one, other = (Forecaster.from_bytes(content) for _ in range(2))
    short = {"rain": RAIN[STEPS]}

    one.observe(TIMES[STEPS], VALUES[STEPS], {"rain": RAIN[STEPS : STEPS + AHEAD]})
    other.observe(TIMES[STEPS], VALUES[STEPS], short)

    rows = [state_of(each)["history.timeline.extras"] for each in (one, other)]
    np.testing.assert_array_equal(*rows)
    with pytest.raises(InvalidInputError, match="extras must have one value each, or 4"):
        one.observe(TIMES[STEPS + 1], 1.0, {"rain": [0.0] * 9})


def test_a_frame_of_readings_tells_later_extras_to_earlier_rows(content):
    rows = pd.DataFrame({"time": TIMES, "ramp": VALUES, "rain": RAIN})[STEPS:]
    one, other = (Forecaster.from_bytes(content) for _ in range(2))

    one.observe(rows.assign(ramp=[*VALUES[STEPS : STEPS + 2], None, None]))

    for at in (STEPS, STEPS + 1):
        later = np.resize(np.append(RAIN[at:], [RAIN[-1]]), AHEAD)
        other.observe(TIMES[at], VALUES[at], {"rain": later})
    assert one.next_time == np.datetime64(TIMES[STEPS + 2])  # rows without a value are no readings
    for name, array in state_of(one).items():
        np.testing.assert_array_equal(array, state_of(other)[name], err_msg=name)


def test_a_replay_fills_unknown_extras_and_does_not_learn_from_them():
    frame = HISTORY.copy()
    frame.loc[150:160, "rain"] = np.nan

    forecaster = Forecaster("1h", **SMALL)

    run = replay(forecaster, frame, steps=100)

    assert np.isfinite(run.value).all()
    assert np.isnan(state_of(forecaster)["history.timeline.extras"]).sum() == 11


def test_features_that_see_one_step_take_one_value():
    preset = Forecaster("1h", **SMALL).settings.preset
    features = Features(lags=3, extras=("rain",))
    linear = Preset(features, preset.model, preset.step_rule)

    with pytest.raises(InvalidInputError, match="rain must have 1 value, one for each"):
        Forecaster("1h", preset=linear, horizon=2).predict({"rain": [1.0, 2.0]})
