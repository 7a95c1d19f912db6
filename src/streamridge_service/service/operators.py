"""Actions of operators: stored first, then applied by the sensor's worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from streamridge_service.intake import Intake
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Action, SensorRow
from streamridge_service.plan import Declaration
from streamridge_service.problems import Problem
from streamridge_service.service.events import EventLog
from streamridge_service.service.forecasts import Forecasts
from streamridge_service.service.health import MachineClock
from streamridge_service.service.writer import Writer


@dataclass
class Operators:
    """Runs actions on sensors: retune, freeze, declare, archive and so on."""

    intake: Intake
    writer: Writer
    forecasts: Forecasts
    events: EventLog
    clock: MachineClock
    max_sensors: int

    async def run(self, sensor: SensorRow, kind: str, body: dict[str, Any]) -> None:
        """Store an action on a sensor, and apply it."""
        action = await self.writer.run(lambda ledger: self._append(ledger, sensor.id, kind, body))
        await self.forecasts.apply(action)
        self.events.record("retuned", sensor, f"{kind} was requested")

    def _append(
        self, ledger: Ledger, sensor: int, kind: str, body: object, *rows: SensorRow
    ) -> Action:
        """Store an action in one transaction with sensors. Only for the writing thread."""
        seq = self.writer.seq + 1
        action = Action(seq, sensor, kind, msgspec.json.encode(body), self.clock.now())
        ledger.append(rows, actions=[action])
        self.writer.seq = seq
        return action

    async def declare(self, name: str, declared: Declaration) -> bool:
        """Store the declaration of a sensor; return whether the sensor is new.

        A change on which forecasts depend starts a new forecaster.
        """
        status = self.forecasts.statuses.find(name)
        if status is None and len(self.intake.sensors) >= self.max_sensors:
            raise Problem("sr-too-many-sensors", "There are as many sensors as allowed.")
        known = SensorRow(0, name, self.clock.now()) if status is None else status.sensor
        before = Declaration() if status is None else status.declared
        body = msgspec.json.encode(declared)
        sensor = msgspec.structs.replace(known, declared=body, archived=None)
        has_changed = before.forecasting != declared.forecasting
        sensor, action = await self._put(sensor, declared if has_changed else None)
        if status is None:
            self.events.record("new", sensor, "the sensor was declared")
        if action is not None:
            await self.forecasts.apply(action)
        return status is None

    async def archive(self, sensor: SensorRow) -> None:
        """Stop taking readings of a sensor; its stored data stays."""
        await self._put(msgspec.structs.replace(sensor, archived=self.clock.now()))
        self.events.record("archived", sensor, "the sensor was archived")

    async def _put(
        self, sensor: SensorRow, configure: Declaration | None = None
    ) -> tuple[SensorRow, Action | None]:
        """Store a sensor, in one transaction with the action that configures it, if any."""

        def store(ledger: Ledger) -> tuple[SensorRow, Action | None]:
            row, action = sensor, None
            if not row.id:  # a reading may have added the sensor in the meantime
                known = self.intake.sensors.get(row.name)
                number = len(self.intake.sensors) + 1 if known is None else known.id
                row = msgspec.structs.replace(row, id=number)
            if configure is None:
                ledger.append([row])
            else:
                action = self._append(ledger, row.id, "configure", configure, row)
            self.intake.update_sensor(row)
            return row, action

        row, action = await self.writer.run(store)
        self.forecasts.statuses.put(row)
        self.forecasts.pool.take((), [row])
        return row, action
