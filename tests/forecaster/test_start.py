"""A forecaster that starts from a history: as if it had lived through it, but quickly."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.series.clock import Clock
from streamridge.series.series import Series
from tests.support.forecasters import DAY, HOUR, START, daily, live, same

SIZES = {"train_size": 120, "update_every": DAY, "lags": 5}


def as_series(values, name="ramp"):
    times = START + np.arange(len(values)) * HOUR
    return pd.Series(values, index=pd.DatetimeIndex(times), name=name)


def troubled(count):
    values = daily(count)
    values[[30, 31, 60, 90]] = np.nan
    values[40] = 1e6
    return values


@pytest.mark.parametrize(
    "settings",
    [
        {"horizon": 3, "tz": "Europe/Berlin", "bounds": (0, 160)},
        {"learn": False},
        {"holidays": ["2021-06-18", "2021-06-21"]},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"horizon": 3}, marks=pytest.mark.slow),
        pytest.param({"tz": "Europe/Berlin"}, marks=pytest.mark.slow),
        pytest.param({"bounds": (0, 160)}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_it_continues_like_a_forecaster_that_observed_the_history(settings):
    values, later = troubled(6 * DAY), daily(9 * DAY)[6 * DAY :]
    slow = Forecaster("1h", warmup=6 * DAY, **SIZES, **settings)
    live(slow, values)

    quick = Forecaster.start(as_series(values), **SIZES, **settings)

    assert quick.tuning.has_model
    assert quick.settings.step == slow.settings.step
    for one, other in zip(live(slow, later, 6 * DAY), live(quick, later, 6 * DAY), strict=True):
        same(one, other)
    assert quick.hyperparameters == slow.hyperparameters


def test_a_long_history_leaves_no_more_behind_than_is_needed():
    quick = Forecaster.start(as_series(daily(80 * DAY)), **SIZES)

    assert len(quick.to_bytes()) < 24_000
    assert quick.counts == {"readings": 80 * DAY, "fits": 1}


def test_a_history_shorter_than_the_warm_up_has_no_model_yet():
    quick = Forecaster.start(as_series(daily(DAY)), **SIZES)

    assert not quick.tuning.has_model
    assert quick.predict().source == "seasonal"


def test_one_column_of_several_is_taken_by_name():
    values = daily(4 * DAY)
    frame = pd.DataFrame({"left": values, "right": values + 100}, index=as_series(values).index)

    quick = Forecaster.start(frame, sensor="right", **SIZES)

    assert quick.predict().value[0] > 100


@pytest.mark.parametrize("given", [{}, {"sensor": None}], ids=str)
def test_the_sensor_is_named_as_the_series_is(given):
    quick = Forecaster.start(as_series(daily(DAY)).rename("A1"), **given, **SIZES)

    assert quick.settings.sensor == "A1"


def test_extras_are_taken_with_it():
    values = daily(5 * DAY)
    frame = pd.DataFrame({"ramp": values, "rain": np.sin(values)}, index=as_series(values).index)

    quick = Forecaster.start(frame, extras=("rain",), **SIZES)

    assert quick.predict({"rain": 0.3}).source == "model"


def test_extras_of_a_preset_are_taken_with_it():
    values = daily(5 * DAY)
    frame = pd.DataFrame({"ramp": values, "rain": np.sin(values)}, index=as_series(values).index)
    preset = Forecaster("1h", extras=("rain",), lags=5).settings.preset

    quick = Forecaster.start(frame, preset=preset, train_size=120)

    assert quick.predict({"rain": 0.3}).source == "model"


def test_it_gets_the_name_of_the_series():
    values = daily(2 * DAY)

    assert Forecaster.start(as_series(values)).settings.sensor == "ramp"
    assert Forecaster.start(as_series(values), sensor="A1").settings.sensor == "A1"
    assert Forecaster.start(as_series(values, name=None)).settings.sensor is None


def test_times_go_on_with_offsets_as_those_of_the_history():
    values = daily(4 * DAY)
    series = as_series(values)
    zoned = series.tz_localize("Europe/Berlin")
    quick = Forecaster.start(zoned, **SIZES)

    with pytest.raises(InvalidInputError, match="time must have an offset, as the times before"):
        quick.observe(START + 4 * DAY * HOUR, 100.0)


def test_refits_that_wait_to_be_asked_for_wait_here_too():
    quick = Forecaster.start(as_series(daily(5 * DAY)), defer_refits=True, **SIZES)

    assert (quick.refit_due, quick.tuning.has_model) == (True, False)
    quick.refit()
    assert (quick.refit_due, quick.tuning.has_model) == (False, True)


def on_grid():
    return Series("ramp", Clock(timedelta(hours=1)), 0, daily(DAY))


BAD = {
    "no time": (lambda: pd.Series([1.0, 2.0], index=["a", "b"]), {}, "must have times"),
    "several sensors": (
        lambda: as_series(daily(DAY)).to_frame("a").assign(b=1.0),
        {},
        "sensor must be one of 'a', 'b', got None",
    ),
    "another step": (
        lambda: on_grid(),
        {"step": "15min"},
        "step must equal the step of the series, 1:00",
    ),
    "another zone": (
        lambda: on_grid(),
        {"tz": "Europe/London"},
        "tz must equal the tz of the series, None, got Europe/London",
    ),
    "a huge reading": (lambda: as_series([1.0, 2e12, 3.0]), {}, "ramp: value must be at most"),
    "a bad setting": (lambda: as_series(daily(DAY)), {"horizon": 0}, "horizon must be"),
    "no extras": (lambda: as_series(daily(DAY)), {"extras": None}, "extras must be a tuple"),
    "not a history": (lambda: 7, {}, "sources must be a path"),
}


@pytest.mark.parametrize(("given", "settings", "message"), BAD.values(), ids=BAD)
def test_bad_histories_are_refused(given, settings, message):
    with pytest.raises(InvalidInputError, match=message):
        Forecaster.start(given(), **settings)
