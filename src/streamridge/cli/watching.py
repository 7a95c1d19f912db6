"""Runs with their progress on standard error: how far, and how long still."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from scipy.linalg import cholesky
from threadpoolctl import threadpool_limits

from streamridge.arrays import Matrix
from streamridge.forecaster.settings import Settings
from streamridge.runs.jobs import Task, run_all
from streamridge.runs.run import Run
from streamridge.series.clock import Steps

# A trial of a search is a fit and a forecast of as many rows; a search often needs half of them.
TRIAL_IN_FACTORS, TRIALS_TAKEN = 2.4, 0.7
# Rows of the factorization that is timed to tell how long a run takes; a window costs about two.
PROBE, PROBES, WINDOW_IN_FACTORS = 960, 4, 2.2
# What a forecast and its observation cost, in seconds, beside refits.
STEP_SECONDS = 1e-3
# Runs longer than this, in seconds, are announced.
LONG = 15.0
# Memory of a learner while it refits: three triangles and more of N by N numbers of 8 bytes.
MATRICES = 2.7


def run_and_watch(tasks: Sequence[Task], *, jobs: int, console: Console) -> list[Run]:
    """Return the runs of all tasks, with a bar for each."""
    announce(tasks, jobs, console)
    with progress_bar(console) as bars:
        total = bars.add_task("all steps", total=sum(task.length for task in tasks))
        done = [0] * len(tasks)

        def tell(number: int, steps: int) -> None:
            bars.advance(total, steps - done[number])
            done[number] = steps
            task = tasks[number]
            bars.update(total, description=f"{task.series.sensor} ({task.method})")

        runs = run_all(tasks, jobs=jobs, progress=tell)
        bars.update(total, description="done")
    if any(run.interrupted for run in runs) or len(runs) < len(tasks):
        console.print("Stopped early: what follows is what there is.")
    return runs


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
    return Progress(*columns, console=console, disable=console.quiet)


def announce(tasks: Sequence[Task], jobs: int, console: Console) -> None:
    """Say before a long run how long it takes, and how much memory."""
    rows = max(task.settings.train_size for task in tasks)
    at_once = min(jobs, len(tasks))
    seconds = _factor_seconds() * sum(_windows(task) for task in tasks) / at_once
    seconds += STEP_SECONDS * sum(task.length for task in tasks) / at_once
    if seconds > LONG:
        # A search holds matrices of its own beside those of the fit in force.
        matrices = MATRICES * (1 + any(task.settings.tuner is not None for task in tasks))
        megabytes = at_once * (150 + matrices * 8e-6 * rows**2)
        console.print(
            f"{len(tasks)} run{'s' * (len(tasks) > 1)} of {tasks[0].length} steps: about "
            f"{_duration(seconds)} and {megabytes:.0f} MB of memory in {at_once} process"
            f"{'es' * (at_once > 1)}."
        )


def _windows(task: Task) -> float:
    """Return the windows of a run, in units of the timed factorization."""
    settings = task.settings
    windows = _factors(np.arange(settings.warmup, task.length, settings.update_every), settings)
    if settings.tuner is None:
        return WINDOW_IN_FACTORS * windows
    trials = TRIALS_TAKEN * settings.tuner.trials(settings.preset.model.space)
    every = settings.tune_every or task.length
    searches = _factors(np.arange(settings.warmup, task.length, every), settings)
    return WINDOW_IN_FACTORS * windows + TRIAL_IN_FACTORS * trials * searches


def _factors(steps: Steps, settings: Settings) -> float:
    """Return what fits at some steps take, in units of the timed factorization."""
    return float(((np.minimum(steps, settings.train_size) / PROBE) ** 3).sum())


def _factor_seconds() -> float:
    """Return how long this machine takes to factor a small matrix."""
    matrix = np.eye(PROBE) + 0.5
    with threadpool_limits(1):
        return min(_seconds(matrix) for _ in range(PROBES))


def _seconds(matrix: Matrix) -> float:
    start = perf_counter()
    cholesky(matrix)
    return perf_counter() - start


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
