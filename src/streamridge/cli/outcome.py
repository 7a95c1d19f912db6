"""What a command shows and writes of its runs as they come: JSON or a table, and predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import typer
from rich.console import Console

from streamridge.cli.checks import FAILED
from streamridge.cli.run_table import Row, run_table
from streamridge.cli.terminal import columns, is_plain
from streamridge.files.tables import Append, growing_table
from streamridge.forecaster.methods import METHODS
from streamridge.runs.engines.work import Outcome
from streamridge.runs.run import BASELINE, Run
from streamridge.runs.tasks import Task
from streamridge.texts import counted, visible

# Counts that are named after one thing; others end in s, or say how readings are.
THINGS = ("duplicate", "conflict", "outlier")


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
        name = f"{task.source.sensor} ({task.method})"
        typer.echo(visible(f"error: {name}: {outcome.error}"), err=True)

    def say_if_stopped(self, console: Console) -> None:
        """Say that some tasks have no outcome, or a part of it, if that is so."""
        if self.whole + self.failed < len(self._tasks):
            there = self.whole + self.cut_short
            what = "this is what there is" if there else "no run was finished"
            console.print(f"Stopped early: {what}.")

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
        self._rows: list[Row] = []

    def add(self, run: Run) -> None:
        """Take a run."""
        if self._at_hand and self._at_hand[0].sensor != run.sensor:
            self._add_rows()
        self._at_hand.append(run)

    def close(self) -> None:
        """Print the table."""
        self._add_rows()
        typer.echo(run_table(self._rows, columns(), plain=is_plain()))

    def _add_rows(self) -> None:
        fixed = next((run for run in self._at_hand if run.method == BASELINE), None)
        self._rows += [Row.of(run, fixed, remarks(run)) for run in self._at_hand]
        self._at_hand = []


def remarks(run: Run) -> list[str]:
    """Return what has to be known of a run beside its figures, in words."""
    name = visible(f"{run.sensor} ({run.method})")
    found = []
    if run.interrupted:
        found.append(f"{name}: interrupted after {counted(len(run.times), 'scored step')}.")
    if run.method in METHODS and len(run.times) and not run.by_model.any():
        found.append(f"{name}: no model was fitted; the forecasts are those of the season ago.")
    return found


@contextmanager
def growing_predictions(path: Path | None) -> Iterator[Append]:
    """Give a function that takes the forecasts of the next run; without a file it drops them."""
    if path is None:
        yield lambda columns: None
        return
    with growing_table(path) as append:
        yield append


def in_words(counts: Mapping[str, int]) -> str:
    """Return counts as text, such as "979 missing, 1 conflict, 3 off grid"."""
    return ", ".join(_number_of(name, count) for name, count in counts.items() if count)


def _number_of(name: str, count: int) -> str:
    """Return a count with its name; of things, one is no plural and several are."""
    words = name.replace("_", " ")
    thing = words.removesuffix("s")
    return counted(count, thing) if words in THINGS or thing != words else f"{count} {words}"
