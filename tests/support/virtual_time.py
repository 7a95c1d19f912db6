"""An event loop whose time passes only while everything waits: pauses cost nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class _Loop(asyncio.SelectorEventLoop):
    """Jumps to the next timer as soon as nothing else can run; without files and threads."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._now = max(self._now, self._scheduled[0].when())
        super()._run_once()


def run_in_virtual_time(work: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine whose pauses are simulated."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
