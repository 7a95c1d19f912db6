"""What cannot be right is refused, by a message in plain words, and nothing has changed."""

from datetime import timedelta

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError
from tests.support.forecasters import DAY, START, daily, live, small


class Unknown:
    def __repr__(self):
        return "x" * 500


SETTINGS = {
    "extras, none": ({"extras": None}, "extras must be a tuple of names, got None"),
    "extras, number": ({"extras": 5}, "extras must be a tuple of names, got 5"),
    "extras, one array": ({"extras": np.array(1.0)}, "extras must be a tuple of names, got array"),
    "extras, no names": ({"extras": [1, 2]}, r"extras must be .* all different, got \[1, 2\]"),
    "extras, repeated": ({"extras": ("a", "a")}, r"extras must be .* got \('a', 'a'\)"),
    "preset": ({"preset": 3}, "preset must be a Preset or None, got 3"),
    "preset, empty": ({"preset": ()}, r"preset must be a Preset or None, got \(\)"),
    "holidays, one array": ({"holidays": np.array(1.0)}, "holidays must be a country's code"),
    "sensor, blank": ({"sensor": " "}, "sensor must be a name, or None, got ' '"),
    "horizon, huge": ({"horizon": 10**18}, "horizon must be at most 20160, got 10000"),
    "lags, huge": ({"lags": 10**18}, "lags must be at most 3000, got 10000"),
    "step, huge": ({"step": 10**400}, "step must be at most 100 years, or 3155760000 units"),
    "step, ages": ({"step": "999999mo"}, "step must be at most 100 years, .* got '999999mo'"),
    "step, aeons": ({"step": timedelta(days=999_999_999)}, "step must be at most 100 years"),
}


@pytest.mark.parametrize(("settings", "message"), SETTINGS.values(), ids=SETTINGS)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        Forecaster(**settings)


@pytest.mark.parametrize("name", ["step", "seasons", "tz", "extras", "tuner", "sensor", "holidays"])
def test_a_message_shows_no_more_than_the_start_of_a_value(name):
    with pytest.raises(InvalidInputError, match=f"^{name} must be") as caught:
        Forecaster(**{name: Unknown()})

    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("settings", [{"level": 2}, {"preset": 3}, {"step": "someday"}])
def test_errors_of_a_forecaster_that_is_made_begin_with_its_sensor_once(settings):
    with pytest.raises(InvalidInputError, match=r"^A1: ") as caught:
        Forecaster(sensor="A1", **settings)

    assert str(caught.value).count("A1") == 1


CALLS = {
    "workspace": (lambda each: setattr(each, "workspace", 3), "A1: workspace must be a Workspace"),
    "to_bytes": (
        lambda each: each.to_bytes(since_refit=np.zeros(2)),
        "A1: since_refit must be True or False",
    ),
    "predict": (lambda each: each.predict(Unknown()), "A1: extras must map names .*x{60}[.]{4}$"),
}


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_bad_calls_are_refused_and_change_nothing(call, message):
    forecaster = small(sensor="A1")
    live(forecaster, daily(4 * DAY))
    before = forecaster.to_bytes()

    with pytest.raises(InvalidInputError, match=f"^{message}"):
        call(forecaster)

    assert forecaster.to_bytes() == before


@pytest.mark.parametrize("time", [np.timedelta64("NaT"), np.timedelta64(3, "h"), True, START])
def test_a_time_of_an_index_is_a_whole_number(time):
    forecaster = Forecaster(1)
    forecaster.observe(1, 2.0)
    before = forecaster.to_bytes()

    for call in (forecaster.observe, forecaster.exclude):
        with pytest.raises(
            InvalidInputError, match=r"^time must be a whole number, since the step"
        ):
            call(time, 3)

    assert forecaster.to_bytes() == before
