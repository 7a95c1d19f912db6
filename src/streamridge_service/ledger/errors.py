"""Errors of the ledger, with the exit codes of commands."""

from __future__ import annotations

from streamridge.errors import StreamRidgeError

# Exit codes of commands, as sysexits.h names them.
DATA, STORAGE, IN_USE, CONFIGURATION = 65, 74, 75, 78


class StorageError(StreamRidgeError):
    """An error of the storage; the failed transaction has written nothing."""

    exit_code = STORAGE


class DiskFullError(StorageError):
    """The disk is full: the transaction has written nothing; reading still works."""


class StorageAwayError(StorageError):
    """The storage cannot be reached; retry the last write to find out whether it succeeded."""


class StorageFailedError(StorageError):
    """A write could not be synced, or a page is damaged: the connection must not be used again."""


class StorageGoneError(StorageFailedError):
    """A file of the database was deleted or replaced while it was open."""


class LostReadingsError(StorageError):
    """The storage lacks readings that were acknowledged; `loss` says which, and why."""

    exit_code = DATA

    def __init__(self, name: str, loss: str) -> None:
        self.loss = f"{name} {loss}"
        super().__init__(
            f"{self.loss} Nothing was changed. Put the right files back, or restore a newer backup "
            "with `streamridge restore`. To go on without these readings, run `streamridge "
            "accept-loss`."
        )


class LinkedFileError(StorageError):
    """The database file has several names, each with a write-ahead log of its own."""

    exit_code = CONFIGURATION


class DamagedPageError(StorageFailedError):
    """A page of the database is damaged; other pages can still be used."""


class FormatError(StorageError):
    """The storage was written by a newer version; it was not changed."""

    exit_code = DATA


class InUseError(StorageError):
    """Another process serves this storage."""

    exit_code = IN_USE


class DamagedError(StorageError):
    """A snapshot fails its checksum: the forecaster must be rebuilt from the readings."""

    exit_code = DATA


class LibraryError(StorageError):
    """An installed library has a bug that could damage the storage."""

    exit_code = CONFIGURATION
