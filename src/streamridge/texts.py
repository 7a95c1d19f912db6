"""Texts that people read: names made safe to show, numbers of things, and remedies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from shlex import quote
from unicodedata import category

# Kinds of characters that a terminal obeys instead of showing them, and two that scripts need.
OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")
JOINERS = "\u200c\u200d"
# How the command calls an option whose name in Python is another one.
FLAGS = {"from_": "from", "extras": "extra"}


def visible(text: str) -> str:
    r"""Return text with every character written out that a terminal would obey.

    These are escape sequences, line breaks, and marks that turn the direction of writing.

    Examples
    --------
    >>> print(visible("ramp\x1b[31m-7\n"))
    ramp\x1b[31m-7\n
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(char) for char in text)


def counted(count: int, noun: str) -> str:
    """Return how many there are of something.

    Examples
    --------
    >>> counted(1, "step"), counted(2, "step"), counted(2, "process")
    ('1 step', '2 steps', '2 processes')
    """
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{count} {noun if count == 1 else plural}"


def option(name: str, value: str = "") -> str:
    """Return how an option is passed, to the command and in Python.

    Parameters
    ----------
    name
        As Python calls it.
    value
        As the command takes it.

    Examples
    --------
    >>> option("gap", "skip"), option("from_")
    ('--gap skip (gap="skip" in Python)', '--from (from_= in Python)')
    """
    if not value:
        return f"{_flag(name)} ({name}= in Python)"
    return options({name: value})


def options(values: Mapping[str, str]) -> str:
    """Return how several options are passed together, by name as Python calls them.

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


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a small table for a notebook; whatever names hold, it is shown and not obeyed.

    Examples
    --------
    >>> html_table(["sensor"], [["<b>"]])
    '<table><tr><th>sensor</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    lines = [_html_row("th", headings), *(_html_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _html_row(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(visible(cell))}</{kind}>' for cell in cells)}</tr>"


def _written(char: str) -> str:
    if category(char) in OBEYED and char not in JOINERS:
        return char.encode("unicode_escape").decode()
    return char
