"""What becomes of the rows that clients send: each is taken, recognized, held or refused.

Rows are judged in the order they came, against what is stored and what was taken just before them.
Nothing counts as known before it has been committed: a group of batches is judged into a `Group`,
and `Intake.learn` follows the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import Entry, Kind, SensorRow
from streamridge.service.plan import MINUTE, Declaration, Plan
from streamridge.service.rows import Batch, Refusal, Row

# A reading may be so far ahead of the clock and count as normal; and so far, to be held.
AHEAD, HOLD = 10 * MINUTE, 2 * 24 * 60 * MINUTE

OnConflict = Literal["keep", "replace"]
Mode = Literal["live", "backfill"]


class Wish(msgspec.Struct, frozen=True):
    """How the rows of a request shall be taken."""

    on_conflict: OnConflict = "keep"
    atomic: bool = False
    mode: Mode = "live"


class Receipt(msgspec.Struct):
    """What became of the rows of one request."""

    accepted: int = 0
    duplicate: int = 0
    late: int = 0
    held: int = 0
    replaced: int = 0
    implausible: int = 0
    refused: int = 0
    skipped: int = 0
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    # The sensors that were named, for whoever wants their forecasts.
    sensors: list[int] = msgspec.field(default_factory=list)

    @property
    def written(self) -> int:
        """Return how many rows were stored."""
        return self.accepted + self.late + self.held + self.replaced + self.implausible

    def refuse(self, refusal: Refusal) -> None:
        """Count a refusal, and keep it."""
        self.refused += 1
        self.refusals.append(refusal)


@dataclass
class Group:
    """What some batches add to the ledger in one transaction."""

    last: int
    entries: list[Entry] = field(default_factory=list)
    sensors: dict[str, SensorRow] = field(default_factory=dict)
    values: dict[tuple[int, int], float | None] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)


class Intake:
    """What is known of sensors when rows are judged.

    Parameters
    ----------
    ledger
        Where earlier readings are looked up.
    plan
        How steps are made.
    sensors
        The sensors that are known.
    most_sensors
        How many there may be.
    now
        Function that returns the time; None where the newest reading is the time.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan: Plan,
        sensors: Sequence[SensorRow],
        *,
        most_sensors: int,
        now: Callable[[], int | None],
    ) -> None:
        self._ledger, self._plan, self._most, self._now = ledger, plan, most_sensors, now
        self.sensors = {sensor.name: sensor for sensor in sensors}
        self._declared: dict[bytes, Declaration] = {}
        # The newest reading of each sensor: what comes after it cannot be a duplicate.
        self._newest: dict[int, tuple[int, float | None]] = {}
        self.held: dict[tuple[int, int], Entry] = {}
        # Set while the clock has jumped: what is far ahead is held, not refused.
        self.lenient = False

    def declared(self, sensor: SensorRow) -> Declaration:
        """Return what is declared of a sensor; read once."""
        if sensor.declared not in self._declared:
            self._declared[sensor.declared] = msgspec.json.decode(sensor.declared, type=Declaration)
        return self._declared[sensor.declared]

    def redeclare(self, sensor: SensorRow) -> None:
        """Take over a sensor that was declared, or archived."""
        self.sensors[sensor.name] = sensor

    def recall(self, sensor: int, time: int, value: float | None) -> None:
        """Remember the newest reading of a sensor, when the service starts."""
        if time >= self._newest.get(sensor, (time, None))[0]:
            self._newest[sensor] = time, value

    def judge(self, batch: Batch, wish: Wish, group: Group, received: int) -> Receipt:
        """Add the rows of a batch to a group, and return what became of them."""
        own = Group(group.last)
        receipt = Receipt(skipped=batch.skipped)
        for refusal in batch.refused:
            receipt.refuse(refusal)
        for row in batch.rows:
            code = self._judged(row, wish, _Both(group, own), received, receipt)
            if code is not None:
                receipt.refuse(Refusal(row.line, code[0], code[1]))
        if wish.atomic and receipt.refused:
            return Receipt(refused=receipt.refused, refusals=receipt.refusals)
        _merge(group, own)
        return receipt

    def _judged(
        self, row: Row, wish: Wish, groups: _Both, received: int, receipt: Receipt
    ) -> tuple[str, str] | None:
        """Add a row, or return the code and the reason of its refusal."""
        sensor = self._sensor(row.sensor, groups, received)
        if sensor is None:
            return "sr-too-many-sensors", f"There are {self._most} sensors, the most allowed."
        if sensor.archived is not None:
            return "sr-archived", f"Sensor {row.sensor} was archived."
        declared = self.declared(sensor)
        rule = declared.rule or self._plan.rule
        if rule is None and not self._plan.is_on_grid(row.time):
            seconds = self._plan.step // 1_000_000
            return "sr-off-grid", f"The time is no multiple of {seconds} seconds, and no rule."
        now = self._now()
        ahead = 0 if now is None else row.time - now
        if ahead > HOLD and not self.lenient:
            return "sr-future", "The time is more than two days ahead of this service's clock."
        fate = self._fate(row, sensor.id, wish, groups)
        if fate == "conflict":
            return "sr-conflict", "There is another value for this time; the first one stays."
        receipt.sensors.append(sensor.id)
        if fate == "duplicate":
            receipt.duplicate += 1
            return None
        kind = Kind.HELD if ahead > AHEAD else _kind(fate, wish)
        if row.sensor not in self.sensors and groups.sensor(row.sensor) is None:
            groups.own.sensors[row.sensor] = sensor
        self._add(row, sensor.id, kind, groups, received)
        self._count(row, kind, declared, sensor.id, groups, receipt)
        return None

    def _sensor(self, name: str, groups: _Both, received: int) -> SensorRow | None:
        """Return a sensor, a new one if it is not known; None if there are too many."""
        known = self.sensors.get(name) or groups.sensor(name)
        if known is not None:
            return known
        count = len(self.sensors) + groups.new_sensors
        return None if count >= self._most else SensorRow(count + 1, name, received)

    def _fate(self, row: Row, sensor: int, wish: Wish, groups: _Both) -> str:
        """Return whether a row is "new", a "duplicate", a "conflict" or a "revision"."""
        known, value = self._stored(sensor, row.time, groups)
        if not known:
            return "new"
        if value == row.value:
            return "duplicate"
        return "revision" if wish.on_conflict == "replace" else "conflict"

    def _stored(self, sensor: int, time: int, groups: _Both) -> tuple[bool, float | None]:
        """Return whether there is a reading of a time, and its value; the latest revision's."""
        for group in (groups.own, groups.before):
            if (sensor, time) in group.values:
                return True, group.values[sensor, time]
        if (sensor, time) in self.held:
            return True, self.held[sensor, time].value
        newest = self._newest.get(sensor)
        if newest is None and sensor > len(self.sensors):
            return False, None
        if newest is not None and time >= newest[0]:
            return (True, newest[1]) if time == newest[0] else (False, None)
        found = self._ledger.entries(sensor, start=time, end=time + 1)
        return (True, found[-1].value) if found else (False, None)

    def _add(self, row: Row, sensor: int, kind: Kind, groups: _Both, received: int) -> None:
        own = groups.own
        own.last += 1
        own.entries.append(Entry(own.last, sensor, row.time, row.value, received, kind))
        own.values[sensor, row.time] = row.value
        if kind != Kind.HELD:
            own.newest[sensor] = max(row.time, own.newest.get(sensor, row.time))

    def _count(
        self,
        row: Row,
        kind: Kind,
        declared: Declaration,
        sensor: int,
        groups: _Both,
        receipt: Receipt,
    ) -> None:
        """Count a row that is stored, as one thing only."""
        newest = max(self._newest.get(sensor, (row.time, None))[0], groups.newest(sensor, row.time))
        if kind == Kind.HELD:
            receipt.held += 1
        elif kind == Kind.REVISION:
            receipt.replaced += 1
        elif kind == Kind.LIVE and newest - row.time > self._plan.open_for:
            receipt.late += 1
        elif not is_within(row.value, declared.bounds):
            receipt.implausible += 1
        else:
            receipt.accepted += 1

    def learn(self, group: Group) -> None:
        """Take over what was committed."""
        self.sensors.update(group.sensors)
        for entry in group.entries:
            if entry.kind == Kind.HELD:
                self.held[entry.sensor, entry.time] = entry
            else:
                self.held.pop((entry.sensor, entry.time), None)
                newest = self._newest.get(entry.sensor)
                if newest is None or entry.time >= newest[0]:
                    self._newest[entry.sensor] = entry.time, entry.value

    def released(self, now: int, group: Group, received: int, only: int | None = None) -> None:
        """Add the held rows whose time has come to a group: they arrive again."""
        for (sensor, time), entry in sorted(self.held.items()):
            if time <= now + AHEAD and only in (None, sensor):
                group.last += 1
                group.entries.append(
                    Entry(group.last, sensor, time, entry.value, received, Kind.LIVE)
                )


@dataclass
class _Both:
    """The group that batches before have filled, and that of the batch at hand."""

    before: Group
    own: Group

    def sensor(self, name: str) -> SensorRow | None:
        return self.own.sensors.get(name) or self.before.sensors.get(name)

    @property
    def new_sensors(self) -> int:
        return len(self.own.sensors) + len(self.before.sensors)

    def newest(self, sensor: int, time: int) -> int:
        return max(group.newest.get(sensor, time) for group in (self.before, self.own))


def _merge(group: Group, own: Group) -> None:
    group.last = own.last
    group.entries += own.entries
    group.sensors |= own.sensors
    group.values |= own.values
    group.newest |= own.newest


def _kind(fate: str, wish: Wish) -> Kind:
    if fate == "revision":
        return Kind.REVISION
    return Kind.BACKFILL if wish.mode == "backfill" else Kind.LIVE


def is_within(value: float | None, bounds: tuple[float | None, float | None] | None) -> bool:
    """Return whether a value lies within the bounds of its sensor, where it has any."""
    if value is None or bounds is None:
        return True
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)
