"""Validation of rows, and helpers for bodies that consist of lines."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Protocol

from streamridge_service.bodies.fields import (
    FieldError,
    ParseTime,
    is_name,
    name_of,
    number_of,
    parse_iso_time,
)
from streamridge_service.limits import LARGEST, MOST_REFUSALS, MOST_ROWS
from streamridge_service.problems import CATALOGUE, Problem
from streamridge_service.rows import Batch, Refusal, Row

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A reading takes about 70 bytes. Much longer rows are refused without being parsed.
LONGEST_ROW = 4_096


class TypedRow(Protocol):
    """A row whose fields have the right types; their content is not validated yet."""

    sensor: str
    time: str
    value: float | None


class RowValidator:
    """Collects valid and refused rows; each distinct name and time is parsed only once."""

    def __init__(self, parse_time: ParseTime = parse_iso_time) -> None:
        self._parse_time = parse_time
        self._names: set[str] = set()
        self._times: dict[object, int] = {}
        self._rows: list[Row] = []
        self._refused: list[Refusal] = []
        self._skipped = 0

    def add(self, line: int, sensor: object, time: object, value: object) -> None:
        """Add a row whose fields may have any type."""
        try:
            row = Row(line, self._name(sensor), self._time(time), number_of(value))
        except FieldError as error:
            self.refuse(line, error)
        else:
            self._rows.append(row)
            self._require_few()

    def add_all(self, rows: Iterable[TypedRow]) -> None:
        """Add the rows of lines 1, 2 and so on; the caller has checked their number.

        The result is the same as with `add`. Valid rows need no function call, which saves time for
        tens of thousands of rows.
        """
        names, times, valid = self._names, self._times, self._rows
        for line, row in enumerate(rows, 1):
            sensor, value = row.sensor, row.value
            time = times.get(row.time)
            good = sensor in names or is_name(sensor)
            if good and time is not None and (value is None or -LARGEST <= value <= LARGEST):
                names.add(sensor)
                valid.append(Row(line, sensor, time, None if value is None else value + 0.0))
            else:
                self.add(line, sensor, row.time, value)

    def refuse(self, line: int, error: FieldError) -> None:
        """Add a refused row; only the first refusals carry their own detail."""
        detailed = len(self._refused) < MOST_REFUSALS
        detail = error.detail if detailed else CATALOGUE[error.code].title
        self._refused.append(Refusal(line, error.code, detail, error.column))
        self._require_few()

    def skip(self) -> None:
        """Count a field that is not a reading."""
        self._skipped += 1

    def batch(self) -> Batch:
        """Return all rows."""
        return Batch(self._rows, self._refused, self._skipped)

    def _name(self, sensor: object) -> str:
        if isinstance(sensor, str) and sensor in self._names:
            return sensor
        name = name_of(sensor)
        self._names.add(name)
        return name

    def _time(self, time: object) -> int:
        if not isinstance(time, str | int):  # other types may not be hashable
            return self._parse_time(time)
        moment = self._times.get(time)
        if moment is None:
            moment = self._times[time] = self._parse_time(time)
        return moment

    def _require_few(self) -> None:
        if len(self._rows) + len(self._refused) > MOST_ROWS:
            raise too_many_rows()


def too_many_rows() -> Problem:
    """Return the problem of a request with too many rows."""
    return Problem("sr-too-large", f"a body must have at most {MOST_ROWS:,} rows.")


def without_byte_order_mark(body: bytes) -> bytes:
    """Return a body without the mark that some editors write at its start."""
    return body.removeprefix(BYTE_ORDER_MARK)


def numbered_lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    r"""Yield the lines that are not blank, without their ends, and their numbers from one.

    Examples
    --------
    >>> list(numbered_lines(b"a\r\n\n b"))
    [(1, b'a'), (3, b' b')]
    """
    for line, raw in enumerate(io.BytesIO(body), 1):
        if not raw.isspace():
            yield line, raw.rstrip(b"\r\n")


def require_few_lines(body: bytes, headers: int = 0) -> None:
    """Raise if a body has too many lines, before any of them is parsed.

    Blank lines are not rows, but there may be at most as many of them as rows.
    """
    count = body.count(b"\n")
    if count < MOST_ROWS:
        return
    if count > 2 * MOST_ROWS or sum(1 for _ in numbered_lines(body)) > MOST_ROWS + headers:
        raise too_many_rows()


def require_short(raw: bytes) -> None:
    """Raise if a row is far longer than any reading."""
    if len(raw) > LONGEST_ROW:
        raise FieldError(
            "sr-bad-row", f"a row must have at most {LONGEST_ROW:,} bytes, got {len(raw):,}."
        )


def place(body: bytes, at: int) -> str:
    """Return the byte and line number of a position, both counted from one."""
    line = body.count(b"\n", 0, at) + 1
    return f"byte {at + 1} (line {line})"
