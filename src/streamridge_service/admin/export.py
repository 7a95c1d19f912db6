"""Exports of a ledger as tables, in chunks, so that a table may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from streamridge import open_table
from streamridge.errors import InvalidInputError, shown
from streamridge_service.http.responses import FORMULA
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.plan_log import read_plans
from streamridge_service.ledger.records import IssuedForecast, Kind, SensorRow, StoredReading
from streamridge_service.plan import SECOND, Declaration

# Rows in memory at once.
CHUNK = 50_000

T = TypeVar("T")
Columns = dict[str, ArrayLike]


class Selection(msgspec.Struct, frozen=True):
    """The sensors to export, all if none is named, and the span of times."""

    sensors: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None

    def includes(self, time: int) -> bool:
        """Return whether a time lies in the span."""
        after_start = self.start is None or time >= self.start
        return after_start and (self.end is None or time < self.end)


def export_readings(ledger: Ledger, path: Path, selection: Selection) -> int:
    """Write the stored readings to a file; return their number."""
    sensors = _chosen(ledger, selection)
    if selection.sensors:
        entries: Iterable[StoredReading] = (
            entry
            for number in sensors
            for entry in ledger.readings(number, start=selection.start, end=selection.end)
        )
    else:
        entries = (entry for entry in ledger.readings_after(0) if selection.includes(entry.time))
    return _written(
        path, entries, lambda rows: _reading_columns(rows, sensors), ("time", "received")
    )


def export_forecasts(ledger: Ledger, path: Path, selection: Selection) -> int:
    """Write the issued forecasts to a file, one row a step; return the number of forecasts."""
    sensors, steps = _chosen(ledger, selection), _steps(ledger)
    numbers: Iterable[int | None] = sensors if selection.sensors else (None,)
    issued = (
        each
        for number in numbers
        for each in ledger.forecasts(
            number, start=selection.start, end=selection.end, corrected=True
        )
    )
    return _written(path, issued, lambda rows: _forecast_columns(rows, sensors, steps), ("time",))


def export_sensors(ledger: Ledger, path: Path, selection: Selection) -> int:
    """Write the declared sensors to a file; return their number."""
    sensors = _chosen(ledger, selection)
    text = str if path.name.lower().endswith(".parquet") else formula_safe
    rows, steps = (sensor for sensor in ledger.sensors() if sensor.id in sensors), _steps(ledger)
    return _written(path, rows, lambda rows: _sensor_columns(rows, steps, text), ("created",))


def formula_safe(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula.

    Examples
    --------
    >>> formula_safe("=1+1"), formula_safe("A2 north")
    ("'=1+1", 'A2 north')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


def _chosen(ledger: Ledger, selection: Selection) -> dict[int, str]:
    """Return the names of the selected sensors by number."""
    known = {sensor.name: sensor.id for sensor in ledger.sensors()}
    if not selection.sensors:
        return {number: name for name, number in known.items()}
    missing = [name for name in selection.sensors if name not in known]
    if missing:
        raise InvalidInputError(f"sensor must be a known sensor, got {shown(missing[0])}.")
    return {known[name]: name for name in selection.sensors}


def _steps(ledger: Ledger) -> dict[int, int]:
    """Return the step of each sensor, in microseconds; none if the ledger was never served."""
    plans = read_plans(ledger)
    if plans is None:
        return {}
    return {each.id: plans.latest.of(_declared(each)).step for each in ledger.sensors()}


def _declared(sensor: SensorRow) -> Declaration:
    return msgspec.json.decode(sensor.declared, type=Declaration)


def _written(
    path: Path, rows: Iterable[T], columns: Callable[[list[T]], Columns], utc: Sequence[str]
) -> int:
    """Write rows in chunks; an empty table still gets its header."""
    count = 0
    with open_table(path, utc=utc) as append:
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


def _reading_columns(entries: list[StoredReading], names: Mapping[int, str]) -> Columns:
    kinds = {kind.value: kind.name.lower() for kind in Kind}
    return {
        "sensor": _texts(names[entry.sensor] for entry in entries),
        "time": _times(entry.time for entry in entries),
        "value": np.array([entry.value for entry in entries], dtype=np.float64),
        "kind": _texts(kinds[entry.kind] for entry in entries),
        "received": _times(entry.received for entry in entries),
        "seq": np.array([entry.seq for entry in entries], dtype=np.int64),
    }


def _forecast_columns(
    issued: list[IssuedForecast], names: Mapping[int, str], lengths: Mapping[int, int]
) -> Columns:
    steps = [(each, lead) for each in issued for lead in range(len(each.values))]
    return {
        "sensor": _texts(names[each.sensor] for each, _ in steps),
        "time": _times(each.time + lead * lengths[each.sensor] for each, lead in steps),
        "lead": np.array([lead + 1 for _, lead in steps], dtype=np.int64),
        "value": np.array([each.values[lead] for each, lead in steps], dtype=np.float64),
        "lower": np.array([each.lower[lead] for each, lead in steps], dtype=np.float64),
        "upper": np.array([each.upper[lead] for each, lead in steps], dtype=np.float64),
        "source": _texts(each.source for each, _ in steps),
        "issued_at_seq": np.array([each.seq for each, _ in steps], dtype=np.int64),
        "fit": np.array([each.fit for each, _ in steps], dtype=np.int64),
    }


def _sensor_columns(
    sensors: list[SensorRow], steps: Mapping[int, int], text: Callable[[str], str]
) -> Columns:
    declared = [_declared(sensor) for sensor in sensors]
    places = [each.position or (np.nan, np.nan) for each in declared]
    columns: Columns = {"sensor": _texts(sensor.name for sensor in sensors)}
    for name in ("label", "group", "unit", "zone", "rule"):
        cells = (getattr(each, name) for each in declared)
        columns[name] = _texts("" if cell is None else text(cell) for cell in cells)
    seconds = [steps[sensor.id] / SECOND if steps else np.nan for sensor in sensors]
    columns["step_seconds"] = np.array(seconds, dtype=np.float64)
    columns["latitude"] = np.array([latitude for latitude, _ in places], dtype=np.float64)
    columns["longitude"] = np.array([longitude for _, longitude in places], dtype=np.float64)
    columns["created"] = _times(sensor.created for sensor in sensors)
    columns["archived"] = np.array([sensor.archived is not None for sensor in sensors], dtype=bool)
    return columns


def _texts(cells: Iterable[str]) -> Any:
    found = list(cells)
    # An empty column of objects has no type; a string type keeps it a text column.
    return np.array(found, dtype=object) if found else np.array([], dtype="U1")


def _times(times: Iterable[int]) -> Any:
    return np.array(list(times), dtype=np.int64).astype("M8[us]")
