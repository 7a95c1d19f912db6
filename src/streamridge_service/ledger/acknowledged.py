"""The last acknowledged arrival number, in a small file next to an SQLite database.

A damaged write-ahead log loses its last transactions, and SQLite opens what is left without an
error. This file shows the loss: it has the identity of the database and the last arrival number
that was acknowledged. It is written after each commit of readings, before they are acknowledged,
and it is not synced. After a power loss it can be older than the database, but never newer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from streamridge.errors import counted
from streamridge_service.ledger.errors import LostReadingsError

SUFFIX = "-acked"
# No more is read: the file has one short line.
MOST_BYTES = 200


@dataclass(frozen=True)
class Acknowledgement:
    """The identity of a database, and its last acknowledged arrival number."""

    identity: str
    last: int

    @property
    def line(self) -> bytes:
        """Return the line of the file; its length never changes, and a checksum ends it."""
        text = f"{self.identity} {self.last:020d}"
        return f"{text} {crc32(text.encode()):08x}\n".encode()

    def loss(self, facts: Mapping[str, str]) -> str | None:
        """Return what a database with these facts has lost; None if nothing."""
        found = int(facts.get("last", "0"))
        if not self.last:
            return None
        if not facts:
            return (
                f"is missing or empty, but {counted(self.last, 'reading')} in it were "
                "acknowledged. It was deleted or moved, or its write-ahead log was damaged."
            )
        if facts.get("identity") != self.identity:
            return (
                f"is not the database in which {counted(self.last, 'reading')} were acknowledged. "
                "Another file was put in its place, or its write-ahead log was damaged."
            )
        if found < self.last:
            return (
                f"lacks the last {counted(self.last - found, 'reading')} that were acknowledged. "
                "Its write-ahead log was damaged, or an older copy was put in its place."
            )
        return None


@dataclass(frozen=True)
class AcknowledgedFile:
    """The file with the last acknowledged arrival number; only its owner may read it."""

    path: Path

    @classmethod
    def of(cls, database: Path) -> AcknowledgedFile:
        """Return the file that belongs to a database."""
        return cls(Path(f"{database}{SUFFIX}"))

    def read(self) -> Acknowledgement | None:
        """Return the content; None if the file is missing or unreadable.

        A line that was half written when the power failed is unreadable, too.
        """
        try:
            with open(self.path, "rb") as file:
                line = file.readline(MOST_BYTES)
        except OSError:
            return None
        match line.decode(errors="replace").split():
            case [identity, last, _] if last.isdecimal():
                found = Acknowledgement(identity, int(last))
                return found if found.line == line else None
        return None

    def write(self, content: Acknowledgement) -> None:
        """Write the last acknowledged arrival number.

        An error is ignored: the readings are stored, and an old number only weakens the check.
        The file is overwritten in place, since some file systems sync a file that replaces another.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(OSError):
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.write(descriptor, content.line)
            finally:
                os.close(descriptor)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def require_stored(self, name: str, facts: Callable[[], Mapping[str, str]]) -> None:
        """Raise if a database lacks acknowledged readings.

        `facts` returns the facts of the database. It is called after the file was read, since the
        database may grow meanwhile.
        """
        known = self.read()
        loss = None if known is None else known.loss(facts())
        if loss is not None:
            raise LostReadingsError(name, loss)
