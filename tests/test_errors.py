"""Errors and message texts: sensor names, escaped control characters, counts and options."""

import ast
import re
from pathlib import Path

import pytest

import streamridge
from streamridge.errors import (
    InvalidInputError,
    MissingExtraError,
    NotPositiveDefiniteError,
    StateError,
    StreamRidgeError,
    about,
    counted,
    html_table,
    option,
    visible,
)

PACKAGE = Path(streamridge.__file__).parent

ERRORS = (
    InvalidInputError("lags must be positive, got 0."),
    StateError("the file must be whole, got a part."),
    MissingExtraError("optuna must be installed."),
    NotPositiveDefiniteError("K", 1.0, "regularization", 1e-14, 0.0),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_starts_with_the_innermost_sensor_name_and_keeps_its_type(error):
    text = str(error)

    with pytest.raises(type(error)) as caught, about("A2"), about("A1"), about(None):
        raise error

    assert caught.value is error
    assert str(error) == f"A1: {text}"
    assert error.reason == text


def test_an_error_without_a_sensor_is_unchanged():
    with pytest.raises(InvalidInputError, match=r"^lags must be positive$"), about(None):
        raise InvalidInputError("lags must be positive")


def test_an_error_of_another_library_is_unchanged():
    with pytest.raises(ValueError, match=r"^other$"), about("A1"):
        raise ValueError("other")


@pytest.mark.parametrize("char", ["\x1b", "\x9b", "\n", "\r", "\x7f", "\u202e", "\u2066", "\udc80"])
def test_control_characters_are_escaped(char):
    shown = visible(f"ramp{char}7")

    assert char not in shown
    assert shown.startswith("ramp\\")


def test_names_in_every_script_are_unchanged():
    assert visible("\u5317 \u0645\u06cc\u200c\u062e r\u00e4mp") == (
        "\u5317 \u0645\u06cc\u200c\u062e r\u00e4mp"
    )


def test_errors_escape_control_characters_in_names():
    with pytest.raises(InvalidInputError) as caught, about("A\x1b[31m"):
        raise InvalidInputError("column \x1b]0;x\x07 must be a number.")

    assert str(caught.value) == r"A\x1b[31m: column \x1b]0;x\x07 must be a number."


def test_html_is_escaped():
    assert "<script" not in html_table(["sensor"], [["<script>\x1b"]])


@pytest.mark.parametrize(("count", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps")])
def test_a_count_of_one_has_no_plural(count, text):
    assert counted(count, "step") == text


def test_every_error_of_the_library_is_public():
    found, kinds = [StreamRidgeError], [StreamRidgeError]
    while kinds:
        kinds = [each for kind in kinds for each in kind.__subclasses__()]
        found += [each for each in kinds if each.__module__.startswith("streamridge.")]
    assert len(found) > 5

    for error in found:
        assert getattr(streamridge, error.__name__) is error
        assert error.__name__ in streamridge.__all__


def messages(path):
    """Return the string constants of a module, except docstrings, with their lines."""
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


def test_library_messages_name_options_for_the_command_and_for_python():
    above = ("cli", "experiments")
    bare = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in above
        for line, text in messages(path)
        if re.search(r"(?<![\w-])--[a-z]", text)
        and "in Python" not in text
        and not re.fullmatch(r"--[\w-]+", text)  # the declaration of a flag
    ]

    assert not bare, "write such remedies with streamridge.errors.option"


def test_an_option_is_shown_for_the_command_and_for_python():
    assert option("from_", "2021-06-13") == '--from 2021-06-13 (from_="2021-06-13" in Python)'
