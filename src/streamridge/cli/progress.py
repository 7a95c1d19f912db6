"""Tasks with a progress bar on standard error, and a rough estimate of their cost."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from streamridge.errors import counted, visible
from streamridge.forecaster.methods import needs_model
from streamridge.forecaster.presets import landmarks_of
from streamridge.forecaster.sizes import NAMED
from streamridge.runs.engines import Engine, LocalEngine
from streamridge.runs.run_tasks import run_tasks
from streamridge.runs.tasks import Task, TaskOutcome

# An estimate is printed before work that takes longer than this, in seconds.
LONG = 15.0
# Seconds of work from which the remaining time is estimated.
PERIOD = 600.0
# The cost of a trial of a search, relative to a refit: it has no gradient and fewer rows.
TRIAL = 0.4
# Memory of a process, in MB, before it holds a series and a model.
PROCESS_MEGABYTES = 95.0
# Arrays of rows by rows (or landmarks) in a fit, and more of them in a search.
MATRICES, SEARCH_MATRICES = 4.0, 4.5
# Bytes of a step for its reading, its time and its state; and of each forecast number.
STEP_BYTES, NUMBER_BYTES = 450.0, 24.0


@contextmanager
def run_with_progress(
    tasks: Sequence[Task], engine: Engine | Executor, console: Console
) -> Iterator[Iterator[TaskOutcome]]:
    """Run tasks with a progress bar over all steps, and yield their outcomes in order."""
    todo = [task for task in tasks if not task.is_done]
    if len(todo) < len(tasks):
        stored = len(tasks) - len(todo)
        verb = "is" if stored == 1 else "are"
        console.print(f"{stored} of {counted(len(tasks), 'run')} {verb} already stored.")
    if todo and isinstance(engine, LocalEngine):
        estimate = Estimate.of(todo, engine.jobs)
        if estimate.seconds > LONG:
            console.print(str(estimate))
    with progress_bar(console) as bars:
        total = sum(task.length for task in todo)
        bar = bars.add_task("all steps", total=total, visible=total > 0)
        done: dict[int, int] = {}

        def report(number: int, steps: int) -> None:
            task = tasks[number]
            bars.advance(bar, steps - done.get(number, 0))
            bars.update(bar, description=visible(f"{task.series.sensor} ({task.method})"))
            done[number] = steps

        with closing(run_tasks(tasks, engine, report)) as outcomes:
            yield outcomes
        bars.update(bar, description="done")


def progress_bar(console: Console) -> Progress:
    """Return a bar with the share of work that is done, the elapsed and the remaining time."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # Only a terminal shows results and the bar together: a pipe or a file gets results alone.
    is_terminal = sys.stdout.isatty()
    return Progress(
        *columns,
        console=console,
        disable=console.quiet,
        redirect_stdout=is_terminal,
        speed_estimate_period=PERIOD,
    )


@dataclass(frozen=True)
class Estimate:
    """The rough cost of tasks."""

    sensors: int
    runs: int  # one for each sensor and method
    steps: int  # steps of the first run
    fits: int  # without the trials of searches
    processes: int  # the number of runs at the same time
    seconds: float  # on the machine that measured `forecaster.sizes`
    megabytes: float

    @classmethod
    def of(cls, tasks: Sequence[Task], jobs: int) -> Estimate:
        """Return the rough cost of at least one task, with at most `jobs` tasks at a time."""
        processes = min(jobs, len(tasks))
        seconds = sum(map(seconds_of, tasks)) / min(processes, os.cpu_count() or 1)
        megabytes = processes * max(map(megabytes_of, tasks))
        if processes > 1:
            megabytes += PROCESS_MEGABYTES
        return cls(
            sensors=len({task.series.sensor for task in tasks}),
            runs=len(tasks),
            steps=tasks[0].length,
            fits=sum(len(_refits(task)) for task in tasks),
            processes=processes,
            seconds=round(seconds, 1),
            megabytes=round(megabytes),
        )

    def __str__(self) -> str:
        return (
            f"{counted(self.runs, 'run')} of {counted(self.steps, 'step')} "
            f"({counted(self.sensors, 'sensor')}, {counted(self.fits, 'fit')}): about "
            f"{duration(self.seconds)} and {self.megabytes:.0f} MB of memory in "
            f"{counted(self.processes, 'process')}."
        )


def seconds_of(task: Task) -> float:
    """Return the rough processor seconds of a task, by the measured cost of the default size.

    The cost of a refit is taken as proportional to its rows times its landmarks, or to the square
    of its rows without landmarks.
    """
    settings, refits = task.settings, _refits(task)
    if not needs_model(task.method):
        return 0.0
    landmarks, size = landmarks_of(settings.preset), NAMED["default"]
    rows = np.minimum(refits, settings.train_size)
    entries = rows * (rows if landmarks is None else landmarks)
    costs = entries / (size.train_size * size.landmarks) * size.measured.refit
    seconds = task.length * size.measured.step + float(costs.sum())
    if settings.tuner is not None and len(refits):
        trials = settings.tuner.trials(settings.preset.model.space)
        every = settings.tune_every or task.length
        searches = max(1.0, (task.length - settings.warmup) / every)
        seconds += searches * trials * TRIAL * float(costs.mean())
    return seconds


def megabytes_of(task: Task) -> float:
    """Return the rough memory of a process that runs a task."""
    settings = task.settings
    matrices = MATRICES + SEARCH_MATRICES * bool(settings.tuner)
    numbers = settings.horizon * (1 + 2 * len(settings.levels))
    content = STEP_BYTES * len(task.series) + NUMBER_BYTES * numbers * task.length
    entries = settings.train_size * (landmarks_of(settings.preset) or settings.train_size)
    return PROCESS_MEGABYTES + 8e-6 * matrices * entries + 1e-6 * content


def _refits(task: Task) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the steps after which the model of a task is fitted."""
    if not needs_model(task.method):
        return np.zeros(0, dtype=np.int64)
    return np.arange(task.settings.warmup, task.length, task.settings.update_every, dtype=np.int64)


def duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> duration(1.2), duration(42), duration(130), duration(9000)
    ('1 second', '42 seconds', '2 minutes', '2.5 hours')
    """
    if seconds < 90:
        return counted(round(seconds), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
