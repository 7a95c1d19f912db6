"""Answers to come, from one thread to another."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any


def promised() -> Future[Any]:
    """Return an answer to come, which whoever waits for it cannot call off.

    A client that leaves calls off what its request waits for. The thread that answers must not
    stumble over that.
    """
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future
