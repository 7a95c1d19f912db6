"""What a ledger holds as tables: rows come in chunks, so that a table may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from streamridge.errors import InvalidInputError, shown
from streamridge.files.tables import growing_table, require_ending
from streamridge.series.writing import Writing, ZonedTimes
from streamridge.service.following import plans_of
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import Entry, Issued, Kind, SensorRow
from streamridge.service.plan import Declaration
from streamridge.service.web.tables import FORMULA

# Rows that are in memory at once.
CHUNK = 50_000
UTC = Writing(zoned=True, zone="UTC")

T = TypeVar("T")
Columns = dict[str, ArrayLike]


class Wanted(msgspec.Struct, frozen=True):
    """What is exported: of which sensors, all if none is named, and of which times."""

    sensors: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None

    def holds(self, time: int) -> bool:
        """Return whether a time is wanted."""
        after_start = self.start is None or time >= self.start
        return after_start and (self.end is None or time < self.end)


def export_readings(ledger: Ledger, path: Path, wanted: Wanted) -> int:
    """Write readings as they arrived to a file; return how many."""
    sensors = _chosen(ledger, wanted)
    if wanted.sensors:
        entries: Iterable[Entry] = (
            entry
            for number in sensors
            for entry in ledger.entries(number, start=wanted.start, end=wanted.end)
        )
    else:
        entries = (entry for entry in ledger.recent(0) if wanted.holds(entry.time))
    return _written(path, entries, lambda rows: _reading_columns(rows, sensors))


def export_forecasts(ledger: Ledger, path: Path, wanted: Wanted) -> int:
    """Write forecasts as they were issued to a file, a row a step; return how many forecasts."""
    sensors = _chosen(ledger, wanted)
    plans = plans_of(ledger)
    step = 0 if plans is None else plans.latest.step  # it has no forecasts if it was never served
    numbers: Iterable[int | None] = sensors if wanted.sensors else (None,)
    issued = (
        each
        for number in numbers
        for each in ledger.forecasts(number, start=wanted.start, end=wanted.end)
    )
    return _written(path, issued, lambda rows: _forecast_columns(rows, sensors, step))


def export_sensors(ledger: Ledger, path: Path, wanted: Wanted) -> int:
    """Write what is declared of sensors to a file; return how many."""
    sensors = _chosen(ledger, wanted)
    is_csv = require_ending(path) != ".parquet"
    text = formula_safe if is_csv else str
    rows = (sensor for sensor in ledger.sensors() if sensor.id in sensors)
    return _written(path, rows, lambda rows: _sensor_columns(rows, text))


def formula_safe(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> formula_safe("=1+1"), formula_safe("A2 north")
    ("'=1+1", 'A2 north')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


def _chosen(ledger: Ledger, wanted: Wanted) -> dict[int, str]:
    """Return the names of the sensors that are wanted, by number."""
    known = {sensor.name: sensor.id for sensor in ledger.sensors()}
    if not wanted.sensors:
        return {number: name for name, number in known.items()}
    missing = [name for name in wanted.sensors if name not in known]
    if missing:
        raise InvalidInputError(f"sensor must be one that is known, got {shown(missing[0])}.")
    return {known[name]: name for name in wanted.sensors}


def _written(path: Path, rows: Iterable[T], columns: Callable[[list[T]], Columns]) -> int:
    """Write rows in chunks; a table without any has its header all the same."""
    count = 0
    with growing_table(path) as append:
        for chunk in _chunks(rows):
            append(columns(chunk))
            count += len(chunk)
        if not count:
            append(columns([]))
    return count


def _chunks(rows: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


def _reading_columns(entries: list[Entry], names: Mapping[int, str]) -> Columns:
    kinds = {kind.value: kind.name.lower() for kind in Kind}
    return {
        "sensor": _texts(names[entry.sensor] for entry in entries),
        "time": _times(entry.time for entry in entries),
        "value": np.array([entry.value for entry in entries], dtype=np.float64),
        "kind": _texts(kinds[entry.kind] for entry in entries),
        "received": _times(entry.received for entry in entries),
        "seq": np.array([entry.seq for entry in entries], dtype=np.int64),
    }


def _forecast_columns(issued: list[Issued], names: Mapping[int, str], step: int) -> Columns:
    steps = [(each, lead) for each in issued for lead in range(len(each.values))]
    return {
        "sensor": _texts(names[each.sensor] for each, _ in steps),
        "time": _times(each.time + lead * step for each, lead in steps),
        "lead": np.array([lead + 1 for _, lead in steps], dtype=np.int64),
        "value": np.array([each.values[lead] for each, lead in steps], dtype=np.float64),
        "lower": np.array([each.lower[lead] for each, lead in steps], dtype=np.float64),
        "upper": np.array([each.upper[lead] for each, lead in steps], dtype=np.float64),
        "source": _texts(each.source for each, _ in steps),
        "issued_at_seq": np.array([each.seq for each, _ in steps], dtype=np.int64),
        "fit": np.array([each.fit for each, _ in steps], dtype=np.int64),
    }


def _sensor_columns(sensors: list[SensorRow], text: Callable[[str], str]) -> Columns:
    declared = [msgspec.json.decode(sensor.declared, type=Declaration) for sensor in sensors]
    places = [each.position or (np.nan, np.nan) for each in declared]
    columns: Columns = {"sensor": _texts(sensor.name for sensor in sensors)}
    for name in ("label", "group", "unit", "zone", "rule"):
        cells = (getattr(each, name) for each in declared)
        columns[name] = _texts("" if cell is None else text(cell) for cell in cells)
    columns["latitude"] = np.array([latitude for latitude, _ in places], dtype=np.float64)
    columns["longitude"] = np.array([longitude for _, longitude in places], dtype=np.float64)
    columns["created"] = _times(sensor.created for sensor in sensors)
    columns["archived"] = np.array([sensor.archived is not None for sensor in sensors], dtype=bool)
    return columns


def _texts(cells: Iterable[str]) -> Any:
    found = list(cells)
    # Without a cell there is no telling what kind of column it is; one letter wide makes it text.
    return np.array(found, dtype=object) if found else np.array([], dtype="U1")


def _times(times: Iterable[int]) -> Any:
    return ZonedTimes(np.array(list(times), dtype=np.int64).astype("M8[us]"), UTC)
