"""The way in which a column writes times, decided by all of its cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import islice, pairwise

import numpy as np

from streamridge.errors import shown
from streamridge.files.evidence import EITHER, Clue, Evidence, Texts, distinct_cells
from streamridge.files.reading_options import DAY_FIRST, EPOCHS, INDEX, MONTH_FIRST, ReadingOptions
from streamridge.files.time_text import (
    NO_TIME,
    Interval,
    Stamp,
    epoch_unit,
    has_dots,
    interval_of,
    month_pattern,
    order_of,
    parse_epoch,
    parse_index_cell,
    parse_iso,
    parse_ordered,
    parse_pattern,
    parse_similar_epoch,
)
from streamridge.series.time_format import Offsets
from streamridge.series.times import TIME_EXAMPLE, Times, parse_index

# The number of cells that decide in which way a column writes times.
CELLS_INSPECTED = 1000
# The most offsets behind UTC that one zone has had, apart from rare cases.
MOST_OFFSETS = 3
# The longest interval that is recognized by its length alone, in seconds.
LONGEST = 12 * 3600
# Two times of day in one cell.
_CLOCKS = re.compile(r"\d:\d\d\D+(?:.*\D)?\d{1,2}:\d\d")
WRITTEN = "written"  # in ISO 8601, or with the parts of the date in another order
# Columns of these names hold no index, even if they hold whole numbers.
NO_INDEX = ("date", "datetime", "date_time", "day", "hour", "hr")
# Columns of these names, or with one of these words in their name, may count since 1970.
TIME_NAMES = ("ds", "ts", "t")
TIME_WORDS = ("time", "date", "epoch", "unix")
# Columns with one of these words in their name may hold years and months such as 202106.
MONTH_WORDS = ("month", "date", "period", "yyyymm")
YEAR_AND_MONTH = "%Y%m"
EXAMPLE = date(2021, 6, 1)  # the month that messages show
_YEAR_AND_MONTH = re.compile(r"(?:1[89]|2[01])\d\d(?:0[1-9]|1[0-2])", re.ASCII)
ORDERS = {DAY_FIRST: "day/month/year", MONTH_FIRST: "month/day/year"}
UNITS = dict(zip(EPOCHS, ("seconds", "milliseconds", "microseconds", "nanoseconds"), strict=True))


@dataclass
class DateFormat:
    """The way in which one column writes times, as far as the cells so far show it."""

    name: str = ""
    options: ReadingOptions = field(default_factory=ReadingOptions)
    order: str | None = None  # "dayfirst" or "monthfirst", if the kind of file says so
    evidence: Evidence = field(default_factory=Evidence)  # about the order of day and month
    found: str | None = None  # the way that the first cells showed
    dotted: bool = False  # whether there are dates such as 05.06.2021
    # Whether cells such as 07:00-08:00 are intervals, and not times with an offset.
    intervals: Evidence = field(default_factory=Evidence)
    _ends: set[str] = field(default_factory=set)  # of cells that may be intervals
    _lengths: set[int] = field(default_factory=set)  # of the same cells, in seconds

    def read(self, texts: Texts, places: Sequence[int] = ()) -> tuple[Times, Offsets]:
        """Return cells as times, NaT for an unreadable one, and their offsets from UTC."""
        way = self._way(texts)
        if way == INDEX:
            index = parse_index(texts)
            if index is not None:
                return index, np.full(len(index), np.nan)
        if way == WRITTEN:
            texts = self._without_ends(texts, places)
        reader = self._reader(way)
        read = {text: reader(text) for text in set(texts)}
        if way == WRITTEN:
            odd = {text for text, stamp in read.items() if stamp is NO_TIME}
            read |= self._in_order(odd, texts, places)
        stamps = np.array([read[text][0] for text in texts], "datetime64[us]")
        return stamps, np.array([read[text][1] for text in texts], float)

    @property
    def is_open(self) -> bool:
        """Return whether no format is known yet, so that `date_format` may help."""
        known = self.options.date_format or self.evidence.proof
        return not known and self.found in (None, WRITTEN)

    @property
    def wanted(self) -> str:
        """Return what a cell must be, for messages."""
        if self.options.date_format is not None:
            return f"a time written as {self.options.date_format}"
        if self.evidence.proof is not None:
            return f"a time written as {shown(self.evidence.proof.text)} above"
        if self.found in UNITS:
            return f"{UNITS[self.found]} since 1970, as the others"
        if self.found == INDEX:
            return "a whole number of at most 7 digits, as the others"
        if self.found not in (None, WRITTEN):
            return f"a year and a month such as {EXAMPLE:{self.found}}, as the others"
        return TIME_EXAMPLE

    @property
    def late_proof(self) -> Clue | None:
        """Return the cell that proved earlier cells to be misread, None if there is none."""
        if self.intervals.late:
            return self.intervals.proof
        wrong = self.evidence.late and self._order != DAY_FIRST
        return self.evidence.proof if wrong else None

    def require_unambiguous(self, where: str, column: str) -> None:
        """Raise if cells can still be read in two ways; `where` is such as "flow.csv line"."""
        self.evidence.require_proof(
            where,
            column,
            "a date",
            "and no cell of the column tells whether the day or the month comes first. Pass "
            "--date-format dayfirst or --date-format monthfirst (date_format= in Python).",
        )
        if len(self._ends) > MOST_OFFSETS:
            self.intervals.require_proof(
                where,
                column,
                "a time with an offset that rarely changes, or an interval",
                "and other rows have many other offsets. Write the start of each interval in a "
                "column of its own.",
            )

    def notes(self) -> Iterator[str]:
        """Yield decisions that a user may want to check."""
        proof = self.evidence.proof
        if proof is not None:
            yield f"dates are read as {ORDERS[proof.answer]}, as {shown(proof.text)} shows"
        if self.intervals.proof is not None:
            text = shown(self.intervals.proof.text)
            yield f"times such as {text} are read as intervals, by their start"
        if self.dotted:
            yield "dates with dots are read as day.month.year"
        if self.found == YEAR_AND_MONTH:
            yield "times are read as year and month, such as 202106"
        if self.found in UNITS:
            yield f"times are read as {UNITS[self.found]} since 1970, in UTC"

    @property
    def _given_order(self) -> str | None:
        """Return which part of a date comes first, if that is known without looking at dates."""
        return self.options.date_format if self.options.date_format in ORDERS else self.order

    @property
    def _order(self) -> str:
        proof = self.evidence.proof
        return self._given_order or (proof.answer if proof else DAY_FIRST)

    def _way(self, texts: Texts) -> str:
        given = self.options.date_format
        if given is not None:
            return WRITTEN if given in ORDERS else given
        if self.found is None and any(texts):
            self.found = self._way_of_most(texts)
        return self.found or WRITTEN

    def _way_of_most(self, texts: Texts) -> str:
        """Return the way of most cells; cells that are written in another way will be refused."""
        name = self.name.lower()
        known = list(islice((text for text in texts if (text or "").strip()), CELLS_INSPECTED))
        whole = sum(parse_index([text]) is not None for text in known)
        if 2 * whole > len(known):
            if _are_months(
                [text or "" for text in known], named=any(word in name for word in MONTH_WORDS)
            ):
                return YEAR_AND_MONTH
            return WRITTEN if name in NO_INDEX else INDEX
        patterns = Counter(filter(None, map(month_pattern, known)))
        if 2 * max(patterns.values(), default=0) > len(known):
            return patterns.most_common(1)[0][0]
        counts = name in TIME_NAMES or any(word in name for word in TIME_WORDS)
        return (epoch_unit(known) if counts else None) or WRITTEN

    def _reader(self, way: str) -> Callable[[str | None], Stamp]:
        """Return the function that reads a cell which is written in some way."""
        if way in EPOCHS:
            return partial(parse_similar_epoch if self.found else parse_epoch, unit=way)
        fixed = {WRITTEN: parse_iso, INDEX: parse_index_cell}
        return fixed.get(way) or partial(parse_pattern, pattern=way)

    def _without_ends(self, texts: Texts, places: Sequence[int]) -> Texts:
        """Return cells with intervals replaced by their start."""
        if not any(_CLOCKS.search(text) for text in texts if text):
            return texts
        found = {text: interval_of(text) for text in set(texts) if text}
        if self.intervals.proof is None:
            self.intervals.add(self._interval_clues(texts, places, found))
        known = self.intervals.proof is not None
        starts = {text: each.start for text, each in found.items() if each and known}
        return [starts.get(text or "", text) for text in texts]

    def _interval_clues(
        self, texts: Texts, places: Sequence[int], found: Mapping[str, Interval | None]
    ) -> Iterator[Clue]:
        """Yield cells that may be intervals: certain ones, or several of one length."""
        for text, place in distinct_cells(texts, places):
            each = found[text]
            if each is None:
                continue
            self._ends.add(each.end)
            self._lengths.add(each.seconds)
            same = len(self._ends) > 1 and len(self._lengths) == 1 and each.seconds <= LONGEST
            yield Clue("interval" if each.is_certain or same else EITHER, text, place)

    def _in_order(
        self, odd: set[str | None], texts: Texts, places: Sequence[int]
    ) -> Mapping[str | None, Stamp]:
        """Return the times of cells that are not in ISO 8601."""
        if not odd:
            return {}
        if self._given_order is None and self.evidence.proof is None:
            cells = distinct_cells(texts, places)
            orders = ((order_of(text), text, place) for text, place in cells if text in odd)
            self.evidence.add(Clue(order, text, place) for order, text, place in orders if order)
        self.dotted = self.dotted or any(has_dots(text) for text in odd if text)
        return {text: parse_ordered(text, self._order) for text in odd if text}


def _are_months(cells: Sequence[str], *, named: bool) -> bool:
    """Return whether whole numbers are years and months: by their name, or by a turn of the year.

    >>> _are_months(["202011", "202012", "202101"], named=False)
    True
    >>> _are_months(["202010", "202011", "202012"], named=False)
    False
    """
    written = [cell.strip() for cell in cells]
    if not all(map(_YEAR_AND_MONTH.fullmatch, written)):
        return False
    return named or {89} <= {abs(int(b) - int(a)) for a, b in pairwise(written)}
