"""All exceptions of the library, and the text helpers that its messages share.

- StreamRidgeError
    - InvalidInputError (ValueError): a value from the user breaks a constraint
    - FitError (ArithmeticError): a model cannot be fitted to these samples
        - NotPositiveDefiniteError: a ridge system has no Cholesky factor
    - StateError (ValueError): a saved state does not match the object that should load it
    - MissingExtraError (ImportError): an optional dependency is not installed

Text helpers: `shown` and `listed` format values, `counted` and `counts_text` format numbers of
things, `option` formats an option as a flag and as a Python argument, `visible` escapes control
characters, and `html_table` renders a small table for notebooks. `warn` tells notes as warnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from inspect import currentframe
from shlex import quote
from unicodedata import category
from warnings import warn as python_warn

# The longest value, in characters, and the longest list that a message shows.
LONGEST = 60
MOST = 10
# Unicode categories that a terminal interprets instead of printing, and two joiners that some
# scripts need.
CONTROL_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
JOINERS = "\u200c\u200d"
# Command-line flags whose name differs from the Python argument.
FLAGS = {"from_": "from"}
# Counts whose names are singular nouns. Other names are plural nouns, or adjectives.
SINGULAR = ("duplicate", "conflict", "outlier")


class StreamRidgeError(Exception):
    """The base class of all errors that this library raises on purpose.

    The text starts with the sensor's name if the error is about one sensor: see `about`. Control
    characters are escaped, so a terminal can print the text: see `visible`.
    """

    sensor: str | None = None
    # The exit code of a command; None for the code of the command's group.
    exit_code: int | None = None

    @property
    def reason(self) -> str:
        """Return the text without the sensor's name."""
        return visible(super().__str__())

    def __str__(self) -> str:
        return self.reason if self.sensor is None else f"{visible(self.sensor)}: {self.reason}"


class InvalidInputError(StreamRidgeError, ValueError):
    """An error that names a value, the constraint that it breaks, and the given value."""


class StateError(StreamRidgeError, ValueError):
    """An error that says why a saved state cannot be restored."""


class FormerFormatError(StateError):
    """An error about a state in a format of an earlier version."""


class MissingExtraError(StreamRidgeError, ImportError):
    """An error that names a missing optional dependency, and how to install it."""


class FitError(StreamRidgeError, ArithmeticError):
    """An error that says why a model cannot be fitted; learners keep the previous fit."""


class NotPositiveDefiniteError(FitError):
    """An error that names a ridge system without a Cholesky factor, and the remedy.

    `penalty` is the hyperparameter on the diagonal of the matrix, `time` the last training sample.
    """

    def __init__(
        self, system: str, time: float, penalty: str, value: float, lower_bound: float
    ) -> None:
        super().__init__(
            f"{system} has no Cholesky factor at t={time:.15g} ({penalty}={value}). "
            f"Raise its lower bound, now {lower_bound}."
        )


def missing_library(package: str, error: ImportError) -> MissingExtraError:
    """Return the error about a library that cannot be imported, with the package to install."""
    return MissingExtraError(
        f"this module needs {package}, which cannot be imported: {error}. "
        f"Run `pip install {package}`."
    )


class about:  # noqa: N801 - used as a context manager, `with about(sensor):`
    """A context manager that adds a sensor's name to errors; an inner name wins.

    It is a class because every step enters several, and generators are slower.

    Examples
    --------
    >>> with about("ramp-7"):
    ...     raise InvalidInputError("value must be a number, got 'x'.")
    Traceback (most recent call last):
        ...
    streamridge.errors.InvalidInputError: ramp-7: value must be a number, got 'x'.
    """

    __slots__ = ("_sensor",)

    def __init__(self, sensor: str | None) -> None:
        self._sensor = sensor

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StreamRidgeError):
            error.sensor = error.sensor or self._sensor


def shown(value: object) -> str:
    """Return the repr of a value, truncated to 60 characters."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def listed(names: Iterable[str]) -> str:
    """Return the first ten names as text, and the number of the others.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed("abcdefghijkl")
    "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j' and 2 more"
    """
    every = [shown(name) for name in names]
    more = f" and {len(every) - MOST} more" if len(every) > MOST else ""
    return (", ".join(every[:MOST]) or "none") + more


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    Examples
    --------
    >>> counted(1, "step"), counted(2, "step"), counted(2, "process")
    ('1 step', '2 steps', '2 processes')
    """
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{count} {noun if count == 1 else plural}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts that are not zero as text.

    Examples
    --------
    >>> counts_text({"missing": 979, "conflict": 1, "duplicates": 2, "late": 0, "off_grid": 3})
    '979 missing, 1 conflict, 2 duplicates, 3 off grid'
    """
    return ", ".join(_count_text(name, count) for name, count in counts.items() if count)


def _count_text(name: str, count: int) -> str:
    words = name.replace("_", " ")
    noun = words.removesuffix("s")
    return counted(count, noun) if words in SINGULAR or noun != words else f"{count} {words}"


def option(name: str, value: str = "") -> str:
    """Return how to pass an option, by the name of its argument, on the command and in Python.

    Examples
    --------
    >>> option("gap", "skip"), option("from_")
    ('--gap skip (gap="skip" in Python)', '--from (from_= in Python)')
    """
    return options({name: value}) if value else f"{_flag(name)} ({name}= in Python)"


def options(values: Mapping[str, str]) -> str:
    """Return how to pass several options together; keys are names of Python arguments.

    Examples
    --------
    >>> options({"step": "15min", "aggregate": "sum"})
    '--step 15min --aggregate sum (step="15min", aggregate="sum" in Python)'
    """
    flags = " ".join(f"{_flag(name)} {quote(value)}" for name, value in values.items())
    arguments = ", ".join(f'{name}="{value}"' for name, value in values.items())
    return f"{flags} ({arguments} in Python)"


def _flag(name: str) -> str:
    return f"--{FLAGS.get(name, name).replace('_', '-')}"


def visible(text: str) -> str:
    r"""Return text with escape sequences, line breaks and direction marks escaped.

    Examples
    --------
    >>> print(visible("ramp\x1b[31m-7\n"))
    ramp\x1b[31m-7\n
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) for char in text)


def _escaped(char: str) -> str:
    if category(char) in CONTROL_CATEGORIES and char not in JOINERS:
        return char.encode("unicode_escape").decode()
    return char


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a small HTML table for a notebook; the text of all cells is escaped.

    Examples
    --------
    >>> html_table(["sensor"], [["<b>"]])
    '<table><tr><th>sensor</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    lines = [_html_row("th", headings), *(_html_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _html_row(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(visible(cell))}</{kind}>' for cell in cells)}</tr>"


def warn(texts: Iterable[str], kind: type[Warning] = UserWarning) -> None:
    """Warn of each text, at the line outside the library that called it."""
    level, frame = 1, currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("streamridge."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        python_warn(visible(text), kind, stacklevel=level)
