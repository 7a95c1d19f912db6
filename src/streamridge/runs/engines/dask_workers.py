"""Jobs on their way to the workers of a Dask cluster, and what comes back."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from importlib import import_module
from queue import Empty, SimpleQueue
from secrets import token_hex
from time import monotonic
from typing import Any

from threadpoolctl import threadpool_limits

from streamridge.errors import StreamRidgeError
from streamridge.runs.engines.base import LOOK_EVERY
from streamridge.runs.engines.work import Job, Outcome, Progress, attempt, reason_of
from streamridge.texts import option

# Jobs that lie ready for workers beyond those worked on, so that none waits for its next one.
SPARE = 2
# Seconds between two messages of a job.
MESSAGE_EVERY = 0.5


class DaskWorkers:
    """The workers of a Dask cluster.

    Parameters
    ----------
    client
        Of the cluster.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._futures: dict[int, Any] = {}
        # Numbers of jobs that are finished, and of others with how many steps are done.
        self._news: SimpleQueue[tuple[int, int | None]] = SimpleQueue()
        self._topic = f"streamridge-{token_hex(8)}"
        self._stopping = False
        client.subscribe_topic(self._topic, self._note)

    @property
    def width(self) -> int:
        """Return how many jobs are worked on at a time; a cluster may grow and shrink."""
        return max(1, sum(self._client.nthreads().values()))

    @property
    def room(self) -> int:
        """Return how many jobs they take before one has to be finished."""
        return self.width + SPARE

    def take(self, number: int, load: Callable[[], Job]) -> None:
        """Send a job to the cluster."""
        # Packed here, so that Dask neither looks into it nor copies its parts.
        future = self._client.submit(
            on_worker, number, pickle.dumps(load()), self._topic, pure=False
        )
        self._futures[number] = future
        future.add_done_callback(lambda _: self._news.put((number, None)))

    def finished(self, tell: Progress) -> list[Outcome]:
        """Wait a little, tell what is going on, and return what has finished meanwhile."""
        if self._stopping:
            return self._given_up()
        outcomes = []
        for number, done in self._latest():
            if done is not None:
                tell(number, done)
            elif number in self._futures:
                outcomes.append(self._outcome(number))
        for outcome in outcomes:
            if outcome.run is not None:
                tell(outcome.number, outcome.run.lived)
        return outcomes

    def stop(self) -> None:
        """Let go of all jobs at the next look; those under way break off at their next step."""
        self._stopping = True

    def _note(self, event: tuple[float, tuple[int, int]]) -> None:
        _, (number, done) = event
        self._news.put((number, done))

    def _latest(self) -> list[tuple[int, int | None]]:
        """Return the news since the last look."""
        news = []
        try:
            news.append(self._news.get(timeout=LOOK_EVERY))
            while True:
                news.append(self._news.get_nowait())
        except Empty:
            return news

    def _outcome(self, number: int) -> Outcome:
        future = self._futures.pop(number)
        if future.cancelled():
            raise StreamRidgeError(
                "the Dask scheduler must stay until all is done, but it is gone. Start it again: "
                f"with {option('keep')} the same command goes on with what is missing."
            )
        try:
            return pickle.loads(future.result())
        except import_module("distributed").scheduler.KilledWorker as error:
            return Outcome(number, error=f"its worker died {error.allowed_failures + 1} times")
        except Exception as error:  # the cluster's own
            return Outcome(number, error=reason_of(error))

    def _given_up(self) -> list[Outcome]:
        """Return outcomes without anything for all jobs, none of which is wanted any more."""
        numbers = list(self._futures)
        self._client.cancel(list(self._futures.values()))
        self._futures.clear()
        return [Outcome(number) for number in numbers]


def on_worker(number: int, packed: bytes, topic: str) -> bytes:
    """Return the outcome of a job, packed; this is what runs on a worker of the cluster."""
    worker = import_module("distributed").get_worker()
    # For good: other jobs of the process would be given back their threads in the middle.
    threadpool_limits(1)
    tell = _Messages(worker, topic)
    return pickle.dumps(attempt(number, partial(pickle.loads, packed), tell))


class _Messages:
    """The messages of a job about its progress: few, and none once nobody wants it any more."""

    def __init__(self, worker: Any, topic: str) -> None:
        self._worker, self._topic = worker, topic
        self._key = worker.get_current_task()
        self._next = monotonic()

    def __call__(self, number: int, done: int) -> None:
        task = self._worker.state.tasks.get(self._key)
        if task is None or task.state in ("cancelled", "released", "forgotten"):
            raise KeyboardInterrupt
        if monotonic() >= self._next:
            self._next = monotonic() + MESSAGE_EVERY
            self._worker.log_event(self._topic, (number, done))
