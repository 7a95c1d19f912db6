"""Keyword arguments have types, so that editors complete them and type checkers refuse others."""

import re
import subprocess
import sys
from dataclasses import fields
from inspect import signature
from types import NoneType
from typing import Unpack, get_args, get_type_hints

import pytest

import streamridge as sr
from streamridge.files.reading_arguments import ReadingArguments
from streamridge.files.reading_options import OPTION_NAMES, ReadingOptions
from streamridge.forecaster.arguments import ForecasterArguments, StartArguments
from streamridge.forecaster.settings import HISTORY_OPTIONS
from streamridge.runs.compare import CompareArguments
from streamridge.runs.next_steps import ForecastArguments
from streamridge.runs.tasks import SHARED_SETTINGS
from tests.support.paths import ROOT

SETTINGS = {
    name: kind
    for name, kind in get_type_hints(sr.Forecaster.__init__.__wrapped__).items()
    if name != "return"
}
# The functions have arguments of their own for these.
OWN = {sr.compare: {"warmup"}, sr.forecast: {"horizon"}}
RUN_OPTIONS = {*OPTION_NAMES, *SHARED_SETTINGS}


def test_the_types_of_reading_options_are_those_of_the_fields():
    declared = get_type_hints(ReadingOptions)
    options = {each.name: declared[each.name] for each in fields(ReadingOptions)}

    own = {"sensor": str, **options}
    assert {name: kind | None for name, kind in own.items() if kind is not object} == {
        name: kind for name, kind in get_type_hints(ReadingArguments).items() if kind is not object
    }
    assert set(get_type_hints(ReadingArguments)) == set(own)


def test_the_types_of_settings_are_those_of_the_forecaster():
    typed = get_type_hints(ForecasterArguments)

    assert typed | {"step": SETTINGS["step"]} == SETTINGS
    assert NoneType in get_args(typed["step"])  # a history has a step of its own


@pytest.mark.parametrize(
    ("function", "typed", "names"),
    [
        (sr.read, ReadingArguments, OPTION_NAMES),
        (sr.replay, ReadingArguments, OPTION_NAMES),
        (sr.Forecaster.start, StartArguments, (*SETTINGS, *HISTORY_OPTIONS)),
        (sr.compare, CompareArguments, RUN_OPTIONS - OWN[sr.compare]),
        (sr.forecast, ForecastArguments, RUN_OPTIONS - OWN[sr.forecast]),
    ],
)
def test_a_function_takes_exactly_the_typed_arguments(function, typed, names):
    assert set(get_type_hints(typed)) == set(names)
    assert Unpack[typed] in get_type_hints(function).values()


@pytest.mark.parametrize("function", OWN)
def test_the_arguments_that_a_function_has_itself_are_settings_too(function):
    assert set(signature(function).parameters) >= OWN[function]
    assert set(SETTINGS) >= OWN[function]


@pytest.mark.parametrize("typed", [CompareArguments, ForecastArguments])
def test_settings_have_the_same_types_everywhere(typed):
    hints = get_type_hints(typed)
    settings = set(hints) & set(SETTINGS) - set(OPTION_NAMES)

    assert {name: hints[name] for name in settings} == {name: SETTINGS[name] for name in settings}


CONSUMER = """\
import streamridge as sr

started = sr.Forecaster.start("roads.csv", step="15min", train_size=480, gap="skip")
run = sr.replay(started, "roads.csv", from_="2021-06-13", last_steps=96)
table = sr.compare("roads.csv", ["ohl"], level=(0.8, 0.95), decimal=",", tz="Europe/London")
result = sr.read("roads.csv", sensors=["ramp-3"], missing=-9999)
tomorrow = sr.forecast("roads.csv", 96, level=(0.8, 0.95), gap="skip", extras=("rain=0",))
sr.Forecaster.start("roads.csv", stepz=5)
sr.Forecaster.start("roads.csv", train_size="many")
sr.replay(started, "roads.csv", gap="jump")
sr.compare("roads.csv", trainsize=480)
sr.read("roads.csv", colour="red")
sr.forecast("roads.csv", horizon=96, stepz=5)
sr.forecast("roads.csv", horizon=96, warmup="long")
sr.Forecastr
"""


@pytest.mark.slow  # mypy reads the whole package
def test_a_type_checker_accepts_known_arguments_and_refuses_others(tmp_path):
    consumer = tmp_path / "consumer.py"
    consumer.write_text(CONSUMER)

    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, str(consumer)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert checked.stderr == ""
    errors = re.findall(r"consumer\.py:(\d+): error: .*\[([\w-]+)\]", checked.stdout)
    assert errors == [
        *(("8", "call-arg"), ("9", "arg-type"), ("10", "arg-type")),
        *(("11", "call-arg"), ("12", "call-arg")),
        *(("13", "call-arg"), ("14", "arg-type"), ("15", "attr-defined")),
    ], checked.stdout
