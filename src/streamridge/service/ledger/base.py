"""The contract of a ledger: the one place where the truth is kept.

One process writes, through one `Ledger`; any number of processes read, each through a ledger of its
own, opened with `read_only`. Every method that writes is one transaction, and when it returns, what
it wrote survives a loss of power. If it raises, nothing of it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self

from streamridge.errors import StreamRidgeError
from streamridge.service.ledger.records import (
    Action,
    Cut,
    Entry,
    Event,
    Issued,
    SensorRow,
    Snapshot,
    Token,
)

# Readings and forecasts are stored by the bucket of their arrival number, then by sensor. So a
# batch of all sensors writes few and neighbouring pages, and one sensor's day is read from a few.
BUCKET = 1 << 17


class StorageError(StreamRidgeError):
    """An error of the storage itself; what was being written is not there."""


class DiskFullError(StorageError):
    """There is no room left: nothing of what was being written is there; reading goes on."""


class StorageAwayError(StorageError):
    """The storage cannot be reached now; whether the last write is there is found by retrying."""


class StorageFailedError(StorageError):
    """A write could not be made to last, or a page is damaged: the connection is of no more use."""


class FormatError(StorageError):
    """The storage was written by a newer version; nothing was changed."""


class InUseError(StorageError):
    """Another process serves this storage."""


class DamagedError(StorageError):
    """A snapshot is not what was stored: its forecaster must be made again from the readings."""


class LibraryError(StorageError):
    """An installed library must not be used, since it could damage the storage."""


class Ledger(Protocol):
    """Readings, actions, cuts, snapshots, forecasts, tokens and events, kept for good."""

    def close(self) -> None:
        """Fold the log in, give the lock back, and close."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    # Writing.

    def append(
        self,
        sensors: Sequence[SensorRow] = (),
        entries: Sequence[Entry] = (),
        actions: Sequence[Action] = (),
    ) -> None:
        """Add new sensors, readings and actions; their arrival numbers go on without a hole.

        A sensor that is known gets the declaration and the archive mark given here. What is there
        already, to the letter, is not added again: so a caller that was told `StorageAwayError`
        sends the same again. A hole, or a number that was given to something else, is an
        `InvalidInputError`.
        """

    def issue(self, forecasts: Sequence[Issued], done: int | None = None) -> None:
        """Add forecasts; one that is there already is left as it is.

        With `done`, every reading up to this arrival number has been worked off.
        """

    def keep(self, snapshots: Sequence[Snapshot]) -> None:
        """Add the cuts of snapshots to the log, and let the snapshots replace the sensors' last.

        A snapshot at an earlier arrival number than the sensor's last is not taken, nor is its cut.
        """

    def note(self, events: Sequence[Event]) -> None:
        """Add events; one whose number is there already is left as it is."""

    def put_tokens(self, tokens: Sequence[Token]) -> None:
        """Add tokens, or replace those of the same number."""

    def put_facts(self, facts: Mapping[str, str]) -> None:
        """Add facts about the service, such as its step, or replace those of the same name."""

    def prune(self, before: int) -> dict[str, int]:
        """Drop readings and forecasts of times before a moment, but what forecasters still need.

        Returns how many rows of each kind were dropped. Arrival numbers stay without holes in what
        is left: whole buckets are dropped, the oldest first, whose readings are all older. Each is
        a transaction of its own, so that the log stays small.

        A forecaster needs what arrived after its snapshot, or all if it has none. It needs nothing
        if its sensor is archived, or has neither a snapshot nor a reading of late.
        """

    # Reading.

    def facts(self) -> dict[str, str]:
        """Return what is known of the storage by name, such as "format", "version" and "first"."""

    def last(self) -> int:
        """Return the last arrival number; zero before the first."""

    def done(self) -> int:
        """Return up to which arrival number all readings have been worked off."""

    def sensors(self) -> list[SensorRow]:
        """Return all sensors, by their number."""

    def entries(
        self,
        sensor: int,
        *,
        after: int = 0,
        up_to: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> list[Entry]:
        """Return readings of a sensor in order of arrival.

        `after` and `up_to` limit arrival numbers (after < seq <= up_to), `start` and `end` times
        (start <= time < end).
        """

    def recent(self, after: int) -> Iterator[Entry]:
        """Return the readings of all sensors after an arrival number, in no certain order."""

    def held(self) -> list[Entry]:
        """Return the readings that are held, and have not arrived again at their time."""

    def actions(self, sensor: int, *, after: int = 0) -> list[Action]:
        """Return what was asked of a sensor, in order of arrival."""

    def cuts(self, sensor: int) -> list[Cut]:
        """Return the cuts of a sensor, in order of arrival."""

    def snapshot(self, sensor: int) -> Snapshot | None:
        """Return the last snapshot of a sensor, if any; a `DamagedError` if it is damaged."""

    def summaries(self) -> Iterator[tuple[int, int, bytes]]:
        """Return sensor, arrival number and summary of every last snapshot."""

    def tunings(self, sensor: int, *, start: int | None = None) -> list[tuple[int, bytes]]:
        """Return the time `until` and the tuning of the sensor's cuts, in order of arrival."""

    def forecasts(
        self,
        sensor: int | None = None,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
    ) -> Iterator[Issued]:
        """Return forecasts by arrival number, of one sensor or of all.

        `start` and `end` limit the time of the first step (start <= time < end).
        """

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Return the newest events after a number, in order."""

    def tokens(self) -> list[Token]:
        """Return all tokens."""

    # Care.

    def check(self) -> Iterable[str]:
        """Return what is wrong with the storage itself, in words; nothing if it is sound."""

    def copy_to(self, path: str) -> None:
        """Write a consistent copy, a prefix of the log, to a new file, while others write.

        It is an SQLite file, of PostgreSQL as well.
        """

    def size(self) -> dict[str, int]:
        """Return bytes by name.

        "data"; "log", not folded in yet; "reusable", within the data; and "free" on the disk,
        which is left out where it cannot be known.
        """
