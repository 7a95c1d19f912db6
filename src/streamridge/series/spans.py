"""Spans of time that a person names: their two ends as moments, and which times lie within."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, shown
from streamridge.series.clock import Length, Times
from streamridge.series.local_time import moments
from streamridge.series.readings import A_TIME, index_of, index_stamps, parse_time
from streamridge.texts import option

# A span as it is given: "START/END", or its two ends.
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
        """Return a span that was given as a text "START/END", or as its two ends.

        Examples
        --------
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


def spans_of(given: Iterable[GivenSpan], zone: ZoneInfo | None) -> tuple[Span, ...]:
    """Return spans as they were given, in their order."""
    every = [given] if isinstance(given, str) or not isinstance(given, Iterable) else given
    return tuple(Span.of(each, zone) for each in every)


def within(spans: Iterable[Span], times: Times) -> Mask:
    """Return which times lie in one of the spans, shape (n,)."""
    inside = np.zeros(times.shape, dtype=bool)
    for span in spans:
        inside |= (times >= span.start) & (times <= span.end)
    return inside


def require_kind_of_spans(sensor: str, step: Length, spans: Iterable[Span]) -> None:
    """Raise unless spans are whole numbers where the times of a sensor are, and times elsewhere."""
    for span in spans:
        if isinstance(span.start, np.integer) != isinstance(step, int):
            wanted = "two whole numbers" if isinstance(step, int) else "two times"
            raise InvalidInputError(
                f"{sensor}: exclude must be {wanted}, as its readings have, got {span}."
            )


def moment_of(time: object, zone: ZoneInfo | None) -> np.datetime64:
    """Return a time that a person gave, in UTC where the sensor has a zone.

    Of two equal local times the first is meant; one that clocks skip is taken as UTC.
    """
    stamp, zoned = parse_time(time)
    if zone is None or zoned:
        return stamp
    local = stamp.astype(datetime)
    return np.datetime64((moments(local, zone) or (local,))[0], "us")


def span_to_take(
    from_: object, to: object, zone: ZoneInfo | None
) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """Return the first and the last time to take of a source; None stands for no end.

    Parameters
    ----------
    from_, to
        Times, whole numbers of an index, or None.
    zone
        Where local times are from.
    """
    first, last = _to_take("from_", from_, zone), _to_take("to", to, zone)
    if first is not None and last is not None and last < first:
        raise InvalidInputError(
            f"{option('to')} must not be before {option('from_')}, "
            f"got {shown(to)}, which is before {shown(from_)}."
        )
    return first, last


def _to_take(name: str, given: object, zone: ZoneInfo | None) -> np.datetime64 | None:
    """Return an end of what to take; a whole number as the time that stands for it."""
    if given is None:
        return None
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64)
    index = index_stamps([str(given)]) if whole or isinstance(given, str) else None
    if index is not None:
        return index[0]
    try:
        return moment_of(given, zone)
    except InvalidInputError:
        raise InvalidInputError(f"{option(name)} must be {A_TIME}, got {shown(given)}.") from None


def _end(time: object, zone: ZoneInfo | None) -> Moment:
    """Return an end of a span: a moment, or a whole number as it is."""
    if isinstance(time, int | np.integer) and not isinstance(time, bool | np.timedelta64):
        return np.int64(time)
    index = index_stamps([time]) if isinstance(time, str) else None
    return moment_of(time, zone) if index is None else index_of(index)[0]


def _ends(given: GivenSpan) -> tuple[object, object]:
    ends = given.split("/") if isinstance(given, str) else given
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise _unexpected(given)
    return ends[0], ends[1]


def _unexpected(given: object) -> InvalidInputError:
    return InvalidInputError(f"{EXPECTED}, got {shown(_text(given))}.")


def _text(given: object) -> object:
    return "/".join(map(str, given)) if isinstance(given, list | tuple) else given
