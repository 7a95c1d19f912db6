"""What a worker process does: wait for a job, carry it out, hand in its outcome."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from _thread import interrupt_main
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from streamridge.runs.engines.base import LOOK_EVERY
from streamridge.runs.engines.work import Here, Outcome

# The message that all is to stop.
STOP = None
# Steps between two messages.
MESSAGE_EVERY = 48


def serve(connection: Connection) -> None:
    """Carry out jobs until the connection ends.

    A message to a worker is a job's number and the job, packed; one from a worker is a job's
    number, how many of its steps are done, and its outcome once there is one.
    """
    here, stopping = Here(), threading.Event()
    jobs: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
    # Ctrl-C itself is the parent's affair.
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
