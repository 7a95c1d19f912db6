"""Readings in: stored by the writer, passed to the workers, acknowledged after the commit."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from streamridge_service.intake import IngestOptions, Intake, NewRows, Receipt
from streamridge_service.ledger.records import Kind, SensorRow
from streamridge_service.plan import HOUR, NEVER
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch
from streamridge_service.service.events import EventLog
from streamridge_service.service.forecasts import Forecasts
from streamridge_service.service.health import Health
from streamridge_service.service.machine_clock import MachineClock
from streamridge_service.service.writer import Writer

# Messages that may wait for workers before requests must try again: one step of many sensors.
MAX_WAITING = 2000
OUTCOMES = ("accepted", "duplicate", "late", "held", "replaced", "implausible", "refused")
# Later than any held reading.
FAR_FUTURE = 1 << 62


@dataclass
class Ingest:
    """Stores readings. A request is acknowledged once its readings are on disk."""

    intake: Intake
    writer: Writer
    forecasts: Forecasts
    events: EventLog
    health: Health
    clock: MachineClock

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.counts: Counter[str] = Counter()  # rows by outcome
        self._refused: deque[tuple[int, int]] = deque()  # when, and how many rows
        # By length of a step: the newest step with readings, and their sensors.
        self._last_steps: dict[int, tuple[int, set[int]]] = {}

    async def store(self, batch: Batch, options: IngestOptions) -> Receipt:
        """Store rows; when this returns, they are on disk."""
        self.health.require_writable()
        if self.forecasts.pool.waiting > MAX_WAITING and options.mode == "live":
            raise Problem("sr-busy", "Forecasts lag too far behind; nothing was stored.")
        future = self.writer.ingest(batch, options, self.clock.now())
        receipt = await asyncio.wrap_future(future)
        self._count(receipt)
        return receipt

    def _count(self, receipt: Receipt) -> None:
        for name in OUTCOMES:
            self.counts[name] += getattr(receipt, name)
        if receipt.refused:
            self._refused.append((self.clock.now(), receipt.refused))
            first = receipt.refusals[0]
            reason = f"{receipt.refused} rows: {first.code}, {first.detail}"
            self.events.record("refused", None, reason)

    def on_commit(self, group: NewRows) -> None:
        """Pass committed readings on; called by the writing thread."""
        self.forecasts.pool.take(group.readings, group.sensors.values())
        newest: dict[int, int] = {}
        for reading in group.readings:
            if reading.kind != Kind.HELD:
                newest[reading.sensor] = max(reading.time, newest.get(reading.sensor, NEVER))
        self._loop.call_soon_threadsafe(self._show, group, newest)

    def _show(self, group: NewRows, newest: dict[int, int]) -> None:
        statuses = self.forecasts.statuses
        for sensor in group.sensors.values():
            statuses.put(sensor)
        statuses.set_accepted(newest)
        self.count_steps(newest)
        if self.clock.jump:
            for reading in group.readings:
                if reading.is_live or reading.kind == Kind.HELD:
                    delay = statuses[reading.sensor].plan.open_for
                    self.clock.add_reading(reading.sensor, reading.time, delay)

    def count_steps(self, newest: Mapping[int, int]) -> None:
        """Count the sensors with a reading of the newest step, for each length of a step.

        `newest` has the time of each sensor's newest reading, without held ones.
        """
        for sensor, time in newest.items():
            plan = self.forecasts.statuses[sensor].plan
            step, (last, sensors) = plan.step_of(time), self.last_step(plan.step)
            if step > last:
                self._last_steps[plan.step] = step, {sensor}
            elif step == last:
                sensors.add(sensor)

    async def release_held(self, sensor: SensorRow | None = None) -> int:
        """Take in held rows whose time has come, or all of a sensor; return their number."""

        def store(_: object) -> int:
            group, now = NewRows(self.writer.seq), self.clock.now()
            until, number = (self.intake.now, None) if sensor is None else (FAR_FUTURE, sensor.id)
            self.intake.release_held(until, group, now, number)
            self.writer.commit(group)
            return len(group.readings)

        return await self.writer.run(store)

    @property
    def refused_last_hour(self) -> int:
        """Return how many rows were refused in the last hour."""
        now = self.clock.now()
        while self._refused and now - self._refused[0][0] > HOUR:
            self._refused.popleft()
        return sum(count for _, count in self._refused)

    def last_step(self, length: int) -> tuple[int, set[int]]:
        """Return the newest step of a length, `NEVER` before the first, and its sensors."""
        return self._last_steps.get(length, (NEVER, set()))
