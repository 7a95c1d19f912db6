"""Copies of a database of SQLite, made while it is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from streamridge.errors import InvalidInputError
from streamridge.service.ledger.sqlite_errors import translated


def copy_database(source: apsw.Connection, target: Path) -> None:
    """Copy a database to a new file, as of one moment.

    It is one step: after a pause, what others wrote meanwhile would make it begin anew.
    """
    with new_file(target) as part, closing(apsw.Connection(str(part))) as copy:
        try:
            with copy.backup("main", source, "main") as backup:
                backup.step(-1)
            # Without a log beside it, the one file can be moved about.
            copy.execute("PRAGMA journal_mode = DELETE").fetchall()
        except apsw.Error as error:
            raise translated(error, f"the copy {target}", copy.system_errno) from error


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Give the path of a file that gets a new name, once all of it is written and synced."""
    part = target.with_name(f"{target.name}.part")
    if not target.parent.is_dir():
        raise InvalidInputError(f"{target} must be in a folder that exists. Make it first.")
    _remove(part)
    try:
        yield part
        _sync(part)
        if target.exists():
            raise InvalidInputError(
                f"{target} must be a new file, got one that exists. Choose another name."
            )
        part.rename(target)
        _sync(target.parent)
    finally:
        _remove(part)


def _remove(database: Path) -> None:
    """Remove a database and what may lie beside it."""
    for suffix in ("", "-journal", "-wal", "-shm", ".lock"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make sure that a file, or the names in a folder, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
