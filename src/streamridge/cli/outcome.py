"""What a command shows of its runs as they come, JSON or a table, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import typer
from rich.console import Console

from streamridge.cli.checks import INCOMPLETE, INTERRUPTED
from streamridge.cli.printing import Printed
from streamridge.cli.run_table import Row, run_table
from streamridge.cli.terminal import columns, is_plain
from streamridge.errors import listed
from streamridge.forecaster.methods import needs_model
from streamridge.runs.engines.work import Outcome
from streamridge.runs.run import BASELINE, Run
from streamridge.runs.tasks import Task
from streamridge.texts import counted, visible

# Counts that are named after one thing; others end in s, or say how readings are.
THINGS = ("duplicate", "conflict", "outlier")


class Counted:
    """How many of some tasks are whole or cut short, and what went wrong.

    Parameters
    ----------
    tasks
        By their number.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self.whole = self.cut_short = 0
        self._failed: list[str] = []
        self._is_incomplete = False

    @property
    def is_stopped(self) -> bool:
        """Return whether some tasks have no outcome, or a part of it."""
        return self.whole + len(self._failed) < len(self._tasks)

    def count(self, outcome: Outcome) -> None:
        """Count an outcome; say so if it is a failure, or no model made its forecasts."""
        task = self._tasks[outcome.number]
        name, run = visible(f"{task.source.sensor} ({task.method})"), outcome.run
        if outcome.error is not None:
            self.fail(f"{name}: {outcome.error}")
        if run is None:
            self._failed.append(name)
            return
        self.cut_short += run.interrupted
        self.whole += not run.interrupted
        self._is_incomplete |= lacks_model(run)

    def fail(self, message: str) -> None:
        """Say at once what is missing of all that was asked for."""
        self._is_incomplete = True
        typer.echo(visible(f"error: {message}"), err=True)

    def say_if_stopped(self, console: Console) -> None:
        """Say that some tasks have no outcome, or a part of it, if that is so."""
        if self.is_stopped:
            there = self.whole + self.cut_short
            what = "this is what there is" if there else "no run was finished"
            console.print(f"Stopped early: {what}.")

    def require_all(self) -> None:
        """End the command with its exit code unless all that was asked for is there."""
        if self._failed and len(self._tasks) > 1:
            count = f"{len(self._failed)} of {len(self._tasks)} runs failed"
            typer.echo(f"error: {count}: {listed(self._failed)}.", err=True)
        if self.is_stopped:
            raise typer.Exit(INTERRUPTED)
        if self._is_incomplete:
            raise typer.Exit(INCOMPLETE)


class Shown(Protocol):
    """Runs as a person or a program reads them."""

    def add(self, run: Run) -> None:
        """Take the next run; those of a sensor follow one another."""

    def close(self) -> None:
        """Print what is not printed yet."""


class JsonLines:
    """Runs on standard output, a JSON object each, at once."""

    def __init__(self, printed: Printed) -> None:
        self._printed = printed

    def add(self, run: Run) -> None:
        """Print a run."""
        self._printed.print(json.dumps(run.record()) + "\n")

    def close(self) -> None:
        """Print nothing more: all is there."""


class TableOfRuns:
    """Runs as a table, a line each, once all are there; below it, what to know of a run.

    Until then only figures are held, and the runs of the sensor at hand: they are compared with one
    another.

    Parameters
    ----------
    printed
        Standard output; without it, the table goes to standard error.
    """

    def __init__(self, printed: Printed | None) -> None:
        self._printed = printed
        self._remarks: list[str] = []
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
        table = run_table(self._rows, columns(), plain=is_plain()) + "\n"
        if self._printed is None:
            typer.echo(table, err=True, nl=False)
        else:
            self._printed.print(table)

    def _add_rows(self) -> None:
        fixed = next((run for run in self._at_hand if run.method == BASELINE), None)
        self._rows += [Row.of(run, fixed, remarks(run)) for run in self._at_hand]
        self._at_hand = []


def lacks_model(run: Run) -> bool:
    """Return whether a run that needs a model never had one."""
    return needs_model(run.method) and bool(len(run.times)) and not run.counts.get("fits")


def _before_first_fit(run: Run) -> int:
    """Return how many of the scored forecasts came before the first fit."""
    return int((run.times <= run.refit_times[0]).sum()) if len(run.refit_times) else 0


def remarks(run: Run) -> list[str]:
    """Return what has to be known of a run beside its figures, in words."""
    name, steps = visible(f"{run.sensor} ({run.method})"), len(run.times)
    found = []
    if run.interrupted:
        found.append(f"{name}: interrupted after {counted(steps, 'scored step')}.")
    if lacks_model(run):
        found.append(
            f"{name}: no model was fitted; naive forecasts stood in for it. "
            "Pass a longer file, or a longer --warmup."
        )
    elif early := _before_first_fit(run):
        found.append(
            f"{name}: the first {early} of {counted(steps, 'forecast')} are naive ones, made "
            "before the first fit. Pass a longer --warmup to score the model alone."
        )
    elif needs_model(run.method) and len(run.errors()) and not run.by_model.any():
        found.append(f"{name}: the model gave way to a naive forecast, which was better.")
    if steps and np.isnan(run.scored).all():
        found.append(f"{name}: no step was scored: all are missing or excluded.")
    return found


def in_words(counts: Mapping[str, int]) -> str:
    """Return counts as text, such as "979 missing, 1 conflict, 3 off grid"."""
    return ", ".join(_number_of(name, count) for name, count in counts.items() if count)


def _number_of(name: str, count: int) -> str:
    """Return a count with its name; of things, one is no plural and several are."""
    words = name.replace("_", " ")
    thing = words.removesuffix("s")
    return counted(count, thing) if words in THINGS or thing != words else f"{count} {words}"
