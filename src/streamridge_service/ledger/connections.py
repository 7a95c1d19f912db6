"""A pool of reading connections, and the lock that lets one process write."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from streamridge_service.ledger.errors import InUseError

# More threads may read at once; their connections are closed afterwards.
MOST_IDLE = 8


class Closable(Protocol):
    """An object that can be closed."""

    def close(self) -> object:
        """Close it."""


C = TypeVar("C", bound=Closable)


class ConnectionPool(Generic[C]):
    """Connections, each used by one thread at a time; a new one is opened if none is idle."""

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._idle: list[C] = []  # append and pop are thread-safe
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[C]:
        """Borrow a connection; it is closed instead of returned if the block raises."""
        connection = self._pop() or self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed or len(self._idle) >= MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def close_idle(self) -> None:
        """Close the connections that are not in use."""
        while (connection := self._pop()) is not None:
            connection.close()

    def close(self) -> None:
        """Close all connections; those in use when they are returned."""
        self._closed = True
        self.close_idle()

    def _pop(self) -> C | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None


class LockHolder(msgspec.Struct, frozen=True):
    """The process that holds a lock, and the time at which it took the lock."""

    pid: int
    since: str


def this_process() -> LockHolder:
    """Return this process at the current time."""
    return LockHolder(os.getpid(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


def in_use(name: str, holder: LockHolder | None) -> InUseError:
    """Return the error that names the process which serves a storage."""
    who = "another process"
    if holder is not None:
        who = f"process {holder.pid} since {holder.since}"
    return InUseError(f"{name} is served by {who}. Stop it first, or use another storage.")


@dataclass(frozen=True)
class FileLock:
    """A lock on a file, which the operating system releases when the process ends.

    The file stays. Removing it would let two processes lock two files of the same name.
    """

    descriptor: int

    @classmethod
    def take(cls, path: Path, name: str) -> FileLock:
        """Lock a file, which is created if needed; raise and name the holder if it is locked."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(descriptor)
            os.close(descriptor)
            raise in_use(name, holder) from None
        with suppress(OSError):  # a full disk: the lock holds, but its holder stays unknown
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(this_process()), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock."""
        os.close(self.descriptor)


def _read_holder(descriptor: int) -> LockHolder | None:
    """Return the holder of a lock; it may still be writing its name."""
    for _ in range(20):
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(os.pread(descriptor, 1000, 0), type=LockHolder)
        time.sleep(0.01)
    return None
