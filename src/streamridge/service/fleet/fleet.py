"""The workers of a service, seen from it: messages go out, answers come back, the dead rise again.

What a worker was told and has not answered is told again to its successor. Nothing is lost or
learned twice by that: a worker passes over arrival numbers that it has seen in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from zlib import crc32

import msgspec

from streamridge.service.fleet import messages
from streamridge.service.fleet.messages import (
    Act,
    Acted,
    Ask,
    Failed,
    FromWorker,
    Kept,
    Refitting,
    Take,
    Told,
    Took,
)
from streamridge.service.fleet.worker import Charge, serve
from streamridge.service.ledger.records import Action, Entry, SensorRow
from streamridge.service.promises import promised

# Readings of one message: enough to be worth it, few enough that forecasts come back soon.
MOST_ENTRIES = 500
# After so many seconds without an answer, a worker is taken to hang.
LONGEST = 120.0
# A worker that dies so soon, in seconds, is started again after a pause, which grows up to this.
SOON, LONGEST_PAUSE = 5.0, 10.0
# A sensor is not refitted any more after so many workers did not survive it.
MOST_DEATHS = 2

Listener = Callable[["Hand", FromWorker], None]


class Hand:
    """One worker: its process, and what it was told and has not answered.

    Parameters
    ----------
    charge
        What it is in charge of.
    listener
        Called with every message that comes back, in a thread of its own.
    """

    def __init__(self, charge: Charge, listener: Listener) -> None:
        self.charge, self._listener = charge, listener
        self._sensors = {sensor.id: sensor for sensor in charge.sensors}
        self.deaths: dict[int, int] = {}  # of workers, by the sensor that was being refitted
        self.restarts = 0
        self.cuts = 0  # refits and new starts that wait, or are being made
        self.unanswered: dict[int, tuple[float, Take | Act | Ask]] = {}
        self.unsettled: dict[int, tuple[int, int]] = {}  # first and last number of readings
        self._refitting: tuple[int, float] | None = None
        self._outbox: SimpleQueue[messages.ToWorker | None] = SimpleQueue()
        self._lock = Lock()
        self._ending = Event()
        self._born, self._pause, self._heard_at = 0.0, 0.0, 0.0
        self._process, self._connection = self._spawned()
        self._threads = [Thread(target=each, daemon=True) for each in (self._talk, self._hear)]
        for thread in self._threads:
            thread.start()

    def _spawned(self) -> tuple[BaseProcess, Connection]:
        self._born = monotonic()
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self.charge), daemon=True)
        process.start()
        theirs.close()
        return process, ours

    @property
    def pid(self) -> int | None:
        """Return the number of the process."""
        return self._process.pid

    def tell(self, message: Take | Act | Ask) -> None:
        """Send a message; never waits."""
        with self._lock:
            self.unanswered[message.number] = monotonic(), message
            if isinstance(message, Take):
                self._sensors |= {sensor.id: sensor for sensor in message.sensors}
            if isinstance(message, Take) and message.entries:
                seqs = message.entries[0].seq, message.entries[-1].seq
                self.unsettled[message.number] = seqs
            self._outbox.put(message)

    def settle(self, number: int) -> None:
        """Forget a message whose forecasts have been stored."""
        with self._lock:
            self.unsettled.pop(number, None)

    def watch(self) -> None:
        """Kill a worker that has not answered, or has refitted one sensor, for too long."""
        with self._lock:
            told = [at for at, _ in list(self.unanswered.values())[:1]]
            since = [max(at, self._heard_at) for at in told]  # a worker that answers is at work
            since += [self._refitting[1]] if self._refitting is not None else []
        if since and monotonic() - min(since) > LONGEST:
            self._process.kill()

    def stop(self, patience: float) -> None:
        """Let the worker end, or end it."""
        self._ending.set()
        self._outbox.put(messages.Stop())
        self._process.join(patience)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._outbox.put(None)
        for thread in self._threads:
            thread.join(1.0)
        self._connection.close()

    def _talk(self) -> None:
        while (message := self._outbox.get()) is not None:
            with suppress(OSError):  # a dead worker's successor is told again
                self._connection.send_bytes(messages.packed(message))

    def _hear(self) -> None:
        while True:
            try:
                message = messages.for_service(self._connection.recv_bytes())
            except (EOFError, OSError):
                if self._ending.is_set():
                    return
                self._rise()
                continue
            self._note(message)
            self._listener(self, message)

    def _note(self, message: FromWorker) -> None:
        with self._lock:
            self._heard_at = monotonic()
            if isinstance(message, Took | Acted | Told):
                self.unanswered.pop(message.number, None)
            if isinstance(message, Took | Acted):
                self.cuts = message.cuts
            if isinstance(message, Refitting):
                self._refitting = message.sensor, monotonic()
            elif isinstance(message, Kept | Failed):
                self._refitting = None

    def _rise(self) -> None:
        """Start the process again, and tell it what has not been answered."""
        died_soon = monotonic() - self._born < SOON
        self._pause = min(max(2 * self._pause, 0.1), LONGEST_PAUSE) if died_soon else 0.0
        self._ending.wait(self._pause)
        if self._ending.is_set():
            return
        with self._lock:
            if self._refitting is not None:
                sensor = self._refitting[0]
                self.deaths[sensor] = self.deaths.get(sensor, 0) + 1
            spared = frozenset(
                sensor for sensor, deaths in self.deaths.items() if deaths >= MOST_DEATHS
            )
            self._refitting = None
            known = list(self._sensors.values())
            self.charge = msgspec.structs.replace(self.charge, sensors=known, spared=spared)
            self._process.kill()
            self._process.join()
            self._connection.close()
            with suppress(Empty):  # the thread that talks may have taken the last one
                while True:
                    self._outbox.get_nowait()
            try:
                self._process, self._connection = self._spawned()
            except OSError:  # no memory, or too many processes: tried again after a pause
                return
            self.restarts += 1
            now = monotonic()
            self.unanswered = {n: (now, each) for n, (_, each) in self.unanswered.items()}
            for _, message in self.unanswered.values():
                self._outbox.put(message)


class Fleet:
    """All workers: each sensor belongs to one of them, by a hash of its name.

    Parameters
    ----------
    charge
        What all workers are in charge of together.
    workers
        How many processes.
    listener
        Called with every message that comes back.
    """

    def __init__(self, charge: Charge, workers: int, listener: Listener) -> None:
        self._lock, self._number = Lock(), 0
        self._futures: dict[int, Future[FromWorker]] = {}
        self._listener = listener
        self._names = {sensor.id: sensor.name for sensor in charge.sensors}
        self._last = charge.done
        shares: list[list[SensorRow]] = [[] for _ in range(workers)]
        for sensor in charge.sensors:
            shares[self._place(sensor.name, workers)].append(sensor)
        each = charge.memory // workers
        self.hands = [
            Hand(msgspec.structs.replace(charge, sensors=share, memory=each), self._heard)
            for share in shares
        ]

    def take(self, entries: Iterable[Entry], sensors: Iterable[SensorRow] = ()) -> None:
        """Hand readings, and new sensors, to their workers; never waits."""
        with self._lock:
            news: list[list[SensorRow]] = [[] for _ in self.hands]
            for sensor in sensors:
                self._names[sensor.id] = sensor.name
                news[self._place(sensor.name, len(self.hands))].append(sensor)
            parts: list[list[Entry]] = [[] for _ in self.hands]
            for entry in entries:
                parts[self._of(entry.sensor)].append(entry)
                self._last = max(self._last, entry.seq)
            for hand, part, new in zip(self.hands, parts, news, strict=True):
                for start in range(0, max(len(part), bool(new)), MOST_ENTRIES):
                    chunk = part[start : start + MOST_ENTRIES]
                    hand.tell(Take(self._next(), chunk, new if start == 0 else []))

    def act(self, action: Action) -> Future[FromWorker]:
        """Hand an action to its worker; the answer is an `Acted`."""
        with self._lock:
            self._last = max(self._last, action.seq)
        return self._asked(action.sensor, lambda number: Act(number, action))

    def ask(self, sensor: int, now: int) -> Future[FromWorker]:
        """Ask for a sensor's forecast from a moment on, and its tuning; the answer is a `Told`."""
        return self._asked(sensor, lambda number: Ask(number, sensor, now))

    @property
    def done(self) -> int:
        """Return up to which arrival number the forecasts of all readings are stored."""
        with self._lock:
            firsts = [first for hand in self.hands for first, _ in list(hand.unsettled.values())]
            return min(firsts, default=self._last + 1) - 1

    @property
    def waiting(self) -> int:
        """Return how many messages have not been answered."""
        return sum(len(hand.unanswered) for hand in self.hands)

    @property
    def cuts(self) -> int:
        """Return how many refits and new starts wait, or are being made."""
        return sum(hand.cuts for hand in self.hands)

    @property
    def restarts(self) -> int:
        """Return how many workers have died and were started again."""
        return sum(hand.restarts for hand in self.hands)

    def watch(self) -> None:
        """Kill workers that hang; they are started again."""
        for hand in self.hands:
            hand.watch()

    def stop(self, patience: float = 5.0) -> None:
        """End all workers, at once."""
        enders = [Thread(target=hand.stop, args=(patience,)) for hand in self.hands]
        for each in enders:
            each.start()
        for each in enders:
            each.join()

    def _asked(self, sensor: int, made: Callable[[int], Act | Ask]) -> Future[FromWorker]:
        with self._lock:
            future: Future[FromWorker] = promised()
            message = made(self._next())
            self._futures[message.number] = future
            self.hands[self._of(sensor)].tell(message)
        return future

    def _heard(self, hand: Hand, message: FromWorker) -> None:
        if isinstance(message, Acted | Told):
            with self._lock:
                future = self._futures.pop(message.number, None)
            if future is not None:
                future.set_result(message)
        self._listener(hand, message)

    def _of(self, sensor: int) -> int:
        return self._place(self._names[sensor], len(self.hands))

    def _place(self, name: str, workers: int) -> int:
        return crc32(name.encode()[::-1]) % workers  # not the hash that refits are staggered by

    def _next(self) -> int:
        self._number += 1
        return self._number
