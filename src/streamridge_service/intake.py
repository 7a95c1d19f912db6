"""Classification of received rows: new, duplicate, conflicting, late, held or refused.

Rows are classified in the order in which they were sent, against the stored readings and the rows
before them. Readings of one step are readings of the same time. Only with a rule, which combines
the readings of a step, their exact times count.

Rows count as stored only after their transaction: several batches are classified into one
`NewRows`, and `Intake.committed` is called after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import msgspec

from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Kind, SensorRow, StoredReading
from streamridge_service.ledger.revisions import find_readings, readings_of_keys
from streamridge_service.plan import DAY, FOREVER, MINUTE, NEVER, SECOND, Declaration, Plan
from streamridge_service.rows import Batch, Refusal, Row
from streamridge_service.stream_clock import FAR, StreamClock

# Readings up to this far ahead of the machine's clock are normal, and up to that far they are held.
AHEAD, HOLD = 10 * MINUTE, 2 * DAY

OnConflict = Literal["keep", "replace"]
Mode = Literal["live", "backfill"]
Bounds = tuple[float | None, float | None]
# Time and value of a known reading.
Known = tuple[int, float | None]
# A row whose value fills in for null is a "fill". Null for a known value is a duplicate, so that
# rows may be sent again in any order.
Status = Literal["new", "duplicate", "fill", "revision", "conflict"]


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
    # The new readings that count, by sensor and key.
    known: dict[tuple[int, int], Known] = field(default_factory=dict)
    # Time of the newest reading of each sensor of the new rows, stored or new.
    newest: dict[int, int] = field(default_factory=dict)

    def merge(self, other: NewRows) -> None:
        """Add the rows that come after these."""
        self.last_seq = other.last_seq
        self.readings += other.readings
        self.sensors |= other.sensors
        self.known |= other.known
        self.newest |= other.newest


class Intake:
    """The known sensors and readings, against which rows are classified.

    `clock` returns the current time, or follows the readings.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan: Plan,
        sensors: Sequence[SensorRow],
        *,
        max_sensors: int,
        clock: Callable[[], int] | StreamClock,
    ) -> None:
        self._ledger, self._plan, self._max_sensors, self._clock = ledger, plan, max_sensors, clock
        self.sensors = {sensor.name: sensor for sensor in sensors}
        self._by_id = {sensor.id: sensor for sensor in sensors}
        self._declarations: dict[bytes, tuple[Declaration, Plan]] = {}
        # Time and value of the newest known reading of each sensor, and the sensors of which only
        # the time is known. Later rows cannot be duplicates, unless a reading that was not read at
        # the start may be as late.
        self._newest: dict[int, Known] = {}
        self._without_value: set[int] = set()
        self._unread_until = FOREVER if sensors else NEVER
        self.held: dict[tuple[int, int], StoredReading] = {}
        # While the clock is suspect, rows far ahead of it are held instead of refused.
        self.clock_jumped = False

    def declared(self, sensor: SensorRow) -> Declaration:
        """Return the declaration of a sensor."""
        return self._declared(sensor)[0]

    def _declared(self, sensor: SensorRow) -> tuple[Declaration, Plan]:
        """Return the declaration of a sensor, and the plan that follows."""
        known = self._declarations.get(sensor.declared)
        if known is None:
            declaration = msgspec.json.decode(sensor.declared, type=Declaration)
            known = self._declarations[sensor.declared] = declaration, self._plan.of(declaration)
        return known

    def _plan_of(self, sensor: int) -> Plan:
        return self._declared(self._by_id[sensor])[1]

    @property
    def now(self) -> int:
        """Return the current time; before the first reading of a stream, the earliest time."""
        if not isinstance(self._clock, StreamClock):
            return self._clock()
        return -FAR if self._clock.now is None else self._clock.now

    def has_readings(self, sensor: int) -> bool:
        """Return whether a sensor has a reading."""
        return sensor in self._newest or bool(self._ledger.readings(sensor))

    def update_sensor(self, sensor: SensorRow) -> None:
        """Replace a sensor that was declared or archived."""
        is_known = sensor.id in self._by_id
        self.sensors[sensor.name] = self._by_id[sensor.id] = sensor
        if is_known:  # keys depend on the declaration
            self.held = {self._key(held): held for held in self.held.values()}

    def _key(self, reading: StoredReading) -> tuple[int, int]:
        return reading.sensor, self._plan_of(reading.sensor).key_of(reading.time)

    def restore(
        self,
        recent: Sequence[StoredReading],
        held: Sequence[StoredReading],
        earlier: Mapping[int, int],
        unread_until: int,
    ) -> None:
        """Add what the ledger holds, when the service starts.

        Parameters
        ----------
        recent
            The last readings in order of arrival, without held ones.
        held
            The held readings.
        earlier
            By sensor: the time of the newest reading before the recent ones.
        unread_until
            The latest time of readings that none of these tell about.
        """
        for reading in recent:
            self._add_stored(reading)
        for sensor, time in earlier.items():
            if sensor not in self._newest or time > self._newest[sensor][0]:
                self._newest[sensor] = time, None
                self._without_value.add(sensor)
        self._unread_until = unread_until
        for reading in held:
            sensor, key = self._key(reading)
            stored = readings_of_keys(self._ledger, sensor, self._plan_of(sensor), key, key)
            if not any(each.seq > reading.seq for each in stored):
                self.held[sensor, key] = reading
        if isinstance(self._clock, StreamClock):
            times = sorted(earlier.items(), key=lambda item: item[1])
            times += [(each.sensor, each.time) for each in recent]
            self._clock.add([(self._by_id[sensor].name, time) for sensor, time in times])

    def _add_stored(self, reading: StoredReading) -> None:
        """Remember a stored reading if it is the newest of its sensor."""
        known = self._newest.get(reading.sensor)
        if known is not None:
            plan = self._plan_of(reading.sensor)
            if reading.time < known[0] + plan.step:  # it may be of the same step, or older
                key, newest = plan.key_of(reading.time), plan.key_of(known[0])
                replaces = reading.kind == Kind.REVISION or known[1] is None
                if key < newest or (key == newest and not replaces):
                    return
        self._newest[reading.sensor] = reading.time, reading.value
        self._without_value.discard(reading.sensor)

    def classify(
        self, batch: Batch, options: IngestOptions, new: NewRows, received: int
    ) -> Receipt:
        """Add the rows of a batch to the new rows, and return the result."""
        if isinstance(self._clock, StreamClock):
            self._clock.add(self._heard(batch))
        rows = _Rows(options, received, self.now, new, NewRows(new.last_seq))
        stored, receipt = _StoredRows(self._ledger, batch), Receipt(skipped=batch.skipped)
        for refusal in batch.refused:
            receipt.refuse(refusal)
        for row in batch.rows:
            problem = self._add(row, rows, stored, receipt)
            if problem is not None:
                receipt.refuse(Refusal(row.line, *problem))
        if options.atomic and receipt.refused:
            return Receipt(refused=receipt.refused, refusals=receipt.refusals)
        rows.own.newest = {each.row.id: each.newest for each in rows.sensors.values()}
        new.merge(rows.own)
        return receipt

    def _heard(self, batch: Batch) -> list[tuple[str, int]]:
        """Return the sensors and times of a batch, without new sensors that will be refused."""
        has_room = len(self.sensors) < self._max_sensors
        return [
            (row.sensor, row.time) for row in batch.rows if has_room or row.sensor in self.sensors
        ]

    def _add(
        self, row: Row, rows: _Rows, stored: _StoredRows, receipt: Receipt
    ) -> tuple[str, str] | None:
        """Add a row, or return the code and the reason of its refusal."""
        sensor = rows.sensors.get(row.sensor) or self._sensor(row.sensor, rows)
        if sensor is None:
            return "sr-too-many-sensors", f"There are {self._max_sensors} sensors, the maximum."
        if sensor.row.archived is not None:
            return "sr-archived", f"Sensor {row.sensor} was archived."
        is_early, problem = self._time_problem(row, sensor, rows.now)
        if problem is not None:
            return problem
        key = sensor.plan.key_of(row.time)
        known = self._known(sensor, key, rows, stored)
        status = _status(row, known, rows.options)
        if status == "conflict":
            return "sr-conflict", "There is another value for this time; the first one stays."
        if status == "duplicate":
            receipt.duplicate += 1
            receipt.sensors.setdefault(sensor.row.id, 0)
            return None
        kind = Kind.HELD if is_early else _kind(status, rows.options)
        if known is not None and status == "revision":  # it replaces that reading, at its time
            row = msgspec.structs.replace(row, time=known[0])
        receipt.sensors[sensor.row.id] = rows.add(row, sensor, key, kind)
        _count(row, kind, sensor, receipt)
        return None

    def _time_problem(
        self, row: Row, sensor: _BatchSensor, now: int
    ) -> tuple[bool, tuple[str, str] | None]:
        """Return whether a row must be held, and the code and the reason of a refusal, if any."""
        if not sensor.plan.is_on_grid(row.time):
            seconds = sensor.plan.step // SECOND
            detail = f"The time is not a multiple of {seconds} seconds, and there is no rule."
            return False, ("sr-off-grid", detail)
        if isinstance(self._clock, StreamClock):
            return row.time > max(now, sensor.newest) + FAR, None
        if row.time > now + HOLD and not self.clock_jumped:
            detail = "The time is more than two days ahead of this service's clock."
            return False, ("sr-future", detail)
        return row.time > now + AHEAD, None

    def _sensor(self, name: str, rows: _Rows) -> _BatchSensor | None:
        """Return a known or a new sensor; None if there are too many."""
        known = self.sensors.get(name) or rows.before.sensors.get(name)
        count = len(self.sensors) + len(rows.before.sensors) + len(rows.own.sensors)
        if known is None and count >= self._max_sensors:
            return None
        row = known or SensorRow(count + 1, name, rows.received)
        declared, plan = self._declared(row)
        sensor = _BatchSensor(row, plan, declared.bounds)
        if row.id in self._by_id:
            newest = self._newest.get(row.id)
            if newest is not None:
                sensor.newest, sensor.newest_key = newest[0], plan.key_of(newest[0])
            sensor.stored_until = max(sensor.newest_key, self._unread_until + plan.step)
        sensor.newest = max(sensor.newest, rows.before.newest.get(row.id, NEVER))
        if known is not None:  # a new one counts with its first stored row
            rows.sensors[name] = sensor
        return sensor

    def _known(
        self, sensor: _BatchSensor, key: int, rows: _Rows, stored: _StoredRows
    ) -> Known | None:
        """Return the reading of a key that counts; None if there is none."""
        number = sensor.row.id
        new = rows.own.known.get((number, key)) or rows.before.known.get((number, key))
        if new is not None:
            return new
        if (number, key) in self.held:
            held = self.held[number, key]
            return held.time, held.value
        if key > sensor.stored_until:
            return None
        if key == sensor.newest_key and number not in self._without_value:
            return self._newest[number]
        return stored.find(sensor, key)

    def committed(self, new: NewRows) -> None:
        """Add rows that were committed."""
        for sensor in new.sensors.values():
            self.update_sensor(sensor)
        for reading in new.readings:
            if reading.kind == Kind.HELD:
                self.held[self._key(reading)] = reading
            else:
                if self.held:
                    self.held.pop(self._key(reading), None)
                self._add_stored(reading)

    def release_held(self, now: int, new: NewRows, received: int, only: int | None = None) -> None:
        """Add the held readings whose time has come to the new rows, as live readings."""
        for (sensor, _), held in sorted(self.held.items()):
            if held.time <= now + AHEAD and only in (None, sensor):
                new.last_seq += 1
                new.readings.append(
                    StoredReading(new.last_seq, sensor, held.time, held.value, received, Kind.LIVE)
                )


@dataclass
class _BatchSensor:
    """A sensor of a batch, with the times of its newest readings."""

    row: SensorRow
    plan: Plan
    bounds: Bounds | None
    newest: int = NEVER  # time of its newest reading, stored or new
    newest_key: int = NEVER  # key of its newest stored reading
    stored_until: int = NEVER  # no later key is stored


@dataclass
class _Rows:
    """The new rows of earlier batches, and of the current batch with its sensors."""

    options: IngestOptions
    received: int
    now: int
    before: NewRows
    own: NewRows
    sensors: dict[str, _BatchSensor] = field(default_factory=dict)

    def add(self, row: Row, sensor: _BatchSensor, key: int, kind: Kind) -> int:
        """Add a row, and return its arrival number."""
        own, number = self.own, sensor.row.id
        if row.sensor not in self.sensors:
            self.sensors[row.sensor], own.sensors[row.sensor] = sensor, sensor.row
        own.last_seq += 1
        own.readings.append(
            StoredReading(own.last_seq, number, row.time, row.value, self.received, kind)
        )
        own.known[number, key] = row.time, row.value
        if kind != Kind.HELD and row.time > sensor.newest:
            sensor.newest = row.time
        return own.last_seq


class _StoredRows:
    """The stored readings of a batch's times, found by few queries for each sensor."""

    def __init__(self, ledger: Ledger, batch: Batch) -> None:
        self._ledger, self._batch = ledger, batch
        self._found: dict[int, dict[int, StoredReading]] = {}

    def find(self, sensor: _BatchSensor, key: int) -> Known | None:
        """Return the stored reading of a key that counts; None if there is none."""
        found = self._found.get(sensor.row.id)
        if found is None:
            keys = {sensor.plan.key_of(time) for time in self._times[sensor.row.name]}
            found = find_readings(self._ledger, sensor.row.id, sensor.plan, keys)
            self._found[sensor.row.id] = found
        known = found.get(key)
        return None if known is None else (known.time, known.value)

    @cached_property
    def _times(self) -> dict[str, list[int]]:
        """Return the times of the batch by the name of the sensor."""
        times: dict[str, list[int]] = {}
        for row in self._batch.rows:
            times.setdefault(row.sensor, []).append(row.time)
        return times


def _status(row: Row, known: Known | None, options: IngestOptions) -> Status:
    """Compare a row with the known reading of its key, if there is one."""
    if known is None:
        return "new"
    value = known[1]
    if value == row.value:
        return "duplicate"
    if value is None:
        return "fill"
    if options.on_conflict == "replace":
        return "revision"
    return "duplicate" if row.value is None else "conflict"


def _kind(status: Status, options: IngestOptions) -> Kind:
    if status == "revision":
        return Kind.REVISION
    if options.mode == "backfill":
        return Kind.BACKFILL
    return Kind.FILL if status == "fill" else Kind.LIVE


def _count(row: Row, kind: Kind, sensor: _BatchSensor, receipt: Receipt) -> None:
    """Count a stored row in one of the counters."""
    if kind == Kind.HELD:
        receipt.held += 1
    elif kind == Kind.REVISION:
        receipt.replaced += 1
    elif kind != Kind.BACKFILL and _is_late(row.time, sensor):
        receipt.late += 1
    elif not is_within(row.value, sensor.bounds):
        receipt.implausible += 1
    else:
        receipt.accepted += 1


def _is_late(time: int, sensor: _BatchSensor) -> bool:
    plan, newest = sensor.plan, sensor.newest
    return newest > time and plan.step_of(newest) - plan.step_of(time) > plan.open_for


def is_within(value: float | None, bounds: Bounds | None) -> bool:
    """Return whether a value lies within the bounds of its sensor, if it has any."""
    if value is None or bounds is None:
        return True
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)
