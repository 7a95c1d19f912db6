"""Forecasts out: results of the workers are stored, shown in the sensor statuses, and published."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

import structlog

from streamridge_service.ledger.records import Action, IssuedForecast, RefitPoint
from streamridge_service.plan import Plan
from streamridge_service.problems import Problem
from streamridge_service.service.answers import sensor_item
from streamridge_service.service.events import EventBus, EventLog
from streamridge_service.service.groups import Groups
from streamridge_service.service.sensor_status import SensorStatus, SensorStatuses
from streamridge_service.service.writer import PendingWrites, Writer
from streamridge_service.workers.messages import (
    ActionDone,
    ForecastAnswer,
    FromWorker,
    ReadingsTaken,
    RefitEnded,
    SensorFailed,
    SensorRecovered,
    SensorState,
    SnapshotMade,
)
from streamridge_service.workers.pool import WorkerHandle, WorkerPool
from streamridge_service.workers.worker import WorkerConfig

# Seconds to wait for a worker's answer; for forecasts of new readings; and between two checks.
ANSWER_TIMEOUT, FORECAST_TIMEOUT, CHECK_EVERY = 30.0, 5.0, 0.01
# The event of each kind of refit point: its kind, and its reason.
REFIT_EVENTS = {
    "refit": ("retuned", "refitted; the hyperparameters were updated"),
    "start": ("retuned", "rebuilt from the readings"),
    "reset": ("retuned", "rebuilt from the readings, with the initial hyperparameters"),
    "rebuilt": ("rebuilt", "the stored state was damaged and was rebuilt from the readings"),
    "failed": ("degraded", "the refit failed; the last fit stays in use"),
}
UNSTORABLE = (
    "its state cannot be stored, since a page of the database is damaged; restore a backup with "
    "`streamridge restore`"
)

log = structlog.get_logger("streamridge_service")


class Forecasts:
    """The worker pool, and the sensor statuses that its results update."""

    def __init__(
        self,
        plan: Plan,
        statuses: SensorStatuses,
        writer: Writer,
        bus: EventBus,
        events: EventLog,
        now: Callable[[], int],
        *,
        neighbours: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._plan, self.statuses, self._writer = plan, statuses, writer
        self.groups = Groups(
            plan,
            is_on=neighbours,
            store=lambda result: writer.add(PendingWrites([result])),
            show=lambda some: self._loop.call_soon_threadsafe(self._show_corrected, some),
        )
        self._bus, self._events, self._now = bus, events, now
        self.counts: Counter[str] = Counter()  # refits by kind, failures, milliseconds

    def start(self, config: WorkerConfig, workers: int) -> None:
        """Start the worker processes."""
        self.pool = WorkerPool(config, workers, self._received)

    def _received(self, worker: WorkerHandle, message: FromWorker) -> None:
        """Pass a worker's message on; called in the thread that listens to this worker."""
        if isinstance(message, ReadingsTaken):
            settle = partial(worker.settle, message.number)
            self._writer.add(PendingWrites([*message.forecasts], callbacks=[settle]))
        elif isinstance(message, SnapshotMade):
            self._writer.add(PendingWrites([message.snapshot]))
        elif isinstance(message, SensorRecovered):
            recover = partial(worker.recover, message.sensor)
            self._writer.add(PendingWrites(callbacks=[recover]))
        self._loop.call_soon_threadsafe(self._show, message)
        if isinstance(message, ReadingsTaken):  # corrections are stored and shown after forecasts
            self.groups.take(message)

    def _show(self, message: FromWorker) -> None:
        match message:
            case ReadingsTaken():
                for issued in message.forecasts:
                    self.statuses.set_forecast(issued)
                for known in message.states:
                    self._update(known)
                for seq, reason in message.failed:
                    self.counts["unlearned"] += 1
                    log.warning("a reading was not learned", seq=seq, reason=reason)
            case SnapshotMade():
                self._update(message.state)
                self._record_refit(message)
            case RefitEnded(error=str(error)):
                self.counts["failed"] += 1
                sensor = self.statuses[message.sensor].sensor
                self._events.record("degraded", sensor, f"the refit failed: {error}")
            case SensorFailed():
                self.statuses.set_fault(message.sensor, message.reason)
                name = self.statuses[message.sensor].sensor.name
                log.error("a sensor cannot be processed", sensor=name, reason=message.detail)
            case SensorRecovered():
                self.statuses.set_fault(message.sensor, None)

    def _show_corrected(self, forecasts: tuple[IssuedForecast, ...]) -> None:
        for issued in forecasts:
            self._publish(self.statuses.set_corrected(issued))

    def _update(self, known: SensorState) -> None:
        if known.sensor in self.statuses:
            self._publish(self.statuses.set_summary(known.sensor, known.summary, known.seq))

    def _publish(self, status: SensorStatus) -> None:
        name = status.sensor.name
        if name in self._bus.watched:
            self._bus.publish("sensor", sensor_item(status, self._now()), name)

    def _record_refit(self, message: SnapshotMade) -> None:
        point = message.snapshot.point
        self.counts[point.kind] += 1
        self.counts["refit_milliseconds"] += int(1000 * message.seconds)
        if point.kind in REFIT_EVENTS:
            kind, reason = REFIT_EVENTS[point.kind]
            self._events.record(kind, self.statuses[point.sensor].sensor, reason)

    def note_snapshot(self, point: RefitPoint, is_stored: bool) -> None:
        """Note whether a snapshot could be stored; called by the writing thread."""
        self.pool.note_stored(point, is_stored=is_stored)
        if not is_stored:
            self._loop.call_soon_threadsafe(self.statuses.set_fault, point.sensor, UNSTORABLE)

    async def ask(self, sensor: int) -> ForecastAnswer:
        """Return a sensor's forecast from now on, and its tuning; update its status.

        A sensor that has failed has neither; its status tells why.
        """
        answer = await _answered(self.pool.ask(sensor, self._now()))
        assert isinstance(answer, ForecastAnswer)
        if answer.state is not None:
            self._update(answer.state)
        return answer

    async def apply(self, action: Action) -> None:
        """Let the sensor's worker apply a stored action."""
        answer = await _answered(self.pool.act(action))
        assert isinstance(answer, ActionDone)
        if answer.has_failed:
            raise Problem("sr-sensor-failed", self._fault(action.sensor))
        if answer.refusal is not None:
            raise Problem("sr-unknown-hyperparameter", answer.refusal)

    def _fault(self, sensor: int) -> str:
        return f"The sensor has failed: {self.statuses[sensor].fault}."

    async def newest(self, seqs: Mapping[int, int]) -> list[tuple[SensorStatus, bool]]:
        """Return the statuses of sensors after their arrival numbers, or after a few seconds.

        The second value of each pair is whether the worker has processed the readings so far.
        """
        deadline = self._loop.time() + FORECAST_TIMEOUT
        while True:
            statuses = [(self.statuses[sensor], seq) for sensor, seq in seqs.items()]
            found = [(status, status.seq >= seq) for status, seq in statuses]
            missing = [status for status, is_done in found if not is_done and status.fault is None]
            if not missing or self._loop.time() >= deadline:
                return found
            await asyncio.sleep(CHECK_EVERY)


async def _answered(future: Future[FromWorker]) -> FromWorker:
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), ANSWER_TIMEOUT)
    except TimeoutError:
        raise Problem("sr-busy", "The sensor's worker has not answered in time.") from None
