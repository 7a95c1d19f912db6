"""The column that holds the times of a source, or times that are counted from row to row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import cast

import numpy as np

from streamridge.errors import shown
from streamridge.files.collector import no_times
from streamridge.files.date_formats import TIME_NAMES, TIME_WORDS
from streamridge.files.evidence import Texts
from streamridge.files.layouts import TIME
from streamridge.files.number_formats import OTHER, parse_number
from streamridge.files.raw_table import Column, RawTable
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
