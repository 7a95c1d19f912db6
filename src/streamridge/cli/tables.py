"""Tables as text: numbers are whole, names are shortened, and columns give way by their rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from streamridge.texts import visible

GAP = "  "
# A name is not shortened below this, unless nothing else is left to give way.
LEAST = 12


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    heading
        Its first line.
    cells
        One for each row.
    is_name
        Whether it holds names, which stand at the left and may be shortened in their middle.
    """

    heading: str
    cells: Sequence[str]
    is_name: bool = False

    @property
    def width(self) -> int:
        """Return the columns of a terminal that its widest cell takes."""
        return max(map(cell_len, (self.heading, *self.cells)))

    def within(self, width: int, mark: str) -> Column:
        """Return the column with names that take at most so many columns, if they stay distinct."""
        if not self.is_name or self.width <= width:
            return self
        return Column(self.heading, shortened_names(self.cells, width, mark), is_name=True)

    def lines(self) -> list[str]:
        """Return its heading and its cells, filled up to one width."""
        width = self.width
        fill = [" " * (width - cell_len(cell)) for cell in (self.heading, *self.cells)]
        pairs = zip((self.heading, *self.cells), fill, strict=True)
        return [cell + blanks if self.is_name else blanks + cell for cell, blanks in pairs]


@dataclass(frozen=True)
class Layout:
    """The columns that a table shows, and the headings of those that had no room."""

    shown: Sequence[Column]
    dropped: Sequence[str]

    def text(self, rule: str) -> str:
        """Return the lines of the table, with a rule below the headings."""
        head, *rows = zip(*(column.lines() for column in self.shown), strict=True)
        below = [rule * cell_len(cell) for cell in head]
        return "\n".join(GAP.join(cells).rstrip() for cells in (head, below, *rows))


def fitted(columns: Sequence[Column], width: int | None, mark: str) -> Layout:
    """Return columns, in the order of their rank, as they fit; without a width, all as they are.

    Names give way first, then the last columns; a number is never cut.

    Parameters
    ----------
    columns
        In the order of their rank. Cells and headings are text of any kind.
    width
        The columns of a terminal that the table may take.
    mark
        What stands for the middle of a name that is left out.
    """
    every = [
        Column(each.heading, [visible(cell) for cell in each.cells], each.is_name)
        for each in columns
    ]
    if width is None:
        return Layout(every, ())
    short = [column.within(LEAST, mark) for column in every]
    kept = len(short)
    while kept > 1 and not short[kept - 1].is_name and _width(short[:kept]) > width:
        kept -= 1
    room = width - _width(short[:kept])
    shown = []
    for whole, least in zip(every[:kept], short[:kept], strict=True):
        wider = whole.within(least.width + max(room, 0), mark)
        room -= wider.width - least.width
        shown.append(wider)
    return Layout(shown, [column.heading for column in every[kept:]])


def shortened_names(names: Sequence[str], width: int, mark: str) -> list[str]:
    """Return names that take so many columns or fewer; more, where they would not be distinct.

    Examples
    --------
    >>> shortened_names(["motorway-A12-north-exit-7", "ramp"], 15, "~")
    ['motorwa~-exit-7', 'ramp']
    >>> shortened_names(["sensor-1-of-a-road", "sensor-2-of-a-road"], 9, "~")
    ['sensor-1~', 'sensor-2~']
    """
    distinct = set(names)
    for wide in range(width, max(map(cell_len, distinct)) + 1):
        kept = wide - cell_len(mark)
        for end in (kept // 2, 0, kept):
            short = {name: _shortened(name, wide, end, mark) for name in distinct}
            if len(set(short.values())) == len(distinct):
                return [short[name] for name in names]
    return list(names)


def _shortened(name: str, width: int, end: int, mark: str) -> str:
    if cell_len(name) <= width:
        return name
    start = width - cell_len(mark) - end
    return f"{_cut(name, start)}{mark}{_cut(name[::-1], end)[::-1]}"


def _cut(text: str, width: int) -> str:
    """Return the beginning of a text that takes at most so many columns."""
    taken = 0
    for at, char in enumerate(text):
        taken += cell_len(char)
        if taken > width:
            return text[:at]
    return text


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)
