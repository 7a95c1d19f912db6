"""Spans of time that a user names: their ends in UTC, and which times lie within them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, option, shown
from streamridge.series.lengths import Length
from streamridge.series.time_format import NAIVE, TimeFormat
from streamridge.series.times import TIME_EXAMPLE, Times, index_of, parse_index, parse_time

# A span that a user gives: "START/END", or its two ends.
GivenSpan: TypeAlias = "str | tuple[object, object]"
# A time, or a whole number of an index.
Moment: TypeAlias = np.datetime64 | np.int64

_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{8}", re.ASCII)
EXPECTED = "exclude must be START/END, such as 2021-06-13/2021-06-14T12:00"


@dataclass(frozen=True)
class Span:
    """All times from a start to an end, both included; in UTC where the sensor has a zone."""

    start: Moment
    end: Moment
    local: bool = False  # whether both ends are without an offset, in the local time of readings

    @classmethod
    def of(cls, given: GivenSpan, zone: ZoneInfo | None = None) -> Span:
        """Return a span from a text "START/END" or from its two ends; a date ends with its day.

        >>> print(Span.of("2021-06-13/2021-06-14T12:00"))
        2021-06-13T00:00:00/2021-06-14T12:00:00
        """
        first, last = _ends(given)
        try:
            (start, aware), (end, also) = _end(first, zone), _end(last, zone, whole_day=True)
        except InvalidInputError:
            raise _unexpected(given) from None
        if type(start) is not type(end) or aware != also:
            raise _unexpected(given)
        if end < start:
            raise InvalidInputError(f"exclude must not end before it starts, got {_text(given)!r}.")
        return cls(start, end, local=not aware)

    def __str__(self) -> str:
        return "/".join(str(end.item()).replace(" ", "T") for end in (self.start, self.end))


def parse_spans(given: Iterable[GivenSpan], zone: ZoneInfo | None) -> tuple[Span, ...]:
    """Return the spans that a user gives, in their order."""
    every = [given] if isinstance(given, str) or not isinstance(given, Iterable) else given
    return tuple(Span.of(each, zone) for each in every)


def within(spans: Iterable[Span], times: Times) -> Mask:
    """Return whether each time lies in one of the spans, shape (n,)."""
    inside = np.zeros(times.shape, dtype=bool)
    for span in spans:
        inside |= (times >= span.start) & (times <= span.end)
    return inside


def spans_of_sensor(
    sensor: str, step: Length, written: TimeFormat, spans: Iterable[Span]
) -> tuple[Span, ...]:
    """Return spans in UTC where the times of a sensor are, as its times are written.

    Raises an error unless spans are whole numbers where its times are, and times elsewhere.
    """
    every = tuple(spans)
    for span in every:
        if isinstance(span.start, np.integer) != isinstance(step, int):
            wanted = "two whole numbers" if isinstance(step, int) else "two times"
            raise InvalidInputError(
                f"{sensor}: exclude must be {wanted}, as its readings have, got {span}."
            )
        if not isinstance(step, int) and not span.local:
            _require_known_offset(f"{sensor}: exclude", written, span)
    return tuple(span if isinstance(step, int) else _in_utc(span, written) for span in every)


def _in_utc(span: Span, written: TimeFormat) -> Span:
    if not (span.local and written.zoned):
        return span
    start, end = written.utc(np.array([span.start, span.end]))
    return Span(start, end)


def _require_known_offset(name: str, written: TimeFormat, given: object) -> None:
    """Raise if a time has an offset and the times of a sensor have neither offset nor zone."""
    if not written.zoned and written.zone is None:
        raise InvalidInputError(
            f"{name} must have no offset, as the times of the sensor, got {given!s}. Leave the "
            f"offset out, or pass the zone of the sensor's times with {option('tz')}."
        )


def parse_range(
    from_: object, to: object, zone: ZoneInfo | None, written: TimeFormat = NAIVE
) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """Return the first and the last time to read; None stands for no limit.

    A time without an offset is local: in the zone, or as the times of the sensor are written. The
    last time may be a date, which means its whole day.
    """
    local = written if zone is None else TimeFormat(zone=zone.key)
    first = _range_end("from_", from_, local)
    last = _range_end("to", to, local, whole_day=True)
    if first is not None and last is not None and last < first:
        raise InvalidInputError(
            f"{option('to')} must not be before {option('from_')}, "
            f"got {shown(to)}, which is before {shown(from_)}."
        )
    return first, last


def _range_end(
    name: str, given: object, local: TimeFormat, *, whole_day: bool = False
) -> np.datetime64 | None:
    """Return a limit of the times to read; a whole number as the time that stores it."""
    if given is None:
        return None
    index = parse_index([str(given)]) if _is_whole(given) or isinstance(given, str) else None
    if index is not None:
        return index[0]
    try:
        moment, aware = _moment(given, local, whole_day=whole_day)
    except InvalidInputError:
        raise InvalidInputError(
            f"{option(name)} must be {TIME_EXAMPLE}, got {shown(given)}."
        ) from None
    if aware:
        _require_known_offset(option(name), local, given)
    return moment


def _moment(given: object, local: TimeFormat, *, whole_day: bool) -> tuple[np.datetime64, bool]:
    """Return a time in UTC if local time is known, and whether it has an offset.

    A local time that occurs twice is read as the first. A date may stand for its whole day.
    """
    stamp, offset = parse_time(given)
    if offset is not None:
        return stamp, True
    if whole_day and _is_date(given):
        next_day = local.utc(np.array([stamp + np.timedelta64(1, "D")]))
        return next_day[0] - np.timedelta64(1, "us"), False
    return local.utc(np.array([stamp]))[0], False


def _is_date(given: object) -> bool:
    """Return whether a time is a date without a time of day."""
    if isinstance(given, np.datetime64):
        return np.datetime_data(given.dtype)[0] in "DWMY"
    if isinstance(given, str):
        return _DATE.fullmatch(given.strip()) is not None
    return not isinstance(given, datetime)


def _is_whole(given: object) -> bool:
    # A length of time is one of NumPy's integers, but no number.
    return isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64)


def _end(time: object, zone: ZoneInfo | None, *, whole_day: bool = False) -> tuple[Moment, bool]:
    """Return an end of a span, a time or a whole number, and whether it is known in UTC."""
    if isinstance(time, int | np.integer) and _is_whole(time):
        return np.int64(time), True
    index = parse_index([time]) if isinstance(time, str) else None
    if index is not None:
        return index_of(index)[0], True
    local = NAIVE if zone is None else TimeFormat(zone=zone.key)
    moment, aware = _moment(time, local, whole_day=whole_day)
    return moment, aware or zone is not None


def _ends(given: GivenSpan) -> tuple[object, object]:
    ends = given.split("/") if isinstance(given, str) else given
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise _unexpected(given)
    return ends[0], ends[1]


def _unexpected(given: object) -> InvalidInputError:
    return InvalidInputError(f"{EXPECTED}, got {shown(_text(given))}.")


def _text(given: object) -> object:
    return "/".join(map(str, given)) if isinstance(given, list | tuple) else given
