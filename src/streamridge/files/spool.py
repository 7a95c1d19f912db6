"""Bytes kept in a temporary file when memory cannot hold them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO

from streamridge.errors import InvalidInputError

# Bytes that wait in memory before they move to the disk.
SPILL_ABOVE = 32_000_000


class Spool:
    """Bytes under names, first in memory and, once they are many, in a temporary file.

    The system removes the file when it is closed or the process ends, so that nothing stays behind
    after an error, Ctrl-C or a kill. It holds plain bytes: reading them back executes nothing.

    Parameters
    ----------
    new_file
        Makes the temporary file when it is first needed.
    """

    def __init__(self, new_file: Callable[[], IO[bytes]] = TemporaryFile) -> None:
        self._new_file = new_file
        self._file: IO[bytes] | None = None
        self._stretches: dict[str, array[int]] = {}  # offset, length, offset, length, ...
        self._waiting: dict[str, bytearray] = {}
        self._bytes_waiting = 0

    def append(self, name: str, content: bytes) -> None:
        """Add to the bytes under a name."""
        self._waiting.setdefault(name, bytearray()).extend(content)
        self._bytes_waiting += len(content)
        if self._bytes_waiting > SPILL_ABOVE:
            with disk_errors():
                self._spill()

    def content(self, name: str) -> bytearray:
        """Return all bytes under a name, in the order in which they were added."""
        content = bytearray()
        if self._file is not None and name in self._stretches:
            offsets, lengths = self._stretches[name][::2], self._stretches[name][1::2]
            with disk_errors():
                for offset, length in zip(offsets, lengths, strict=True):
                    self._file.seek(offset)
                    content += self._file.read(length)
        content += self._waiting.get(name, b"")
        return content

    def close(self) -> None:
        """Drop all bytes, and the file with them."""
        self._waiting.clear()
        self._stretches.clear()
        if self._file is not None:
            with suppress(OSError):  # bytes that found no room on the disk are dropped all the same
                self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = self._new_file()
        offset = self._file.seek(0, os.SEEK_END)
        for name, content in self._waiting.items():
            self._stretches.setdefault(name, array("q")).extend((offset, len(content)))
            offset += self._file.write(content)
        self._file.flush()
        self._waiting.clear()
        self._bytes_waiting = 0


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn an error of a temporary file into one that says what to do about it."""
    try:
        yield
    except OSError as error:
        raise InvalidInputError(
            "the folder of temporary files must have room for the readings, "
            f"got: {error.strerror or error}. Set TMPDIR to another folder."
        ) from None
