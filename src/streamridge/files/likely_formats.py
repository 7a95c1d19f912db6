"""Formats that a time may have been written in: one is suggested that reads it."""

from __future__ import annotations

from itertools import chain, product

from streamridge.files.written_times import NO_TIME, epoch_of, pattern_time

_DATES = (
    *("%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y"),
    *("%b %d, %Y", "%b %d %Y", "%B %d, %Y", "%B %d %Y", "%a, %d %b %Y", "%a %d %b %Y", "%Y-%m"),
)
_WHOLE = ("%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S")
_HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S %z")


def likely_format(text: str) -> str | None:
    """Return a pattern or word that reads a time, None if none of the usual ones does.

    Examples
    --------
    >>> likely_format("13 Jun 2021 8:15 PM"), likely_format("1623542400"), likely_format("30/02/21")
    ('%d %b %Y %I:%M %p', 'epoch-s', None)
    """
    patterns = chain(_WHOLE, map("".join, product(_DATES, _HOURS)))
    fitting = (each for each in patterns if pattern_time(text, each) is not NO_TIME)
    return epoch_of([text]) or next(fitting, None)
