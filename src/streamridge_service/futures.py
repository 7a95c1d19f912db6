"""Futures between threads."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any


def uncancellable_future() -> Future[Any]:
    """Return a future that cannot be cancelled.

    A client that disconnects cancels its request. The thread that sets the result must not fail
    because of that.
    """
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future
