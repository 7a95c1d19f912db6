"""Retention: old readings and forecasts are deleted while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from streamridge.errors import counted
from streamridge_service.ledger.errors import StorageError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.plan import DAY, NEVER, Plan
from streamridge_service.problems import Problem
from streamridge_service.service.events import EventLog
from streamridge_service.service.health import Health
from streamridge_service.service.writer import Writer
from streamridge_service.workers.snapshots import history_span

# Seconds between two transactions that delete rows.
PAUSE = 0.05

T = TypeVar("T")


class Read(Protocol):
    """A function that runs a query of the ledger in another thread."""

    def __call__(self, query: Callable[[Ledger], T]) -> Awaitable[T]:
        """Return the result of a query."""


class Retention:
    """Deletes readings and forecasts after some days, but nothing that forecasters need."""

    def __init__(
        self,
        keep_days: int | None,
        plan: Plan,
        *,
        read: Read,
        writer: Writer,
        events: EventLog,
        health: Health,
    ) -> None:
        self._keep_days, self._plan = keep_days, plan
        self._read, self._writer, self._events, self._health = read, writer, events, health
        self._reason = ""  # why the last run failed
        self.deleted = self.failed = 0

    async def run(self, now: int, newest: int, longest_step: int) -> None:
        """Delete what is too old; a failure is an event and a reason.

        `now` is the machine's time, and `newest` the time of the newest reading. The earlier one
        counts: neither a wrong clock nor a wrong reading may delete recent data. The history that
        a forecaster with the longest step is rebuilt from stays.
        """
        if self._keep_days is None or newest == NEVER:
            return
        history = history_span(msgspec.structs.replace(self._plan, step=longest_step))
        try:
            await self._delete(min(now, newest) - max(self._keep_days * DAY, history))
        except (Problem, StorageError) as error:
            self._fail(error.reason)
        else:
            self._reason = ""
            self._health.notes.pop("retention", None)

    async def _delete(self, before: int) -> None:
        count = await self._delete_rows()
        while True:
            bucket = await self._read(lambda ledger: ledger.prunable_bucket(before))
            if bucket is None:
                break
            await self._writer.run(partial(Ledger.drop_bucket, bucket=bucket))
            count += await self._delete_rows()
        if count:
            self._events.record("pruned", None, f"{counted(count, 'old row')} deleted")

    async def _delete_rows(self) -> int:
        """Delete the rows of dropped buckets in small transactions; return their number."""
        count = 0
        while deleted := await self._writer.run(Ledger.delete_dropped):
            count += sum(deleted.values())
            await asyncio.sleep(PAUSE)  # readings are stored in between
        self.deleted += count
        return count

    def _fail(self, reason: str) -> None:
        self.failed += 1
        self._health.notes["retention"] = "old readings could not be deleted"
        if reason != self._reason:
            self._reason = reason
            self._events.record("prune_failed", None, f"old rows were not deleted: {reason}")
