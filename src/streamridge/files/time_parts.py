"""Times whose parts have columns of their own: date and hour, date and time, year, month, day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.files.blocks import Block
from streamridge.files.layouts import HOURS
from streamridge.files.sense import Sense, Senses
from streamridge.series.clock import Times
from streamridge.series.writing import Offsets, Unit

DATE = ("date", "day")
CLOCK = ("time", "time_of_day")
MINUTE = ("minute", "min")
CALENDAR = ("year", "month", "day")
# A column with one of these names holds whole times.
WHOLE = ("timestamp", "datetime", "date_time", "ds")
LOOKED_AT = 100  # cells of a column that show what it holds

_MIDNIGHT = re.compile(r"[Tt ]00?:00(?::00(?:\.0+)?)?$", re.ASCII)
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}|\d{8}", re.ASCII)
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: *[AaPp]\.?[Mm]\.?)?", re.ASCII)
_NUMBER = re.compile(r"(\d{1,4})(?:\.0*)?", re.ASCII)


@dataclass(frozen=True)
class JoinedTime:
    """A column of times whose parts are in others."""

    texts: Sequence[str | None]
    sense: Sense
    places: Sequence[int]
    zone: ClassVar[None] = None
    unit: ClassVar[Unit] = "us"

    @property
    def numbers(self) -> Vector:
        """Return infinities, since a joined time is no number."""
        return np.full(len(self.texts), np.inf)

    @cached_property
    def times(self) -> tuple[Times, Offsets]:
        """Return the cells as times, NaT for an unreadable one, and their offsets from UTC."""
        return self.sense.times.read(self.texts, self.places)


class TimeParts:
    """The columns that make up the times of a source, none if one column holds whole times.

    Parameters
    ----------
    dates
        A column of dates, or columns of years, months and maybe days.
    clocks
        A column of times of day, or of hours and maybe minutes.
    """

    def __init__(self, dates: Sequence[str] = (), clocks: Sequence[str] = ()) -> None:
        self.dates, self.clocks = tuple(dates), tuple(clocks)
        self._midnights: set[str] = set()  # 0 and 24, as far as they were seen

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all columns."""
        return self.dates + self.clocks

    @property
    def joined_name(self) -> str:
        """Return what messages call the time."""
        return " and ".join(self.names)

    def behind(self, column: str) -> tuple[str, ...]:
        """Return the columns of the source that make up a column of a joined block."""
        return self.names if column == self.joined_name else (column,)

    @classmethod
    def of(cls, block: Block) -> TimeParts:
        """Return the parts of a block's times, told by the names of columns and what they hold."""
        find = _Finder(block)
        if find(WHOLE, None):
            return cls()
        hour = find(HOURS, _NUMBER)
        clocks = find(CLOCK, _TIME_OF_DAY) or find(HOURS, _TIME_OF_DAY)
        if not clocks and hour:
            clocks = hour + find(MINUTE, _NUMBER)
        year, month, day = (find((name,), _NUMBER) for name in CALENDAR)
        if year and month:
            return cls(year + month + day, clocks)
        dates = find(DATE, _DATE)
        return cls(dates, clocks) if dates and clocks else cls()

    def join(self, block: Block, senses: Senses) -> Block:
        """Return a block with one column of times in place of its parts."""
        if not self.names:
            return block
        dates = [block.columns[name].texts for name in self.dates]
        clocks = [block.columns[name].texts for name in self.clocks]
        self._require_one_midnight(clocks)
        senses.remark(f"columns {self.joined_name} are read as one time")
        rows = zip(*dates, *clocks, strict=True)
        texts = [_joined(row[: len(dates)], row[len(dates) :]) for row in rows]
        time = JoinedTime(texts, senses.of(self.joined_name), block.places)
        others = {name: each for name, each in block.columns.items() if name not in self.names}
        return replace(block, columns={self.joined_name: time} | others, time=self.joined_name)

    def _require_one_midnight(self, clocks: Sequence[Sequence[str | None]]) -> None:
        """Raise if there is an hour 0 and an hour 24: one of them would be counted twice."""
        written = {_whole(text) for text in (clocks[0] if clocks else ())}
        self._midnights |= written & {"0", "24"}
        if len(self._midnights) > 1:
            raise InvalidInputError(
                f"column {self.clocks[0]} must hold hours from 0 to 23 or from 1 to 24, got both "
                "0 and 24. Join date and hour to one column of times."
            )


@dataclass(frozen=True)
class _Finder:
    """A search for a column by its name and by what it holds."""

    block: Block

    def __call__(self, names: Sequence[str], holds: re.Pattern[str] | None) -> tuple[str, ...]:
        there = {column.lower(): column for column in reversed(list(self.block.columns))}
        for name in names:
            if name in there and (holds is None or self._holds(there[name], holds)):
                return (there[name],)
        return ()

    def _holds(self, column: str, pattern: re.Pattern[str]) -> bool:
        texts = (_MIDNIGHT.sub("", text.strip()) for text in self._texts(column))
        return all(map(pattern.fullmatch, islice(filter(None, texts), LOOKED_AT)))

    def _texts(self, column: str) -> list[str]:
        return [text for text in self.block.columns[column].texts if text]


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
    """Return a whole number without zeros around it; any other text stays."""
    found = _NUMBER.fullmatch((text or "").strip())
    return str(int(found[1])) if found else (text or "")
