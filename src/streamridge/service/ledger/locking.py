"""A lock on a storage that tells who holds it, and that a killed process does not keep."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from streamridge.service.ledger.base import InUseError


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock, and when it began."""

    pid: int
    since: str


def this_process() -> Holder:
    """Return this process, as of now."""
    return Holder(os.getpid(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


def in_use(name: str, holder: Holder | None) -> InUseError:
    """Return the error that names who serves a storage."""
    who = "another process"
    if holder is not None:
        who = f"process {holder.pid} since {holder.since}"
    return InUseError(f"{name} is served by {who}. Stop it first, or use another storage.")


@dataclass(frozen=True)
class FileLock:
    """A lock on a file, held as long as this process lives.

    The operating system gives it back when the process ends, however it does. The file stays: to
    remove it would let two processes hold locks on two files of the same name.
    """

    descriptor: int

    @classmethod
    def take(cls, path: Path, name: str) -> FileLock:
        """Take the lock of a file, or raise and name its holder.

        Parameters
        ----------
        path
            The file, which is made if needed.
        name
            What messages call what is locked.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read(descriptor)
            os.close(descriptor)
            raise in_use(name, holder) from None
        with suppress(
            OSError
        ):  # on a full disk the lock holds as well, only its holder has no name
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(this_process()), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self.descriptor)


def _read(descriptor: int) -> Holder | None:
    """Return who holds a lock, who may be just about to write it."""
    for _ in range(20):
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(os.pread(descriptor, 1000, 0), type=Holder)
        time.sleep(0.01)
    return None
