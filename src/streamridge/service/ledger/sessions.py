"""What a ledger asks of a database: transactions, and a few ways to run a statement in one.

Statements are the same for both databases; they name their values as `:name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]
Value = int | float | str | bytes | None


class Session(Protocol):
    """A transaction that is under way."""

    def rows(self, sql: str, **values: Value) -> list[Row]:
        """Return the rows of a query."""

    def chunks(self, sql: str, most: int) -> Iterator[list[Row]]:
        """Return the rows of a long query, so many at a time."""

    def run(self, sql: str, **values: Value) -> int:
        """Run a statement, or several without values; return how many rows it changed."""

    def add(self, table: str, rows: Sequence[Row], on_conflict: str = "DO NOTHING") -> None:
        """Add rows to a table; `on_conflict` says what becomes of one whose key is there."""


class Storage(Protocol):
    """A database that is open."""

    name: str

    def reading(self) -> AbstractContextManager[Session]:
        """Open a session to read in, from any thread: all of it sees one moment. Leave it soon."""

    def writing(self) -> AbstractContextManager[Session]:
        """Open a transaction to write in, which lasts when it is left without an error."""

    def damage(self) -> Iterator[str]:
        """Return what the database itself finds wrong with its pages, in words."""

    def copy_to(self, path: str) -> None:
        """Write a consistent copy to a new file."""

    def size(self) -> dict[str, int]:
        """Return bytes by name, as `Ledger.size` does."""

    def close(self) -> None:
        """Fold the log in, give the lock back, and close."""
