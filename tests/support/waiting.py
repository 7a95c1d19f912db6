"""Waiting for something to happen, with a limit that only a fault reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

# Seconds. A busy machine may be a hundred times slower than an idle one.
LIMIT = 120.0
PAUSE = 0.01


def wait_until(
    condition: Callable[[], Any], what: str, timeout: float = LIMIT, pause: float = PAUSE
) -> Any:
    """Return the first true value of `condition()`; fail after `timeout` seconds.

    Parameters
    ----------
    condition
        It is called until it returns something true.
    what
        The awaited event, for the message of a failure.
    """
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: it did not happen within {timeout:g} seconds"
        time.sleep(pause)
    return found


async def wait_until_async(
    condition: Callable[[], Any], what: str, timeout: float = LIMIT, pause: float = PAUSE
) -> Any:
    """Do the same in an event loop, which goes on meanwhile."""
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: it did not happen within {timeout:g} seconds"
        await asyncio.sleep(pause)
    return found
