"""Standard output and standard error: messages, tables, and output that a reader may close."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from io import BufferedWriter, FileIO, TextIOWrapper
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from streamridge.errors import visible

# Names are text, not markup, and a long line is not wrapped.
PLAIN_TEXT = {"markup": False, "highlight": False, "emoji": False, "soft_wrap": True}
# Spaces between the columns of a table.
GAP = 2
# Names are folded to this width before a column is omitted.
NAME_WIDTH = 12
# The width of a table in a pipe or a file.
UNLIMITED = 100_000


class Messages(Console):
    """Standard error. Each message is one line, whatever names it contains."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(stderr=True, quiet=quiet)

    def print_each(self, objects: Iterable[object]) -> None:
        """Print each object as a line of text."""
        for each in objects:
            self.print(str(each))

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts as one line, and renderables such as a progress bar as Rich does."""
        if objects and all(isinstance(each, str) for each in objects):
            super().print(*map(visible, objects), **{**PLAIN_TEXT, **options})
        else:
            super().print(*objects, **options)


class OutputError(OSError):
    """An error that says why standard output cannot be written; it ends the command."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(f"standard output must be writable, got: {reason.strerror or reason}.")


class StandardOutput:
    """Standard output. A closed pipe or a full disk stops the output, not the command."""

    def __init__(self) -> None:
        self.is_open = True  # output can still be written
        # The reason why writing failed; None if the reader closed the pipe, as `head` does.
        self.error: OutputError | None = None

    def print(self, text: str) -> None:
        """Write a text and flush it."""
        self.attempt(lambda: sys.stdout.write(text))

    def attempt(self, write: Callable[[], object]) -> None:
        """Call a function that writes to standard output, unless writing has failed before."""
        if not self.is_open:
            return
        try:
            write()
            sys.stdout.flush()
        except BrokenPipeError:
            self.is_open = False
        except OutputError as error:
            self.is_open, self.error = False, error

    def require_intact(self) -> None:
        """Raise if writing failed for another reason than a closed pipe."""
        if self.error is not None:
            raise self.error


class CheckedOutput(FileIO):
    """Standard output. The first write that fails raises an error; later text is dropped."""

    _has_failed = False

    def write(self, content: Any) -> int:
        """Write bytes; raise `OutputError`, or `BrokenPipeError` if the reader has left."""
        if self._has_failed:
            return len(content)
        try:
            return super().write(content)
        except OSError as error:
            self._has_failed = True
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputError(error) from None


class LossyOutput(FileIO):
    """Standard error. Messages that cannot be written are dropped, and the command goes on."""

    def write(self, content: Any) -> int:
        """Write bytes if possible."""
        try:
            return super().write(content)
        except OSError:
            return len(content)


def guard_standard_streams() -> None:
    """Let no write to standard output fail unnoticed, and none to standard error fail at all.

    Characters that the encoding of the terminal lacks are written as escapes.
    """
    sys.stdout = _guarded(CheckedOutput, sys.stdout)
    sys.stderr = _guarded(LossyOutput, sys.stderr)


def _guarded(kind: type[FileIO], stream: TextIOWrapper | Any) -> TextIOWrapper:
    """Return a standard stream that writes through a file of a given kind."""
    # A stream that was closed from the start is None: here it is a file that cannot be written.
    descriptor = os.open(os.devnull, os.O_RDONLY) if stream is None else stream.fileno()
    return TextIOWrapper(
        BufferedWriter(kind(descriptor, "w", closefd=False)),
        encoding=getattr(stream, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=getattr(stream, "line_buffering", False),
    )


def table_text(columns: Mapping[str, Sequence[str]], names: Collection[str]) -> str:
    """Return a table as text, as wide as the terminal allows.

    Columns hold their cells by heading, the most important columns first. Columns of `names` are
    aligned left and may be folded. If the table is too wide, names are folded, and then the last
    columns are omitted; a line below the table lists them. Numbers are never cut.
    """
    is_set = os.environ.get("COLUMNS", "").isdigit()  # get_terminal_size reads it
    width = get_terminal_size().columns if is_set or sys.stdout.isatty() else UNLIMITED
    cells = {heading: [visible(each) for each in column] for heading, column in columns.items()}
    shown = _columns_that_fit(cells, names, width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for heading in shown:
        is_name = heading in names
        table.add_column(
            heading, justify="left" if is_name else "right", no_wrap=not is_name, overflow="fold"
        )
    for row in zip(*(cells[heading] for heading in shown), strict=True):
        table.add_row(*row)
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    text = "".join(segment.text for segment in console.render(table))
    lines = [line.rstrip() for line in text.splitlines()]
    omitted = [heading for heading in columns if heading not in shown]
    if omitted:
        note = f"Columns omitted because the terminal is too narrow: {', '.join(omitted)}."
        lines += wrap(f"{note} --json shows all.", width)
    return "\n".join(lines)


def _columns_that_fit(
    columns: Mapping[str, Sequence[str]], names: Collection[str], width: int
) -> list[str]:
    """Return the headings of the first columns that fit the width; names always stay."""
    least = {}
    for heading, cells in columns.items():
        widest = max(map(cell_len, (heading, *cells)))
        least[heading] = min(widest, NAME_WIDTH) if heading in names else widest
    shown = list(columns)
    while (
        len(shown) > 1
        and shown[-1] not in names
        and sum(least[heading] + GAP for heading in shown) - GAP > width
    ):
        shown.pop()
    return shown
