"""What errors of SQLite mean for those who write: try again, free space, or stop."""

from __future__ import annotations

import errno

import apsw

from streamridge.errors import InvalidInputError
from streamridge.service.ledger.base import (
    DiskFullError,
    StorageAwayError,
    StorageError,
    StorageFailedError,
)

FULL = (errno.ENOSPC, errno.EDQUOT)
SYNCS = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


def is_full(error: Exception, system_error: int) -> bool:
    """Return whether there was no room.

    After a failed sync nobody knows what is on the disk, even if it failed for want of room.
    """
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) not in SYNCS and system_error in FULL
    return isinstance(error, apsw.FullError)


def translated(
    error: Exception, name: str, system_error: int = 0
) -> StorageError | InvalidInputError:
    """Return the error of the storage that an error of SQLite means.

    Parameters
    ----------
    error
        What apsw raised, or a text that is not one.
    name
        What messages call the storage.
    system_error
        What the operating system said of the last file that failed.
    """
    if is_full(error, system_error):
        return DiskFullError(f"{name} has no room on its disk; nothing was stored. Free space.")
    if isinstance(error, apsw.ConstraintError):
        return InvalidInputError(f"rows for {name} must not contradict it, got: {error}.")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError):
        return StorageFailedError(
            f"{name} is damaged ({error}). Put it aside, and get a backup by `streamridge restore`."
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StorageAwayError(f"{name} is locked by another program ({error}).")
    reason = str(error) or type(error).__name__
    return StorageFailedError(f"{name} failed ({reason}). Look after its disk, then start again.")
