"""The service: builds its parts, connects them, runs their periodic checks, and stops them.

It runs in the process that owns the port and the database. Requests, sensor statuses and the event
bus belong to the event loop. The `Writer` is the only thread that writes. Threads that listen to
workers only queue results for the writer and the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from importlib.metadata import version
from typing import TypeVar

import msgspec
import structlog

from streamridge_service.intake import Intake
from streamridge_service.ledger.errors import StorageError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.plan_log import record_plan
from streamridge_service.ledger.records import Kind, StoredReading
from streamridge_service.memory import fixed_bytes
from streamridge_service.plan import NEVER, SECOND
from streamridge_service.problems import Problem
from streamridge_service.service.alerts import Alerts, destinations_of
from streamridge_service.service.answers import (
    ErrorNow,
    LastStep,
    MemoryUse,
    StateCounts,
    StepCount,
    Summary,
    iso,
    iso_or_none,
)
from streamridge_service.service.backups import Backups
from streamridge_service.service.due_refits import due_refits
from streamridge_service.service.events import EventBus, EventLog
from streamridge_service.service.forecasts import Forecasts
from streamridge_service.service.health import Health
from streamridge_service.service.ingest import Ingest
from streamridge_service.service.machine_clock import MachineClock
from streamridge_service.service.operators import Operators
from streamridge_service.service.queries import Queries
from streamridge_service.service.retention import Retention
from streamridge_service.service.sensor_status import SensorStatuses
from streamridge_service.service.writer import Writer
from streamridge_service.settings import ServiceSettings, bytes_of
from streamridge_service.stream_clock import StreamClock
from streamridge_service.workers.sensor_state import SensorSummary
from streamridge_service.workers.worker import WorkerConfig

VERSION = version("streamridge")
# Arrival numbers whose forecasts and readings are loaded at a start, and events.
RECENT, RECENT_EVENTS = 200_000, 10_000
# Buckets of earlier readings that are searched for the newest reading of each sensor.
SEARCHED_BUCKETS = 8
# What an operator should know and do after a jump of the clock.
CLOCK_WARNING = (
    "The machine's clock jumped by {} seconds. The time before the jump is in use until readings "
    "agree with the new time. To use the new time now, POST /v1/clock/trust."
)
TOO_LITTLE_MEMORY = (
    "--memory is less than the processes need without sensors: pass a larger --memory or fewer "
    "--workers"
)
# Seconds between checks of the state, and between measurements of the storage.
CHECK_EVERY, MEASURE_EVERY = 1.0, 10.0
# Seconds between checks whether a backup is due, and between deletions of old rows.
BACKUP_CHECK_EVERY, PRUNE_EVERY = 10.0, 3600.0

T = TypeVar("T")
log = structlog.get_logger("streamridge_service")


class Service:
    """A running service."""

    def __init__(self, settings: ServiceSettings, clock: MachineClock | None = None) -> None:
        self.settings, self.plan = settings, settings.plan
        self.clock = clock or MachineClock()
        self.bus = EventBus()
        # The time that processed readings have reached; None if the machine's clock is used.
        self._stream = StreamClock() if settings.clock == "stream" else None
        self.statuses = SensorStatuses(self.plan, settings.alert_outside, self._stream)
        self.failure: str | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []
        self._checks = 0
        self._held = 0  # bytes of memory that all processes held at the last check

    def open(self) -> None:
        """Open the storage and start all parts; nothing is replayed and nothing refitted."""
        self._loop = asyncio.get_running_loop()
        settings, plan = self.settings, self.plan
        self.ledger = open_ledger(settings.database)
        try:
            has_new_plan = record_plan(self.ledger, plan, self.clock.now())
        except Problem:
            self.ledger.close()
            raise
        self._reader = open_ledger(settings.database, read_only=True)
        sensors, done = self.ledger.sensors(), self.ledger.done_seq()
        self.intake = Intake(
            self.ledger,
            plan,
            sensors,
            max_sensors=settings.max_sensors,
            clock=self.clock.now if self._stream is None else StreamClock(settings.max_sensors),
        )
        self.writer = Writer(self.ledger, self.intake)
        self.queries = Queries(self._reader, lambda: self.writer.is_storing)
        self._connect()
        self._restore()
        memory, least = bytes_of(settings.memory), fixed_bytes(plan, settings.workers)
        if memory < least:
            needed = f"about {least / 1e6:.0f} MB"
            log.warning(TOO_LITTLE_MEMORY, memory=settings.memory, needed=needed)
        config = WorkerConfig(
            settings.database,
            plan,
            sensors,
            done,
            memory,
            self._due_refits,
            log_level=settings.log_level,
        )
        self.forecasts.groups.start(self._reader, sensors)
        self.forecasts.start(config, settings.workers)
        self.writer.start(
            on_commit=self.ingest.on_commit,
            done_seq=lambda: self.forecasts.pool.resume_from,
            on_failure=self._fail,
            on_snapshot=self.forecasts.note_snapshot,
            on_lost_step=self.forecasts.groups.begin_again,
        )
        unfinished = sorted(self.ledger.readings_after(done), key=lambda entry: entry.seq)
        self.forecasts.pool.take(unfinished)
        self._tasks = [
            self._loop.create_task(_repeat(CHECK_EVERY, self._check)),
            self._loop.create_task(_repeat(MEASURE_EVERY, self._measure)),
            self._loop.create_task(self.alerts.run()),
            self._loop.create_task(_repeat(BACKUP_CHECK_EVERY, self.backups.run_if_due)),
            self._loop.create_task(_repeat(PRUNE_EVERY, self._prune)),
        ]
        if has_new_plan:
            reason = "the settings have changed: each sensor is rebuilt at its next reading"
            self.events.record("retuned", None, reason)
        self.health.state = "live"

    def _connect(self) -> None:
        """Build the parts that requests use."""
        last = self.ledger.events(limit=1)
        clock, writer, last_id = self.clock, self.writer, last[-1].id if last else 0
        self.events = events = EventLog(self.bus, writer, lambda: self.now, last_id)
        self.alerts = Alerts(
            destinations_of(self.settings.alert_url, self.settings.alert_command),
            on_failure=lambda reason: events.record("alert_failed", None, reason),
        )
        events.listener = self.alerts.notice
        self.health = Health(clock, writer, bytes_of(self.settings.min_free))
        self.forecasts = Forecasts(
            self.plan,
            self.statuses,
            writer,
            self.bus,
            events,
            now=lambda: self.now,
            neighbours=self.settings.neighbours == "auto",
        )
        self.ingest = Ingest(self.intake, writer, self.forecasts, events, self.health, clock)
        self.operators = Operators(
            self.plan, self.intake, writer, self.forecasts, events, clock, self.settings.max_sensors
        )
        settings, health = self.settings, self.health
        identity = self.ledger.facts()["identity"]
        self.backups = Backups(settings, identity, events=events, health=health, now=clock.now)
        self.retention = Retention(
            settings.keep_days,
            self.plan,
            read=self.read,
            writer=writer,
            events=events,
            health=health,
        )

    def _restore(self) -> None:
        """Load the status of sensors and the newest readings from the ledger."""
        ledger, statuses = self.ledger, self.statuses
        for sensor in self.intake.sensors.values():
            statuses.put(sensor)
        for sensor_id, seq, body in ledger.summaries():
            summary = msgspec.json.decode(body, type=SensorSummary).shown
            statuses.set_summary(sensor_id, summary, seq)
        after = max(ledger.last_seq() - RECENT, 0)
        for issued in ledger.forecasts(after=after, corrected=True):
            statuses.set_forecast(issued)
        entries = [each for each in ledger.readings_after(after) if each.kind != Kind.HELD]
        entries.sort(key=lambda entry: entry.seq)
        earlier, unread_until = ledger.newest_times(up_to=after, buckets=SEARCHED_BUCKETS)
        self.intake.restore(entries, ledger.held(), earlier, unread_until)
        # Snapshots tell when refits are due; afterwards, newer readings are shown.
        self._due_refits = due_refits(statuses.copy(), entries, ledger.restarted(), earlier)
        statuses.set_accepted(earlier)
        self.ingest.count_steps(earlier)
        newest: dict[int, StoredReading] = {}
        for entry in entries:
            if entry.sensor not in newest or entry.time >= newest[entry.sensor].time:
                newest[entry.sensor] = entry
        for sensor_id, entry in newest.items():
            status = statuses[sensor_id]
            step = status.plan.step_of(entry.time)
            if step > status.newest:
                newer = {"newest": step, "value": entry.value}
                statuses.set_summary(sensor_id, msgspec.structs.replace(status.summary, **newer))
        self.ingest.count_steps({sensor: entry.time for sensor, entry in newest.items()})
        statuses.restore_acknowledged(ledger.events(limit=RECENT_EVENTS))
        statuses.mark_announced(self.now)

    def begin_stop(self) -> None:
        """Refuse new readings, and end all event streams."""
        self.health.state = "stopping"
        self.bus.close()

    async def close(self, timeout: float = 5.0) -> None:
        """Stop the workers within `timeout` seconds, write everything queued, and close."""
        self.begin_stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._close, timeout)

    def _close(self, timeout: float) -> None:
        with ExitStack() as parts:  # they are closed in reverse order, even if one fails
            parts.enter_context(suppress(StorageError))
            parts.callback(self.ledger.close)
            parts.callback(self._reader.close)
            parts.callback(self.queries.close)
            parts.callback(self.writer.stop)
            parts.callback(self.forecasts.groups.stop)
            self.forecasts.pool.stop(timeout)

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._loop.call_soon_threadsafe(self.on_failure)

    @property
    def now(self) -> int:
        """Return the time of the service: the machine's, or that of the readings."""
        if self._stream is not None and self._stream.now is not None:
            return self._stream.now
        return self.clock.now()

    def trust_clock(self) -> None:
        """Use the machine's present time, although its clock has jumped."""
        if self.clock.jump:
            self.clock.trust()
            self.events.record("clock_jump", None, "an operator has confirmed the clock")

    async def read(self, query: Callable[[Ledger], T]) -> T:
        """Return the result of a quick query of the ledger."""
        return await self.queries.read(query)

    def summary(self) -> Summary:
        """Return the state of the whole service."""
        now, newest, plan = self.now, self.statuses.newest, self.plan
        steps = self._step_counts()
        jump = round(self.clock.jump / SECOND)
        return Summary(
            state=self.health.state,
            reasons=self.health.reasons,
            now=iso(now),
            version=VERSION,
            step_seconds=plan.step / SECOND,
            horizon=plan.horizon,
            level=plan.level,
            sensors=StateCounts(**self.statuses.counts),
            total=sum(each.sensors for each in steps),
            newest=iso_or_none(newest),
            newest_age_seconds=None if newest == NEVER else (now - newest) / SECOND,
            last_step=steps[0].last_step if steps else None,
            steps=steps,
            refused_last_hour=self.ingest.refused_last_hour,
            days_left=self.health.days_left,
            memory=MemoryUse(self._held, bytes_of(self.settings.memory)),
            clock_warning=CLOCK_WARNING.format(jump) if jump else None,
            zone="UTC",
            error=ErrorNow(self.statuses.error_ratio),
        )

    def _step_counts(self) -> list[StepCount]:
        """Return the counts of sensors for each length of a step, the most frequent first."""
        counts = []
        for length, total in self.statuses.active_by_step.most_common():
            newest, sensors = self.ingest.last_step(length)
            last = None if newest == NEVER else LastStep(iso(newest), len(sensors), total)
            counts.append(StepCount(length / SECOND, total, last))
        return counts

    async def _check(self) -> None:
        """Check workers, clock and held rows; every second time, all states as well."""
        self.forecasts.groups.check()
        self.forecasts.pool.kill_hanging()
        self._held = self.forecasts.pool.limit_memory()
        self.health.crashing_workers = self.forecasts.pool.crashing
        change = self.clock.check()
        if change is not None:
            self.events.record("clock_jump", None, change)
        self.intake.clock_jumped = bool(self.clock.jump)
        if self.intake.held:
            with suppress(Problem):
                await self.ingest.release_held()
        self._checks += 1
        if self._checks % 2:
            await self._announce()

    async def _announce(self) -> None:
        """Record changes of sensors' states, and publish the summary."""
        for changes in self.statuses.check(self.now):
            for sensor, state, reason in changes:
                self.events.record(state, sensor, reason)
            await asyncio.sleep(0)  # requests are answered in between
        self.health.check(self.now, self.statuses.fresh_until)
        self.bus.publish("summary", self.summary())

    async def _prune(self) -> None:
        """Delete old readings and forecasts, if the settings say so."""
        longest = max(self.statuses.active_by_step, default=self.plan.step)
        await self.retention.run(self.clock.now(), self.statuses.newest, longest)

    async def _measure(self) -> None:
        """Measure the storage, and let the writer check it."""
        self.writer.check_storage()
        try:
            # Without a limit of queries: the disk must be watched while many clients read.
            self.health.set_disk(await asyncio.to_thread(self._reader.size))
        except StorageError as error:
            self.health.set_disk(None)
            log.warning("the storage cannot be measured", reason=str(error))


async def _repeat(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    """Run periodic work for ever; a failure is logged, and the next run may succeed."""
    while True:
        try:
            await work()
        except Exception as error:
            log.exception("a periodic check failed", error=repr(error))
        await asyncio.sleep(seconds)
