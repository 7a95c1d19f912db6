"""A store of the readings of many sensors, which may be more than memory holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from streamridge.errors import InvalidInputError, listed, shown
from streamridge.files.layouts import Choice, Split
from streamridge.files.sentinels import Extremes, require_no_sentinel
from streamridge.files.spool import Spool
from streamridge.series.readings import (
    Aggregate,
    Piece,
    Readings,
    join,
    require_one_kind_of_time,
)
from streamridge.series.writing import Unit

T = TypeVar("T")


@dataclass
class SensorCounts:
    """The counts and marks of one sensor, which grow with each piece."""

    aggregate: Aggregate | None
    skipped: int = 0
    imputed: int = 0
    zoned: set[bool] = field(default_factory=set)
    zones: set[str | None] = field(default_factory=set)
    units: set[Unit] = field(default_factory=set)
    extremes: dict[str, Extremes] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        """Count a piece."""
        for name, column in {**piece.extras, piece.sensor: piece.values}.items():
            self.extremes.setdefault(name, Extremes()).add(column)
        self.skipped += piece.skipped
        self.imputed += piece.imputed
        if len(piece.times):
            self.zoned.update(np.unique(~np.isnan(piece.offsets)).tolist())
            self.zones.add(piece.zone)
            self.units.add(piece.unit)


class Store:
    """The readings of many sensors, handed out one sensor at a time.

    Together they may be more than memory holds; those of any one sensor must fit. Only one thread
    at a time may use a store.

    Parameters
    ----------
    choice
        The sensors that are wanted, and the extras that each row carries.
    """

    def __init__(self, choice: Choice) -> None:
        self.notes: tuple[str, ...] = ()  # what was decided that a user may want to know
        self._choice = choice
        self._row = np.dtype(
            [
                ("times", "M8[us]"),
                ("values", "f8"),
                ("extras", "f8", (len(choice.extras),)),
                ("offsets", "f8"),
            ]
        )
        self._rows = Spool()
        self._counts: dict[str, SensorCounts] = {}
        self._known: dict[str, None] = {}
        self._loose = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Return the sensors in the order asked for, by default in that of the source."""
        wanted = self._choice.sensors or self._known
        return tuple(name for name in wanted if name in self._counts)

    def add(self, split: Split) -> None:
        """Take the pieces of one block."""
        self._known.update(dict.fromkeys(split.names))
        self._loose += split.loose
        for piece in split.pieces:
            self._counts.setdefault(piece.sensor, SensorCounts(piece.aggregate)).add(piece)
            self._rows.append(piece.sensor, self._packed(piece))

    def require_readings(self, source: str) -> None:
        """Raise unless every sensor that was asked for is there and can be handed out."""
        unknown = [sensor for sensor in self._choice.sensors if sensor not in self._known]
        if self._known and unknown:
            raise InvalidInputError(
                f"sensors must be among {listed(self._known)}, got {shown(unknown[0])}."
            )
        for name in self.names:
            require_one_kind_of_time(name, self._counts[name].zoned)
        if not any(counts.zoned for counts in self._counts.values()):
            raise InvalidInputError(f"{source} must have at least one reading, got none.")

    def require_values(self) -> None:
        """Raise if a number looks like a mark for missing values."""
        for sensor, counts in self._counts.items():
            if any(each.suspicious for each in counts.extremes.values()):
                readings = self.readings(sensor)
                require_no_sentinel(f"sensor {sensor}", readings.values)
                for name, column in readings.extras.items():
                    require_no_sentinel(f"column {name}", column)

    def readings(self, name: str) -> Readings:
        """Return the readings of one sensor, in the order of their sources."""
        if not self._counts:
            raise InvalidInputError("the store must be open, got a closed one.")
        if name not in self._counts:
            raise InvalidInputError(
                f"sensor must be among {listed(self._counts)}, got {shown(name)}."
            )
        return join([self._unpacked(name)])

    def close(self) -> None:
        """Drop all readings."""
        self._counts.clear()
        self._rows.close()

    def _packed(self, piece: Piece) -> bytes:
        rows = np.empty(len(piece.times), self._row)
        rows["times"], rows["values"] = piece.times, piece.values
        rows["offsets"] = piece.offsets
        for position, extra in enumerate(self._choice.extras):
            rows["extras"][:, position] = piece.extras[extra]
        return rows.tobytes()

    def _unpacked(self, name: str) -> Piece:
        rows = np.frombuffer(self._rows.content(name), self._row)
        counts = self._counts[name]
        return Piece(
            name,
            rows["times"],
            rows["offsets"],
            rows["values"],
            dict(zip(self._choice.extras, rows["extras"].T, strict=True)),
            counts.skipped + self._loose,
            counts.imputed,
            counts.aggregate,
            _only(counts.zones),
            _only(counts.units) or "us",
        )


def _only(given: set[T]) -> T | None:
    """Return what all pieces have in common; None if they differ."""
    return next(iter(given)) if len(given) == 1 else None
