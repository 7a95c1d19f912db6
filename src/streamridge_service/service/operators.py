"""Actions of operators: stored first, then applied by the sensor's worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from streamridge_service.intake import Intake
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Action, SensorRow
from streamridge_service.plan import SECOND, Declaration, Plan
from streamridge_service.problems import Problem
from streamridge_service.service.events import EventLog
from streamridge_service.service.forecasts import Forecasts
from streamridge_service.service.machine_clock import MachineClock
from streamridge_service.service.sensor_status import SensorStatus
from streamridge_service.service.writer import Writer

# Returns the new row of a sensor, given its present one, and the declaration if it starts a new
# forecaster.
Change = Callable[[SensorRow | None], tuple[SensorRow, Declaration | None]]


@dataclass
class Operators:
    """Runs actions on sensors: retune, freeze, declare, archive and so on."""

    plan: Plan
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

    def acknowledge(self, status: SensorStatus, now: int) -> None:
        """Note that an operator knows about the present state of a sensor."""
        state, reason = status.state(now)
        self.forecasts.statuses.acknowledge(status.sensor.id, state)
        self.events.record("acknowledged", status.sensor, f"{state}: {reason}")

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

        def changed(known: SensorRow | None) -> tuple[SensorRow, Declaration | None]:
            before = Declaration() if known is None else self.intake.declared(known)
            if known is not None:
                self._require_same_step(known, before, declared)
            row = known or self._new_sensor(name)
            body = msgspec.json.encode(declared)
            row = msgspec.structs.replace(row, declared=body, archived=None)
            return row, None if before.forecasting == declared.forecasting else declared

        is_new, sensor, action = await self._change(name, changed)
        if is_new:
            self.events.record("new", sensor, "the sensor was declared")
        if action is not None:
            await self.forecasts.apply(action)
        return is_new

    async def archive(self, name: str) -> None:
        """Stop taking readings of a sensor; its stored data stays."""

        def archived(known: SensorRow | None) -> tuple[SensorRow, None]:
            assert known is not None
            return msgspec.structs.replace(known, archived=self.clock.now()), None

        _, sensor, _ = await self._change(name, archived)
        self.events.record("archived", sensor, "the sensor was archived")

    def _new_sensor(self, name: str) -> SensorRow:
        count = len(self.intake.sensors)
        if count >= self.max_sensors:
            raise Problem("sr-too-many-sensors", "There are as many sensors as allowed.")
        return SensorRow(count + 1, name, self.clock.now())

    def _require_same_step(
        self, sensor: SensorRow, before: Declaration, after: Declaration
    ) -> None:
        """Raise if the step of a sensor with readings changes: its forecasts are stored by step."""
        step, other = (self.plan.of(each).step // SECOND for each in (before, after))
        if step != other and self.intake.has_readings(sensor.id):
            raise Problem(
                "sr-conflicting-declaration",
                f"Sensor {sensor.name} has readings with a step of {step} seconds, which cannot "
                f"become {other}. Declare a sensor of another name.",
            )

    async def _change(self, name: str, change: Change) -> tuple[bool, SensorRow, Action | None]:
        """Change a sensor in the writing thread, so that no other change comes in between.

        Returns whether the sensor is new, the sensor, and the action that configures it, if any.
        """
        loop = asyncio.get_running_loop()

        def store(ledger: Ledger) -> tuple[bool, SensorRow, Action | None]:
            known = self.intake.sensors.get(name)
            row, configured = change(known)
            action = None
            if configured is None:
                ledger.append([row])
            else:
                action = self._append(ledger, row.id, "configure", configured, row)
            self.intake.update_sensor(row)
            # Workers and statuses get changes in the order in which they are stored.
            self.forecasts.pool.take((), [row])
            self.forecasts.groups.put(row)
            loop.call_soon_threadsafe(self.forecasts.statuses.put, row)
            return known is None, row, action

        return await self.writer.run(store)
