"""A worker process: it runs the forecasters of some sensors.

The main thread processes readings, a second thread refits one sensor at a time, so that readings
never wait for a refit. Linear algebra runs on one thread, so that results do not depend on the load
of the machine.
"""

from __future__ import annotations

import os
import signal
from collections import OrderedDict
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from threading import Thread
from time import monotonic

import msgspec
from threadpoolctl import threadpool_limits

from streamridge import Workspace
from streamridge.errors import StreamRidgeError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import IssuedForecast, SensorRow, Snapshot
from streamridge_service.plan import Plan
from streamridge_service.workers import messages
from streamridge_service.workers.messages import (
    ActionDone,
    AskForecast,
    ForecastAnswer,
    ReadingsTaken,
    RefitFailed,
    RefitStarted,
    RunAction,
    SensorState,
    SnapshotMade,
    TakeReadings,
)
from streamridge_service.workers.sensor_state import SavedState
from streamridge_service.workers.snapshots import (
    StartHistory,
    caught_up,
    load_tracker,
    refitted,
    started,
)
from streamridge_service.workers.steps import LogItem
from streamridge_service.workers.tracker import OutOfOrderError, Tracker

# Memory of a sensor in bytes: per row of its training set, with and without the rows of the fit in
# memory; and a constant.
AWAKE, AT_REST, BASE = 420, 32, 40_000
# The fewest sensors in memory.
FEWEST = 16


class RefitJob(msgspec.Struct, frozen=True):
    """A refit, or a new start if there is a history."""

    sensor: SensorRow
    saved: SavedState
    history: StartHistory | None = None


class WorkerConfig(msgspec.Struct, frozen=True):
    """The configuration of a worker."""

    url: str
    plan: Plan  # the settings of all forecasters
    sensors: list[SensorRow]
    done: int  # forecasts up to this arrival number are stored
    memory: int  # bytes that sensors may use
    never_refit: frozenset[int] = frozenset()  # sensors whose refits killed workers


def run_worker(connection: Connection, config: WorkerConfig) -> None:
    """Run a worker until it is stopped, or the service has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service stops it
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with threadpool_limits(1), open_ledger(config.url, read_only=True) as ledger:
        Worker(connection, ledger, config).run()


class Worker:
    """The sensors of one process."""

    def __init__(self, connection: Connection, ledger: Ledger, config: WorkerConfig) -> None:
        self._connection, self._ledger, self._plan = connection, ledger, config.plan
        self._done, self._never_refit = config.done, config.never_refit
        self._last_forecast: dict[int, int] = {}  # arrival number by sensor, since the start
        self._sensors = {sensor.id: sensor for sensor in config.sensors}
        plan, memory = config.plan, config.memory
        self._trackers: OrderedDict[int, Tracker] = OrderedDict()  # the last used comes last
        at_rest = BASE + AT_REST * plan.train_size * plan.horizon
        self._most_trackers = max(memory // 2 // at_rest, FEWEST)
        self._most_awake = max(memory // 2 // (AWAKE * plan.train_size), FEWEST)
        self._waiting: OrderedDict[int, None] = OrderedDict()  # sensors that wait for a refit
        self._jobs: SimpleQueue[RefitJob | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[RefitJob, Snapshot | BaseException, float]] = (
            SimpleQueue()
        )
        self._refitting = False
        self._wake_read, self._wake_write = os.pipe()

    def run(self) -> None:
        """Answer messages until the end, and start refits in between."""
        refitter = Thread(target=self._run_jobs, daemon=True)
        refitter.start()
        try:
            while self._answer_next():
                self._collect_finished()
                self._start_refit()
        finally:
            self._jobs.put(None)

    def _answer_next(self) -> bool:
        """Wait for a message or a finished refit, and answer the message; return False to stop."""
        ready = wait([self._connection, self._wake_read])
        if self._wake_read in ready:
            os.read(self._wake_read, 64)
        if self._connection not in ready:
            return True
        try:
            message = messages.decode_for_worker(self._connection.recv_bytes())
        except (EOFError, OSError):
            return False
        match message:
            case TakeReadings():
                self._take_readings(message)
            case RunAction():
                self._run_action(message)
            case AskForecast():
                self._answer_forecast(message)
            case _:
                return False
        return True

    def _take_readings(self, message: TakeReadings) -> None:
        for sensor in message.sensors:
            self._sensors[sensor.id] = sensor
            self._trackers.pop(sensor.id, None)  # its declaration may have changed
        forecasts, states, failed = [], {}, []
        for reading in message.readings:
            try:
                forecasts += self._process(reading)
                states[reading.sensor] = self._state(self._trackers[reading.sensor])
            except StreamRidgeError as error:
                failed.append((reading.seq, error.reason))
        self._send_result(message.number, forecasts, list(states.values()), failed)
        self._limit_memory()

    def _process(self, item: LogItem) -> list[IssuedForecast]:
        """Process an item, and return the forecasts that are not stored yet."""
        tracker = self._trackers.get(item.sensor)
        if tracker is None:
            return self._load(item.sensor)
        self._trackers.move_to_end(item.sensor)
        if item.seq <= tracker.seq:
            return []  # it was read from the ledger already
        try:
            forecasts = tracker.process(item)
        except OutOfOrderError:
            return self._load(item.sensor)
        self._queue_refit(tracker)
        return self._new_forecasts(item.sensor, forecasts)

    def _load(self, sensor: int) -> list[IssuedForecast]:
        """Load a sensor from the ledger; return its new forecasts."""
        done = self._last_forecast.get(sensor, self._done)
        row = self._sensors[sensor]
        tracker, forecasts, rebuilt = load_tracker(self._ledger, row, self._plan, done)
        self._trackers[sensor] = tracker
        self._trackers.move_to_end(sensor)
        if rebuilt is not None:
            self._send(SnapshotMade(rebuilt, self._state(tracker), 0.0))
        self._queue_refit(tracker)
        return self._new_forecasts(sensor, forecasts)

    def _load_if_absent(self, sensor: int) -> None:
        """Load a sensor from the ledger unless it is in memory, and send its new forecasts."""
        if sensor not in self._trackers:
            self._send_result(0, self._load(sensor))

    def _new_forecasts(self, sensor: int, forecasts: list[IssuedForecast]) -> list[IssuedForecast]:
        """Return the forecasts that were not issued before; issued forecasts never change."""
        since = self._last_forecast.get(sensor, self._done)
        new = [each for each in forecasts if each.seq > since]
        if new:
            self._last_forecast[sensor] = max(each.seq for each in new)
        return new

    def _queue_refit(self, tracker: Tracker) -> None:
        if tracker.restart or tracker.due_refit is not None:
            self._waiting[tracker.sensor.id] = None

    def _run_action(self, message: RunAction) -> None:
        """Apply an action, and save the sensor's state."""
        sensor, refusal = message.action.sensor, None
        self._load_if_absent(sensor)
        try:
            self._process(message.action)
            refusal = self._trackers[sensor].failed_actions.get(message.action.seq)
        except StreamRidgeError as error:
            refusal = error.reason
        tracker = self._trackers[sensor]
        if refusal is None and tracker.has_readings and not tracker.restart:
            self._adopt(tracker, refitted(tracker.saved_state(), Workspace()), 0.0)
        self._send(ActionDone(message.number, refusal, self._pending_refits))

    def _answer_forecast(self, message: AskForecast) -> None:
        self._load_if_absent(message.sensor)
        tracker = self._trackers[message.sensor]
        try:
            forecast = tracker.forecast_from(message.now)
        except StreamRidgeError:  # there is no forecast for such a late time
            forecast = None
        if forecast is None and tracker.has_readings:
            forecast = tracker.forecast(tracker.seq)
        tuning = msgspec.json.encode(tracker.tuning())
        self._send(ForecastAnswer(message.number, forecast, tuning, self._state(tracker)))
        self._limit_memory()

    def _start_refit(self) -> None:
        """Give the next refit to the second thread, if it is idle."""
        while self._waiting and not self._refitting:
            sensor, _ = self._waiting.popitem(last=False)
            tracker = self._trackers.get(sensor)
            job = None if tracker is None else self._refit_job(tracker)
            if job is None:  # it was loaded again, and the refit is not due any more
                self._send_result(0)
            else:
                self._refitting = True
                self._send(RefitStarted(sensor))
                self._jobs.put(job)

    def _refit_job(self, tracker: Tracker) -> RefitJob | None:
        """Return the refit that a sensor waits for."""
        if not tracker.restart:
            saved = tracker.due_refit
            return None if saved is None else RefitJob(tracker.sensor, self._without_refit(saved))
        if tracker.sensor.id in self._never_refit:
            return None
        sensor, seq = tracker.sensor, tracker.seq
        readings = self._ledger.readings(sensor.id, up_to=seq)
        history = StartHistory.of(readings, tracker.plan)
        if not len(history.times):
            return None  # its first step is still open
        point = history.point(sensor.id, seq, tracker.restart)
        return RefitJob(
            sensor, msgspec.structs.replace(tracker.saved_state(), point=point), history
        )

    def _without_refit(self, saved: SavedState) -> SavedState:
        """Return a state to refit; one without a refit if refits of this sensor kill workers."""
        if saved.point.sensor not in self._never_refit:
            return saved
        failed = msgspec.structs.replace(saved.summary, failed="its refit never ended")
        point = msgspec.structs.replace(saved.point, kind="failed")
        return msgspec.structs.replace(saved, point=point, summary=failed)

    def _run_jobs(self) -> None:
        """Refit until the worker stops; runs in the second thread."""
        workspace = Workspace()
        while (job := self._jobs.get()) is not None:
            begun = monotonic()
            try:
                result: Snapshot | BaseException = self._run_job(job, workspace)
            except Exception as error:  # the main thread reports it; the old fit stays
                result = error
            self._finished.put((job, result, monotonic() - begun))
            os.write(self._wake_write, b".")

    def _run_job(self, job: RefitJob, workspace: Workspace) -> Snapshot:
        if job.history is None:
            return refitted(job.saved, workspace)
        settings = Tracker(job.sensor, self._plan).settings
        return started(job.saved.point, settings, job.history, job.saved, workspace)

    def _collect_finished(self) -> None:
        """Let sensors continue from their finished refits."""
        while not self._finished.empty():
            job, result, seconds = self._finished.get()
            self._refitting = False
            if isinstance(result, BaseException):
                self._send(RefitFailed(job.sensor.id, repr(result)))
                self._send_result(0)
            elif result.point.seq < self._last_point(job.sensor.id):
                # An action has made a later refit point meanwhile, so this refit is discarded.
                self._send_result(0)
            else:
                self._adopt(self._trackers.get(job.sensor.id), result, seconds)

    def _last_point(self, sensor: int) -> int:
        """Return the arrival number of a sensor's last refit point; zero before the first."""
        tracker = self._trackers.get(sensor)
        if tracker is not None:
            return tracker.fit_seq
        return max((point.seq for point in self._ledger.refit_points(sensor)), default=0)

    def _adopt(self, before: Tracker | None, snapshot: Snapshot, seconds: float) -> None:
        """Send a snapshot to be stored, and continue from it."""
        point = snapshot.point
        sensor = self._sensors[point.sensor]
        tracker, forecasts = caught_up(self._ledger, sensor, self._plan, snapshot)
        if before is not None:
            self._trackers[point.sensor] = tracker
            self._queue_refit(tracker)
        self._send(SnapshotMade(snapshot, self._state(tracker), seconds))
        # The ledger may be ahead of the messages.
        self._send_result(0, self._new_forecasts(point.sensor, forecasts))

    @property
    def _pending_refits(self) -> int:
        """Return the number of refits and new starts that wait or run."""
        return len(self._waiting) + self._refitting

    def _state(self, tracker: Tracker) -> SensorState:
        return SensorState(tracker.sensor.id, tracker.seq, tracker.summary.shown)

    def _limit_memory(self) -> None:
        """Release the memory of sensors that were not used recently, and drop the oldest."""
        while len(self._trackers) > self._most_trackers:
            self._trackers.popitem(last=False)
        for count, tracker in enumerate(reversed(self._trackers.values())):
            if count >= self._most_awake:
                if tracker.memory_released:
                    break
                tracker.release_memory()

    def _send_result(
        self,
        number: int,
        forecasts: list[IssuedForecast] | None = None,
        states: list[SensorState] | None = None,
        failed: list[tuple[int, str]] | None = None,
    ) -> None:
        pending = self._pending_refits
        self._send(ReadingsTaken(number, forecasts or [], states or [], failed or [], pending))

    def _send(self, message: messages.FromWorker) -> None:
        self._connection.send_bytes(messages.encode(message))
