"""The second thread of a worker: it refits one sensor at a time, while readings are processed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread
from time import monotonic

import msgspec

from streamridge import Forecaster, Settings, Workspace
from streamridge_service.ledger.records import Snapshot
from streamridge_service.workers.sensor_state import SavedState
from streamridge_service.workers.snapshots import StartHistory, refitted, started


class RefitJob(msgspec.Struct, frozen=True):
    """A refit of a saved state, or a new start with a history and settings."""

    saved: SavedState
    start: tuple[StartHistory, Settings] | None = None

    @property
    def sensor(self) -> int:
        """Return the number of the sensor."""
        return self.saved.point.sensor

    def run(self, workspace: Workspace) -> Snapshot:
        """Return the snapshot after the refit."""
        if self.start is None:
            return refitted(self.saved, workspace)
        history, settings = self.start
        return started(self.saved.point, settings, history, self.saved, workspace)


class RefitResult(msgspec.Struct, frozen=True):
    """A finished job: its snapshot or its error, and how long it took."""

    job: RefitJob
    outcome: Snapshot | Exception
    seconds: float


class Refitter:
    """A thread that runs jobs; the pipe `ready` can be read once a job is finished."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[RefitJob | None] = SimpleQueue()
        self._finished: SimpleQueue[RefitResult] = SimpleQueue()
        self.ready, self._wake = os.pipe()
        self.sensor: int | None = None  # the sensor of the running job
        # Whether a job has fitted a full training set, so that the memory of refits is allocated.
        self.has_full_fit = False
        Thread(target=self._run, daemon=True).start()

    def submit(self, job: RefitJob) -> None:
        """Start a job; none may be running."""
        self.sensor = job.sensor
        self._jobs.put(job)

    def finished(self) -> Iterator[RefitResult]:
        """Yield the result of the finished job, if there is one."""
        if not self._finished.empty():
            os.read(self.ready, 1)
            self.sensor, result = None, self._finished.get()
            self.has_full_fit = self.has_full_fit or _is_full_fit(result.outcome)
            yield result

    def stop(self) -> None:
        """End the thread after its job."""
        self._jobs.put(None)

    def _run(self) -> None:
        workspace = Workspace()
        while (job := self._jobs.get()) is not None:
            begun = monotonic()
            try:
                outcome: Snapshot | Exception = job.run(workspace)
            except Exception as error:  # the main thread reports it; the old fit stays
                outcome = error
            self._finished.put(RefitResult(job, outcome, monotonic() - begun))
            os.write(self._wake, b".")


def _is_full_fit(outcome: Snapshot | Exception) -> bool:
    """Return whether a job has fitted a model to about as many rows as a training set has."""
    if isinstance(outcome, Exception) or outcome.point.kind in ("kept", "failed"):
        return False
    forecaster = Forecaster.from_bytes(outcome.state)
    is_full = forecaster.counts.get("readings", 0) >= forecaster.settings.train_size
    return is_full and forecaster.tuning.has_model
