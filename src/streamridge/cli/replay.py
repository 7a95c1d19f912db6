"""`streamridge replay`: forecast a file step by step as if it were live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from streamridge.cli import options
from streamridge.cli.checks import FAILED, require_extra, require_folder, require_table
from streamridge.cli.loading import Selection
from streamridge.cli.outcome import in_words, print_json, print_table, write_predictions
from streamridge.cli.watching import run_and_watch
from streamridge.errors import InvalidInputError
from streamridge.files.names import FileNames
from streamridge.forecaster.methods import parse_methods, tuned_by
from streamridge.forecaster.settings import Settings
from streamridge.runs.compare import model_settings
from streamridge.runs.jobs import Task
from streamridge.runs.run import Run

# What a forecaster meets beside what was wrong with the file.
MET = ("outlier", "implausible", "stuck", "rollbacks", "failed_refits")


def replay(
    files: options.Files,
    sensor: options.Sensors = None,
    method: options.Methods = None,
    model: options.Model = options.ModelName.DEFAULT,
    step: options.Step = None,
    tz: options.Tz = None,
    fold: options.Fold = "infer",
    first: options.From = None,
    last: options.To = None,
    warmup: options.Warmup = None,
    steps: options.Steps = None,
    train_size: options.TrainSize = 2880,
    update_every: options.UpdateEvery = None,
    tune_every: options.TuneEvery = None,
    lags: options.Lags = None,
    horizon: options.Horizon = 1,
    level: options.Level = 0.9,
    jobs: options.Jobs = 1,
    seed: options.Seed = 0,
    extra: options.Extras = None,
    gap: options.Gap = "error",
    layout: options.FileLayout = None,
    aggregate: options.Aggregate = None,
    unit: options.Unit = "",
    predictions: options.Predictions = None,
    report: options.Report = None,
    save: options.Save = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Forecast a file step by step as if it were live, and say how good the forecasts were.

    Every step is forecast before its value is looked at. What was dropped, filled or conflicting is
    counted and shown.

    Example: streamridge replay roads.csv --sensor ramp-3 --steps 960 --report report
    """
    console = Console(stderr=True, quiet=quiet)
    methods = parse_methods(method or ["ohl"])
    require_outputs(predictions, report, save)
    selection = Selection(
        files=files,
        sensors=sensor,
        layout=layout,
        extras=tuple(extra or ()),
        gap=gap,
        step=step,
        tz=tz,
        fold=fold,
        aggregate=aggregate,
        first=first,
        last=last,
    )
    choices: dict[str, Any] = {
        "horizon": horizon,
        "level": level,
        "tz": tz,
        "train_size": train_size,
        "update_every": update_every,
        "tune_every": tune_every,
        "seed": seed,
        "lags": lags,
        "extras": tuple(extra) if extra else None,
    }
    names = FileNames()
    tasks = [
        Task(
            series,
            tuned_by(how, model_settings(model.value, series.clock.step, **choices)),
            how,
            warmup,
            steps,
            None if save is None else save / names.take(_saved_name(series.sensor, how), ".sr"),
        )
        for series in selection.series(console)
        for how in methods
    ]
    runs = run_and_watch(_long_enough(tasks, console), jobs=jobs, console=console)
    if not runs:
        raise typer.Exit(FAILED)  # stopped before anything was there
    show(runs, console, as_json=as_json)
    if predictions is not None:
        write_predictions(runs, predictions)
        console.print(f"Predictions: {predictions}", markup=False)
    if report is not None:
        page = _write_report(runs, report, files, unit, tasks[0].settings)
        console.print(f"Report: {page}", markup=False)


def require_outputs(predictions: Path | None, report: Path | None, save: Path | None) -> None:
    """Raise before any work when something could not be written at its end."""
    for name, folder in (("report", report), ("save", save)):
        if folder is not None:
            require_folder(name, folder)
    if predictions is not None:
        require_table("predictions", predictions)
    if report is not None:
        require_extra("matplotlib", "plot")
        require_extra("plotly", "plot")


def show(runs: list[Run], console: Console, *, as_json: bool) -> None:
    """Print the runs, and what forecasters met on the way."""
    if as_json:
        print_json(runs)
    else:
        print_table(runs)
    for run in runs:
        met = {name: run.counts.get(name, 0) for name in MET}
        if any(met.values()):
            console.print(f"{run.sensor} ({run.method}): {in_words(met)}", markup=False)


def _long_enough(tasks: list[Task], console: Console) -> list[Task]:
    """Return the tasks whose series are longer than their warm-up, and say which are not."""
    ready = []
    for task in tasks:
        if len(task.series) > task.first:
            ready.append(task)
        else:
            console.print(
                f"{task.series.sensor}: {len(task.series)} steps are no more than the "
                f"{task.first} of the warm-up, left out",
                markup=False,
            )
    if not ready:
        raise InvalidInputError(
            "a series must be longer than the warm-up, got none. Pass a smaller --warmup."
        )
    return ready


def _saved_name(sensor: str, method: str) -> str:
    return sensor if method == "ohl" else f"{sensor}-{method}"


def _write_report(
    runs: list[Run], folder: Path, files: list[str], unit: str, settings: Settings
) -> Path:
    from streamridge.report import write_report

    names = ", ".join("standard input" if name == "-" else Path(name).name for name in files[:3])
    columns = settings.preset.features.layout.names
    read = [name for name in columns if not name.startswith("latest")]
    methods = {run.method for run in runs}
    title = f"{'Comparison' if len(methods) > 1 else 'Replay'} of {names}"
    return write_report(runs, folder, title=title, unit=unit, feature_names=read)
