"""The files of an SQLite database: their names, and whether they are still in place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# Files that must stay in place while a database is open for writing.
WATCHED = ("-wal", "-shm", ".lock")
# The byte of the header that says whether a database has a write-ahead log, and its value.
WAL_MODE_AT, WAL_MODE = 18, b"\x02"


class DatabaseFiles:
    """The files of an SQLite database.

    SQLite keeps its other files next to the file itself, not next to a symbolic link to it.
    """

    def __init__(self, path: Path) -> None:
        self._given, self.main = path.absolute(), path.resolve()
        self._known: dict[Path, tuple[int, int] | None] = {}

    def beside(self, suffix: str) -> Path:
        """Return the file next to the database with a suffix."""
        return Path(f"{self.main}{suffix}")

    def remember(self) -> None:
        """Remember the device and the inode of each file."""
        paths = (self._given, *map(self.beside, WATCHED))
        self._known = {path: _identity(path) for path in paths}

    def missing(self) -> Path | None:
        """Return the first remembered file that was deleted or replaced; None if none was."""
        changed = (path for path, known in self._known.items() if _identity(path) != known)
        return next(changed, None)

    def is_database(self, path: Path) -> bool:
        """Return whether a path is that of the database itself."""
        return path == self._given

    @property
    def has_several_names(self) -> bool:
        """Return whether the database has hard links."""
        return self.main.is_file() and self.main.stat().st_nlink > 1

    @property
    def has_complete_name(self) -> bool:
        """Return whether all data can be read by this name.

        If a database has hard links, its write-ahead log is next to one of them. A backup has no
        write-ahead log.
        """
        if not self.has_several_names or self.beside("-wal").exists():
            return True
        with open(self.main, "rb") as file:
            return file.read(WAL_MODE_AT + 1)[WAL_MODE_AT:] != WAL_MODE

    def log_size(self) -> int:
        """Return the bytes of the write-ahead log."""
        try:
            return self.beside("-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def free(self) -> int:
        """Return the bytes that are free on the disk."""
        return shutil.disk_usage(self.main.parent).free


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
