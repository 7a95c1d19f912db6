"""Spans of time that a user names: their ends in UTC, and which times lie within them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, option, shown
from streamridge.series.lengths import Length
from streamridge.series.times import TIME_EXAMPLE, Times, index_of, parse_index, parse_time
from streamridge.series.zones import utc_candidates

# A span that a user gives: "START/END", or its two ends.
GivenSpan: TypeAlias = "str | tuple[object, object]"
# A time, or a whole number of an index.
Moment: TypeAlias = np.datetime64 | np.int64

EXPECTED = "exclude must be START/END, such as 2021-06-13/2021-06-14T12:00"


@dataclass(frozen=True)
class Span:
    """All times from a start to an end, both included; in UTC where the sensor has a zone."""

    start: Moment
    end: Moment

    @classmethod
    def of(cls, given: GivenSpan, zone: ZoneInfo | None = None) -> Span:
        """Return a span from a text "START/END" or from its two ends.

        >>> print(Span.of("2021-06-13/2021-06-14T12:00"))
        2021-06-13T00:00:00/2021-06-14T12:00:00
        """
        try:
            start, end = (_end(time, zone) for time in _ends(given))
        except InvalidInputError:
            raise _unexpected(given) from None
        if type(start) is not type(end):
            raise _unexpected(given)
        if end < start:
            raise InvalidInputError(f"exclude must not end before it starts, got {_text(given)!r}.")
        return cls(start, end)

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


def require_same_kind(sensor: str, step: Length, spans: Iterable[Span]) -> None:
    """Raise unless spans are whole numbers where the times of a sensor are, and times elsewhere."""
    for span in spans:
        if isinstance(span.start, np.integer) != isinstance(step, int):
            wanted = "two whole numbers" if isinstance(step, int) else "two times"
            raise InvalidInputError(
                f"{sensor}: exclude must be {wanted}, as its readings have, got {span}."
            )


def parse_moment(time: object, zone: ZoneInfo | None) -> np.datetime64:
    """Return a time that a user gives, in UTC if the sensor has a zone.

    A local time that occurs twice is read as the first. A local time that clocks skip is read as
    UTC.
    """
    stamp, offset = parse_time(time)
    if zone is None or offset is not None:
        return stamp
    local = stamp.astype(datetime)
    return np.datetime64((utc_candidates(local, zone) or (local,))[0], "us")


def parse_range(
    from_: object, to: object, zone: ZoneInfo | None
) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """Return the first and the last time to read; None stands for no limit."""
    first, last = _range_end("from_", from_, zone), _range_end("to", to, zone)
    if first is not None and last is not None and last < first:
        raise InvalidInputError(
            f"{option('to')} must not be before {option('from_')}, "
            f"got {shown(to)}, which is before {shown(from_)}."
        )
    return first, last


def _range_end(name: str, given: object, zone: ZoneInfo | None) -> np.datetime64 | None:
    """Return a limit of the times to read; a whole number as the time that stores it."""
    if given is None:
        return None
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64)
    index = parse_index([str(given)]) if whole or isinstance(given, str) else None
    if index is not None:
        return index[0]
    try:
        return parse_moment(given, zone)
    except InvalidInputError:
        raise InvalidInputError(
            f"{option(name)} must be {TIME_EXAMPLE}, got {shown(given)}."
        ) from None


def _end(time: object, zone: ZoneInfo | None) -> Moment:
    """Return an end of a span: a time, or a whole number."""
    if isinstance(time, int | np.integer) and not isinstance(time, bool | np.timedelta64):
        return np.int64(time)
    index = parse_index([time]) if isinstance(time, str) else None
    return parse_moment(time, zone) if index is None else index_of(index)[0]


def _ends(given: GivenSpan) -> tuple[object, object]:
    ends = given.split("/") if isinstance(given, str) else given
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise _unexpected(given)
    return ends[0], ends[1]


def _unexpected(given: object) -> InvalidInputError:
    return InvalidInputError(f"{EXPECTED}, got {shown(_text(given))}.")


def _text(given: object) -> object:
    return "/".join(map(str, given)) if isinstance(given, list | tuple) else given
