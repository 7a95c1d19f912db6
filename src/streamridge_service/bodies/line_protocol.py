"""Readings in InfluxDB's line protocol, as Telegraf and Home Assistant send them.

Each numeric field is a reading. The sensor's name consists of the measurement, the field unless it
is "value", and keys and values of the tags in the order of their keys, joined by colons:
`flow,road=A2,lane=1 cars=12i` is a reading of `flow:cars:lane:1:road:A2`. Characters that a
sensor's name cannot contain are escaped, and a long name ends with a digest of all of it. Different
series have different names: a name with an even number of parts has a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import chain

from streamridge.errors import visible
from streamridge_service.bodies.fields import (
    UNITS,
    FieldError,
    ParseTime,
    number_of,
    parse_ticks,
)
from streamridge_service.bodies.line_syntax import (
    OpenStringError,
    Point,
    parse_point,
    parse_series,
    unescaped,
)
from streamridge_service.bodies.row_validation import (
    RowValidator,
    numbered_lines,
    require_few_lines,
    without_byte_order_mark,
)
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch

# Lines of Telegraf have at most hundreds of fields, and strings of a few lines.
LONGEST_LINE, MOST_JOINED = 65_536, 100
# A float, an integer or an unsigned integer.
NUMBER = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|([+-]?[0-9]+)i|([0-9]+)u"
)
BOOLEANS = frozenset(["t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"])
# The field whose name is not part of the sensor's name.
DEFAULT_FIELD = "value"
# Characters to escape: those that a part of a name cannot contain, and an underscore that could be
# mistaken for the start of an escape. At the start of a name, an escape has no underscore.
ESCAPED = re.compile(r"[^A-Za-z0-9._-]|_(?=x[0-9A-F]+[^A-Za-z0-9.-])")
ESCAPED_FIRST = re.compile(r"[^A-Za-z0-9]|x(?=[0-9A-F]+[^A-Za-z0-9.-])")
NOT_UTF8 = re.compile(r"[\ud800-\udfff]")
# Characters of a name, and hexadecimal digits of the digest at the end of a long one.
LONGEST_NAME, DIGEST = 64, 16


def decode_lines(body: bytes, precision: str, now: int) -> Batch:
    r"""Return the readings of a body in the line protocol.

    Strings and booleans are not readings; the batch counts them as skipped. A refused value has
    its field as column.

    Parameters
    ----------
    body
        The lines.
    precision
        The unit of their times: "ns", "us", "ms" or "s".
    now
        The time of lines without one, in microseconds.

    Examples
    --------
    >>> batch = decode_lines(b'flow,road=A2 value=12,note="wet" 7\nflow,road=A4 value=3i', "s", 5)
    >>> batch.rows[0]
    Row(line=1, sensor='flow:road:A2', time=7000000, value=12.0)
    >>> batch.rows[1], batch.skipped
    (Row(line=2, sensor='flow:road:A4', time=5, value=3.0), 1)
    """
    body = without_byte_order_mark(body)
    require_few_lines(body)
    validator, names = RowValidator(_parse_time(precision, now)), SensorNames()
    for line, point in _points(body):
        if isinstance(point, FieldError):
            validator.refuse(line, point)
        else:
            _add_point(validator, names, line, point)
    return validator.batch()


class SensorNames:
    """The sensor names of one request, each built once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str, str], str] = {}

    def name(self, measurement: str, tags: str, field: str) -> str:
        """Return the name of a sensor, by the parts of a line as they are written.

        Examples
        --------
        >>> SensorNames().name("flow", ",road=A2,lane=1", "cars")
        'flow:cars:lane:1:road:A2'
        """
        written = measurement, tags, field
        name = self._names.get(written)
        if name is None:
            series, own = parse_series(measurement, tags), unescaped(field)
            fields = [] if own == DEFAULT_FIELD else [own]
            name = series_name([series.measurement, *fields, *chain.from_iterable(series.tags)])
            self._names[written] = name
        return name


def series_name(parts: list[str]) -> str:
    """Return the sensor name of a series; other parts give another name.

    A character that names cannot contain becomes `_x`, its code point in hexadecimal digits, and
    `_`; at the start of a name without the first underscore. A name of more than 64 characters ends
    with a digest instead.

    Examples
    --------
    >>> series_name(["disk", "used", "device", "/dev/sda 1"])
    'disk:used:device:_x2F_dev_x2F_sda_x20_1'
    >>> series_name(["°C", "entity_id", "kitchen"])
    'xB0_C:entity_id:kitchen'
    """
    if NOT_UTF8.search(":".join(parts)):
        raise FieldError("sr-bad-name", "measurement, tags and fields must be UTF-8.", "sensor")
    first, *others = parts
    if ESCAPED_FIRST.match(first):
        first = f"x{ord(first[0]):X}_{ESCAPED.sub(_escape, first[1:])}"
    else:
        first = ESCAPED.sub(_escape, first)
    name = ":".join([first, *(ESCAPED.sub(_escape, each) for each in others)])
    if len(name) > LONGEST_NAME:
        digest = blake2b(name.encode(), digest_size=DIGEST // 2).hexdigest()
        name = f"{name[: LONGEST_NAME - DIGEST - 1]}-{digest}"
    return name


def _escape(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):X}_"


def _parse_time(precision: str, now: int) -> ParseTime:
    if precision not in UNITS:
        raise Problem(
            "sr-bad-parameter", f"precision must be one of {', '.join(UNITS)}, got {precision!r}."
        )
    return lambda ticks: now if ticks is None else parse_ticks(ticks, precision)


def _points(body: bytes) -> Iterator[tuple[int, Point | FieldError]]:
    """Yield the number and the parts of each line; a quoted string may span several lines."""
    first, pending = 0, ""
    for line, raw in numbered_lines(body):
        # Bytes that are not UTF-8 stay in the text, and no name accepts them.
        text = pending + raw.decode(errors="surrogateescape").lstrip()
        if text.startswith("#"):
            continue
        first = first if pending else line
        try:
            yield first, _point(first, text)
            pending = ""
        except OpenStringError:
            pending = f"{text}\n"
        if pending and line - first > MOST_JOINED:
            raise _no_end(first)
    if pending:
        raise _no_end(first)


def _point(line: int, text: str) -> Point | FieldError:
    if len(text) > LONGEST_LINE:
        raise Problem(
            "sr-unreadable", f"line {line} must have at most {LONGEST_LINE:,} characters."
        )
    try:
        return parse_point(text)
    except FieldError as error:
        # An odd quotation mark may open a string, so that the next lines could belong to it.
        if text.count('"') % 2:
            raise _no_end(line) from None
        return error


def _no_end(line: int) -> Problem:
    return Problem(
        "sr-unreadable", f"line {line} has a string in quotation marks whose end cannot be found."
    )


def _add_point(validator: RowValidator, names: SensorNames, line: int, point: Point) -> None:
    for field, written in point.fields:
        if written.startswith('"') or written in BOOLEANS:
            validator.skip()
            continue
        try:
            name = names.name(point.measurement, point.tags, field)
            validator.add(line, name, point.ticks, _number(field, written))
        except FieldError as error:
            validator.refuse(line, error)


def _number(field: str, written: str) -> float | None:
    match = NUMBER.fullmatch(written)
    number = float(match[match.lastindex or 0]) if match else written
    try:
        return number_of(number)
    except FieldError as error:
        raise FieldError(error.code, error.detail, visible(unescaped(field))) from None
