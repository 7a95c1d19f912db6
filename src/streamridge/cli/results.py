"""The results of replays: files first, then a table or JSON, then the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from streamridge.cli.commands import INCOMPLETE, INTERRUPTED
from streamridge.cli.output_files import INTERRUPTED_NAME, PredictionsTable, RequestedOutputs
from streamridge.cli.progress import run_with_progress
from streamridge.cli.terminal import StandardOutput, table_text
from streamridge.errors import StreamRidgeError, counted, counts_text, listed, visible
from streamridge.forecaster.candidates import Candidates
from streamridge.forecaster.forecast import named
from streamridge.forecaster.methods import needs_model
from streamridge.metrics import percent
from streamridge.runs.engines import Engine
from streamridge.runs.neighbour_runs import corrected_outcomes
from streamridge.runs.run import BASELINE, Run, change
from streamridge.runs.run_tasks import STOP_SIGNALS, handled_signals, interrupt
from streamridge.runs.tasks import Task, TaskOutcome

# Counts of a forecaster that are printed after its run.
PRINTED_COUNTS = (
    *("late", "too_late", "excluded", "outlier", "implausible", "stuck"),
    *("rollbacks", "failed_refits"),
)
# Marks a method in the table that has remarks below it.
MARK = "*"
# Errors are shown for at most this many horizons.
MOST_HORIZONS = 6
# At most this many spans of scored steps are listed.
MOST_SPANS = 5
# The tables by horizon: title, figure of a score, and format.
BY_HORIZON = (
    ("RMSE by the number of steps ahead", "rmse", ".4g"),
    ("RMSE relative to the naive forecast, by the number of steps ahead", "relative", ".3f"),
)
NAMES = ("sensor", "method")
# The columns of the table: heading, name in the record of a run, and format. A narrow terminal
# omits the last columns first. The columns of coverage come between the two groups.
ERROR_COLUMNS = (
    ("RMSE", "rmse", ".4g"),
    ("relative", "rmse_relative", ".3f"),
    ("against fixed", "against_fixed", "+.1%"),
)
OTHER_COLUMNS = (
    ("MAE", "mae", ".4g"),
    ("total (s)", "seconds_total", ".1f"),
    ("tuning (s)", "seconds_tuning", ".1f"),
    ("fits", "fits", "d"),
    ("scored", "scored", "d"),
    ("missing", "missing", "d"),
)


class Completion:
    """How many tasks are complete, interrupted or failed, and the exit code that follows."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._complete = self._interrupted = 0
        self._failed: list[str] = []
        self._is_incomplete = False

    @property
    def has_runs(self) -> bool:
        """Return whether at least one task has a run, complete or interrupted."""
        return self._complete + self._interrupted > 0

    @property
    def is_stopped(self) -> bool:
        """Return whether some tasks were stopped before their end."""
        return self._complete + len(self._failed) < len(self._tasks)

    def count(self, outcome: TaskOutcome) -> None:
        """Count an outcome, and print its error if it has one."""
        task = self._tasks[outcome.number]
        name, run = visible(f"{task.series.sensor} ({task.method})"), outcome.run
        if outcome.error is not None:
            self.fail(f"{name}: {outcome.error}")
        if run is None:
            self._failed.append(name)
            return
        self._interrupted += run.interrupted
        self._complete += not run.interrupted
        self._is_incomplete |= lacks_model(run)

    def fail(self, message: str) -> None:
        """Print an error; the exit code will say that results are missing."""
        self._is_incomplete = True
        typer.echo(visible(f"error: {message}"), err=True)

    def report_stop(self, console: Console) -> None:
        """Print a message if some tasks were stopped before their end."""
        if self.is_stopped:
            rest = "results so far follow" if self.has_runs else "no run was finished"
            console.print(f"Stopped early: {rest}.")

    def require_complete(self) -> None:
        """Exit with an error code unless all results are complete."""
        if self._failed and len(self._tasks) > 1:
            count = f"{len(self._failed)} of {len(self._tasks)} runs failed"
            typer.echo(f"error: {count}: {listed(self._failed)}.", err=True)
        if self.is_stopped:
            raise typer.Exit(INTERRUPTED)
        if self._is_incomplete:
            raise typer.Exit(INCOMPLETE)


class RunTable:
    """A table of runs with a row each, and remarks below it.

    Only formatted numbers are held, and the runs of the current sensor, which are compared.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Run, Sequence[str]]] = []
        self._rows: list[dict[str, str]] = []
        self._horizon_rows: dict[str, list[dict[str, str]]] = {}
        self._remarks: list[str] = []
        self._sensors_of: dict[tuple[str, str], dict[str, None]] = {}  # by their scored span

    def add(self, run: Run, remarks: Sequence[str]) -> None:
        """Add a run; the runs of a sensor follow one another."""
        if self._runs and self._runs[0][0].sensor != run.sensor:
            self._add_rows()
        self._runs.append((run, remarks))

    def text(self) -> str:
        """Return the table with its remarks, and tables by horizon if there are several."""
        self._add_rows()
        title = ["Errors one step ahead"] if self._horizon_rows else []
        parts = [*title, table_text(_columns(self._rows), NAMES), *self._remarks]
        parts += self._scored_steps()
        for heading, rows in self._horizon_rows.items():
            parts += ["", heading, table_text(_columns(rows), NAMES)]
        return "\n".join(parts) + "\n"

    def _scored_steps(self) -> list[str]:
        """Return the spans of scored steps, with the sensors of each if there are several."""
        spans = list(self._sensors_of)
        if len(spans) == 1:
            return ["Scored steps: {} to {}.".format(*spans[0])]
        lines = [
            f"Scored steps of {listed(self._sensors_of[span])}: {span[0]} to {span[1]}."
            for span in spans[:MOST_SPANS]
        ]
        more = len(spans) - MOST_SPANS
        note = f"Scored steps of other sensors: {counted(more, 'other span')}. --json shows all."
        return [*lines, note] if more > 0 else lines

    def _add_rows(self) -> None:
        fixed = next((run for run, _ in self._runs if run.method == BASELINE), None)
        for run, remarks in self._runs:
            name = {"sensor": run.sensor, "method": run.method + (f" {MARK}" if remarks else "")}
            self._rows.append(name | _figures(run, fixed))
            for heading, figure, form in BY_HORIZON if run.horizon > 1 else ():
                cells = name | _by_horizon(run, figure, form)
                self._horizon_rows.setdefault(heading, []).append(cells)
            if run.scored_span is not None:
                self._sensors_of.setdefault(run.scored_span, {})[run.sensor] = None
            self._remarks += [f"{MARK} {remark}" for remark in remarks]
        self._runs = []


@handled_signals(interrupt, STOP_SIGNALS)
def write_results(
    tasks: Sequence[Task],
    engine: Engine | Executor,
    requested: RequestedOutputs,
    console: Console,
    candidates: Candidates | None = None,
) -> None:
    """Run tasks, then write and print the requested outputs.

    If there are candidates for neighbours, results are corrected when all tasks are done.
    The command exits with an error code unless all results are complete. SIGTERM and SIGHUP end it
    as Ctrl-C does, so that no half-written file remains.
    """
    completion, output, table = Completion(tasks), StandardOutput(), RunTable()
    report_runs: list[Run] = []  # a report needs all runs at once
    with PredictionsTable(requested.predictions, output, completion.fail) as predictions:
        with run_with_progress(tasks, engine, console) as running:
            outcomes: Iterable[TaskOutcome] = running
            if candidates is not None:
                outcomes = corrected_outcomes(outcomes, tasks, candidates)
            for outcome in outcomes:
                completion.count(outcome)
                if outcome.run is not None:
                    predictions.add(outcome.run.columns())
                    remarks = print_remarks(outcome.run, console)
                    if requested.as_json:
                        output.print(json.dumps(outcome.run.record()) + "\n")
                    else:
                        table.add(outcome.run, remarks)
                    report_runs += [outcome.run] if requested.report is not None else []
                if not (output.is_open or requested.writes_files):
                    output.require_intact()
                    return  # the reader has closed the pipe, and no file is requested
        completion.report_stop(console)
        written = predictions.finish(interrupted=completion.is_stopped)
    if written is not None:
        console.print(f"Predictions: {written}")
    if report_runs:
        _write_report(report_runs, tasks[0], requested, completion, console)
    if completion.has_runs and not requested.as_json:
        if requested.prints_predictions:
            typer.echo(table.text(), err=True, nl=False)
        else:
            output.print(table.text())
    if output.error is not None:
        completion.fail(str(output.error))
    completion.require_complete()


def print_remarks(run: Run, console: Console) -> list[str]:
    """Print the counts and the remarks of a run, and return the remarks."""
    counts = {name: run.counts.get(name, 0) for name in PRINTED_COUNTS}
    if any(counts.values()):
        console.print(f"{run.sensor} ({run.method}): {counts_text(counts)}")
    remarks = remarks_on(run)
    for remark in remarks:
        console.print(f"warning: {remark}")
    return remarks


def lacks_model(run: Run) -> bool:
    """Return whether no model was fitted in a run that needs one."""
    return needs_model(run.method) and bool(len(run.times)) and not run.counts.get("fits")


def remarks_on(run: Run) -> list[str]:
    """Return sentences that a reader of the run's errors must know."""
    name, steps = visible(f"{run.sensor} ({run.method})"), len(run.times)
    remarks = []
    if run.interrupted:
        remarks.append(f"{name}: interrupted after {counted(steps, 'scored step')}.")
    before_fit = int((run.times <= run.refit_times[0]).sum()) if len(run.refit_times) else 0
    if lacks_model(run):
        remarks.append(
            f"{name}: no model was fitted; all forecasts are naive forecasts. "
            "Pass a longer file, or a longer --warmup."
        )
    elif before_fit:
        remarks.append(
            f"{name}: the first {before_fit} of {counted(steps, 'forecast')} are naive forecasts, "
            "made before the first fit. Pass a longer --warmup to score the model only."
        )
    elif needs_model(run.method) and len(run.errors()) and not run.by_model.any():
        remarks.append(f"{name}: a naive forecast was better than the model and replaced it.")
    if steps and np.isnan(run.scored).all():
        remarks.append(f"{name}: no step was scored: all are missing or excluded.")
    return remarks


def _figures(run: Run, fixed: Run | None) -> dict[str, str]:
    """Return the cells of a run by heading; a cell is empty if the run has no such number."""
    record = run.record()
    against = change(run, fixed)
    if run.method != BASELINE and not np.isnan(against):
        record["against_fixed"] = against
    levels = run.levels
    headings = [
        f"{percent(level)}% coverage" if len(levels) > 1 else "coverage" for level in levels
    ]
    coverages = [
        (heading, name, ".1%")
        for heading, name in zip(headings, named("coverage", levels, levels), strict=True)
    ]
    columns = (*ERROR_COLUMNS, *coverages, *OTHER_COLUMNS)
    return {
        heading: _cell(record[name], form) if name in record else ""
        for heading, name, form in columns
    }


def _by_horizon(run: Run, figure: str, form: str) -> dict[str, str]:
    """Return a figure of the scores by the number of steps ahead."""
    count = min(run.horizon, MOST_HORIZONS)
    horizons = np.linspace(1, run.horizon, count).round().astype(int).tolist()
    return {str(ahead): _cell(getattr(run.score(ahead), figure), form) for ahead in horizons}


def _cell(number: Any, form: str) -> str:
    """Return a number as text; a dash if it is unknown."""
    return "-" if number is None or np.isnan(number) else format(number, form)


def _columns(rows: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the columns of rows that are not empty."""
    columns = {heading: [row[heading] for row in rows] for heading in rows[0]}
    return {heading: cells for heading, cells in columns.items() if any(cells)}


def _write_report(
    runs: Sequence[Run],
    task: Task,
    requested: RequestedOutputs,
    completion: Completion,
    console: Console,
) -> None:
    """Write the report; a failure is printed and does not end the command."""
    from streamridge.report import write_report

    if requested.report is None:
        return
    files = ["standard input" if name == "-" else Path(name).name for name in requested.files[:3]]
    kind = "Comparison" if len({run.method for run in runs}) > 1 else "Replay"
    title, folder = f"{kind} of {', '.join(files)}", requested.report
    if completion.is_stopped:
        title, folder = f"{title} (interrupted)", folder / INTERRUPTED_NAME
    names = task.settings.preset.features.compared
    try:
        page = write_report(
            runs,
            folder,
            title=title,
            unit=requested.unit,
            feature_names=names,
            events=requested.events,
        )
        console.print(f"Report: {page}")
    except StreamRidgeError as error:
        completion.fail(str(error))
