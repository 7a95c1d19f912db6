"""Atomic writes: a file is written completely, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO

from streamridge.errors import InvalidInputError
from streamridge.files.open_files import is_special


@contextmanager
def replacing(target: Path, at_end: Callable[[], Path] | None = None) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the target when it is complete and on the disk.

    After an error the target is unchanged. If the target is a link, the linked file is replaced. A
    pipe or a device is written directly. `at_end` returns the name of the complete file in the same
    folder, if it is not the target.
    """
    if "\0" in str(target):
        raise unwritable(target, OSError("embedded null byte"))
    try:
        if is_special(target):
            with open(target, "wb") as stream:
                yield stream
            return
        with _part_of(target.resolve()) as (stream, part):
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            named = (target if at_end is None else at_end()).resolve()
            os.replace(part, named)
        _sync_folder(named.parent)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and not is_special(target):
            raise  # it is about another output of the caller: a file has no pipe
        raise unwritable(target, error) from None


def unwritable(target: Path, error: OSError) -> InvalidInputError:
    """Return the error that says which file could not be written."""
    return InvalidInputError(
        f"{target} must be a file that can be written, got: {error.strerror or error}."
    )


@contextmanager
def _part_of(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Open a file next to the target, and remove it afterwards unless it was renamed."""
    part = target.with_name(f".{target.name}.{token_hex(8)}")
    with open(part, "xb") as stream:
        try:
            yield stream, part
        finally:
            part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make sure that the new name survives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
