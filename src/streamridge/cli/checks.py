"""Checks of what a command was given, before it starts to work."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge.files.tables import require_ending

# Exit codes of the command: nothing could be done, what was given is wrong, some of what was asked
# for is missing, and Ctrl-C came first.
FAILED, BAD_INPUT, INCOMPLETE, INTERRUPTED = 1, 2, 3, 130


def require_folder(name: str, folder: Path) -> None:
    """Make the folder, or raise when nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise InvalidInputError(
            f"{name} must be a folder that can be written, got {str(folder)!r}."
        )


def require_extra(module: str, extra: str) -> None:
    """Raise unless an optional dependency is installed, naming the extra that brings it."""
    if find_spec(module) is None:
        raise MissingExtraError(
            f"{module} must be installed for this command. "
            f"Install it with: pip install 'streamridge[{extra}]'"
        )


def require_table(name: str, path: Path) -> None:
    """Raise unless a table can be written there: its folder, and its ending."""
    if require_ending(path) == ".parquet":
        require_extra("pyarrow", "parquet")
    require_folder(f"the folder of {name}", path.parent)
