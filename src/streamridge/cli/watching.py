"""Work with its progress on standard error: how far, and how long still."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Task as ProgressTask
from rich.text import Text

from streamridge.arrays import Vector
from streamridge.runs.carrying import carry_out, started_for
from streamridge.runs.engines.base import Engine
from streamridge.runs.engines.work import Outcome
from streamridge.runs.estimates import (
    Speed,
    expected_megabytes,
    expected_seconds,
    seconds_by_step,
)
from streamridge.runs.tasks import Task
from streamridge.texts import counted, visible

# Work that takes longer than this, in seconds, is announced.
LONG = 15.0
# The share of all work that has to be done before anything is said of the time left.
LEAST_SHARE = 0.01


@contextmanager
def watched(tasks: Sequence[Task], engine: Engine, console: Console) -> Iterator[Iterator[Outcome]]:
    """Give the outcomes of tasks in their order, with one bar over all that is to be done.

    The bar counts the seconds that steps are expected to take, since a refit takes as long as
    hundreds of steps; how fast it has moved so far tells how long it has still to go.
    """
    todo = [task for task in tasks if not task.is_done]
    if len(todo) < len(tasks):
        there = len(tasks) - len(todo)
        of_all = counted(len(tasks), "run")
        console.print(f"{there} of {of_all} {'is' if there == 1 else 'are'} there already.")
    with started_for(tasks, engine) as workers:
        speed = Speed.measured()
        announce(todo, workers.width, speed, console)
        with progress_bar(console) as bars:
            expected = Expected(speed)
            total = sum(expected.until(task, task.length) for task in todo)
            bar = bars.add_task("all steps", total=total, visible=total > 0)
            lived: dict[int, float] = {}

            def tell(number: int, done: int) -> None:
                task = tasks[number]
                spent = expected.until(task, done)
                bars.advance(bar, spent - lived.get(number, 0.0))
                lived[number] = spent
                bars.update(
                    bar,
                    description=visible(f"{task.source.sensor} ({task.method})"),
                    told=bars.tasks[bar].elapsed or 0.0,
                )

            with closing(carry_out(tasks, workers, tell)) as outcomes:
                yield outcomes
            bars.update(bar, description="done")


class Expected:
    """The seconds that tasks are expected to take, up to each of their steps."""

    def __init__(self, speed: Speed) -> None:
        self._speed = speed
        self._sums: dict[tuple[int, str, int], Vector] = {}

    def until(self, task: Task, steps: int) -> float:
        """Return the seconds that a task is expected to need for its first steps."""
        # Sensors with the same step share their settings, and so these sums.
        key = id(task.settings), task.method, task.length
        if key not in self._sums:
            each = seconds_by_step(task, self._speed)
            self._sums[key] = np.concatenate([[0.0], np.cumsum(each)])
        return float(self._sums[key][steps])


class TimeLeft(ProgressColumn):
    """How long it takes still, if all goes on as fast as it has so far."""

    def render(self, task: ProgressTask) -> Text:
        """Return the time left; nothing is said before there is something to go by."""
        elapsed = task.elapsed or 0.0
        told = task.fields.get("told", elapsed)
        left = time_left(elapsed, told, task.completed / (task.total or 1.0))
        return Text("-:--:--" if left is None else str(timedelta(seconds=round(left))))


def time_left(elapsed: float, told: float, share: float) -> float | None:
    """Return the seconds left; None at the very start.

    Parameters
    ----------
    elapsed
        The seconds gone by.
    told
        Those gone by when the share that is done was told: a long search tells nothing.
    share
        How much of all is done.

    Examples
    --------
    >>> time_left(30.0, 30.0, 0.25), time_left(40.0, 30.0, 0.25), time_left(1.0, 1.0, 0.001)
    (90.0, 80.0, None)
    """
    if share < LEAST_SHARE:
        return None
    return max(0.0, told * (1 - share) / share - (elapsed - told))


def progress_bar(console: Console) -> Progress:
    """Return a bar with how far work is, and how long still."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeLeft(),
    )
    # Results go through the bar to a terminal alone: a pipe or a file gets them as they are.
    shared = sys.stdout.isatty()
    return Progress(*columns, console=console, disable=console.quiet, redirect_stdout=shared)


def announce(tasks: Sequence[Task], width: int, speed: Speed, console: Console) -> None:
    """Say before long work how long it takes, and how much memory."""
    if console.quiet or not tasks:
        return
    needs = Needs.of(tasks, width, speed)
    if needs.seconds > LONG:
        console.print(str(needs))


@dataclass(frozen=True)
class Needs:
    """What runs are expected to need.

    Parameters
    ----------
    runs, steps
        How many there are, and how many steps the first of them has.
    processes
        How many are made at a time.
    seconds, megabytes
        How long they take on this machine, and how much memory.
    """

    runs: int
    steps: int
    processes: int
    seconds: float
    megabytes: float

    @classmethod
    def of(cls, tasks: Sequence[Task], width: int, speed: Speed) -> Needs:
        """Return what tasks need that are carried out so many at a time, one of them at least."""
        at_once = min(width, len(tasks))
        seconds = round(expected_seconds(tasks, at_once, speed), 1)
        megabytes = round(expected_megabytes(tasks, at_once))
        return cls(len(tasks), tasks[0].length, at_once, seconds, megabytes)

    def __str__(self) -> str:
        return (
            f"{counted(self.runs, 'run')} of {counted(self.steps, 'step')}: about "
            f"{_duration(self.seconds)} and {self.megabytes:.0f} MB of memory in "
            f"{counted(self.processes, 'process')}."
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
