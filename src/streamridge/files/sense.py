"""The sense of a source's columns: how their cells are written, by all that was read so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamridge.files.dialect import Dialect
from streamridge.files.evidence import Seen
from streamridge.files.number_sense import NumberSense
from streamridge.files.numbers import DecimalMark
from streamridge.files.time_sense import TimeSense


@dataclass
class Sense:
    """How the cells of one column are written, as numbers and as times."""

    numbers: NumberSense = field(default_factory=NumberSense)
    times: TimeSense = field(default_factory=TimeSense)


class Senses:
    """The senses of the columns of one source.

    Parameters
    ----------
    dialect
        What the user says about the source.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.usual: DecimalMark = "."  # the decimal mark where nothing speaks against it
        self.remarks: dict[str, None] = {}
        self._of: dict[str, Sense] = {}

    def of(self, column: str, order: str | None = None) -> Sense:
        """Return the sense of a column; `order` says that day or month comes first in its dates."""
        if column not in self._of:
            self._of[column] = Sense(
                NumberSense(self.dialect, self.usual), TimeSense(column, self.dialect, order)
            )
        return self._of[column]

    def remark(self, text: str) -> None:
        """Keep something that a user may want to know."""
        self.remarks[text] = None

    def misread(self) -> Iterator[tuple[str, Seen]]:
        """Yield columns of which cells were read in the wrong way, and what proved it."""
        for column, sense in self._of.items():
            proof = sense.numbers.misread or sense.times.misread
            if proof is not None:
                yield column, proof

    def require_one_reading(self, where: str) -> None:
        """Raise if the cells of a column can still be read in two ways.

        Parameters
        ----------
        where
            What messages call a place, such as "flow.csv line".
        """
        for column, sense in self._of.items():
            for each in (sense.times, sense.numbers):
                each.require_one_reading(where, column)

    def notes(self) -> Iterator[str]:
        """Yield what was decided that a user may want to know, each once."""
        kept = dict(self.remarks)
        for sense in self._of.values():
            kept |= dict.fromkeys((*sense.times.notes(), *sense.numbers.notes()))
        yield from kept
