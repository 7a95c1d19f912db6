"""The reading options are declared once; flags, arguments and a page follow from them."""

import re
from dataclasses import fields
from functools import cache
from inspect import signature
from pathlib import Path

import pytest
import typer

import streamridge as sr
from streamridge import InvalidInputError, ReadingOptions
from streamridge.cli.main import app
from streamridge.files.reading_options import OPTIONS, flag_of
from streamridge.forecaster.settings import HISTORY_OPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reading-options.md"
NAMES = [each.name for each in fields(ReadingOptions)]


@cache
def command(name):
    return typer.main.get_command(app).commands[name]


@pytest.mark.parametrize("option", NAMES)
@pytest.mark.parametrize("name", ["replay", "compare"])
def test_a_command_has_a_flag_for_every_option(name, option):
    flags = [flag for each in command(name).params for flag in each.opts]

    assert set(flag_of(option).names) <= set(flags)


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("forecast", {"sensors", "step", "tz", "extras"}),
        ("feed", {"sensors", "step", "extras", "arrival_order"}),
    ],
)
def test_other_commands_have_the_flags_of_the_options_that_they_leave_to_the_user(name, lacking):
    assert {each.name for each in command(name).params} >= set(NAMES) - lacking


@pytest.mark.parametrize("function", [sr.read, sr.replay, sr.compare])
def test_a_function_takes_every_option_as_an_argument(function):
    assert set(signature(function).parameters) >= {*NAMES, "sensor"}


def test_a_start_takes_the_options_that_are_no_settings():
    taken = set(signature(sr.Forecaster.start).parameters)

    assert taken >= set(HISTORY_OPTIONS)
    assert {*HISTORY_OPTIONS, "step", "tz", "extras"} == set(NAMES) - {"sensors", "arrival_order"}


def options_table():
    """Return all options as a table in Markdown: flag, argument in Python, default, meaning."""
    rows = []
    for name, default in OPTIONS.items():
        flags = ", ".join(f"`{flag}`" for flag in flag_of(name).names)
        shown_default = "" if default in (None, (), False) else f"`{default}`"
        rows.append(f"| {flags} | `{name}` | {shown_default} | {flag_of(name).help} |")
    head = "| flag | in Python | default | meaning |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def test_the_page_lists_every_option():
    _, _, rest = PAGE.read_text().partition("<!-- reading options -->\n")
    table, _, _ = rest.partition("<!-- end of the reading options -->")

    assert table == options_table()


def test_each_option_says_what_it_does():
    for name in NAMES:
        assert re.fullmatch(r"[A-Z].*\.", flag_of(name).help)


def test_an_unknown_option_is_refused():
    with pytest.raises(
        InvalidInputError, match=r"read must be given options among .*, got 'color'"
    ):
        sr.read("flow.csv", color="red")


def test_one_sensor_may_be_named_alone():
    assert ReadingOptions.of({"sensor": "a", "gap": None}) == ReadingOptions(sensors=["a"])
    with pytest.raises(InvalidInputError, match="sensor must be left out with sensors, got 'a'"):
        ReadingOptions.of({"sensor": "a", "sensors": ["b"]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"largest": "much"}, "largest must be a size such as 500MB or 20GB, got 'much'"),
        ({"gap": "fill"}, "gap must be one of error, skip, got 'fill'"),
        ({"layout": "tall"}, "layout must be one of"),
        ({"decimal": ";"}, "decimal must be . or , got ';'"),
        ({"encoding": "utf-9"}, "encoding must be one that Python knows, .* got 'utf-9'"),
        ({"encoding": "rot13"}, "encoding must be one that Python knows"),
        ({"date_format": "yyyy-mm-dd"}, "date_format must be a pattern with a year, such as"),
        ({"date_format": "%H:%M"}, "date_format must be a pattern with a year"),
        ({"date_format": "%Q%Y"}, "date_format must be a pattern with a year"),
    ],
)
def test_options_are_checked_before_anything_is_read(options, message):
    with pytest.raises(InvalidInputError, match=message):
        ReadingOptions(**options)
