"""Work with its progress on standard error: how far, and how long still."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from streamridge.runs.carrying import carry_out, started_for
from streamridge.runs.engines.base import Engine
from streamridge.runs.engines.work import Outcome
from streamridge.runs.tasks import Task, expected_megabytes, expected_seconds
from streamridge.texts import counted, visible

# Work that takes longer than this, in seconds, is announced.
LONG = 15.0


@contextmanager
def watched(tasks: Sequence[Task], engine: Engine, console: Console) -> Iterator[Iterator[Outcome]]:
    """Give the outcomes of tasks in their order, with one bar over all that is to be done."""
    todo = [task for task in tasks if not task.is_done]
    if len(todo) < len(tasks):
        there = len(tasks) - len(todo)
        of_all = counted(len(tasks), "run")
        console.print(f"{there} of {of_all} {'is' if there == 1 else 'are'} there already.")
    with started_for(tasks, engine) as workers:
        announce(todo, workers.width, console)
        with progress_bar(console) as bars:
            steps = sum(task.length for task in todo)
            bar = bars.add_task("all steps", total=steps, visible=steps > 0)
            lived: dict[int, int] = {}

            def tell(number: int, done: int) -> None:
                bars.advance(bar, done - lived.get(number, 0))
                lived[number] = done
                task = tasks[number]
                name = visible(f"{task.source.sensor} ({task.method})")
                bars.update(bar, description=name)

            with closing(carry_out(tasks, workers, tell)) as outcomes:
                yield outcomes
            bars.update(bar, description="done")


def progress_bar(console: Console) -> Progress:
    """Return a bar with how far work is, and how long still."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # Results go through the bar to a terminal alone: a pipe or a file gets them as they are.
    shared = sys.stdout.isatty()
    return Progress(*columns, console=console, disable=console.quiet, redirect_stdout=shared)


def announce(tasks: Sequence[Task], width: int, console: Console) -> None:
    """Say before long work how long it takes, and how much memory."""
    at_once = min(width, len(tasks))
    if console.quiet or not tasks:
        return
    seconds = expected_seconds(tasks, at_once)
    if seconds > LONG:
        console.print(
            f"{counted(len(tasks), 'run')} of {counted(tasks[0].length, 'step')}: about "
            f"{_duration(seconds)} and {expected_megabytes(tasks, at_once):.0f} MB of memory in "
            f"{counted(at_once, 'process')}."
        )


def _duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> _duration(42), _duration(130), _duration(9000)
    ('42 seconds', '2 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
