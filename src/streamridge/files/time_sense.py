"""How the times of one column are written: by all that was read of it so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np

from streamridge.errors import shown
from streamridge.files.dialect import DAY_FIRST, EPOCHS, INDEX, MONTH_FIRST, Dialect
from streamridge.files.evidence import Evidence, Seen, Texts, first_of_each
from streamridge.files.written_times import (
    NO_TIME,
    Stamp,
    epoch_of,
    epoch_time,
    has_dots,
    iso_time,
    order_of,
    pattern_time,
    time_of,
)
from streamridge.series.clock import Times
from streamridge.series.readings import A_TIME, index_stamps
from streamridge.series.writing import Offsets

# So many cells of a column tell in which way it is written.
CELLS_LOOKED_AT = 1000
WRITTEN = "written"  # in ISO 8601, or with the parts of the date in another order
# Columns of these names hold no index, even if they hold whole numbers.
NO_INDEX = ("date", "datetime", "date_time", "day", "hour", "hr")
# Columns of these names, or with one of these words in their name, may count since 1970.
TIME_NAMES = ("ds", "ts", "t")
TIME_WORDS = ("time", "date", "epoch", "unix")
ORDERS = {DAY_FIRST: "day/month/year", MONTH_FIRST: "month/day/year"}
UNITS = dict(zip(EPOCHS, ("seconds", "milliseconds", "microseconds", "nanoseconds"), strict=True))


@dataclass
class TimeSense:
    """The way in which one column writes times.

    Parameters
    ----------
    name
        The column.
    dialect
        What the user says about it.
    order
        "dayfirst" or "monthfirst", where the kind of file says so.
    """

    name: str = ""
    dialect: Dialect = field(default_factory=Dialect)
    order: str | None = None
    evidence: Evidence = field(default_factory=Evidence)
    found: str | None = None  # the way that the first block showed
    dotted: bool = False  # whether there are dates such as 05.06.2021

    def read(self, texts: Texts, places: Sequence[int] = ()) -> tuple[Times, Offsets]:
        """Return cells as times, NaT for an unreadable one, and their offsets from UTC."""
        way = self._way(texts)
        if way == INDEX:
            index = index_stamps(texts)
            if index is not None:
                return index, np.full(len(index), np.nan)
        reader = self._reader(way)
        read = {text: reader(text) for text in set(texts)}
        if way == WRITTEN:
            odd = {text for text, stamp in read.items() if stamp is NO_TIME}
            read |= self._in_order(odd, texts, places)
        stamps = np.array([read[text][0] for text in texts], "datetime64[us]")
        return stamps, np.array([read[text][1] for text in texts], float)

    @property
    def is_open(self) -> bool:
        """Return whether nothing is known of the way yet, so that a format may explain it."""
        known = self.dialect.date_format or self.evidence.proof
        return not known and self.found in (None, WRITTEN)

    @property
    def wanted(self) -> str:
        """Return what a cell must be."""
        if self.dialect.date_format is not None:
            return f"a time written as {self.dialect.date_format}"
        if self.evidence.proof is not None:
            return f"a time written as {shown(self.evidence.proof.text)} above"
        if self.found in UNITS:
            return f"{UNITS[self.found]} since 1970, as the others"
        if self.found == INDEX:
            return "a whole number of at most 7 digits, as the others"
        return A_TIME

    @property
    def misread(self) -> Seen | None:
        """Return the cell that proved that cells before it had been read in the wrong way."""
        wrong = self.evidence.late and self._order != DAY_FIRST
        return self.evidence.proof if wrong else None

    def require_one_reading(self, where: str, column: str) -> None:
        """Raise if cells can still be read in two ways; `where` is such as "flow.csv line"."""
        self.evidence.refuse(
            where,
            column,
            "a date",
            "and no cell of the column tells whether the day or the month comes first. Pass "
            "--date-format dayfirst or --date-format monthfirst (date_format= in Python).",
        )

    def notes(self) -> Iterator[str]:
        """Yield what was decided that a user may want to know."""
        proof = self.evidence.proof
        if proof is not None:
            yield f"dates are read as {ORDERS[proof.said]}, as {shown(proof.text)} shows"
        if self.dotted:
            yield "dates with dots are read as day.month.year"
        if self.found in UNITS:
            yield f"times are read as {UNITS[self.found]} since 1970, in UTC"

    @property
    def _given_order(self) -> str | None:
        """Return which part of a date comes first, if that is known without looking at dates."""
        return self.dialect.date_format if self.dialect.date_format in ORDERS else self.order

    @property
    def _order(self) -> str:
        proof = self.evidence.proof
        return self._given_order or (proof.said if proof else DAY_FIRST)

    def _way(self, texts: Texts) -> str:
        given = self.dialect.date_format
        if given is not None:
            return WRITTEN if given in ORDERS else given
        if self.found is None and any(texts):
            self.found = self._first_way(texts)
        return self.found or WRITTEN

    def _first_way(self, texts: Texts) -> str:
        """Return the way of most cells; those that are written in another way will be refused."""
        name = self.name.lower()
        known = list(islice((text for text in texts if (text or "").strip()), CELLS_LOOKED_AT))
        whole = sum(index_stamps([text]) is not None for text in known)
        if 2 * whole > len(known):
            return WRITTEN if name in NO_INDEX else INDEX
        counts = name in TIME_NAMES or any(word in name for word in TIME_WORDS)
        return (epoch_of(known) if counts else None) or WRITTEN

    def _reader(self, way: str) -> Callable[[str | None], Stamp]:
        """Return what reads a cell that is written in some way."""
        if way in EPOCHS:
            return partial(_epoch_alike if self.found else epoch_time, unit=way)
        fixed = {WRITTEN: iso_time, INDEX: _index_time}
        return fixed.get(way) or partial(pattern_time, pattern=way)

    def _in_order(
        self, odd: set[str | None], texts: Texts, places: Sequence[int]
    ) -> Mapping[str | None, Stamp]:
        """Return the times of cells that are not in ISO 8601."""
        if not odd:
            return {}
        if self._given_order is None and self.evidence.proof is None:
            cells = first_of_each(texts, places)
            told = ((order_of(text), text, place) for text, place in cells if text in odd)
            self.evidence.add(Seen(said, text, place) for said, text, place in told if said)
        self.dotted = self.dotted or any(has_dots(text) for text in odd if text)
        return {text: time_of(text, self._order) for text in odd if text}


def _index_time(text: str | None) -> Stamp:
    index = index_stamps([text])
    return NO_TIME if index is None else (index[0], np.nan)


def _epoch_alike(text: str | None, unit: str) -> Stamp:
    """Return a time that is counted since 1970, NaT if it is of another size than the others."""
    return epoch_time(text, unit) if epoch_of([text]) == unit else NO_TIME
