"""What a command shows and writes of its runs as they come: JSON or a table, and predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamridge.cli.checks import FAILED, INCOMPLETE, INTERRUPTED
from streamridge.files.tables import Append, growing_table
from streamridge.forecaster.levels import Levels
from streamridge.metrics import percent
from streamridge.runs.engines.work import Outcome
from streamridge.runs.run import BASELINE, Run, change
from streamridge.runs.tasks import Task

# Before and after the coverage of each level.
ERRORS = ("RMSE", "MAE")
COUNTS = ("scored", "missing", "fits", "tuning, s", "total, s")


class Counted:
    """How many of some tasks are whole, cut short, or failed.

    Parameters
    ----------
    tasks
        By their number.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self.whole = self.cut_short = self.failed = 0

    def count(self, outcome: Outcome) -> None:
        """Count an outcome, and say so if it is a failure."""
        if outcome.run is not None:
            self.cut_short += outcome.run.interrupted
            self.whole += not outcome.run.interrupted
            return
        self.failed += 1
        task = self._tasks[outcome.number]
        typer.echo(f"error: {task.source.sensor} ({task.method}): {outcome.error}", err=True)

    @property
    def is_stopped(self) -> bool:
        """Return whether some tasks have no outcome, or a part of it."""
        return self.whole + self.failed < len(self._tasks)

    def say_if_stopped(self, console: Console) -> None:
        """Say that some tasks have no outcome, or a part of it, if that is so."""
        if self.is_stopped:
            there = self.whole + self.cut_short
            what = "this is what there is" if there else "no run was finished"
            console.print(f"Stopped early: {what}.")

    def require_all(self) -> None:
        """End the command with its exit code unless all that was asked for is there."""
        if self.is_stopped:
            raise typer.Exit(INTERRUPTED)
        if self.failed:
            raise typer.Exit(INCOMPLETE)

    def require_none_failed(self) -> None:
        """End the command as a failure if a task failed."""
        if self.failed:
            raise typer.Exit(FAILED)


class Shown(Protocol):
    """Runs on standard output."""

    def add(self, run: Run) -> None:
        """Take the next run; those of a sensor follow one another."""

    def close(self) -> None:
        """Print what is not printed yet."""


class JsonLines:
    """Runs on standard output, a JSON object each, at once."""

    def add(self, run: Run) -> None:
        """Print a run."""
        typer.echo(json.dumps(run.record()))

    def close(self) -> None:
        """Print nothing more: all is there."""


class TableOfRuns:
    """Runs on standard output, a line each, once all are there.

    Until then only figures are held, and the runs of the sensor at hand: they are compared with one
    another.
    """

    def __init__(self) -> None:
        self._at_hand: list[Run] = []
        self._levels: Levels = ()
        # Sensor, method, figures, and the change against the baseline.
        self._lines: list[tuple[str, str, list[str], str]] = []

    def add(self, run: Run) -> None:
        """Take a run."""
        if self._at_hand and self._at_hand[0].sensor != run.sensor:
            self._add_lines()
        self._at_hand.append(run)
        self._levels = run.levels  # the same for all runs of a command

    def close(self) -> None:
        """Print the table."""
        self._add_lines()
        methods = {method for _, method, _, _ in self._lines}
        compared = BASELINE in methods and len(methods) > 1
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("sensor")
        table.add_column("method")
        headings = (*ERRORS, *_coverage_headings(self._levels), *COUNTS)
        for heading in (*headings, *(("against fixed",) if compared else ())):
            table.add_column(heading, justify="right")
        for sensor, method, cells, against in self._lines:
            # A name may hold brackets.
            table.add_row(Text(sensor), method, *cells, *([against] if compared else []))
        # Into a pipe or a file a line stays a line, however long.
        Console(width=None if Console().is_terminal else 160).print(table)

    def _add_lines(self) -> None:
        fixed = next((run for run in self._at_hand if run.method == BASELINE), None)
        self._lines += [
            (run.sensor, run.method, _cells(run), _change(run, fixed)) for run in self._at_hand
        ]
        self._at_hand = []


@contextmanager
def growing_predictions(path: Path | None) -> Iterator[Append]:
    """Give a function that takes the forecasts of the next run; without a file it drops them."""
    if path is None:
        yield lambda columns: None
        return
    with growing_table(path) as append:
        yield append


def in_words(counts: Mapping[str, int]) -> str:
    """Return counts as text, such as "979 missing, 3 off grid"."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def _coverage_headings(levels: Levels) -> list[str]:
    if len(levels) == 1:
        return ["coverage"]
    return [f"{percent(level)}% coverage" for level in levels]


def _cells(run: Run) -> list[str]:
    record = run.record()
    return [
        f"{run.rmse:.4g}",
        f"{run.mae:.4g}",
        *(f"{share:.1%}" for share in run.coverages.values()),
        str(record["scored"]),
        str(record["missing"]),
        str(record["fits"]),
        f"{run.costs.tuning:.1f}",
        f"{run.seconds:.1f}",
    ]


def _change(run: Run, fixed: Run | None) -> str:
    share = change(run, fixed)
    return "" if run is fixed or np.isnan(share) else f"{share:+.1%}"
