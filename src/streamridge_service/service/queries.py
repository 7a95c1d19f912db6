"""Queries of the ledger, in other threads than the event loop.

Python runs one thread at a time, so long work in one thread delays all others. Long work is
therefore divided into parts of a few milliseconds. One part runs at a time, the parts of several
requests take turns, and no part begins while readings are being stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from streamridge_service.ledger.ledger import Ledger

# Quick queries that run at the same time.
MAX_QUICK = 4
# Seconds for which a part waits until readings are stored, and between two looks.
MAX_WAIT, PAUSE = 0.1, 0.002

T = TypeVar("T")


class Queries:
    """The threads that query a ledger; `is_storing` tells whether readings are being stored."""

    def __init__(self, ledger: Ledger, is_storing: Callable[[], bool]) -> None:
        self._ledger, self._is_storing = ledger, is_storing
        self._quick = ThreadPoolExecutor(MAX_QUICK, "quick queries")
        self._long = ThreadPoolExecutor(1, "long queries")
        self._turn = asyncio.Lock()  # requests get it in the order in which they ask

    async def read(self, query: Callable[[Ledger], T]) -> T:
        """Return the result of a quick query."""
        return await self._run(self._quick, lambda: query(self._ledger))

    async def read_part(self, query: Callable[[Ledger], T]) -> T:
        """Return the result of a query that is one part of a long one."""
        return await self.work(lambda: query(self._ledger))

    async def work(self, part: Callable[[], T]) -> T:
        """Return the result of one part of long work."""
        async with self._turn:
            loop = asyncio.get_running_loop()
            end = loop.time() + MAX_WAIT
            while self._is_storing() and loop.time() < end:
                await asyncio.sleep(PAUSE)
            return await self._run(self._long, part)

    async def _run(self, threads: ThreadPoolExecutor, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads, function)

    def close(self) -> None:
        """End the threads; queries that wait are dropped."""
        for threads in (self._quick, self._long):
            threads.shutdown(cancel_futures=True)
