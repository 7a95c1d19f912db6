"""What parts the readings of a request: those that can be read, and those that are refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from streamridge.service.bodies.fields import FieldError, is_name, name_of, number_of
from streamridge.service.bodies.moments import Moment, moment_of_text
from streamridge.service.problems import CATALOGUE, Problem
from streamridge.service.rows import LARGEST, MOST_REFUSALS, MOST_ROWS, Batch, Refusal, Row


class Reading(Protocol):
    """A reading whose fields have the right kinds; what they say is not known yet."""

    sensor: str
    time: str
    value: float | None


class Sieve:
    """Readings judged one by one; names and times that were seen before are not judged again.

    Parameters
    ----------
    moment
        How times are read.
    """

    def __init__(self, moment: Moment = moment_of_text) -> None:
        self._moment = moment
        self._names: set[str] = set()
        self._moments: dict[object, int] = {}
        self._rows: list[Row] = []
        self._refused: list[Refusal] = []
        self._skipped = 0

    def add(self, line: int, sensor: object, time: object, value: object) -> None:
        """Judge a reading of which nothing is known."""
        try:
            row = Row(line, self._name(sensor), self._time(time), number_of(value))
        except FieldError as error:
            self.refuse(line, error)
        else:
            self._rows.append(row)
            self._require_few()

    def add_all(self, readings: Iterable[Reading]) -> None:
        """Judge the readings of lines 1, 2 and so on, of which there are not too many.

        It does what `add` does, without a call for each reading: there are tens of thousands.
        """
        names, moments, rows = self._names, self._moments, self._rows
        for line, reading in enumerate(readings, 1):
            sensor, value = reading.sensor, reading.value
            moment = moments.get(reading.time)
            good = sensor in names or is_name(sensor)
            if good and moment is not None and (value is None or -LARGEST <= value <= LARGEST):
                names.add(sensor)
                rows.append(Row(line, sensor, moment, None if value is None else value + 0.0))
            else:
                self.add(line, sensor, reading.time, value)

    def refuse(self, line: int, error: FieldError) -> None:
        """Refuse a row; the first hundred details are kept, all refusals are."""
        told = len(self._refused) < MOST_REFUSALS
        detail = error.detail if told else CATALOGUE[error.code].title
        self._refused.append(Refusal(line, error.code, detail, error.column))
        self._require_few()

    def skip(self) -> None:
        """Count something that is no reading."""
        self._skipped += 1

    def batch(self) -> Batch:
        """Return what was read and what was refused."""
        return Batch(self._rows, self._refused, self._skipped)

    def _name(self, sensor: object) -> str:
        if isinstance(sensor, str) and sensor in self._names:
            return sensor
        name = name_of(sensor)
        self._names.add(name)
        return name

    def _time(self, time: object) -> int:
        if not isinstance(time, str | int):  # other kinds may not even have a hash
            return self._moment(time)
        moment = self._moments.get(time)
        if moment is None:
            moment = self._moments[time] = self._moment(time)
        return moment

    def _require_few(self) -> None:
        if len(self._rows) + len(self._refused) > MOST_ROWS:
            raise too_many_rows()


def too_many_rows() -> Problem:
    """Return the refusal of a request that has too many rows."""
    return Problem("sr-too-large", f"a body must have at most {MOST_ROWS:,} rows.")
