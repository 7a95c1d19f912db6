"""A worker process: it owns some of the sensors, and refits them one at a time beside its work.

Forecasts are made in the main thread, refits in a second one: a reading never waits for a refit.
All linear algebra runs on one thread, so that results do not depend on the machine's load.
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

from streamridge.errors import StreamRidgeError
from streamridge.learners.workspace import Workspace
from streamridge.service.fleet import messages
from streamridge.service.fleet.loading import caught_up, loaded
from streamridge.service.fleet.making import Beginning, refitted, started
from streamridge.service.fleet.messages import (
    Act,
    Acted,
    Ask,
    Failed,
    Kept,
    Known,
    Refitting,
    Take,
    Told,
    Took,
)
from streamridge.service.fleet.order import Item
from streamridge.service.fleet.tracker import OutOfOrderError, Ripe, Tracker
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.records import Issued, SensorRow, Snapshot
from streamridge.service.plan import Plan

# Bytes of a sensor per row of its training set: while its rows are held, and at rest; and a base.
AWAKE, AT_REST, BASE = 420, 32, 40_000


class Job(msgspec.Struct, frozen=True):
    """A cut to be made: a refit, or with a beginning given, a new start."""

    sensor: SensorRow
    ripe: Ripe
    beginning: Beginning | None = None


class Charge(msgspec.Struct, frozen=True):
    """What a worker is in charge of.

    Parameters
    ----------
    url
        The ledger to read from.
    plan
        How sensors are forecast.
    sensors
        Those that are known; new ones come with their first reading.
    done
        Forecasts up to this arrival number have been stored.
    memory
        Bytes that sensors may take.
    spared
        Sensors that are not refitted: no worker has survived it.
    """

    url: str
    plan: Plan
    sensors: list[SensorRow]
    done: int
    memory: int
    spared: frozenset[int] = frozenset()


def serve(connection: Connection, charge: Charge) -> None:
    """Run a worker until it is told to stop, or the service is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service tells it when to stop
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with threadpool_limits(1), open_ledger(charge.url, read_only=True) as ledger:
        Worker(connection, ledger, charge).run()


class Worker:
    """The sensors of one process.

    Parameters
    ----------
    connection
        Where messages come from, and answers go to.
    ledger
        A ledger to read from.
    charge
        What it is in charge of.
    """

    def __init__(self, connection: Connection, ledger: Ledger, charge: Charge) -> None:
        self._connection, self._ledger, self._plan = connection, ledger, charge.plan
        self._done, self._spared = charge.done, charge.spared
        self._issued: dict[int, int] = {}  # the last forecast of each sensor, since the start
        self._sensors = {sensor.id: sensor for sensor in charge.sensors}
        plan, memory = charge.plan, charge.memory
        self._trackers: OrderedDict[int, Tracker] = OrderedDict()  # used last comes last
        rest = BASE + AT_REST * plan.train_size * plan.horizon
        self._most_held = max(memory // 2 // rest, 16)
        self._most_awake = max(memory // 2 // (AWAKE * plan.train_size), 16)
        self._waiting: OrderedDict[int, None] = OrderedDict()  # sensors with a cut to be made
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[Job, Snapshot | BaseException, float]] = SimpleQueue()
        self._busy = False
        self._wake_read, self._wake_write = os.pipe()

    def run(self) -> None:
        """Answer messages until the end, and make cuts in between."""
        refitter = Thread(target=self._refit, daemon=True)
        refitter.start()
        try:
            while self._is_served():
                self._adopt()
                self._begin_a_cut()
        finally:
            self._jobs.put(None)

    def _is_served(self) -> bool:
        """Answer the next message, if there is one; return False at the end."""
        ready = wait([self._connection, self._wake_read])
        if self._wake_read in ready:
            os.read(self._wake_read, 64)
        if self._connection not in ready:
            return True
        try:
            message = messages.for_worker(self._connection.recv_bytes())
        except (EOFError, OSError):
            return False
        match message:
            case Take():
                self._take(message)
            case Act():
                self._act(message)
            case Ask():
                self._ask(message)
            case _:
                return False
        return True

    def _take(self, message: Take) -> None:
        for sensor in message.sensors:
            self._sensors[sensor.id] = sensor
            self._trackers.pop(sensor.id, None)  # its declaration may be another
        issued, touched, failed = [], {}, []
        for entry in message.entries:
            try:
                issued += self._taken(entry)
                touched[entry.sensor] = self._known(self._trackers[entry.sensor])
            except StreamRidgeError as error:
                failed.append((entry.seq, error.reason))
        self._send(Took(message.number, issued, list(touched.values()), failed, self._cuts))
        self._save_memory()

    def _taken(self, item: Item) -> list[Issued]:
        """Take what arrived, and return the forecasts that came of it and are not stored yet."""
        tracker = self._trackers.get(item.sensor)
        if tracker is None:
            return self._load(item.sensor)
        self._trackers.move_to_end(item.sensor)
        if item.seq <= tracker.seq:
            return []  # it was read from the ledger already
        try:
            issued = tracker.take(item)
        except OutOfOrderError:
            return self._load(item.sensor)
        self._queue(tracker)
        return self._new(item.sensor, issued)

    def _load(self, sensor: int) -> list[Issued]:
        """Read a sensor from the ledger; return its forecasts that are new."""
        done = self._issued.get(sensor, self._done)
        row = self._sensors[sensor]
        tracker, issued, rebuilt = loaded(self._ledger, row, self._plan, done)
        self._trackers[sensor] = tracker
        self._trackers.move_to_end(sensor)
        if rebuilt is not None:
            self._send(Kept(rebuilt, self._known(tracker), 0.0))
        self._queue(tracker)
        return self._new(sensor, issued)

    def _wake(self, sensor: int) -> None:
        """Read a sensor from the ledger if it is not in memory, and send what comes of it."""
        if sensor not in self._trackers:
            self._send(Took(0, self._load(sensor), [], [], self._cuts))

    def _new(self, sensor: int, issued: list[Issued]) -> list[Issued]:
        """Return the forecasts that were not issued before; those that were stay as they were."""
        since = self._issued.get(sensor, self._done)
        new = [each for each in issued if each.seq > since]
        if new:
            self._issued[sensor] = max(each.seq for each in new)
        return new

    def _queue(self, tracker: Tracker) -> None:
        if tracker.anew or tracker.ripe is not None:
            self._waiting[tracker.sensor.id] = None

    def _act(self, message: Act) -> None:
        """Do what is asked for, and keep the sensor as it is then."""
        sensor, refusal = message.action.sensor, None
        self._wake(sensor)
        try:
            self._taken(message.action)
            refusal = self._trackers[sensor].refused.get(message.action.seq)
        except StreamRidgeError as error:
            refusal = error.reason
        tracker = self._trackers[sensor]
        if refusal is None and tracker.forecaster.has_readings and not tracker.anew:
            self._keep(tracker, refitted(tracker.as_now(), Workspace()), 0.0)
        self._send(Acted(message.number, refusal, self._cuts))

    def _ask(self, message: Ask) -> None:
        self._wake(message.sensor)
        tracker = self._trackers[message.sensor]
        try:
            forecast = tracker.ahead_of(message.now)
        except StreamRidgeError:  # there is no forecast of so late a moment
            forecast = None
        if forecast is None and tracker.forecaster.has_readings:
            forecast = tracker.issued(tracker.seq)
        tuning = msgspec.json.encode(tracker.tuning())
        self._send(Told(message.number, forecast, tuning, self._known(tracker)))
        self._save_memory()

    def _begin_a_cut(self) -> None:
        """Give the next cut to the refitting thread, if it is idle."""
        while self._waiting and not self._busy:
            sensor, _ = self._waiting.popitem(last=False)
            tracker = self._trackers.get(sensor)
            job = None if tracker is None else self._job(tracker)
            if job is None:  # it was read from the ledger anew, and is not ripe any more
                self._send(Took(0, [], [], [], self._cuts))
            else:
                self._busy = True
                self._send(Refitting(sensor))
                self._jobs.put(job)

    def _job(self, tracker: Tracker) -> Job | None:
        """Return the cut that a sensor waits for."""
        if not tracker.anew:
            ripe = tracker.ripe
            return None if ripe is None else Job(tracker.sensor, self._spare(ripe))
        if tracker.sensor.id in self._spared:
            return None
        sensor, seq = tracker.sensor, tracker.seq
        entries = self._ledger.entries(sensor.id, up_to=seq)
        beginning = Beginning.of(entries, self._plan, tracker.rule)
        if not len(beginning.times):
            return None  # its first step is not over
        cut = beginning.cut(sensor.id, seq, tracker.anew)
        return Job(sensor, msgspec.structs.replace(tracker.as_now(), cut=cut), beginning)

    def _spare(self, ripe: Ripe) -> Ripe:
        """Return a cut without its refit, where no worker has survived it."""
        if ripe.cut.sensor not in self._spared:
            return ripe
        failed = msgspec.structs.replace(ripe.standing, failed="its refit never ended")
        cut = msgspec.structs.replace(ripe.cut, kind="failed")
        return msgspec.structs.replace(ripe, cut=cut, standing=failed)

    def _refit(self) -> None:
        """Make cuts until there are no more to come; runs in a thread of its own."""
        workspace = Workspace()
        while (job := self._jobs.get()) is not None:
            begun = monotonic()
            try:
                made: Snapshot | BaseException = self._made(job, workspace)
            except Exception as error:  # told by the main thread; the sensor goes on as it was
                made = error
            self._finished.put((job, made, monotonic() - begun))
            os.write(self._wake_write, b".")

    def _made(self, job: Job, workspace: Workspace) -> Snapshot:
        if job.beginning is None:
            return refitted(job.ripe, workspace)
        settings = Tracker(job.sensor, self._plan).settings
        return started(job.ripe.cut, settings, job.beginning, job.ripe, workspace)

    def _adopt(self) -> None:
        """Let the sensors whose cuts are made go on from there."""
        while not self._finished.empty():
            job, made, seconds = self._finished.get()
            self._busy = False
            if isinstance(made, BaseException):
                self._send(Failed(job.sensor.id, repr(made)))
                self._send(Took(0, [], [], [], self._cuts))
            elif made.cut.seq < self._last_cut(job.sensor.id):
                # What was asked for meanwhile has made a later cut: this one came to nothing.
                self._send(Took(0, [], [], [], self._cuts))
            else:
                self._keep(self._trackers.get(job.sensor.id), made, seconds)

    def _last_cut(self, sensor: int) -> int:
        """Return the arrival number of a sensor's last cut; zero before the first."""
        tracker = self._trackers.get(sensor)
        if tracker is not None:
            return tracker.fit
        return max((cut.seq for cut in self._ledger.cuts(sensor)), default=0)

    def _keep(self, before: Tracker | None, snapshot: Snapshot, seconds: float) -> None:
        """Send a snapshot to be stored, and go on from it."""
        cut = snapshot.cut
        sensor = self._sensors[cut.sensor]
        tracker, issued = caught_up(self._ledger, sensor, self._plan, snapshot)
        if before is not None:
            self._trackers[cut.sensor] = tracker
            self._queue(tracker)
        self._send(Kept(snapshot, self._known(tracker), seconds))
        # The ledger may be ahead of the messages.
        self._send(Took(0, self._new(cut.sensor, issued), [], [], self._cuts))

    @property
    def _cuts(self) -> int:
        """Return how many refits and new starts wait, or are being made."""
        return len(self._waiting) + self._busy

    def _known(self, tracker: Tracker) -> Known:
        return Known(tracker.sensor.id, tracker.seq, tracker.standing)

    def _save_memory(self) -> None:
        """Let the sensors that were used longest ago rest, and forget them if there are many."""
        while len(self._trackers) > self._most_held:
            self._trackers.popitem(last=False)
        for count, tracker in enumerate(reversed(self._trackers.values())):
            if count >= self._most_awake:
                if tracker.rests:
                    break
                tracker.rest()

    def _send(self, message: messages.FromWorker) -> None:
        self._connection.send_bytes(messages.packed(message))
