r"""The syntax of InfluxDB's line protocol: `measurement[,tag=v...] field=v[,field=v...] [time]`.

A backslash before a comma, a blank or an equals sign escapes it; before any other character it is
a plain backslash. Inside quotation marks it escapes quotation marks and itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from streamridge.errors import shown
from streamridge_service.bodies.fields import FieldError

# Possessive quantifiers ("++") are safe: no part can begin with the character that ends the part
# before it, so backtracking would never help.
MEASUREMENT, WORD = r"(?:[^\\, ]++|\\.)++", r"(?:[^\\,= ]++|\\.)++"
INSIDE = r'(?:[^"\\]++|\\.)*+'
SERIES = re.compile(rf"({MEASUREMENT})((?:,{WORD}={WORD})*+)(?: ++|\Z)", re.DOTALL)
TAG = re.compile(rf",({WORD})=({WORD})", re.DOTALL)
FIELD = re.compile(rf'({WORD})=("{INSIDE}"|[^", ][^, ]*+)', re.DOTALL)
OPEN_FIELD = re.compile(rf'{WORD}="{INSIDE}\\?\Z', re.DOTALL)
TIME = re.compile(r" *+(?:(?<= )([^ ]++) *+)?")
TICKS = re.compile(r"-?[0-9]{1,20}")
ESCAPED = re.compile(r"\\([, =])")


class OpenStringError(Exception):
    """A line ends inside a quoted string, which continues on the next line."""


class TaggedSeries(NamedTuple):
    """A measurement, and its tags in the order of their keys."""

    measurement: str
    tags: tuple[tuple[str, str], ...]


class Point(NamedTuple):
    """The parts of a line as they are written; a time that is not a number stays text."""

    measurement: str
    tags: str
    fields: list[tuple[str, str]]
    ticks: int | str | None


def parse_point(text: str) -> Point:
    r"""Return the parts of a line.

    Examples
    --------
    >>> parse_point('flow,road=A2 cars=12i,note="," 17')
    Point(measurement='flow', tags=',road=A2', fields=[('cars', '12i'), ('note', '","')], ticks=17)
    """
    series = SERIES.match(text)
    if series is None:
        raise _bad_line("measurement and tags", text)
    fields, at = _fields(text, series.end())
    time = TIME.fullmatch(text, at)
    if time is None:
        raise _bad_line("a time or the end", text[at:])
    ticks = time[1]
    number = int(ticks) if ticks and TICKS.fullmatch(ticks) else ticks
    return Point(series[1], series[2], fields, number)


def parse_series(measurement: str, tags: str) -> TaggedSeries:
    r"""Return the series of a measurement and tags as they are written.

    Examples
    --------
    >>> parse_series("flow", r",road=A2,lane=left\ 1")
    TaggedSeries(measurement='flow', tags=(('lane', 'left 1'), ('road', 'A2')))
    """
    pairs = [(unescaped(key), unescaped(value)) for key, value in TAG.findall(tags)]
    if len(dict(pairs)) < len(pairs):
        raise _bad_line("each tag once", tags)
    return TaggedSeries(unescaped(measurement), tuple(sorted(pairs)))


def unescaped(word: str) -> str:
    r"""Return a word without the backslashes that escape special characters.

    Examples
    --------
    >>> print(unescaped(r"lane\ 1\,\x"))
    lane 1,\x
    """
    return ESCAPED.sub(r"\1", word) if "\\" in word else word


def _fields(text: str, at: int) -> tuple[list[tuple[str, str]], int]:
    """Return the fields that begin at a position, and the position after them."""
    fields: dict[str, str] = {}
    while True:
        field = FIELD.match(text, at)
        if field is None and OPEN_FIELD.match(text, at):
            raise OpenStringError
        if field is None or field[1] in fields:
            raise _bad_line("fields, each once", text[at:])
        fields[field[1]] = field[2]
        at = field.end()
        if not text.startswith(",", at):
            return list(fields.items()), at
        at += 1


def _bad_line(wanted: str, text: str) -> FieldError:
    return FieldError(
        "sr-bad-row",
        "a line must be measurement[,tag=v...] field=v[,field=v...] [time]: "
        f"expected {wanted}, got {shown(text)}.",
    )
