"""Texts: what a terminal would obey is written out, and one of a thing is no plural."""

import ast
import re
from pathlib import Path

import pytest

import streamridge
from streamridge.errors import InvalidInputError, StreamRidgeError, about
from streamridge.texts import counted, html_table, option, visible

PACKAGE = Path(streamridge.__file__).parent


@pytest.mark.parametrize("char", ["\x1b", "\x9b", "\n", "\r", "\x7f", "\u202e", "\u2066", "\udc80"])
def test_what_a_terminal_would_obey_is_written_out(char):
    shown = visible(f"ramp{char}7")

    assert char not in shown
    assert shown.startswith("ramp\\")


def test_names_of_every_script_stay_as_they_are():
    assert visible("\u5317 \u0645\u06cc\u200c\u062e r\u00e4mp") == (
        "\u5317 \u0645\u06cc\u200c\u062e r\u00e4mp"
    )


def test_errors_show_names_and_do_not_obey_them():
    with pytest.raises(InvalidInputError) as caught, about("A\x1b[31m"):
        raise InvalidInputError("column \x1b]0;x\x07 must be a number.")

    assert str(caught.value) == r"A\x1b[31m: column \x1b]0;x\x07 must be a number."


def test_html_is_escaped():
    assert "<script" not in html_table(["sensor"], [["<script>\x1b"]])


@pytest.mark.parametrize(("count", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps")])
def test_one_is_no_plural(count, text):
    assert counted(count, "step") == text


def test_every_error_of_the_library_is_public():
    found, kinds = [StreamRidgeError], [StreamRidgeError]
    while kinds:
        kinds = [each for kind in kinds for each in kind.__subclasses__()]
        found += [each for each in kinds if each.__module__.startswith("streamridge.")]
    # What the service raises is answered over HTTP or by a command, never raised to a caller.
    found = [each for each in found if ".service." not in each.__module__]
    assert len(found) > 5

    for error in found:
        assert getattr(streamridge, error.__name__) is error
        assert error.__name__ in streamridge.__all__


def messages(path):
    """Return the texts of a module that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text())
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def test_no_message_below_the_command_names_a_flag_alone():
    above = ("cli", "experiments", "service")  # a service is run by its command alone
    bare = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in above
        for line, text in messages(path)
        if re.search(r"(?<![\w-])--[a-z]", text) and "in Python" not in text
    ]

    assert not bare, "write such remedies with streamridge.texts.option"


def test_a_remedy_is_said_for_the_command_and_for_python():
    assert option("from_", "2021-06-13") == '--from 2021-06-13 (from_="2021-06-13" in Python)'
