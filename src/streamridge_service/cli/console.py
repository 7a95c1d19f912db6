"""Messages, tables and progress bars of the commands, and the flags that control them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from streamridge.errors import visible

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress and no messages.")]


class Messages(Console):
    """Standard error. Each text is one line, whatever names it contains."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(stderr=True, quiet=quiet)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts without markup, wrapping or control characters."""
        plain = {"markup": False, "highlight": False, "emoji": False, "soft_wrap": True}
        shown = [visible(each) if isinstance(each, str) else each for each in objects]
        super().print(*shown, **{**plain, **options})


def progress_bar(messages: Messages) -> Progress:
    """Return a bar with the share of work that is done, the elapsed and the remaining time."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=messages,
        disable=messages.quiet,
        redirect_stdout=sys.stdout.isatty(),
    )


def print_table(columns: Mapping[str, Sequence[str]]) -> None:
    """Print columns by heading to standard output; a pipe or a file gets unwrapped lines."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in columns:
        table.add_column(heading, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(visible, row))
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = 1000
    for line in console.render_lines(table, pad=False):
        typer.echo("".join(segment.text for segment in line).rstrip())
