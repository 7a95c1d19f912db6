"""Lines of JSON, a reading in each (NDJSON)."""

from __future__ import annotations

import msgspec

from streamridge.service.bodies.fields import FieldError
from streamridge.service.bodies.json_values import QUOTES, UNTYPED, TypedReading, fields_of_line
from streamridge.service.bodies.lines import numbered, require_few_lines, without_mark
from streamridge.service.bodies.sieve import Sieve
from streamridge.service.rows import Batch

READER = msgspec.json.Decoder(TypedReading)


def decode_json_lines(body: bytes) -> Batch:
    r"""Return the readings of lines of JSON; a line that cannot be read is refused by itself.

    Examples
    --------
    >>> batch = decode_json_lines(
    ...     b'{"sensor": "ramp-7", "time": "1970-01-01T00:15:00Z", "value": 12}\n'
    ...     b'{"sensor": "ramp-8", "time": "1970-01-01T00:15:00Z", "value": "12"}\n'
    ... )
    >>> batch.rows
    [Row(line=1, sensor='ramp-7', time=900000000, value=12.0)]
    >>> batch.refused[0].line, batch.refused[0].code, batch.refused[0].column
    (2, 'sr-not-a-number', 'value')
    """
    body = without_mark(body)
    require_few_lines(body)
    sieve = Sieve()
    readings = _all_at_once(body)
    if readings is None:
        _add_lines(sieve, body)
    else:
        sieve.add_all(readings)
    return sieve.batch()


def _all_at_once(body: bytes) -> list[TypedReading] | None:
    """Return all readings if every line is one with the right fields, else None."""
    try:
        readings = READER.decode_lines(body)
    except UNTYPED:
        return None
    ends = len(readings) - 1
    # A line break inside a text is not JSON, so these are between readings.
    parted = body.count(b"}\n{") + body.count(b"}\r\n{") == ends
    one_a_line = parted and body.count(b"\n") - body.endswith(b"\n") == ends
    return readings if one_a_line and body.count(b'"') == QUOTES * len(readings) else None


def _add_lines(sieve: Sieve, body: bytes) -> None:
    for line, raw in numbered(body):
        reading = _typed(raw)
        try:
            if reading is None:
                sieve.add(line, *fields_of_line(raw))
            else:
                sieve.add(line, reading.sensor, reading.time, reading.value)
        except FieldError as error:
            sieve.refuse(line, error)


def _typed(raw: bytes) -> TypedReading | None:
    try:
        return READER.decode(raw) if raw.count(b'"') == QUOTES else None
    except UNTYPED:
        return None
