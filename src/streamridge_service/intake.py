"""Classification of received rows: new, duplicate, conflicting, late, held or refused.

Rows are classified in the order in which they were sent, against the stored readings and the rows
before them. Readings of one step are readings of the same time. Only with a rule, which combines
the readings of a step, their exact times count.

Rows count as stored only after their transaction: several batches are classified into one
`NewRows`, and `Intake.committed` is called after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Kind, SensorRow, StoredReading
from streamridge_service.ledger.revisions import counting_readings
from streamridge_service.plan import DAY, MINUTE, SECOND, Declaration, Plan
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
    # Time of the newest new reading of each sensor.
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
        # Time and value of the newest reading of each sensor: later rows cannot be duplicates.
        self._newest: dict[int, Known] = {}
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

    def restore(self, stored: Sequence[StoredReading], held: Sequence[StoredReading]) -> None:
        """Add recent readings in order of arrival, and held ones, when the service starts."""
        for reading in stored:
            self._add_stored(reading)
        for reading in held:
            key = self._key(reading)
            if not any(each.seq > reading.seq for each in self._stored(*key)):
                self.held[key] = reading
        if isinstance(self._clock, StreamClock):
            self._clock.add([(self._by_id[each.sensor].name, each.time) for each in stored])

    def _stored(self, sensor: int, key: int) -> list[StoredReading]:
        """Return the stored readings of a key, without held ones."""
        plan = self._plan_of(sensor)
        start, end = (key, key + 1) if plan.rule else plan.times_of(key, key + 1)
        found = self._ledger.readings(sensor, start=start, end=end)
        return [each for each in found if each.kind != Kind.HELD]

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

    def classify(
        self, batch: Batch, options: IngestOptions, new: NewRows, received: int
    ) -> Receipt:
        """Add the rows of a batch to the new rows, and return the result."""
        if isinstance(self._clock, StreamClock):
            self._clock.add([(row.sensor, row.time) for row in batch.rows])
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
        declared, plan = self._declared(sensor)
        is_early, problem = self._time_problem(row, sensor.id, plan, rows)
        if problem is not None:
            return problem
        key = plan.key_of(row.time)
        known = self._known(sensor.id, key, rows)
        status = _status(row, known, options)
        if status == "conflict":
            return "sr-conflict", "There is another value for this time; the first one stays."
        receipt.sensors.setdefault(sensor.id, 0)
        if status == "duplicate":
            receipt.duplicate += 1
            return None
        if row.sensor not in self.sensors and rows.sensor(row.sensor) is None:
            rows.own.sensors[row.sensor] = sensor
        kind = Kind.HELD if is_early else _kind(status, options)
        if known is not None and status == "revision":  # it replaces that reading, at its time
            row = msgspec.structs.replace(row, time=known[0])
        receipt.sensors[sensor.id] = rows.add(row, sensor.id, key, kind, received)
        self._count(row, kind, declared.bounds, plan, sensor.id, rows, receipt)
        return None

    def _time_problem(
        self, row: Row, sensor: int, plan: Plan, rows: _Rows
    ) -> tuple[bool, tuple[str, str] | None]:
        """Return whether a row must be held, and the code and the reason of a refusal, if any."""
        if not plan.is_on_grid(row.time):
            seconds = plan.step // SECOND
            detail = f"The time is not a multiple of {seconds} seconds, and there is no rule."
            return False, ("sr-off-grid", detail)
        if isinstance(self._clock, StreamClock):
            now = row.time if self._clock.now is None else self._clock.now
            return row.time > max(now, self._newest_of(sensor, rows, now)) + FAR, None
        ahead = row.time - self._clock()
        if ahead > HOLD and not self.clock_jumped:
            detail = "The time is more than two days ahead of this service's clock."
            return False, ("sr-future", detail)
        return ahead > AHEAD, None

    def _newest_of(self, sensor: int, rows: _Rows, default: int) -> int:
        """Return the time of the newest reading of a sensor, stored or new."""
        return max(self._newest.get(sensor, (default, None))[0], rows.newest(sensor, default))

    def _sensor(self, name: str, rows: _Rows, received: int) -> SensorRow | None:
        """Return a known or a new sensor; None if there are too many."""
        known = self.sensors.get(name) or rows.sensor(name)
        if known is not None:
            return known
        count = len(self.sensors) + rows.new_sensors
        return None if count >= self._max_sensors else SensorRow(count + 1, name, received)

    def _known(self, sensor: int, key: int, rows: _Rows) -> Known | None:
        """Return the reading of a key that counts; None if there is none."""
        for new in (rows.own, rows.before):
            if (sensor, key) in new.known:
                return new.known[sensor, key]
        if (sensor, key) in self.held:
            held = self.held[sensor, key]
            return held.time, held.value
        if sensor not in self._by_id:
            return None
        newest = self._newest.get(sensor)
        if newest is not None:
            newest_key = self._plan_of(sensor).key_of(newest[0])
            if key >= newest_key:
                return newest if key == newest_key else None
        found = counting_readings(self._stored(sensor, key), self._plan_of(sensor)).get(key)
        return None if found is None else (found.time, found.value)

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
        newest = self._newest_of(sensor, rows, row.time)
        if kind == Kind.HELD:
            receipt.held += 1
        elif kind == Kind.REVISION:
            receipt.replaced += 1
        elif (
            kind in (Kind.LIVE, Kind.FILL)
            and newest > row.time
            and plan.step_of(newest) - plan.step_of(row.time) > plan.open_for
        ):
            receipt.late += 1
        elif not is_within(row.value, bounds):
            receipt.implausible += 1
        else:
            receipt.accepted += 1

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
class _Rows:
    """The new rows of earlier batches, and of the current batch."""

    before: NewRows
    own: NewRows

    def add(self, row: Row, sensor: int, key: int, kind: Kind, received: int) -> int:
        """Add a row, and return its arrival number."""
        own = self.own
        own.last_seq += 1
        own.readings.append(
            StoredReading(own.last_seq, sensor, row.time, row.value, received, kind)
        )
        own.known[sensor, key] = row.time, row.value
        if kind != Kind.HELD:
            own.newest[sensor] = max(row.time, self.newest(sensor, row.time))
        return own.last_seq

    def sensor(self, name: str) -> SensorRow | None:
        return self.own.sensors.get(name) or self.before.sensors.get(name)

    @property
    def new_sensors(self) -> int:
        return len(self.own.sensors) + len(self.before.sensors)

    def newest(self, sensor: int, time: int) -> int:
        return max(self.before.newest.get(sensor, time), self.own.newest.get(sensor, time))


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


def is_within(value: float | None, bounds: Bounds | None) -> bool:
    """Return whether a value lies within the bounds of its sensor, if it has any."""
    if value is None or bounds is None:
        return True
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)
