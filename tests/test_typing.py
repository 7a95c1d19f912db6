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
from streamridge.runs.tasks import SHARED_SETTINGS
from tests.support.paths import ROOT

SETTINGS = {
    name: kind
    for name, kind in get_type_hints(sr.Forecaster.__init__.__wrapped__).items()
    if name != "return"
}
# The function `compare` has arguments of its own for these.
OWN = {"warmup"}


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
        (sr.compare, CompareArguments, {*OPTION_NAMES, *SHARED_SETTINGS} - OWN),
    ],
)
def test_a_function_takes_exactly_the_typed_arguments(function, typed, names):
    assert set(get_type_hints(typed)) == set(names)
    assert Unpack[typed] in get_type_hints(function).values()


def test_the_arguments_that_compare_has_itself_are_settings_too():
    assert set(signature(sr.compare).parameters) >= OWN
    assert set(SETTINGS) >= OWN


CONSUMER = """\
import streamridge as sr

started = sr.Forecaster.start("roads.csv", step="15min", train_size=480, gap="skip")
run = sr.replay(started, "roads.csv", from_="2021-06-13", last_steps=96)
table = sr.compare("roads.csv", ["ohl"], level=(0.8, 0.95), decimal=",", tz="Europe/London")
result = sr.read("roads.csv", sensors=["ramp-3"], missing=-9999)
sr.Forecaster.start("roads.csv", stepz=5)
sr.Forecaster.start("roads.csv", train_size="many")
sr.replay(started, "roads.csv", gap="jump")
sr.compare("roads.csv", trainsize=480)
sr.read("roads.csv", colour="red")
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
        *(("7", "call-arg"), ("8", "arg-type"), ("9", "arg-type")),
        *(("10", "call-arg"), ("11", "call-arg")),
    ], checked.stdout
