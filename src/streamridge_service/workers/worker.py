"""A worker process: it runs the forecasters of some sensors.

The main thread processes readings, a second thread refits one sensor at a time, so that readings
never wait for a refit. Linear algebra runs on one thread, so that results do not depend on the load
of the machine.

An error costs one sensor: it has failed, and is loaded again after a pause. Its readings are stored
meanwhile, and the other sensors go on.
"""

from __future__ import annotations

import gc
import signal
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import Array, c_longlong
from multiprocessing.connection import Connection, wait

import msgspec
from threadpoolctl import threadpool_limits

from streamridge import Workspace
from streamridge.errors import StreamRidgeError
from streamridge_service import logs
from streamridge_service.ledger.errors import StorageError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import (
    Action,
    IssuedForecast,
    SensorRow,
    Snapshot,
    StoredReading,
)
from streamridge_service.memory import refit_bytes
from streamridge_service.plan import Plan
from streamridge_service.workers import messages
from streamridge_service.workers.failures import SensorFailures
from streamridge_service.workers.messages import (
    ActionDone,
    AskForecast,
    ForecastAnswer,
    ItemProcessed,
    ReadingsTaken,
    RefitEnded,
    RefitQueued,
    RefitStarted,
    RunAction,
    SensorFailed,
    SensorState,
    SnapshotMade,
    SnapshotStored,
    TakeReadings,
)
from streamridge_service.workers.processes import STOPPING
from streamridge_service.workers.refitter import RefitJob, Refitter
from streamridge_service.workers.sensor_state import SavedState
from streamridge_service.workers.snapshots import (
    StartHistory,
    caught_up,
    load_tracker,
    refitted,
    unparked,
)
from streamridge_service.workers.steps import LogItem
from streamridge_service.workers.tracker import OutOfOrderError, Tracker
from streamridge_service.workers.tracker_cache import TrackerCache

# Places in the memory that a worker shares with the service: the sensor that is being processed, 0
# for none; its arrival number; the bytes that the worker may hold; and a count of processed items,
# of which the start is the first.
SENSOR, SEQ, LIMIT, ITEMS = SHARED = range(4)

# Instead of an arrival number: a sensor is loaded, asked for its forecast, prepared for a refit, or
# given the result of one.
LOADED, ASKED, PREPARED, ADOPTED = 0, -1, -2, -3

# Seconds without a message after which a worker checks its memory limit, which may have changed.
IDLE_CHECK = 5.0


class WorkerConfig(msgspec.Struct, frozen=True):
    """The configuration of a worker."""

    url: str
    plan: Plan  # the settings of all forecasters
    sensors: list[SensorRow]
    done: int  # forecasts up to this arrival number are stored
    memory: int  # bytes that the process may hold at first
    refits: tuple[int, ...] = ()  # sensors that wait for a refit, or may
    # Sensors that have failed, or have ended workers, with seconds before they are loaded again.
    failed: tuple[tuple[SensorFailed, float], ...] = ()
    # Items during which workers have ended, by sensor and arrival number.
    suspects: frozenset[tuple[int, int]] = frozenset()
    # Refits that have ended workers, by sensor and arrival number of the refit point; the number
    # is 0 for new starts.
    never_refit: frozenset[tuple[int, int]] = frozenset()
    log_level: str = "info"


def run_worker(connection: Connection, config: WorkerConfig, shared: Array[c_longlong]) -> None:
    """Run a worker until it is stopped, or the service has ended.

    `shared` is memory that the service shares. The worker writes the sensor that it processes, and
    its arrival number, so that they are known if it dies, and counts items, so that a slow worker
    is not taken for a hanging one. The service writes its memory limit.
    """
    gc.freeze()  # a collection would write to memory that workers share, and copy it
    for each in STOPPING:
        signal.signal(each, signal.SIG_IGN)  # the service stops it
    logs.configure(config.log_level)
    with (
        logs.everything_logged(),
        threadpool_limits(1),
        open_ledger(config.url, read_only=True) as ledger,
    ):
        Worker(connection, ledger, config, shared).run()


class Worker:
    """The sensors of one process."""

    def __init__(
        self,
        connection: Connection,
        ledger: Ledger,
        config: WorkerConfig,
        shared: Array[c_longlong],
    ) -> None:
        self._connection, self._ledger, self._plan = connection, ledger, config.plan
        self._done, self._never_refit = config.done, config.never_refit
        self._shared = shared
        self._last_forecast: dict[int, int] = {}  # arrival number by sensor, since the start
        self._sensors = {sensor.id: sensor for sensor in config.sensors}
        self._trackers = TrackerCache(self._allowed_bytes)
        self._failures = SensorFailures(config.failed, self._send)
        self._suspects = set(config.suspects)
        self._unstored: dict[int, Snapshot] = {}  # sent to be stored, and newer than the ledger's
        self._to_load = deque(config.refits)  # sensors that may wait for a refit
        self._waiting: OrderedDict[int, None] = OrderedDict()  # sensors that wait for a refit
        self._refitter = Refitter()

    def run(self) -> None:
        """Answer messages until the end, and start refits in between."""
        self._shared[ITEMS] += 1  # it is ready
        try:
            while self._answer_next():
                self._collect_finished()
                self._start_refit()
                self._retry_failed()
        finally:
            self._refitter.stop()

    def _answer_next(self) -> bool:
        """Wait for a message, a refit or an attempt; answer the message; return False to stop."""
        ready = wait([self._connection, self._refitter.ready], self._timeout())
        if not ready and self._to_load:
            self._load_waiting(self._to_load.popleft())
        elif not ready:
            self._trackers.limit_memory()
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
            case SnapshotStored():
                known = self._unstored.get(message.point.sensor)
                if known is not None and known.point == message.point:
                    del self._unstored[message.point.sensor]
            case _:
                return False
        return True

    def _timeout(self) -> float:
        """Return how long to wait for a message: until a sensor must be loaded, or for a check."""
        attempt = self._failures.next_attempt
        if self._to_load:
            return 0.0
        return IDLE_CHECK if attempt is None else min(attempt, IDLE_CHECK)

    @contextmanager
    def _processing(self, sensor: int, seq: int = LOADED) -> Iterator[None]:
        """Let an error of a block cost this sensor alone, and remember it in case of a crash."""
        self._shared[SENSOR], self._shared[SEQ] = sensor, seq
        self._shared[ITEMS] += 1
        try:
            yield
        except MemoryError:
            raise  # a new process begins with free memory
        except Exception as error:
            self._trackers.remove(sensor)
            self._failures.add(sensor, max(seq, 0), error)
        else:
            if (sensor, seq) in self._suspects:
                self._suspects.remove((sensor, seq))
                self._send(ItemProcessed(sensor, seq))
        self._shared[SENSOR] = 0

    def _retry_failed(self) -> None:
        """Load a failed sensor whose pause has ended, if there is one."""
        sensor = self._failures.due
        if sensor is not None:
            with self._processing(sensor):
                self._send_result(0, self._load(sensor), [self._state(self._trackers[sensor])])
                self._failures.remove(sensor)
            self._trackers.use(sensor)

    def _load_waiting(self, sensor: int) -> None:
        """Load a sensor whose refit may be due, so that it need not wait for a reading."""
        if not self._failures.defer(sensor):
            with self._processing(sensor):
                self._load_if_absent(sensor)
        if sensor not in self._waiting and sensor != self._refitter.sensor:
            self._send(RefitEnded(sensor))
        self._trackers.use(sensor)

    def _take_readings(self, message: TakeReadings) -> None:
        for sensor in message.sensors:
            self._sensors[sensor.id] = sensor
            self._trackers.remove(sensor.id)  # its declaration may have changed
        result = ReadingsTaken(message.number, [], [], [], [])
        by_sensor: dict[int, list[StoredReading]] = {}
        for reading in message.readings:
            by_sensor.setdefault(reading.sensor, []).append(reading)
        # One sensor after the other, so that each is brought into memory only once.
        for readings in by_sensor.values():
            self._take_from_one(readings, result)
        self._send(result)

    def _take_from_one(self, readings: list[StoredReading], result: ReadingsTaken) -> None:
        """Process readings of one sensor, and add what came of it to the result."""
        sensor, state = readings[0].sensor, None
        for reading in readings:
            if self._failures.defer(sensor, reading.seq):
                continue
            with self._processing(sensor, reading.seq):
                try:
                    forecasts, tracker = self._process(reading), self._trackers[sensor]
                    result.forecasts.extend(forecasts)
                    result.learned.extend(_learned(tracker, forecasts))
                    state = self._state(tracker)
                except StorageError:
                    raise
                except StreamRidgeError as error:
                    result.failed.append((reading.seq, error.reason))
        if state is not None:
            result.states.append(state)
        self._trackers.use(sensor)

    def _process(self, item: LogItem) -> list[IssuedForecast]:
        """Process an item, and return the forecasts that are not stored yet."""
        tracker = self._tracker(item.sensor)
        if tracker is None:
            return self._load(item.sensor)
        if item.seq <= tracker.seq:
            return []  # it was read from the ledger already
        try:
            forecasts = tracker.process(item)
        except OutOfOrderError:
            return self._load(item.sensor)
        self._queue_refit(tracker)
        return self._new_forecasts(item.sensor, forecasts)

    def _tracker(self, sensor: int) -> Tracker | None:
        """Return the tracker of a sensor; None if it has to be loaded from the ledger alone."""
        parked = self._trackers.parked(sensor)
        if parked is not None:
            row, newer = self._sensors[sensor], self._unstored.get(sensor)
            tracker = unparked(self._ledger, row, self._plan, parked, newer)
            self._trackers.remove(sensor)
            if tracker is not None:
                self._trackers.put(tracker)
        return self._trackers.get(sensor)

    def _load(self, sensor: int) -> list[IssuedForecast]:
        """Load a sensor from the ledger; return its new forecasts."""
        done = self._last_forecast.get(sensor, self._done)
        row, newer = self._sensors[sensor], self._unstored.get(sensor)
        tracker, forecasts, rebuilt = load_tracker(self._ledger, row, self._plan, done, newer)
        self._trackers.put(tracker)
        if rebuilt is not None:
            self._send_snapshot(rebuilt, tracker, 0.0)
        self._queue_refit(tracker)
        return self._new_forecasts(sensor, forecasts)

    def _load_if_absent(self, sensor: int) -> None:
        """Load a sensor from the ledger unless it is in memory, and send its new forecasts."""
        if self._tracker(sensor) is None:
            self._send_result(0, self._load(sensor))

    def _new_forecasts(self, sensor: int, forecasts: list[IssuedForecast]) -> list[IssuedForecast]:
        """Return the forecasts that were not issued before; issued forecasts never change."""
        since = self._last_forecast.get(sensor, self._done)
        new = [each for each in forecasts if each.seq > since]
        if new:
            self._last_forecast[sensor] = max(each.seq for each in new)
        return new

    def _queue_refit(self, tracker: Tracker) -> None:
        sensor = tracker.sensor.id
        if (tracker.restart or tracker.due_refit is not None) and sensor not in self._waiting:
            self._waiting[sensor] = None
            self._send(RefitQueued(sensor))

    def _run_action(self, message: RunAction) -> None:
        """Apply an action, and save the sensor's state."""
        action, answer = message.action, ActionDone(message.number, has_failed=True)
        if not self._failures.defer(action.sensor, action.seq):
            with self._processing(action.sensor, action.seq):
                answer = ActionDone(message.number, self._applied(action))
        self._send(answer)
        self._trackers.use(action.sensor)

    def _applied(self, action: Action) -> str | None:
        """Apply an action, and return the reason if it is refused."""
        sensor, refusal = action.sensor, None
        self._load_if_absent(sensor)
        try:
            self._process(action)
            refusal = self._trackers[sensor].failed_actions.get(action.seq)
        except StorageError:
            raise
        except StreamRidgeError as error:
            refusal = error.reason
        tracker = self._trackers[sensor]
        if refusal is None and tracker.has_readings and not tracker.restart:
            self._adopt(refitted(tracker.saved_state(), Workspace()), 0.0)
        return refusal

    def _answer_forecast(self, message: AskForecast) -> None:
        answer = ForecastAnswer(message.number)
        if not self._failures.defer(message.sensor):
            with self._processing(message.sensor, ASKED):
                self._load_if_absent(message.sensor)
                answer = self._forecast_answer(message)
        self._send(answer)
        self._trackers.use(message.sensor)

    def _forecast_answer(self, message: AskForecast) -> ForecastAnswer:
        tracker = self._trackers[message.sensor]
        try:
            forecast = tracker.forecast_from(message.now)
        except StreamRidgeError:  # there is no forecast for such a late time
            forecast = None
        if forecast is None and tracker.has_readings:
            forecast = tracker.forecast(tracker.seq)
        tuning = msgspec.json.encode(tracker.tuning())
        return ForecastAnswer(message.number, forecast, tuning, self._state(tracker))

    def _start_refit(self) -> None:
        """Give the next refit to the second thread, if it is idle."""
        while self._waiting and self._refitter.sensor is None:
            sensor, job = next(iter(self._waiting)), None
            if not self._failures.defer(sensor):
                with self._processing(sensor, PREPARED):
                    self._load_if_absent(sensor)
                    job = self._refit_job(self._trackers[sensor])
            del self._waiting[sensor]
            if job is None:  # it was loaded again, and the refit is not due any more
                self._send(RefitEnded(sensor))
            else:
                self._send(RefitStarted(sensor, job.saved.point.seq if job.start is None else 0))
                self._refitter.submit(job)

    def _refit_job(self, tracker: Tracker) -> RefitJob | None:
        """Return the refit that a sensor waits for."""
        if not tracker.restart:
            saved = tracker.due_refit
            return None if saved is None else RefitJob(self._without_refit(saved))
        sensor, seq = tracker.sensor.id, tracker.seq
        if (sensor, 0) in self._never_refit:
            return None
        readings = self._ledger.readings(sensor, up_to=seq)
        history = StartHistory.of(readings, tracker.plan)
        if not len(history.times):
            return None  # its first step is still open
        point = history.point(sensor, seq, tracker.restart)
        saved = msgspec.structs.replace(tracker.saved_state(), point=point)
        return RefitJob(saved, (history, tracker.settings))

    def _without_refit(self, saved: SavedState) -> SavedState:
        """Return a state to refit; one without a refit if this refit has ended workers."""
        if (saved.point.sensor, saved.point.seq) not in self._never_refit:
            return saved
        failed = msgspec.structs.replace(saved.summary, failed="its refit never ended")
        point = msgspec.structs.replace(saved.point, kind="failed")
        return msgspec.structs.replace(saved, point=point, summary=failed)

    def _collect_finished(self) -> None:
        """Let a sensor continue from its finished refit."""
        for result in self._refitter.finished():
            sensor, outcome, error = result.job.sensor, result.outcome, None
            if isinstance(outcome, Exception):
                error = repr(outcome)
            elif not self._failures.defer(sensor):
                with self._processing(sensor, ADOPTED):
                    # An action may have made a later refit point, so that this refit is discarded.
                    if outcome.point.seq >= self._last_point(sensor):
                        self._adopt(outcome, result.seconds)
            self._trackers.use(sensor)
            self._send(RefitEnded(sensor, error, sensor in self._waiting))

    def _last_point(self, sensor: int) -> int:
        """Return the arrival number of a sensor's last refit point; zero before the first."""
        if sensor in self._trackers:
            point = self._trackers.point(sensor)
            return 0 if point is None else point.seq
        if sensor in self._unstored:
            return self._unstored[sensor].point.seq
        return max((point.seq for point in self._ledger.refit_points(sensor)), default=0)

    def _adopt(self, snapshot: Snapshot, seconds: float) -> None:
        """Send a snapshot to be stored, and continue from it."""
        point = snapshot.point
        sensor = self._sensors[point.sensor]
        tracker, forecasts = caught_up(self._ledger, sensor, self._plan, snapshot)
        if point.sensor in self._trackers:
            self._trackers.put(tracker)
            self._queue_refit(tracker)
        self._send_snapshot(snapshot, tracker, seconds)
        # The ledger may be ahead of the messages.
        self._send_result(0, self._new_forecasts(point.sensor, forecasts))

    def _state(self, tracker: Tracker) -> SensorState:
        return SensorState(tracker.sensor.id, tracker.seq, tracker.summary.shown)

    def _allowed_bytes(self) -> int:
        """Return how much memory the process may hold; it reserves the memory of refits."""
        limit: int = self._shared[LIMIT]
        return limit if self._refitter.has_full_fit else limit - refit_bytes(self._plan)

    def _send_snapshot(self, snapshot: Snapshot, tracker: Tracker, seconds: float) -> None:
        """Send a snapshot to be stored; until then, the sensor is loaded from this one."""
        self._unstored[snapshot.point.sensor] = snapshot
        self._send(SnapshotMade(snapshot, self._state(tracker), seconds))

    def _send_result(
        self,
        number: int,
        forecasts: list[IssuedForecast] | None = None,
        states: list[SensorState] | None = None,
        failed: list[tuple[int, str]] | None = None,
    ) -> None:
        learned: list[float | None] = [None] * len(forecasts or [])
        self._send(ReadingsTaken(number, forecasts or [], states or [], failed or [], learned))

    def _send(self, message: messages.FromWorker) -> None:
        self._connection.send_bytes(messages.encode(message))


def _learned(tracker: Tracker, forecasts: list[IssuedForecast]) -> list[float | None]:
    """Return the reading before each of some forecasts, if it is the last one."""
    step, value = tracker.learned
    return [value if each.time == step + tracker.plan.step else None for each in forecasts]
