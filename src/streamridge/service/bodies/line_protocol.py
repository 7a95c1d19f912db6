"""Readings in InfluxDB's line protocol, as Telegraf and Home Assistant send them.

Each field that is a number is a reading. Its sensor is named by the measurement, the values of the
tags in the order of their keys, and the field unless that is "value", joined by colons:
`flow,road=A2,lane=1 cars=12i` is a reading of `flow:1:A2:cars`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamridge.service.bodies.fields import FieldError, number_of
from streamridge.service.bodies.line_syntax import OpenTextError, Point, plain, point_of
from streamridge.service.bodies.lines import numbered, require_few_lines, without_mark
from streamridge.service.bodies.moments import UNITS, Moment, moment_of_ticks
from streamridge.service.bodies.series_names import SeriesNames
from streamridge.service.bodies.sieve import Sieve
from streamridge.service.problems import Problem
from streamridge.service.rows import Batch
from streamridge.texts import visible

# Lines of Telegraf have hundreds of fields at most, and texts of a few lines.
LONGEST_LINE, MOST_JOINED = 65_536, 100
# A float, an integer or an unsigned integer.
NUMBER = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|([+-]?[0-9]+)i|([0-9]+)u"
)
TRUTHS = frozenset(["t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"])


def decode_lines(body: bytes, precision: str, now: int) -> Batch:
    r"""Return the readings of lines of the line protocol.

    Fields that are texts or truth values are no readings: the batch counts them as skipped. A
    value that is refused has its field as column.

    Parameters
    ----------
    body
        The lines.
    precision
        The unit of their times: "ns", "us", "ms" or "s".
    now
        The time of lines that have none, in microseconds.

    Examples
    --------
    >>> batch = decode_lines(b'flow,road=A2 value=12,note="wet" 7\nflow,road=A4 value=3i', "s", 5)
    >>> batch.rows[0]
    Row(line=1, sensor='flow:A2', time=7000000, value=12.0)
    >>> batch.rows[1], batch.skipped
    (Row(line=2, sensor='flow:A4', time=5, value=3.0), 1)
    """
    body = without_mark(body)
    require_few_lines(body)
    sieve, names = Sieve(_moment(precision, now)), SeriesNames()
    for line, point in _points(body):
        if isinstance(point, FieldError):
            sieve.refuse(line, point)
        else:
            _add_point(sieve, names, line, point)
    return sieve.batch()


def _moment(precision: str, now: int) -> Moment:
    if precision not in UNITS:
        raise Problem(
            "sr-bad-parameter", f"precision must be one of {', '.join(UNITS)}, got {precision!r}."
        )
    return lambda ticks: now if ticks is None else moment_of_ticks(ticks, precision)


def _points(body: bytes) -> Iterator[tuple[int, Point | FieldError]]:
    """Yield each line's number and parts; a text in quotation marks may go on in further lines."""
    first, held = 0, ""
    for line, raw in numbered(body):
        # Whatever is not UTF-8 is kept, and then no name.
        text = held + raw.decode(errors="surrogateescape").lstrip()
        if text.startswith("#"):
            continue
        first = first if held else line
        try:
            yield first, _point(first, text)
            held = ""
        except OpenTextError:
            held = f"{text}\n"
        if held and line - first > MOST_JOINED:
            raise _no_end(first)
    if held:
        raise _no_end(first)


def _point(line: int, text: str) -> Point | FieldError:
    if len(text) > LONGEST_LINE:
        raise Problem(
            "sr-unreadable", f"line {line} must have at most {LONGEST_LINE:,} characters."
        )
    try:
        return point_of(text)
    except FieldError as error:
        # With a text that may be open, the next lines could be part of it, and no lines.
        if text.count('"') % 2:
            raise _no_end(line) from None
        return error


def _no_end(line: int) -> Problem:
    return Problem(
        "sr-unreadable", f"line {line} has a text in quotation marks whose end cannot be found."
    )


def _add_point(sieve: Sieve, names: SeriesNames, line: int, point: Point) -> None:
    for field, written in point.fields:
        if written.startswith('"') or written in TRUTHS:
            sieve.skip()
            continue
        try:
            name = names.name(point.measurement, point.tags, field)
            sieve.add(line, name, point.ticks, _number(field, written))
        except FieldError as error:
            sieve.refuse(line, error)


def _number(field: str, written: str) -> float | None:
    match = NUMBER.fullmatch(written)
    number = float(match[match.lastindex or 0]) if match else written
    try:
        return number_of(number)
    except FieldError as error:
        raise FieldError(error.code, error.detail, visible(plain(field))) from None
