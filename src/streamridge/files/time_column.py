"""The times of a source: one column, several columns, or times counted from row to row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import islice
from typing import cast

import numpy as np

from streamridge.errors import InvalidInputError, shown
from streamridge.files.collector import no_times
from streamridge.files.date_formats import TIME_NAMES, TIME_WORDS
from streamridge.files.evidence import Texts
from streamridge.files.layouts import HOURS, TIME
from streamridge.files.number_formats import OTHER, parse_number
from streamridge.files.raw_table import Column, RawTable, SourceFormats
from streamridge.files.reading_options import DAY_FIRST, MONTH_FIRST, ReadingOptions
from streamridge.files.time_text import (
    NO_TIME,
    Stamp,
    interval_of,
    month_pattern,
    parse_iso,
    parse_ordered,
)
from streamridge.series.clock import Clock
from streamridge.series.clock_fitting import clock_of_times
from streamridge.series.time_format import NAIVE, Offsets, TimeFormat
from streamridge.series.times import Times, parse_time
from streamridge.series.zones import parse_zone

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


# The name of a column of times that are counted.
COUNTED = "start_time and step"
# Columns of these names may hold any whole numbers as times. Other columns must count evenly.
INDEX_NAMES = (*TIME, *TIME_NAMES, "index", "step")


def with_times(table: RawTable, options: ReadingOptions, first_row: int) -> RawTable:
    """Return a table with its column of times named, or with counted times added."""
    if options.start_time is not None:
        counted = CountedTimes(options, first_row, len(table.places))
        return replace(table, columns={COUNTED: counted, **table.columns}, time=COUNTED)
    if options.time is not None:
        return replace(table, time=table.require("time", options.time))
    if table.time is not None or not table.columns:
        return table
    certain = _typed(table) or table.find(TIME) or _written(table)
    if certain is not None:
        return replace(table, time=certain)
    first = next(iter(table.columns))
    if options.date_format is not None or first.lower() in INDEX_NAMES:
        return replace(table, time=first)
    _require_no_decimals(table, first)
    cells = table.columns[first].first_texts
    return replace(table, time=first, guessed=all(map(str.isdigit, cells)))


class CountedTimes(Column):
    """Times of consecutive rows: the start, and a step later for each row."""

    def __init__(self, options: ReadingOptions, first_row: int, count: int) -> None:
        super().__init__(())
        self._options, self._rows = options, first_row + np.arange(count)
        zone = parse_zone(options.tz)
        self.zone = None if zone is None else zone.key

    @property
    def texts(self) -> Texts:
        """Return the times in ISO 8601."""
        return [str(time) for time in self.times[0]]

    @cached_property
    def times(self) -> tuple[Times, Offsets]:
        """Return the times, and their offsets from UTC; steps of hours count elapsed time."""
        stamp, offset = parse_time(self._options.start_time)
        zone = parse_zone(self._options.tz)
        written = NAIVE if zone is None else TimeFormat(zoned=True, zone=zone.key)
        if offset is None:
            stamp = written.utc(np.array([stamp]))[0]
        elif zone is None:
            moment = int(stamp.astype(np.int64))
            written = TimeFormat(zoned=True, offsets=((moment, offset),))
        clock = self._clock(stamp, written)
        times = clock.times(clock.steps(np.array([stamp])) + self._rows)
        if not written.zoned:
            return times, np.full(len(times), np.nan)
        return times, written.offsets_at(times).astype(np.float64)

    def _clock(self, stamp: np.datetime64, written: TimeFormat) -> Clock:
        step = cast("timedelta", self._options.step_of(""))  # as the options require
        return clock_of_times(np.array([stamp]), step, None, written)


def _typed(table: RawTable) -> str | None:
    """Return the column whose type is a time, unless a column of text has the name of times."""
    typed = [name for name, column in table.columns.items() if column.is_time]
    named = table.find(TIME)
    if not typed or named in typed:
        return named if typed else None
    return typed[0] if named is None or not _holds_times(table.columns[named]) else named


def _written(table: RawTable) -> str | None:
    """Return the first column whose cells are times with marks between their parts."""
    columns = table.columns.items()
    return next((name for name, column in columns if _holds_times(column)), None)


def _holds_times(column: Column) -> bool:
    cells = column.first_texts
    return bool(cells) and all(_is_time(cell) for cell in cells)


def _is_time(cell: str) -> bool:
    """Return whether a cell is a time that no number looks like."""
    interval = interval_of(cell)
    start = cell if interval is None else interval.start
    ways: Sequence[Stamp] = (
        parse_iso(start),
        *(parse_ordered(start, order) for order in (DAY_FIRST, MONTH_FIRST)),
    )
    if month_pattern(cell) is not None:
        return True
    return not start.isdigit() and any(way is not NO_TIME for way in ways)


def _require_no_decimals(table: RawTable, first: str) -> None:
    """Raise if the first column holds numbers that can be no times."""
    if any(word in first.lower() for word in TIME_WORDS):
        return
    cells = table.columns[first].first_texts
    numbers = [min(parse_number(cell, mark) for mark in OTHER) for cell in cells]
    if numbers and np.isfinite(numbers).all() and any(number % 1 for number in numbers):
        raise no_times(table.origin.name, f"numbers such as {shown(cells[0])} in {first!r}")
