"""Worker processes of this machine, one job each at a time; one that dies is replaced.

The first half runs in the process that has the tasks, `serve` and below in each worker.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

from streamridge.runs.engines.base import LOOK_EVERY
from streamridge.runs.engines.work import Here, Job, Outcome, Progress
from streamridge.runs.interrupts import deaf_to_interrupts

# How often a job is begun: a worker that dies each time may well die of it.
ATTEMPTS = 3
# Seconds that a worker has to end by itself.
PATIENCE = 5.0
# The message that all is to stop.
STOP = None
# Steps between two messages.
MESSAGE_EVERY = 48


class Processes:
    """Several processes that carry out jobs.

    Parameters
    ----------
    count
        How many.
    """

    def __init__(self, count: int) -> None:
        self.width = self.room = count
        self._workers = [_Worker() for _ in range(count)]
        self._stopping = self._told = False

    def take(self, number: int, load: Callable[[], Job]) -> None:
        """Give a job to a worker that has none."""
        packed = pickle.dumps(load())
        idle = next(worker for worker in self._workers if worker.job is None)
        (idle if idle.is_alive else self._replaced(idle)).give(number, packed)

    def finished(self, tell: Progress) -> list[Outcome]:
        """Wait a little, tell what is going on, and return what has finished meanwhile."""
        if self._stopping and not self._told:
            self._told = True
            for worker in self._workers:
                worker.send(STOP)
        busy = {worker.connection: worker for worker in self._workers if worker.job is not None}
        ready = wait(list(busy), LOOK_EVERY)
        heard = [worker for connection, worker in busy.items() if connection in ready]
        return [outcome for worker in heard for outcome in self._hear(worker, tell)]

    def stop(self) -> None:
        """Let all workers know, at the next look, that they are to hand in what they have."""
        self._stopping = True

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.end()

    def _hear(self, worker: _Worker, tell: Progress) -> list[Outcome]:
        try:
            number, done, outcome = worker.connection.recv()
        except (EOFError, OSError):
            return self._try_again(worker)
        tell(number, done)
        if outcome is None:
            return []
        worker.job = None
        return [outcome]

    def _try_again(self, dead: _Worker) -> list[Outcome]:
        """Let a new worker begin the job of one that died, unless that happened too often."""
        fresh = self._replaced(dead)
        if dead.job is None:
            return []
        number, packed = dead.job
        if self._stopping:
            return [Outcome(number)]
        if dead.attempts == ATTEMPTS:
            return [Outcome(number, error=f"its process died {ATTEMPTS} times, {dead.how}")]
        fresh.give(number, packed, dead.attempts + 1)
        return []

    def _replaced(self, dead: _Worker) -> _Worker:
        """Return a new worker in the place of a dead one."""
        dead.connection.close()
        dead.end()
        self._workers[self._workers.index(dead)] = fresh = _Worker()
        return fresh


class _Worker:
    """A process, the connection to it, and the job that it has."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.job: tuple[int, bytes] | None = None
        self.attempts = 0
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        # Workers are told to stop, and hand in what they have; Ctrl-C itself must not reach them.
        with deaf_to_interrupts():
            self._process.start()
        theirs.close()  # so that the end of the process ends the connection

    @property
    def is_alive(self) -> bool:
        """Tell whether the process is running."""
        return self._process.is_alive()

    @property
    def how(self) -> str:
        """Return how the process ended, in words."""
        code = self._process.exitcode or 0
        if code == -signal.SIGKILL:
            return "at last by SIGKILL, as when memory runs out; try fewer jobs at a time"
        return f"at last by signal {-code}" if code < 0 else f"at last with exit code {code}"

    def give(self, number: int, packed: bytes, attempts: int = 1) -> None:
        """Send a job."""
        self.job, self.attempts = (number, packed), attempts
        self.send((number, packed))

    def send(self, message: tuple[int, bytes] | None) -> None:
        """Send a message; that a worker is dead is seen when it is listened to."""
        try:
            self.connection.send(message)
        except OSError:
            return

    def end(self) -> None:
        """Wait for the process to end, and end it if it does not."""
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def serve(connection: Connection) -> None:
    """Carry out jobs until the connection ends.

    A message to a worker is a job's number and the job, packed; one from a worker is a job's
    number, how many of its steps are done, and its outcome once there is one.
    """
    here, stopping = Here(), threading.Event()
    jobs: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
    # Ctrl-C itself is the parent's affair, and so is an end that all are told of at once.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, lambda *_: here.stop() if stopping.is_set() else None)
    threading.Thread(target=_listen, args=(connection, jobs, stopping), daemon=True).start()

    def tell(number: int, done: int) -> None:
        if stopping.is_set():
            here.stop()
        if done % MESSAGE_EVERY == 0:
            connection.send((number, done, None))

    while True:
        number, packed = jobs.get()
        here.take(number, partial(pickle.loads, packed))
        outcomes = [Outcome(number)] if stopping.is_set() else here.finished(tell)
        for outcome in outcomes:
            lived = 0 if outcome.run is None else outcome.run.lived
            connection.send((number, lived, outcome))


def _listen(
    connection: Connection, jobs: SimpleQueue[tuple[int, bytes]], stopping: threading.Event
) -> None:
    """Take messages; end the process when there is nobody any more to hand anything to."""
    try:
        while True:
            message: Any = connection.recv()
            if message is not STOP:
                jobs.put(message)
                continue
            stopping.set()
            while not connection.poll(LOOK_EVERY):
                interrupt_main()  # a search would go on for a minute before it looked
    except (EOFError, OSError):
        os._exit(0)
