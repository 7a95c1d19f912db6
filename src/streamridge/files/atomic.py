"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO

from streamridge.errors import InvalidInputError


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the target once all of it is written and on the disk.

    After an error the target is as it was before.
    """
    part = target.with_name(f".{target.name}.{token_hex(8)}")
    if "\0" in str(target):
        raise InvalidInputError(
            f"{target} must be a file that can be written, got: embedded null byte."
        )
    try:
        with open(part, "xb") as stream:
            try:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                os.replace(part, target)
            finally:
                part.unlink(missing_ok=True)
        _sync_folder(target.parent)
    except BrokenPipeError:
        raise  # of the caller's own output: a file on a disk has none
    except OSError as error:
        raise InvalidInputError(
            f"{target} must be a file that can be written, got: {error.strerror or error}."
        ) from None


def _sync_folder(folder: Path) -> None:
    """Make sure that the new name survives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
