"""Sensors that have failed: each is loaded again after a pause, and its readings wait meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic

import msgspec

from streamridge_service.ledger.errors import StorageAwayError, StorageError
from streamridge_service.workers.messages import SensorFailed, SensorRecovered

# Seconds before a failed sensor is loaded again; the pause doubles up to the second number.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 600.0
CRASHED = "its processing has ended the worker several times"


class Failure(msgspec.Struct, frozen=True):
    """The failure of a sensor, as the service knows it, and the time of the next attempt."""

    message: SensorFailed
    pause: float
    retry_at: float


class SensorFailures:
    """The sensors that have failed; `send` tells the service about them."""

    def __init__(
        self,
        known: Iterable[tuple[SensorFailed, float]],  # with pauses before they are loaded again
        send: Callable[[SensorFailed | SensorRecovered], None],
    ) -> None:
        self._send = send
        self._failures: dict[int, Failure] = {}
        for message, pause in known:
            self._put(message, pause)
            send(message)

    def add(self, sensor: int, seq: int, error: Exception) -> None:
        """Add a sensor after an error; `seq` is the number of the item that waits, if known."""
        before = self._failures.get(sensor)
        if before is None:
            message = SensorFailed(sensor, seq, _reason(error), repr(error))
            self._put(message, FIRST_PAUSE)
            self._send(message)
        else:
            self._put(before.message, min(max(2 * before.pause, FIRST_PAUSE), LONGEST_PAUSE))

    def defer(self, sensor: int, seq: int = 0) -> bool:
        """Return whether a sensor has failed; then the item of this number waits."""
        failure = self._failures.get(sensor)
        if failure is None:
            return False
        if seq and not failure.message.seq:
            message = msgspec.structs.replace(failure.message, seq=seq)
            self._failures[sensor] = msgspec.structs.replace(failure, message=message)
            self._send(message)
        return True

    @property
    def next_attempt(self) -> float | None:
        """Return the seconds until the next sensor must be loaded; None if there is none."""
        if not self._failures:
            return None
        return max(self._failures[self._next].retry_at - monotonic(), 0.0)

    @property
    def due(self) -> int | None:
        """Return a sensor that must be loaded now, if there is one."""
        return None if self.next_attempt != 0.0 else self._next

    def remove(self, sensor: int) -> None:
        """Remove a sensor that is processed again."""
        del self._failures[sensor]
        self._send(SensorRecovered(sensor))

    @property
    def _next(self) -> int:
        return min(self._failures, key=lambda sensor: self._failures[sensor].retry_at)

    def _put(self, message: SensorFailed, pause: float) -> None:
        self._failures[message.sensor] = Failure(message, pause, monotonic() + pause)


def _reason(error: Exception) -> str:
    """Return the reason of a failure in words for operators, without paths or addresses."""
    if isinstance(error, StorageAwayError):
        return "the database cannot be reached"
    if isinstance(error, StorageError):
        return "its stored data cannot be read; restore a backup with `streamridge restore`"
    return f"its processing failed with an unexpected {type(error).__name__}"
