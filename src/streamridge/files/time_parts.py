"""Times in several columns: date and hour, date and time, or year, month and day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from streamridge.errors import InvalidInputError
from streamridge.files.layouts import HOURS
from streamridge.files.raw_table import Column, RawTable, SourceFormats

DATE = ("date", "day")
CLOCK = ("time", "time_of_day")
MINUTE = ("minute", "min")
CALENDAR = ("year", "month", "day")
# A column with one of these names holds whole times.
WHOLE = ("timestamp", "datetime", "date_time", "ds")
# The number of cells that decide what a column holds.
CELLS_INSPECTED = 100

_MIDNIGHT = re.compile(r"[Tt ]00?:00(?::00(?:\.0+)?)?$", re.ASCII)
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}|\d{8}", re.ASCII)
# A time of day, or the two ends of an interval.
_TIME_OF_DAY = re.compile(
    r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: *[AaPp]\.?[Mm]\.?"
    r"| *[-\u2013] *\d{1,2}:\d\d(?::\d\d)?)?",
    re.ASCII,
)
_NUMBER = re.compile(r"(\d{1,4})(?:\.0*)?", re.ASCII)


class TimeParts:
    """The columns that make up the times of a source, none if one column holds whole times.

    The date is one column, or years, months and maybe days. The clock is a column of times of day,
    or hours and maybe minutes.
    """

    def __init__(self, dates: Sequence[str] = (), clocks: Sequence[str] = ()) -> None:
        self.dates, self.clocks = tuple(dates), tuple(clocks)
        self.names = self.dates + self.clocks
        self.joined_name = " and ".join(self.names)
        self._midnights: set[str] = set()  # the hours 0 and 24 that occurred

    def source_columns(self, column: str) -> tuple[str, ...]:
        """Return the columns of the source that make up a column of a joined table."""
        return self.names if column == self.joined_name else (column,)

    @classmethod
    def of(cls, table: RawTable) -> TimeParts:
        """Return the parts of the times of a table, found by the names and cells of its columns."""
        if table.find(WHOLE):
            return cls()
        find = partial(_find, table)
        hour = find(HOURS, _NUMBER)
        clocks = find(CLOCK, _TIME_OF_DAY) or find(HOURS, _TIME_OF_DAY)
        if not clocks and hour:
            clocks = hour + find(MINUTE, _NUMBER)
        year, month, day = (find((name,), _NUMBER) for name in CALENDAR)
        if year and month:
            return cls(year + month + day, clocks)
        dates = find(DATE, _DATE)
        return cls(dates, clocks) if dates and clocks else cls()

    def join(self, table: RawTable, formats: SourceFormats) -> RawTable:
        """Return a table with one column of times in place of its parts."""
        if not self.names:
            return table
        dates = [table.columns[name].texts for name in self.dates]
        clocks = [table.columns[name].texts for name in self.clocks]
        self._require_one_midnight(clocks)
        formats.note(f"columns {self.joined_name} are read as one time")
        rows = zip(*dates, *clocks, strict=True)
        texts = [_joined(row[: len(dates)], row[len(dates) :]) for row in rows]
        time = Column(texts, formats.of(self.joined_name), table.places)
        others = {name: each for name, each in table.columns.items() if name not in self.names}
        return replace(table, columns={self.joined_name: time} | others, time=self.joined_name)

    def _require_one_midnight(self, clocks: Sequence[Sequence[str | None]]) -> None:
        """Raise if there is an hour 0 and an hour 24, which are the same time."""
        written = {_whole(text) for text in (clocks[0] if clocks else ())}
        self._midnights |= written & {"0", "24"}
        if len(self._midnights) > 1:
            raise InvalidInputError(
                f"column {self.clocks[0]} must hold hours from 0 to 23 or from 1 to 24, got both "
                "0 and 24. Join date and hour to one column of times."
            )


def _find(table: RawTable, names: Sequence[str], pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Return the first column with one of these names whose cells match a pattern, or ()."""
    for name in names:
        column = table.find((name,))
        if column is not None and _matches(table.columns[column].texts, pattern):
            return (column,)
    return ()


def _matches(texts: Sequence[str | None], pattern: re.Pattern[str]) -> bool:
    cells = (_MIDNIGHT.sub("", text.strip()) for text in texts if text)
    return all(map(pattern.fullmatch, islice(filter(None, cells), CELLS_INSPECTED)))


def _joined(dates: Sequence[str | None], clocks: Sequence[str | None]) -> str | None:
    """Return the parts of a time as one text, None if one is empty."""
    parts = [text.strip() for text in (*dates, *clocks) if text and text.strip()]
    if len(parts) < len(dates) + len(clocks):
        return None
    date = "-".join(map(_whole, parts[: len(dates)]))
    if len(dates) == 1:
        date = _MIDNIGHT.sub("", parts[0])
    elif len(dates) == 2:
        date += "-1"
    hour, *minutes = parts[len(dates) :] or ["0"]
    clock = hour if ":" in hour else f"{_whole(hour)}:{_whole(*minutes or ['0']).zfill(2)}"
    return f"{date} {clock}"


def _whole(text: str | None) -> str:
    """Return a whole number without extra zeros; any other text is not changed."""
    found = _NUMBER.fullmatch((text or "").strip())
    return str(int(found[1])) if found else (text or "")
