"""`streamridge replay`: forecast a file step by step as if it were live."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer
from rich.console import Console

from streamridge.cli import options
from streamridge.cli.checks import FAILED, require_extra, require_folder, require_table
from streamridge.cli.outcome import (
    Counted,
    JsonLines,
    Shown,
    TableOfRuns,
    growing_predictions,
    in_words,
)
from streamridge.cli.watching import watched
from streamridge.files.dates import read_dates
from streamridge.files.names import FileNames
from streamridge.forecaster.methods import parse_methods
from streamridge.forecaster.settings import Settings
from streamridge.runs.carrying import parse_engine
from streamridge.runs.keeping import kept_tasks
from streamridge.runs.run import Run
from streamridge.runs.selection import Selection
from streamridge.runs.sources import LeftOut, opened_sources
from streamridge.runs.tasks import Task, make_tasks, ready_made
from streamridge.series.clock import parse_zone, step_name, time_text
from streamridge.series.holidays import GivenHolidays
from streamridge.series.series import Series
from streamridge.series.spans import spans_of

# The code of a country or of a part of it; all else names a file.
COUNTRY = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)?")
# What a forecaster meets beside what was wrong with the file.
MET = ("excluded", "outlier", "implausible", "stuck", "rollbacks", "failed_refits")


def replay(
    files: options.Files,
    sensor: options.Sensors = None,
    method: options.Methods = None,
    model: options.Model = options.ModelName.DEFAULT,
    step: options.Step = None,
    seasons: options.Seasons = None,
    tz: options.Tz = None,
    holidays: options.Holidays = None,
    fold: options.Fold = "infer",
    first: options.From = None,
    last: options.To = None,
    exclude: options.Exclude = None,
    warmup: options.Warmup = None,
    steps: options.Steps = None,
    train_size: options.TrainSize = 2880,
    update_every: options.UpdateEvery = None,
    tune_every: options.TuneEvery = None,
    hyperparameter: options.Hyperparameters = None,
    lags: options.Lags = None,
    horizon: options.Horizon = 1,
    level: options.LevelText = "0.9",
    bounds: options.BoundsText = None,
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    scheduler: options.Scheduler = None,
    seed: options.Seed = 0,
    extra: options.Extras = None,
    gap: options.Gap = "error",
    layout: options.FileLayout = None,
    aggregate: options.Aggregate = None,
    unit: options.Unit = "",
    predictions: options.Predictions = None,
    report: options.Report = None,
    save: options.Save = None,
    keep: options.Keep = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Forecast a file step by step as if it were live, and say how good the forecasts were.

    Every step is forecast before its value is read. Readings that were dropped, filled in or in
    conflict are counted and shown. A sensor that fails does not stop the others.

    Example: streamridge replay roads.csv --level 0.8,0.95 --bounds 0, --steps 960 --report report
    """
    console = Console(stderr=True, quiet=quiet)
    chosen = parse_engine(engine, jobs=jobs, scheduler=scheduler)
    methods = ready_made(
        model.value,
        parse_methods(method or ["ohl"]),
        options.parse_hyperparameters(hyperparameter),
        seasons=options.parse_seasons(seasons),
        horizon=horizon,
        level=options.parse_levels(level),
        bounds=options.parse_bounds(bounds),
        tz=tz,
        train_size=train_size,
        update_every=update_every,
        tune_every=tune_every,
        seed=seed,
        lags=lags,
        extras=tuple(extra) if extra else None,
        holidays=None if holidays is None else _holidays(holidays),
    )
    spans = spans_of(exclude or (), parse_zone(tz))
    require_outputs(predictions=predictions, report=report, save=save, keep=keep)
    selection = Selection(
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
    with opened_sources(files, selection, partial(say_what_was_read, console)) as sources:
        made = make_tasks(sources, methods, warmup=warmup, steps=steps, exclude=spans)
        say_left_out(made.left_out, console)
        tasks = _saving(made.ready if keep is None else kept_tasks(keep, made.ready), save)
        shown: Shown = JsonLines() if as_json else TableOfRuns()
        held: list[Run] = []  # only a report needs them all at a time
        counted = Counted(tasks)
        with (
            growing_predictions(predictions) as append,
            watched(tasks, chosen, console) as outcomes,
        ):
            for outcome in outcomes:
                counted.count(outcome)
                if outcome.run is not None:
                    shown.add(outcome.run)
                    append(outcome.run.columns())
                    say_what_was_met(outcome.run, console)
                    held += [outcome.run] if report is not None else []
            if not counted.whole + counted.cut_short:
                counted.say_if_stopped(console)
                raise typer.Exit(FAILED)
    counted.say_if_stopped(console)
    shown.close()
    if predictions is not None:
        console.print(f"Predictions: {predictions}", markup=False)
    if report is not None:
        page = _write_report(held, report, files, unit, tasks[0].settings)
        console.print(f"Report: {page}", markup=False)
    counted.require_none_failed()


def require_outputs(
    *, predictions: Path | None, report: Path | None, save: Path | None, keep: Path | None
) -> None:
    """Raise before any work when something could not be written at its end."""
    for name, folder in (("report", report), ("save", save), ("keep", keep)):
        if folder is not None:
            require_folder(name, folder)
    if predictions is not None:
        require_table("predictions", predictions)
    if report is not None:
        require_extra("matplotlib", "plot")
        require_extra("plotly", "plot")


def say_what_was_read(console: Console, series: Series) -> None:
    """Say what a series is, and what was wrong with it."""
    begin, end = (time_text(time, "m") for time in series.times[[0, -1]])
    counts = replace(series.counts, readings=0).found()
    wrong = f"; {in_words(counts)}" if counts else ""
    console.print(
        f"{series.sensor}: {len(series)} steps of {step_name(series.clock.step)}, "
        f"{begin} to {end}{wrong}",
        highlight=False,
        markup=False,
    )


def say_left_out(sensors: Iterable[LeftOut], console: Console) -> None:
    """Say which sensors are not forecast, and why."""
    for sensor in sensors:
        console.print(str(sensor), markup=False, highlight=False)


def say_what_was_met(run: Run, console: Console) -> None:
    """Say what a forecaster met on its way."""
    met = {name: run.counts.get(name, 0) for name in MET}
    if any(met.values()):
        console.print(f"{run.sensor} ({run.method}): {in_words(met)}", markup=False)


def _holidays(given: str) -> GivenHolidays:
    """Return the code of a country, or the dates of a file."""
    return given if COUNTRY.fullmatch(given) else read_dates(Path(given))


def _saving(tasks: Sequence[Task], folder: Path | None) -> Sequence[Task]:
    """Return tasks that save their forecasters in a folder, if there is one."""
    if folder is None:
        return tasks
    names = FileNames()
    return [replace(task, save_to=folder / names.take(_saved_name(task), ".sr")) for task in tasks]


def _saved_name(task: Task) -> str:
    sensor = task.source.sensor
    return sensor if task.method == "ohl" else f"{sensor}-{task.method}"


def _write_report(
    runs: list[Run], folder: Path, files: list[str], unit: str, settings: Settings
) -> Path:
    from streamridge.report import write_report

    names = ", ".join("standard input" if name == "-" else Path(name).name for name in files[:3])
    methods = {run.method for run in runs}
    title = f"{'Comparison' if len(methods) > 1 else 'Replay'} of {names}"
    return write_report(
        runs, folder, title=title, unit=unit, feature_names=settings.preset.features.compared
    )
