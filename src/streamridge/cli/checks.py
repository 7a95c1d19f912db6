"""Checks of what a command was given, before it starts to work."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge.files.atomic import is_special
from streamridge.files.tables import require_ending

# Exit codes of the command: nothing could be done, what was given is wrong, some of what was asked
# for is missing, and Ctrl-C came first.
FAILED, BAD_INPUT, INCOMPLETE, INTERRUPTED = 1, 2, 3, 130


def require_folder(name: str, folder: Path) -> None:
    """Make the folder, or raise when nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:  # a disk may be full, or a folder not writable
            file.write(b"streamridge")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(
            f"{name} must be a folder that can be written, got {str(folder)!r}: {reason}."
        ) from None


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
    if not is_special(path):
        target = path.resolve() if path.is_symlink() else path
        require_folder(f"the folder of {name}", target.parent)
