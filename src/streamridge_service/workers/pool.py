"""The worker pool: messages go to worker processes, and crashed workers are restarted.

A restarted worker gets the messages that its predecessor has not answered. Nothing is lost or
learned twice: a worker skips arrival numbers that it has already read from the ledger.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from ctypes import Array, c_longlong
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from zlib import crc32

import msgspec

from streamridge_service.futures import uncancellable_future
from streamridge_service.ledger.records import Action, RefitPoint, SensorRow, StoredReading
from streamridge_service.memory import family_bytes, resident_bytes
from streamridge_service.workers import messages
from streamridge_service.workers.failures import CRASHED
from streamridge_service.workers.failures import LONGEST_PAUSE as LONGEST_ISOLATION
from streamridge_service.workers.messages import (
    ActionDone,
    AskForecast,
    ForecastAnswer,
    FromWorker,
    ItemProcessed,
    ReadingsTaken,
    RefitEnded,
    RefitQueued,
    RefitStarted,
    RunAction,
    SensorFailed,
    SnapshotMade,
    SnapshotStored,
    TakeReadings,
)
from streamridge_service.workers.processes import process_context, start_process
from streamridge_service.workers.worker import (
    ITEMS,
    LIMIT,
    LOADED,
    SENSOR,
    SEQ,
    SHARED,
    WorkerConfig,
    run_worker,
)

# Readings in one message: few enough that forecasts come back soon.
MOST_READINGS = 500
# Seconds without progress after which a worker that owes an answer is restarted, and seconds after
# which a worker that is still starting is. A start on a busy machine is slow, but not a hang.
ANSWER_TIMEOUT, START_TIMEOUT = 120.0, 600.0
# A worker that crashes within this many seconds is restarted after a pause, which doubles up to
# the second number.
EARLY_CRASH, LONGEST_PAUSE = 5.0, 10.0
# A worker that crashes this often within these seconds crashes repeatedly.
MANY_CRASHES, CRASH_SPAN = 3, 60.0
# Crashes in a row while one item is processed, after which its sensor is isolated; and crashes
# during one refit, after which this refit is given up. A refit is long: chance may hit it twice.
MOST_CRASHES, MOST_REFIT_CRASHES = 2, 3
# Seconds for which a sensor is isolated first; they double this often, up to `LONGEST_ISOLATION`.
FIRST_ISOLATION, MOST_DOUBLINGS = 10.0, 6
# Seconds for which a restarted worker waits for the snapshots of the one before to be stored.
STORE_TIMEOUT = 10.0
# The most readings that a restarted service processes again for the sake of failed sensors.
MOST_REPLAYED = 100_000

Listener = Callable[["WorkerHandle", FromWorker], None]


class WorkerHandle:
    """One worker process, and the messages that it has not answered.

    `listener` is called with every message of the worker, in a thread of its own. `done` returns
    the arrival number up to which forecasts are stored.
    """

    def __init__(
        self, config: WorkerConfig, listener: Listener, done: Callable[[], int] | None = None
    ) -> None:
        self._config, self._listener = config, listener
        self._done = done or (lambda: config.done)
        self._sensors = {sensor.id: sensor for sensor in config.sensors}
        self.restarts = 0
        # Crashes by sensor and arrival number, while items were processed, and in refits. A
        # processed item has none.
        self._crashes: Counter[tuple[int, int]] = Counter()
        self._refit_crashes: Counter[tuple[int, int]] = Counter()
        self._crash_times: deque[float] = deque(maxlen=MANY_CRASHES)
        # Sensors that wait for a refit or a new start, or may.
        self.waiting_refits = dict.fromkeys(config.refits)
        self.failed: dict[int, SensorFailed] = {}  # by sensor
        self.unanswered: dict[int, tuple[float, TakeReadings | RunAction | AskForecast]] = {}
        # First and last arrival number of readings whose forecasts are not stored yet.
        self.unsettled: dict[int, tuple[int, int]] = {}
        self._unstored: Counter[RefitPoint] = Counter()  # points whose snapshots wait to be stored
        self._refitting: tuple[RefitStarted, float] | None = None
        self._outbox: SimpleQueue[messages.ToWorker | None] = SimpleQueue()
        self._lock = Lock()
        self._stopping = Event()
        self._started_at, self._pause = 0.0, 0.0
        # The last time when the worker was seen to work, and the number of its items then.
        self._last_progress_at, self._items = 0.0, 0
        self._shared: Array[c_longlong] = process_context().RawArray("q", len(SHARED))
        self.limit_memory(config.memory)
        self._process, self._connection = self._start_process()
        self._threads = [
            Thread(target=each, daemon=True) for each in (self._send_messages, self._receive)
        ]
        for thread in self._threads:
            thread.start()

    def _start_process(self) -> tuple[BaseProcess, Connection]:
        self._started_at = monotonic()
        self._shared[ITEMS] = self._items = 0
        ours, theirs = process_context().Pipe()
        process = start_process(run_worker, theirs, self._config, self._shared)
        theirs.close()
        return process, ours

    @property
    def pid(self) -> int | None:
        """Return the number of the process."""
        return self._process.pid

    @property
    def resident(self) -> int:
        """Return the bytes that the process holds."""
        return resident_bytes(self.pid)

    @property
    def is_ready(self) -> bool:
        """Return whether the process has started, so that it answers messages."""
        return bool(self._shared[ITEMS])

    def limit_memory(self, limit: int) -> None:
        """Set the bytes that the process may hold, now and after a restart."""
        self._shared[LIMIT] = limit

    def send(self, message: TakeReadings | RunAction | AskForecast) -> None:
        """Send a message without waiting."""
        with self._lock:
            self.unanswered[message.number] = monotonic(), message
            if isinstance(message, TakeReadings):
                self._sensors |= {sensor.id: sensor for sensor in message.sensors}
            if isinstance(message, TakeReadings) and message.readings:
                seqs = message.readings[0].seq, message.readings[-1].seq
                self.unsettled[message.number] = seqs
            self._outbox.put(message)

    def settle(self, number: int) -> None:
        """Forget a message whose forecasts are stored."""
        with self._lock:
            self.unsettled.pop(number, None)

    def note_stored(self, point: RefitPoint, *, is_stored: bool = True) -> None:
        """Note that a snapshot was stored, or that it cannot be."""
        with self._lock:
            self._unstored -= Counter([point])
        if is_stored:
            self._outbox.put(SnapshotStored(point))

    def recover(self, sensor: int) -> None:
        """Forget the failure of a sensor whose missing forecasts are stored."""
        with self._lock:
            self.failed.pop(sensor, None)
            for item in [each for each in self._crashes if each[0] == sensor and each[1] >= LOADED]:
                del self._crashes[item]  # all its items were processed

    @property
    def crashes_repeatedly(self) -> bool:
        """Return whether the worker has crashed many times within a short span."""
        times = list(self._crash_times)
        return len(times) == MANY_CRASHES and monotonic() - times[0] < CRASH_SPAN

    def kill_if_hanging(self) -> None:
        """Kill the worker if it has done nothing, or has refitted one sensor, for too long."""
        timeout = ANSWER_TIMEOUT if self.is_ready else START_TIMEOUT
        with self._lock:
            if self._shared[ITEMS] != self._items:
                self._last_progress_at, self._items = monotonic(), self._shared[ITEMS]
            sent = [at for at, _ in list(self.unanswered.values())[:1]]
            since = [max(at, self._last_progress_at) for at in sent]
            since += [self._refitting[1]] if self._refitting is not None else []
        if since and monotonic() - min(since) > timeout:
            self._process.kill()

    def stop(self, timeout: float) -> None:
        """Stop the worker; kill it after `timeout` seconds, or at once while it starts."""
        with self._lock:  # no process is started afterwards
            self._stopping.set()
        self._outbox.put(messages.Stop())
        self._process.join(timeout if self.is_ready else 0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._outbox.put(None)
        for thread in self._threads:
            thread.join(1.0)
        self._connection.close()

    def _send_messages(self) -> None:
        while (message := self._outbox.get()) is not None:
            with suppress(OSError):  # the restarted worker gets the message again
                self._connection.send_bytes(messages.encode(message))

    def _receive(self) -> None:
        while True:
            try:
                message = messages.decode_for_service(self._connection.recv_bytes())
            except (EOFError, OSError):
                if self._stopping.is_set():
                    return
                self._restart()
                continue
            self._note(message)
            self._listener(self, message)

    def _note(self, message: FromWorker) -> None:
        with self._lock:
            self._last_progress_at, self._items = monotonic(), self._shared[ITEMS]
            match message:
                case ReadingsTaken() | ActionDone() | ForecastAnswer():
                    self.unanswered.pop(message.number, None)
                case SnapshotMade():
                    self._unstored[message.snapshot.point] += 1
                case RefitQueued():
                    self.waiting_refits[message.sensor] = None
                case RefitStarted():
                    self._refitting = message, monotonic()
                case RefitEnded():
                    if not message.waits_again:
                        self.waiting_refits.pop(message.sensor, None)
                    if self._refitting is not None and self._refitting[0].sensor == message.sensor:
                        self._refitting = None
                case SensorFailed():
                    self.failed[message.sensor] = message
                case ItemProcessed():
                    self._crashes.pop((message.sensor, message.seq), None)

    def _restart(self) -> None:
        """Start the process again, and send it the unanswered messages."""
        self._crash_times.append(monotonic())
        early = monotonic() - self._started_at < EARLY_CRASH
        self._pause = min(max(2 * self._pause, 0.1), LONGEST_PAUSE) if early else 0.0
        self._stopping.wait(self._pause)
        self._await_snapshots()
        done = self._done()
        with self._lock:
            if self._stopping.is_set():
                return
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._blame()
            self._update_config(done)
            with suppress(Empty):  # the sending thread may have taken the last one
                while True:
                    self._outbox.get_nowait()
            try:
                self._process, self._connection = self._start_process()
            except (OSError, EOFError):  # no memory, too many processes: retried after a pause
                return
            self.restarts += 1
            now = monotonic()
            self.unanswered = {n: (now, each) for n, (_, each) in self.unanswered.items()}
            for _, message in self.unanswered.values():
                self._outbox.put(message)

    def _await_snapshots(self) -> None:
        """Wait until all snapshots are stored, from which the new process loads its sensors."""
        end = monotonic() + STORE_TIMEOUT
        while self._unstored and monotonic() < end and not self._stopping.wait(0.01):
            pass

    def _blame(self) -> None:
        """Count the crash for the item that was processed, and for the refit that was running."""
        sensor, seq = self._shared[SENSOR], self._shared[SEQ]
        self._shared[SENSOR] = 0
        if sensor:
            self._crashes[sensor, seq] += 1
            if self._isolation(sensor):
                self._isolate(sensor, seq)
        if self._refitting is not None:
            started = self._refitting[0]
            self._refit_crashes[started.sensor, started.seq] += 1
            self._refitting = None

    def _isolate(self, sensor: int, seq: int) -> None:
        """Note that a sensor has failed; the first item that waits for it stays the same."""
        before = self.failed.get(sensor)
        first = before.seq if before is not None and before.seq else max(seq, 0)
        self.failed[sensor] = SensorFailed(sensor, first, CRASHED, CRASHED)

    def _update_config(self, done: int) -> None:
        """Add new sensors; keep sensors and refits that have ended the worker apart."""
        self._config = msgspec.structs.replace(
            self._config,
            sensors=list(self._sensors.values()),
            done=done,
            refits=tuple(self.waiting_refits),
            failed=tuple(
                (message, self._isolation(sensor)) for sensor, message in self.failed.items()
            ),
            suspects=frozenset(self._crashes),
            never_refit=frozenset(
                refit for refit, n in self._refit_crashes.items() if n >= MOST_REFIT_CRASHES
            ),
        )

    def _isolation(self, sensor: int) -> float:
        """Return the seconds before a failed sensor is loaded again.

        They are 0 unless one of its items has ended workers several times.
        """
        crashes = [count for (each, _), count in self._crashes.items() if each == sensor]
        if max(crashes, default=0) < MOST_CRASHES:
            return 0.0
        doublings = min(sum(crashes) - MOST_CRASHES, MOST_DOUBLINGS)
        return min(FIRST_ISOLATION * 2**doublings, LONGEST_ISOLATION)


class WorkerPool:
    """All workers; a hash of its name assigns each sensor to one of them."""

    def __init__(self, config: WorkerConfig, workers: int, listener: Listener) -> None:
        self._lock, self._number = Lock(), 0
        self._futures: dict[int, Future[FromWorker]] = {}
        self._listener = listener
        self._owners: dict[int, int] = {}  # the index of each sensor's worker
        self._last_seq = config.done
        shares: list[list[SensorRow]] = [[] for _ in range(workers)]
        for sensor in config.sensors:
            owner = self._owners[sensor.id] = _worker_of(sensor.name, workers)
            shares[owner].append(sensor)
        self._memory = config.memory
        memory = max(config.memory - family_bytes(), 0) // workers
        self.workers: list[WorkerHandle] = []
        self.workers += [
            WorkerHandle(_shared(config, share, memory), self._received, lambda: self.resume_from)
            for share in shares
        ]

    def take(self, readings: Iterable[StoredReading], sensors: Iterable[SensorRow] = ()) -> None:
        """Send readings, and new sensors, to their workers without waiting."""
        with self._lock:
            new: list[list[SensorRow]] = [[] for _ in self.workers]
            for sensor in sensors:
                owner = self._owners[sensor.id] = _worker_of(sensor.name, len(self.workers))
                new[owner].append(sensor)
            parts: list[list[StoredReading]] = [[] for _ in self.workers]
            for reading in readings:
                parts[self._owners[reading.sensor]].append(reading)
                self._last_seq = max(self._last_seq, reading.seq)
            for worker, part, added in zip(self.workers, parts, new, strict=True):
                for start in range(0, max(len(part), bool(added)), MOST_READINGS):
                    chunk = part[start : start + MOST_READINGS]
                    number = self._next_number()
                    worker.send(TakeReadings(number, chunk, added if start == 0 else []))

    def act(self, action: Action) -> Future[FromWorker]:
        """Send an action to its worker; the answer is an `ActionDone`."""
        with self._lock:
            self._last_seq = max(self._last_seq, action.seq)
        return self._request(action.sensor, lambda number: RunAction(number, action))

    def ask(self, sensor: int, now: int) -> Future[FromWorker]:
        """Request a sensor's forecast and tuning; the answer is a `ForecastAnswer`."""
        return self._request(sensor, lambda number: AskForecast(number, sensor, now))

    def note_stored(self, point: RefitPoint, *, is_stored: bool = True) -> None:
        """Note that a snapshot was stored, or that it cannot be."""
        self.workers[self._owners[point.sensor]].note_stored(point, is_stored=is_stored)

    @property
    def done(self) -> int:
        """Return the arrival number up to which the forecasts of all readings are stored."""
        with self._lock:
            firsts = [
                first for worker in self.workers for first, _ in list(worker.unsettled.values())
            ]
            return min(firsts, default=self._last_seq + 1) - 1

    @property
    def resume_from(self) -> int:
        """Return the arrival number after which a restarted service processes readings again.

        It is `done`, or lies before the first reading that a failed sensor has not processed, but
        not by more than `MOST_REPLAYED`.
        """
        done = self.done
        failed = [each.seq for worker in self.workers for each in list(worker.failed.values())]
        first = min((seq for seq in failed if seq), default=done + 1)
        return max(min(done, first - 1), done - MOST_REPLAYED)

    @property
    def failed(self) -> int:
        """Return the number of sensors that cannot be processed at present."""
        return sum(len(worker.failed) for worker in self.workers)

    @property
    def crashing(self) -> int:
        """Return the number of workers that crash repeatedly."""
        return sum(worker.crashes_repeatedly for worker in self.workers)

    @property
    def waiting(self) -> int:
        """Return the number of unanswered messages."""
        return sum(len(worker.unanswered) for worker in self.workers)

    @property
    def pending_refits(self) -> int:
        """Return the number of refits and new starts that wait or run."""
        return sum(len(worker.waiting_refits) for worker in self.workers)

    @property
    def restarts(self) -> int:
        """Return how often workers were restarted."""
        return sum(worker.restarts for worker in self.workers)

    @property
    def memory(self) -> dict[str, int]:
        """Return the bytes that the workers hold, and all other processes of the service."""
        workers = sum(worker.resident for worker in self.workers)
        return {"server": family_bytes([each.pid for each in self.workers]), "workers": workers}

    def limit_memory(self) -> int:
        """Give every worker an equal share of the memory that other processes leave.

        Returns the bytes that all processes hold.
        """
        held = self.memory
        for worker in self.workers:
            worker.limit_memory(max(self._memory - held["server"], 0) // len(self.workers))
        return sum(held.values())

    def kill_hanging(self) -> None:
        """Kill workers that hang; they are restarted."""
        for worker in self.workers:
            worker.kill_if_hanging()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop all workers at the same time."""
        stoppers = [Thread(target=worker.stop, args=(timeout,)) for worker in self.workers]
        for each in stoppers:
            each.start()
        for each in stoppers:
            each.join()

    def _request(
        self, sensor: int, message_of: Callable[[int], RunAction | AskForecast]
    ) -> Future[FromWorker]:
        with self._lock:
            future: Future[FromWorker] = uncancellable_future()
            message = message_of(self._next_number())
            self._futures[message.number] = future
            self.workers[self._owners[sensor]].send(message)
        return future

    def _received(self, worker: WorkerHandle, message: FromWorker) -> None:
        if isinstance(message, ActionDone | ForecastAnswer):
            with self._lock:
                future = self._futures.pop(message.number, None)
            if future is not None:
                future.set_result(message)
        self._listener(worker, message)

    def _next_number(self) -> int:
        self._number += 1
        return self._number


def _shared(config: WorkerConfig, sensors: list[SensorRow], memory: int) -> WorkerConfig:
    """Return the configuration of a worker that owns some of the sensors."""
    own = {sensor.id for sensor in sensors}
    refits = tuple(sensor for sensor in config.refits if sensor in own)
    return msgspec.structs.replace(config, sensors=sensors, memory=memory, refits=refits)


def _worker_of(name: str, workers: int) -> int:
    """Return the index of a sensor's worker; the hash differs from the hash that spreads refits."""
    return crc32(name.encode()[::-1]) % workers
