"""The one thread that writes: readings first, many requests in one transaction, then the rest.

A request is answered when its transaction is on disk. Forecasts and snapshots follow in
transactions of their own, as many at a time as have come together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import takewhile
from threading import Condition, Thread
from time import monotonic
from typing import Self

import structlog

from streamridge.service.intake import Group, Intake, Receipt, Wish
from streamridge.service.ledger.base import (
    DiskFullError,
    Ledger,
    StorageAwayError,
    StorageError,
    StorageFailedError,
)
from streamridge.service.ledger.records import Event, Issued, Snapshot
from streamridge.service.problems import Problem
from streamridge.service.promises import promised
from streamridge.service.rows import Batch

# Rows of the requests of one transaction; forecasts of one.
MOST_ROWS, MOST_FORECASTS = 100_000, 20_000
# Requests that may wait; one more is told to try again.
MOST_WAITING = 256
# Seconds before a write that failed for want of room, or of a connection, is tried again.
PATIENCE = 2.0

log = structlog.get_logger("streamridge.service")


@dataclass
class _Request:
    """The rows of a request that waits for its transaction."""

    batch: Batch
    wish: Wish
    received: int
    future: Future[Receipt]


@dataclass
class Backlog:
    """What waits to be written beside readings: made things in the order they were made."""

    made: list[Issued | Snapshot] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    settled: list[Callable[[], None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.made or self.events or self.settled)

    def __iadd__(self, newer: Backlog) -> Self:
        self.made += newer.made
        self.events += newer.events
        self.settled += newer.settled
        return self


class Writer:
    """The thread that writes to a ledger.

    Parameters
    ----------
    ledger
        The ledger, which nobody else writes to.
    intake
        What judges rows.
    committed
        Called with every group of readings once it is stored, before it is answered.
    done
        Function that returns up to which arrival number all readings are worked off.
    failed
        Called once the storage cannot be trusted any more.
    """

    def __init__(
        self,
        ledger: Ledger,
        intake: Intake,
        committed: Callable[[Group], None],
        done: Callable[[], int],
        failed: Callable[[str], None],
    ) -> None:
        self._ledger, self._intake, self._committed = ledger, intake, committed
        self._done, self._failed = done, failed
        self._requests: deque[_Request] = deque()
        self._tasks: deque[tuple[Callable[[Ledger], object], Future[object]]] = deque()
        self._backlog = Backlog()
        self._changed = Condition()
        self._stopping = False
        self.seq = ledger.last()
        self.trouble: str | None = None  # the code of what keeps it from writing
        self._unsure = False  # whether the outcome of a write is not known
        self.commit_seconds = 0.0
        self._thread = Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def take(self, batch: Batch, wish: Wish, received: int) -> Future[Receipt]:
        """Let rows be judged and stored; raise if too many requests wait."""
        with self._changed:
            if self._stopping:
                raise Problem("sr-stopping", "The service is stopping; nothing was stored.")
            if len(self._requests) >= MOST_WAITING:
                raise Problem("sr-busy", f"{MOST_WAITING} requests wait to be stored.")
            future: Future[Receipt] = promised()
            self._requests.append(_Request(batch, wish, received, future))
            self._changed.notify()
        return future

    def do(self, task: Callable[[Ledger], object]) -> Future[object]:
        """Let something else be written, in the order in which it is asked for."""
        with self._changed:
            future: Future[object] = promised()
            self._tasks.append((task, future))
            self._changed.notify()
        return future

    def add(self, backlog: Backlog) -> None:
        """Let forecasts, snapshots and events be written; what they settle is told after that."""
        with self._changed:
            self._backlog += backlog
            self._changed.notify()

    def stop(self) -> None:
        """Write what waits, and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._requests or self._tasks or self._backlog or self._stopping):
                    self._changed.wait()
                if self._stopping and not (self._requests or self._tasks or self._backlog):
                    return
                requests, task, backlog = self._next()
            if requests:
                self._store(requests)
            elif task is not None:
                self._perform(*task)
            elif not self._write(backlog) and self._stopping:
                return

    def _next(
        self,
    ) -> tuple[list[_Request], tuple[Callable[[Ledger], object], Future[object]] | None, Backlog]:
        """Return what is written next: readings before all else."""
        requests, rows = [], 0
        while self._requests and rows < MOST_ROWS:
            requests.append(self._requests.popleft())
            rows += len(requests[-1].batch.rows)
        if requests:
            return requests, None, Backlog()
        if self._tasks:
            return [], self._tasks.popleft(), Backlog()
        backlog, self._backlog = self._backlog, Backlog()
        return [], None, backlog

    def _store(self, requests: list[_Request]) -> None:
        """Judge and store the rows of some requests in one transaction, and answer them."""
        try:
            self._find_out()
            group = Group(self.seq)
            receipts = [
                self._intake.judge(each.batch, each.wish, group, each.received) for each in requests
            ]
            self.commit(group)
        except Exception as error:
            problem = self._problem(error)
            for each in requests:
                each.future.set_exception(problem)
            return
        for each, receipt in zip(requests, receipts, strict=True):
            each.future.set_result(receipt)

    def commit(self, group: Group) -> None:
        """Store a group of readings, and let all know of it."""
        if not group.entries and not group.sensors:
            return
        begun = monotonic()
        self._ledger.append(list(group.sensors.values()), group.entries)
        self.commit_seconds = monotonic() - begun
        self.trouble = None
        self._learn(group)

    def _learn(self, group: Group) -> None:
        """Go on from a group of readings that is stored."""
        self.seq = group.last
        self._intake.learn(group)
        self._committed(group)

    def _find_out(self) -> None:
        """After a write whose outcome is not known, take over what was stored by it."""
        if not self._unsure:
            return
        new = {
            sensor.name: sensor
            for sensor in self._ledger.sensors()
            if self._intake.sensors.get(sensor.name) != sensor
        }
        entries = sorted(self._ledger.recent(self.seq), key=lambda entry: entry.seq)
        self._learn(Group(self._ledger.last(), entries, new))
        self._unsure, self.trouble = False, None

    def _perform(self, task: Callable[[Ledger], object], future: Future[object]) -> None:
        try:
            self._find_out()
            future.set_result(task(self._ledger))
        except Problem as error:
            future.set_exception(error)
        except Exception as error:
            future.set_exception(self._problem(error))

    def _write(self, backlog: Backlog) -> bool:
        """Write what was made, in its order; if that fails, the rest of it waits."""
        # How far all is worked off is written with the last forecasts, and never before them.
        for settled in backlog.settled:
            settled()
        backlog.settled = []
        try:
            while backlog.made:
                self._write_a_run(backlog)
            if backlog.events:
                self._ledger.note(backlog.events)
                backlog.events = []
        except StorageError as error:
            self._problem(error)
            self._wait_with(backlog)
            return False
        except Exception as error:  # what cannot be written must not keep the rest from it
            log.exception("something made was not stored", error=repr(error))
            return True
        if self.trouble == "sr-storage-away" and not self._unsure:
            self.trouble = None
        return True

    def _write_a_run(self, backlog: Backlog) -> None:
        """Write as many forecasts, or snapshots, as come first."""
        kind = type(backlog.made[0])
        run = list(takewhile(lambda each: type(each) is kind, backlog.made[:MOST_FORECASTS]))
        forecasts = [each for each in run if isinstance(each, Issued)]
        snapshots = [each for each in run if isinstance(each, Snapshot)]
        is_last = len(run) == len(backlog.made)
        if forecasts:
            self._ledger.issue(forecasts, done=self._done() if is_last else None)
        if snapshots:
            self._ledger.keep(snapshots)
        del backlog.made[: len(run)]

    def _wait_with(self, backlog: Backlog) -> None:
        """Put a backlog back, before what has come since, and wait a little."""
        with self._changed:
            backlog += self._backlog
            self._backlog = backlog
            self._changed.wait_for(lambda: bool(self._requests) or self._stopping, PATIENCE)

    def _problem(self, error: Exception) -> Problem:
        """Return the refusal that an error of the storage means, and remember the trouble."""
        codes = {
            DiskFullError: "sr-disk-full",
            StorageAwayError: "sr-storage-away",
            StorageFailedError: "sr-storage-failed",
        }
        code = next((code for kind, code in codes.items() if isinstance(error, kind)), None)
        if code is None:
            log.exception("a write failed", error=repr(error))
            return Problem("sr-internal", "The rows could not be stored; nothing of them was.")
        self.trouble = code
        self._unsure = self._unsure or code == "sr-storage-away"
        log.error("the storage refuses a write", code=code, reason=str(error))
        if code == "sr-storage-failed":
            self._failed(str(error))
        return Problem(code, "The storage refused the write; nothing of it was stored.")
