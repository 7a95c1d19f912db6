"""The name of a forecaster's sensor: in messages, logs and files."""

import logging
import re

import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.forecaster.settings import Settings
from tests.support.forecasters import DAY, START, daily, live, small, watched

NAMED_ERRORS = {
    "observe": (
        lambda each: each.observe("someday", 1.0),
        InvalidInputError,
        "A1: time must be",
    ),
    "observe, value": (
        lambda each: each.observe(START, "x"),
        InvalidInputError,
        "A1: value must be",
    ),
    "predict": (
        lambda each: each.predict({"rain": 1.0}),
        InvalidInputError,
        "A1: extras must give",
    ),
    "set": (lambda each: each.tuning.set(rate=1.0), InvalidInputError, "A1: the model must"),
    "freeze": (lambda each: each.tuning.freeze("rate"), InvalidInputError, "A1: the model must"),
    "unfreeze": (
        lambda each: each.tuning.unfreeze("rate"),
        InvalidInputError,
        "A1: the model must",
    ),
    "path": (lambda each: each.tuning.path, InvalidInputError, "A1: the model must"),
    "refit_times": (lambda each: each.tuning.refit_times, InvalidInputError, "A1: the model must"),
}


@pytest.mark.parametrize("case", NAMED_ERRORS)
def test_errors_of_a_forecaster_begin_with_its_sensor_once(case):
    call, kind, message = NAMED_ERRORS[case]

    with pytest.raises(kind, match=f"^{message}") as caught:
        call(small(sensor="A1"))

    assert str(caught.value).count("A1") == 1


def test_an_error_of_a_forecaster_without_a_name_has_none():
    with pytest.raises(InvalidInputError, match=r"^time must be"):
        small().observe("someday", 1.0)


@pytest.mark.parametrize("name", ["", 7, b"A1", ("A1",)])
def test_a_bad_name_is_an_error(name):
    message = re.escape(f"sensor must be a name, or None, got {name!r}.")

    with pytest.raises(InvalidInputError, match=message):
        small(sensor=name)


def test_a_name_is_saved_and_changes_no_forecast(tmp_path):
    plain, named = small(), small(sensor="A1")
    values = daily(4 * DAY)

    before = live(plain, values)
    after = live(named, values)
    named.save(tmp_path / "A1.sr")
    loaded = Forecaster.load(tmp_path / "A1.sr")

    assert [each.value[0] for each in after[1:]] == [each.value[0] for each in before[1:]]
    assert loaded.settings == named.settings
    assert loaded.settings.sensor == "A1"


def test_settings_without_a_name_are_described_as_ever():
    described = small().settings.described()

    assert "sensor" not in described
    assert Settings.of(described).sensor is None


def test_settings_that_differ_by_their_sensor_share_their_parts():
    one, two = (Settings.of(small(sensor=name).settings.described()) for name in ("A1", "A2"))

    assert (one.sensor, two.sensor) == ("A1", "A2")
    assert one.preset is two.preset


def test_log_lines_begin_with_the_sensor(caplog):
    forecaster, model = watched(sensor="A1")
    live(forecaster, daily(4 * DAY))

    model.fails = True
    with caplog.at_level(logging.WARNING, logger="streamridge"):
        live(forecaster, daily(DAY), first=4 * DAY)

    assert caplog.messages[0].startswith("A1: the refit failed, and the fit in force is kept: K +")
