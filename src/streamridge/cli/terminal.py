"""Standard output and standard error: how wide they are, and lines that stay lines."""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size
from typing import Any

from rich.console import Console

from streamridge.texts import visible

# A line is as long as it is: a terminal wraps it, and a log keeps it.
AS_IT_IS = {"markup": False, "highlight": False, "soft_wrap": True}


class Messages(Console):
    """Standard error, where a text is one line, whatever names it holds."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(stderr=True, quiet=quiet)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts as a line, and anything else, such as a progress bar, as it is."""
        if objects and all(isinstance(each, str) for each in objects):
            super().print(*map(visible, objects), **{**AS_IT_IS, **options})
        else:
            super().print(*objects, **options)


def columns() -> int | None:
    """Return how many columns results may take; None where they may take any.

    A terminal is as wide as it is, and COLUMNS says otherwise; into a pipe or a file, a line is as
    long as it needs to be.
    """
    is_told = os.environ.get("COLUMNS", "").isdigit()
    return get_terminal_size().columns if is_told or sys.stdout.isatty() else None


def is_plain() -> bool:
    """Return whether standard output takes no signs beyond the letters of its encoding."""
    return not (sys.stdout.encoding or "").lower().startswith("utf")


def show_any_name() -> None:
    """Let standard output and error write out the letters that their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
