"""The only thread that writes to the ledger.

Readings come first: the rows of many requests go into one transaction, and each request is answered
once that is on disk. Forecasts, snapshots and events follow in transactions of their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import takewhile
from threading import Condition, Thread
from time import monotonic
from typing import Any, Self, TypeVar

import structlog

from streamridge_service.futures import uncancellable_future
from streamridge_service.intake import IngestOptions, Intake, NewRows, Receipt
from streamridge_service.ledger.errors import (
    DamagedPageError,
    DiskFullError,
    StorageAwayError,
    StorageError,
    StorageFailedError,
    StorageGoneError,
)
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import (
    Event,
    GroupResult,
    IssuedForecast,
    RefitPoint,
    Snapshot,
)
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch

# Rows, and forecasts, of one transaction.
MAX_ROWS, MAX_FORECASTS = 100_000, 20_000
# Requests that may wait; the next one must try again later.
MAX_WAITING = 256
# Seconds before a write is tried again after the disk was full or the database unreachable.
RETRY_DELAY = 2.0
# Codes of failures that may pass, and the bytes of a write that shows whether they have passed.
PROBED, PROBE_SIZE = ("sr-disk-full", "sr-storage-away"), 100_000
# The first class that fits an error decides.
STORAGE_CODES = {
    DiskFullError: "sr-disk-full",
    StorageAwayError: "sr-storage-away",
    StorageGoneError: "sr-storage-gone",
    StorageFailedError: "sr-storage-failed",
}

Task = Callable[[Ledger], Any]
T = TypeVar("T")
log = structlog.get_logger("streamridge_service")


@dataclass
class _Request:
    """The rows of a request that waits for its transaction."""

    batch: Batch
    options: IngestOptions
    received: int
    future: Future[Receipt]


@dataclass
class PendingWrites:
    """Results in the order in which they were made, events, and callbacks after them."""

    results: list[IssuedForecast | Snapshot | GroupResult] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.results or self.events or self.callbacks)

    def __iadd__(self, newer: PendingWrites) -> Self:
        self.results += newer.results
        self.events += newer.events
        self.callbacks += newer.callbacks
        return self


class Writer:
    """The thread that writes to a ledger."""

    def __init__(self, ledger: Ledger, intake: Intake) -> None:
        self._ledger, self._intake = ledger, intake
        self._requests: deque[_Request] = deque()
        self._tasks: deque[tuple[Task, Future[Any]]] = deque()
        self._pending = PendingWrites()
        self._changed = Condition()
        self._stopping = False
        self._is_storing = False
        self.seq = ledger.last_seq()
        self.error_code: str | None = None  # why writes fail at present
        self._outcome_unknown = False  # whether the last write may have been stored
        self.commit_seconds = 0.0
        self._lost_groups: set[tuple[str, int]] = set()  # whose last step was not stored
        self._thread = Thread(target=self._run, name="writer", daemon=True)

    def start(
        self,
        *,
        on_commit: Callable[[NewRows], None],
        done_seq: Callable[[], int],
        on_failure: Callable[[str], None],
        on_snapshot: Callable[[RefitPoint, bool], None],
        on_lost_step: Callable[[tuple[str, int]], None] = lambda key: None,
    ) -> None:
        """Start the thread.

        `on_commit` is called after each commit of readings, before requests are answered.
        `done_seq` returns the arrival number up to which all readings have been processed.
        `on_failure` is called once the storage cannot be trusted any more. `on_snapshot` is called
        for each snapshot, with True if it was stored, and False if its page is damaged.
        `on_lost_step` is called with the group of a step that cannot be stored.
        """
        self._on_snapshot, self._on_lost_step = on_snapshot, on_lost_step
        self._on_commit, self._done_seq, self._on_failure = on_commit, done_seq, on_failure
        self._thread.start()

    def ingest(self, batch: Batch, options: IngestOptions, received: int) -> Future[Receipt]:
        """Queue rows to be validated and stored; raise if too many requests wait."""
        with self._changed:
            if self._stopping:
                raise Problem("sr-stopping", "The service is stopping; nothing was stored.")
            if len(self._requests) >= MAX_WAITING:
                raise Problem("sr-busy", f"{MAX_WAITING} requests wait to be stored.")
            future: Future[Receipt] = uncancellable_future()
            self._requests.append(_Request(batch, options, received, future))
            self._changed.notify()
        return future

    def submit(self, task: Callable[[Ledger], T]) -> Future[T]:
        """Queue another task that writes; tasks run in the order of submission."""
        with self._changed:
            future: Future[T] = uncancellable_future()
            self._tasks.append((task, future))
            self._changed.notify()
        return future

    async def run(self, task: Callable[[Ledger], T]) -> T:
        """Return the result of a task that writes, from the event loop."""
        return await asyncio.wrap_future(self.submit(task))

    def check_storage(self) -> None:
        """Queue a check of the database's files, and after a failed write a small write.

        If this write succeeds, the storage is writable again.
        """
        self.submit(self._check_storage)

    def _check_storage(self, ledger: Ledger) -> None:
        ledger.require_files()
        if self.error_code in PROBED:
            # Room in the log may be left for a few bytes while the disk is full.
            for probe in ("0" * PROBE_SIZE, ""):
                ledger.put_facts({"probe": probe})
            self.error_code = None

    @property
    def is_storing(self) -> bool:
        """Return whether readings wait to be stored, or are being stored."""
        return self._is_storing or bool(self._requests)

    def add(self, pending: PendingWrites) -> None:
        """Queue forecasts, snapshots and events."""
        with self._changed:
            self._pending += pending
            self._changed.notify()

    def stop(self) -> None:
        """Write everything that is queued, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def commit(self, group: NewRows) -> None:
        """Store a group of readings. Only for the writing thread."""
        if not group.readings and not group.sensors:
            return
        begun = monotonic()
        self._ledger.append(list(group.sensors.values()), group.readings)
        self.commit_seconds = monotonic() - begun
        self.error_code = None
        self._committed(group)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._requests or self._tasks or self._pending or self._stopping):
                    self._changed.wait()
                if self._stopping and not (self._requests or self._tasks or self._pending):
                    return
                requests, task, pending = self._next()
            if requests:
                self._is_storing = True
                self._store(requests)
                self._is_storing = False
            elif task is not None:
                self._perform(*task)
            elif not self._write(pending) and self._stopping:
                return

    def _next(self) -> tuple[list[_Request], tuple[Task, Future[Any]] | None, PendingWrites]:
        """Return the next work: readings before all else."""
        requests, rows = [], 0
        while self._requests and rows < MAX_ROWS:
            requests.append(self._requests.popleft())
            rows += len(requests[-1].batch.rows)
        if requests:
            return requests, None, PendingWrites()
        if self._tasks:
            return [], self._tasks.popleft(), PendingWrites()
        pending, self._pending = self._pending, PendingWrites()
        return [], None, pending

    def _store(self, requests: list[_Request]) -> None:
        """Validate and store the rows of several requests in one transaction, and answer them."""
        try:
            self._resolve_unknown_outcome()
            group = NewRows(self.seq)
            receipts = [
                self._intake.classify(each.batch, each.options, group, each.received)
                for each in requests
            ]
            self.commit(group)
        except Exception as error:
            problem = self._problem(error)
            for each in requests:
                each.future.set_exception(problem)
            return
        for each, receipt in zip(requests, receipts, strict=True):
            each.future.set_result(receipt)

    def _committed(self, group: NewRows) -> None:
        self.seq = group.last_seq
        self._intake.committed(group)
        self._on_commit(group)

    def _resolve_unknown_outcome(self) -> None:
        """After a write with an unknown outcome, process what it has stored."""
        if not self._outcome_unknown:
            return
        new = {
            sensor.name: sensor
            for sensor in self._ledger.sensors()
            if self._intake.sensors.get(sensor.name) != sensor
        }
        entries = sorted(self._ledger.readings_after(self.seq), key=lambda entry: entry.seq)
        self._committed(NewRows(self._ledger.last_seq(), entries, new))
        self._outcome_unknown, self.error_code = False, None

    def _perform(self, task: Task, future: Future[Any]) -> None:
        try:
            self._resolve_unknown_outcome()
            future.set_result(task(self._ledger))
        except Problem as error:
            future.set_exception(error)
        except Exception as error:
            future.set_exception(self._problem(error))

    def _write(self, pending: PendingWrites) -> bool:
        """Write results in their order, then events; if that fails, queue the rest again."""
        # The number of processed readings is written with the last forecasts, never before them.
        for callback in pending.callbacks:
            callback()
        pending.callbacks = []
        try:
            while pending.results:
                self._write_run(pending)
            if pending.events:
                self._ledger.add_events(pending.events)
                pending.events = []
        except StorageError as error:
            self._problem(error)
            self._retry_later(pending)
            return False
        except Exception as error:  # one bad result must not block the others
            log.exception("a result was not stored", error=repr(error))
            return True
        if self.error_code == "sr-storage-away" and not self._outcome_unknown:
            self.error_code = None
        return True

    def _write_run(self, pending: PendingWrites) -> None:
        """Write the first results: snapshots, or forecasts and what was made of them."""
        are_snapshots = isinstance(pending.results[0], Snapshot)
        first = pending.results[:MAX_FORECASTS]
        run = list(takewhile(lambda each: isinstance(each, Snapshot) == are_snapshots, first))
        forecasts = [each for each in run if isinstance(each, IssuedForecast)]
        snapshots = [each for each in run if isinstance(each, Snapshot)]
        steps = [each for each in run if isinstance(each, GroupResult)]
        is_last = len(run) == len(pending.results)
        if forecasts:
            self._ledger.add_forecasts(forecasts, done=self._done_seq() if is_last else None)
        if snapshots:
            self._add_snapshots(snapshots)
        if steps:
            self._add_group_steps(steps)
        del pending.results[: len(run)]

    def _add_group_steps(self, results: list[GroupResult]) -> None:
        """Store steps of groups; one that cannot be stored costs its group alone.

        Steps of that group which follow are left out, until it begins again.
        """
        kept = []
        for each in results:
            if each.step.begins is not None:
                self._lost_groups.discard(each.step.key)
            if each.step.key not in self._lost_groups:
                kept.append(each)
        if not kept:
            return
        try:
            self._ledger.add_group_steps(kept)
        except Exception as error:
            if isinstance(error, StorageError) and not isinstance(error, DamagedPageError):
                raise
            if len(kept) > 1:
                for each in kept:
                    self._add_group_steps([each])
                return
            group, step = kept[0].step.key
            log.error("a step of a group was not stored", group=group, reason=str(error))
            self._lost_groups.add((group, step))
            self._on_lost_step((group, step))

    def _add_snapshots(self, snapshots: list[Snapshot]) -> None:
        """Store snapshots, except those that belong to damaged pages."""
        try:
            self._ledger.add_snapshots(snapshots)
        except DamagedPageError as error:
            if len(snapshots) > 1:
                for each in snapshots:
                    self._add_snapshots([each])
                return
            point = snapshots[0].point
            log.error("a snapshot was not stored", sensor=point.sensor, reason=str(error))
            self._on_snapshot(point, False)
            return
        for each in snapshots:
            self._on_snapshot(each.point, True)

    def _retry_later(self, pending: PendingWrites) -> None:
        """Put results back in front of newer ones, and wait a little."""
        with self._changed:
            pending += self._pending
            self._pending = pending
            self._changed.wait_for(lambda: bool(self._requests) or self._stopping, RETRY_DELAY)

    def _problem(self, error: Exception) -> Problem:
        """Return the problem to answer with after an error, and remember its code."""
        code = storage_code(error)
        if code is None:
            log.exception("a write failed", error=repr(error))
            # A request that finds too little memory may succeed later.
            code = "sr-busy" if isinstance(error, MemoryError) else "sr-internal"
            return Problem(code, "The rows could not be stored; none of them was stored.")
        self.error_code = code
        self._outcome_unknown = self._outcome_unknown or code == "sr-storage-away"
        log.error("the storage refused a write", code=code, reason=str(error))
        if isinstance(error, StorageFailedError):
            self._on_failure(str(error))
        return Problem(code, "The storage refused the write; nothing was stored.")


def storage_code(error: Exception) -> str | None:
    """Return the code in the catalogue for an error of the storage; None for other errors."""
    return next((code for kind, code in STORAGE_CODES.items() if isinstance(error, kind)), None)
