"""Classification of received rows: new, duplicate, conflicting, late, held or refused.

Rows are classified in the order in which they were sent, against the stored readings and the rows
before them. Rows count as stored only after their transaction: several batches are classified into
one `NewRows`, and `Intake.committed` is called after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Kind, SensorRow, StoredReading
from streamridge_service.plan import MINUTE, SECOND, Declaration, Plan
from streamridge_service.rows import Batch, Refusal, Row

# Readings up to this far ahead of the clock are normal, and up to that far they are held.
AHEAD, HOLD = 10 * MINUTE, 2 * 24 * 60 * MINUTE

OnConflict = Literal["keep", "replace"]
Mode = Literal["live", "backfill"]
Bounds = tuple[float | None, float | None]


class IngestOptions(msgspec.Struct, frozen=True):
    """The options of a request that sends readings."""

    on_conflict: OnConflict = "keep"
    atomic: bool = False
    mode: Mode = "live"


class Receipt(msgspec.Struct):
    """The result of a request that sends readings: the number of rows of each kind."""

    accepted: int = 0
    duplicate: int = 0
    late: int = 0
    held: int = 0
    replaced: int = 0
    implausible: int = 0
    refused: int = 0
    skipped: int = 0
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    # The sensors of the rows, each with the arrival number of its last new row, or zero.
    sensors: dict[int, int] = msgspec.field(default_factory=dict)

    @property
    def written(self) -> int:
        """Return the number of stored rows."""
        return self.accepted + self.late + self.held + self.replaced + self.implausible

    def refuse(self, refusal: Refusal) -> None:
        """Add a refused row."""
        self.refused += 1
        self.refusals.append(refusal)


@dataclass
class NewRows:
    """The rows that one transaction adds to the ledger."""

    last_seq: int
    # New readings, and new sensors by name.
    readings: list[StoredReading] = field(default_factory=list)
    sensors: dict[str, SensorRow] = field(default_factory=dict)
    # Values of the new readings by sensor and time.
    values: dict[tuple[int, int], float | None] = field(default_factory=dict)
    # Time of the newest new reading of each sensor.
    newest: dict[int, int] = field(default_factory=dict)

    def merge(self, other: NewRows) -> None:
        """Add the rows that come after these."""
        self.last_seq = other.last_seq
        self.readings += other.readings
        self.sensors |= other.sensors
        self.values |= other.values
        self.newest |= other.newest


class Intake:
    """The known sensors and readings, against which rows are classified.

    `now` returns the current time; None if the newest reading defines it.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan: Plan,
        sensors: Sequence[SensorRow],
        *,
        max_sensors: int,
        now: Callable[[], int | None],
    ) -> None:
        self._ledger, self._plan, self._max_sensors, self._now = ledger, plan, max_sensors, now
        self.sensors = {sensor.name: sensor for sensor in sensors}
        self._declarations: dict[bytes, Declaration] = {}
        # Time and value of the newest reading of each sensor: later rows cannot be duplicates.
        self._newest: dict[int, tuple[int, float | None]] = {}
        self.held: dict[tuple[int, int], StoredReading] = {}
        # While the clock is suspect, rows far ahead of it are held instead of refused.
        self.clock_jumped = False

    def declared(self, sensor: SensorRow) -> Declaration:
        """Return the declaration of a sensor."""
        if sensor.declared not in self._declarations:
            declaration = msgspec.json.decode(sensor.declared, type=Declaration)
            self._declarations[sensor.declared] = declaration
        return self._declarations[sensor.declared]

    def has_readings(self, sensor: int) -> bool:
        """Return whether a sensor has a reading."""
        return sensor in self._newest or bool(self._ledger.readings(sensor))

    def update_sensor(self, sensor: SensorRow) -> None:
        """Replace a sensor that was declared or archived."""
        self.sensors[sensor.name] = sensor

    def add_stored(self, sensor: int, time: int, value: float | None) -> None:
        """Add a stored reading when the service starts; only the newest one is kept."""
        if time >= self._newest.get(sensor, (time, None))[0]:
            self._newest[sensor] = time, value

    def classify(
        self, batch: Batch, options: IngestOptions, new: NewRows, received: int
    ) -> Receipt:
        """Add the rows of a batch to the new rows, and return the result."""
        rows = _Rows(new, NewRows(new.last_seq))
        receipt = Receipt(skipped=batch.skipped)
        for refusal in batch.refused:
            receipt.refuse(refusal)
        for row in batch.rows:
            problem = self._add(row, options, rows, received, receipt)
            if problem is not None:
                receipt.refuse(Refusal(row.line, *problem))
        if options.atomic and receipt.refused:
            return Receipt(refused=receipt.refused, refusals=receipt.refusals)
        new.merge(rows.own)
        return receipt

    def _add(
        self, row: Row, options: IngestOptions, rows: _Rows, received: int, receipt: Receipt
    ) -> tuple[str, str] | None:
        """Add a row, or return the code and the reason of its refusal."""
        sensor = self._sensor(row.sensor, rows, received)
        if sensor is None:
            return "sr-too-many-sensors", f"There are {self._max_sensors} sensors, the maximum."
        if sensor.archived is not None:
            return "sr-archived", f"Sensor {row.sensor} was archived."
        declared = self.declared(sensor)
        now = self._now()
        ahead = 0 if now is None else row.time - now
        plan = self._plan.of(declared)
        problem = self._time_problem(row, plan, ahead)
        if problem is not None:
            return problem
        status = self._status(row, sensor.id, options, rows)
        if status == "conflict":
            return "sr-conflict", "There is another value for this time; the first one stays."
        receipt.sensors.setdefault(sensor.id, 0)
        if status == "duplicate":
            receipt.duplicate += 1
            return None
        if row.sensor not in self.sensors and rows.sensor(row.sensor) is None:
            rows.own.sensors[row.sensor] = sensor
        kind = Kind.HELD if ahead > AHEAD else _kind(status, options)
        receipt.sensors[sensor.id] = rows.add(row, sensor.id, kind, received)
        self._count(row, kind, declared.bounds, plan, sensor.id, rows, receipt)
        return None

    def _time_problem(self, row: Row, plan: Plan, ahead: int) -> tuple[str, str] | None:
        """Return the code and the reason if a time is between steps, or too far ahead."""
        if not plan.is_on_grid(row.time):
            seconds = plan.step // SECOND
            return (
                "sr-off-grid",
                f"The time is not a multiple of {seconds} seconds, and there is no rule.",
            )
        if ahead > HOLD and not self.clock_jumped:
            return "sr-future", "The time is more than two days ahead of this service's clock."
        return None

    def _sensor(self, name: str, rows: _Rows, received: int) -> SensorRow | None:
        """Return a known or a new sensor; None if there are too many."""
        known = self.sensors.get(name) or rows.sensor(name)
        if known is not None:
            return known
        count = len(self.sensors) + rows.new_sensors
        return None if count >= self._max_sensors else SensorRow(count + 1, name, received)

    def _status(self, row: Row, sensor: int, options: IngestOptions, rows: _Rows) -> str:
        """Return whether a row is "new", a "duplicate", a "conflict" or a "revision"."""
        is_known, value = self._known_value(sensor, row.time, rows)
        if not is_known:
            return "new"
        if value == row.value:
            return "duplicate"
        return "revision" if options.on_conflict == "replace" else "conflict"

    def _known_value(self, sensor: int, time: int, rows: _Rows) -> tuple[bool, float | None]:
        """Return whether there is a reading of a time, and the value of its last revision."""
        for new in (rows.own, rows.before):
            if (sensor, time) in new.values:
                return True, new.values[sensor, time]
        if (sensor, time) in self.held:
            return True, self.held[sensor, time].value
        newest = self._newest.get(sensor)
        if newest is None and sensor > len(self.sensors):
            return False, None
        if newest is not None and time >= newest[0]:
            return (True, newest[1]) if time == newest[0] else (False, None)
        found = self._ledger.readings(sensor, start=time, end=time + 1)
        return (True, found[-1].value) if found else (False, None)

    def _count(
        self,
        row: Row,
        kind: Kind,
        bounds: Bounds | None,
        plan: Plan,
        sensor: int,
        rows: _Rows,
        receipt: Receipt,
    ) -> None:
        """Count a stored row in one of the counters."""
        newest = max(self._newest.get(sensor, (row.time, None))[0], rows.newest(sensor, row.time))
        if kind == Kind.HELD:
            receipt.held += 1
        elif kind == Kind.REVISION:
            receipt.replaced += 1
        elif kind == Kind.LIVE and newest - row.time > plan.open_for:
            receipt.late += 1
        elif not is_within(row.value, bounds):
            receipt.implausible += 1
        else:
            receipt.accepted += 1

    def committed(self, new: NewRows) -> None:
        """Add rows that were committed."""
        self.sensors.update(new.sensors)
        for reading in new.readings:
            key = reading.sensor, reading.time
            if reading.kind == Kind.HELD:
                self.held[key] = reading
            else:
                self.held.pop(key, None)
                self.add_stored(reading.sensor, reading.time, reading.value)

    def release_held(self, now: int, new: NewRows, received: int, only: int | None = None) -> None:
        """Add the held readings whose time has come to the new rows, as live readings."""
        for (sensor, time), held in sorted(self.held.items()):
            if time <= now + AHEAD and only in (None, sensor):
                new.last_seq += 1
                new.readings.append(
                    StoredReading(new.last_seq, sensor, time, held.value, received, Kind.LIVE)
                )


@dataclass
class _Rows:
    """The new rows of earlier batches, and of the current batch."""

    before: NewRows
    own: NewRows

    def add(self, row: Row, sensor: int, kind: Kind, received: int) -> int:
        """Add a row, and return its arrival number."""
        own = self.own
        own.last_seq += 1
        own.readings.append(
            StoredReading(own.last_seq, sensor, row.time, row.value, received, kind)
        )
        own.values[sensor, row.time] = row.value
        if kind != Kind.HELD:
            own.newest[sensor] = max(row.time, own.newest.get(sensor, row.time))
        return own.last_seq

    def sensor(self, name: str) -> SensorRow | None:
        return self.own.sensors.get(name) or self.before.sensors.get(name)

    @property
    def new_sensors(self) -> int:
        return len(self.own.sensors) + len(self.before.sensors)

    def newest(self, sensor: int, time: int) -> int:
        return max(new.newest.get(sensor, time) for new in (self.before, self.own))


def _kind(status: str, options: IngestOptions) -> Kind:
    if status == "revision":
        return Kind.REVISION
    return Kind.BACKFILL if options.mode == "backfill" else Kind.LIVE


def is_within(value: float | None, bounds: Bounds | None) -> bool:
    """Return whether a value lies within the bounds of its sensor, if it has any."""
    if value is None or bounds is None:
        return True
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)
