"""What errors of PostgreSQL mean for those who write: try again, free space, or stop."""

from __future__ import annotations

import psycopg
from psycopg import errors

from streamridge.errors import InvalidInputError
from streamridge.service.ledger.base import (
    DiskFullError,
    StorageAwayError,
    StorageError,
    StorageFailedError,
)

DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted, errors.IoError)
# A standby, which became none or not yet the server to write to, says that it only reads.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)


def translated(error: psycopg.Error, name: str) -> StorageError | InvalidInputError:
    """Return the error of the storage that an error of PostgreSQL means."""
    reason = " ".join(str(error).split())
    if isinstance(error, errors.DiskFull):
        return DiskFullError(f"{name} has no room on its disk; nothing was stored. Free space.")
    if isinstance(error, DAMAGED):
        return StorageFailedError(
            f"{name} is damaged ({reason}). Get a backup by `streamridge restore`."
        )
    if isinstance(error, psycopg.IntegrityError | psycopg.DataError):
        return InvalidInputError(f"rows for {name} must not contradict it, got: {reason}.")
    if isinstance(error, AWAY):
        return StorageAwayError(f"{name} cannot be reached ({reason}).")
    return StorageFailedError(f"{name} failed ({reason}).")
