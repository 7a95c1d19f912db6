"""Everything that is wanted of runs: files first, then what is printed, then the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from streamridge.cli.checks import require_extra, require_folder, require_table
from streamridge.cli.outcome import Counted, JsonLines, Shown, TableOfRuns, in_words, remarks
from streamridge.cli.overwriting import (
    interrupted_folder,
    is_standard,
    outputs_of_runs,
    outputs_of_tasks,
    require_free,
)
from streamridge.cli.predictions import begun_predictions
from streamridge.cli.printing import Printed
from streamridge.cli.watching import watched
from streamridge.errors import InvalidInputError, StreamRidgeError, listed
from streamridge.files.names import FileNames
from streamridge.forecaster.methods import needs_model
from streamridge.runs.engines.base import Engine
from streamridge.runs.keeping import kept_tasks
from streamridge.runs.run import Run
from streamridge.runs.tasks import Task

# What a forecaster meets beside what was wrong with the file.
MET = (
    "late",
    "too_late",
    "excluded",
    "outlier",
    "implausible",
    "stuck",
    "rollbacks",
    "failed_refits",
)


@dataclass(frozen=True)
class Wanted:
    """What a command shall leave behind of its runs.

    Parameters
    ----------
    files
        All files that are read; the first of them give the report its title.
    predictions, report, save, keep
        The file of forecasts, and the folders of a page, of forecasters and of kept runs, if any.
    unit
        Of the values, for figures.
    as_json
        Whether runs are printed as JSON instead of a table.
    force
        Whether files that the package did not write may be replaced.
    """

    files: Sequence[str]
    predictions: Path | None = None
    report: Path | None = None
    save: Path | None = None
    keep: Path | None = None
    unit: str = ""
    as_json: bool = False
    force: bool = False

    def require_possible(self, inputs: Iterable[str]) -> None:
        """Raise before any work when something must not or cannot be written."""
        if self.as_json and self.prints_predictions:
            raise InvalidInputError(
                "--predictions - must be left out with --json, since both write to standard "
                "output, got both. Pass a file to --predictions."
            )
        require_free(outputs_of_runs(self.predictions, self.report), inputs, force=self.force)
        folders = {"report": self.report, "save": self.save, "keep": self.keep}
        for name, folder in folders.items():
            if folder is not None:
                require_folder(name, folder)
        if self.predictions is not None and not self.prints_predictions:
            require_table("predictions", self.predictions)
        if self.report is not None:
            require_extra("matplotlib", "plot")
            require_extra("plotly", "plot")

    def tasks(self, made: Sequence[Task], inputs: Iterable[str]) -> Sequence[Task]:
        """Return tasks that save forecasters and keep runs as wanted; raise if they must not."""
        kept = made if self.keep is None else kept_tasks(self.keep, made)
        tasks = kept if self.save is None else _saving(kept, self.save)
        require_free(outputs_of_tasks(tasks), inputs, force=self.force)
        return tasks

    @property
    def prints_predictions(self) -> bool:
        """Return whether forecasts go to standard output."""
        return self.predictions is not None and is_standard(self.predictions)

    @property
    def leaves_files(self) -> bool:
        """Return whether anything is wanted beside what is printed."""
        written = None if self.prints_predictions else self.predictions
        return any((written, self.report, self.save, self.keep))


def write_results(tasks: Sequence[Task], engine: Engine, wanted: Wanted, console: Console) -> None:
    """Carry out tasks, and write and print what is wanted of them.

    The command ends with its exit code unless all of it is there.
    """
    counted, printed = Counted(tasks), Printed()
    shown = _shown(printed, wanted)
    held: list[Run] = []  # only a report needs them all at a time
    with begun_predictions(wanted.predictions, printed, counted.fail) as table:
        with watched(tasks, engine, console) as outcomes:
            for outcome in outcomes:
                counted.count(outcome)
                if outcome.run is not None:
                    table.add(outcome.run.columns())
                    shown.add(outcome.run)
                    say_what_was_met(outcome.run, console)
                    held += [outcome.run] if wanted.report is not None else []
                if not (printed.is_open or wanted.leaves_files):
                    return  # nobody reads on, and nothing else is wanted
        counted.say_if_stopped(console)
        written = table.close(interrupted=counted.is_stopped)
    if written is not None:
        console.print(f"Predictions: {written}", markup=False)
    if held and wanted.report is not None:
        folder = interrupted_folder(wanted.report) if counted.is_stopped else wanted.report
        title = _title(held, wanted.files) + (" (interrupted)" if counted.is_stopped else "")
        try:
            page = _write_report(held, folder, title=title, unit=wanted.unit, task=tasks[0])
            console.print(f"Report: {page}", markup=False)
        except StreamRidgeError as error:
            counted.fail(str(error))
    if counted.whole + counted.cut_short:
        shown.close()
    if printed.error is not None:
        counted.fail(printed.error)
    counted.require_all()


def say_what_was_met(run: Run, console: Console) -> None:
    """Say what a forecaster met on its way, and what has to be known of its run."""
    met = {name: run.counts.get(name, 0) for name in MET}
    if any(met.values()):
        console.print(f"{run.sensor} ({run.method}): {in_words(met)}", markup=False)
    for remark in remarks(run):
        console.print(f"warning: {remark}", markup=False, highlight=False, soft_wrap=True)


def _shown(printed: Printed, wanted: Wanted) -> Shown:
    if wanted.as_json:
        return JsonLines(printed)
    return TableOfRuns(None if wanted.prints_predictions else printed)


def _saving(tasks: Sequence[Task], folder: Path) -> Sequence[Task]:
    """Return tasks that save their forecasters in a folder, as far as they have one."""
    if not any(needs_model(task.method) for task in tasks):
        raise InvalidInputError(
            "save must be left out if no method has a forecaster to save, got methods "
            f"{listed(dict.fromkeys(task.method for task in tasks))}."
        )
    names = FileNames()
    return [
        replace(task, save_to=folder / names.take(_saved_name(task), ".sr"))
        if needs_model(task.method)
        else task
        for task in tasks
    ]


def _saved_name(task: Task) -> str:
    sensor = task.source.sensor
    return sensor if task.method == "ohl" else f"{sensor}-{task.method}"


def _write_report(runs: list[Run], folder: Path, *, title: str, unit: str, task: Task) -> Path:
    from streamridge.report import write_report

    names = task.settings.preset.features.compared
    return write_report(runs, folder, title=title, unit=unit, feature_names=names)


def _title(runs: Sequence[Run], files: Sequence[str]) -> str:
    names = ", ".join("standard input" if name == "-" else Path(name).name for name in files[:3])
    kind = "Comparison" if len({run.method for run in runs}) > 1 else "Replay"
    return f"{kind} of {names}"
