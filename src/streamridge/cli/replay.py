"""`streamridge replay`: forecast a file step by step as if it were live."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import typer
from rich.console import Console

from streamridge.cli import options
from streamridge.cli.outcome import in_words
from streamridge.cli.results import Wanted, write_results
from streamridge.cli.terminal import Messages
from streamridge.cli.watching import Needs
from streamridge.files.dates import read_dates
from streamridge.forecaster.methods import parse_methods
from streamridge.forecaster.sizes import affordable
from streamridge.runs.carrying import parse_engine
from streamridge.runs.estimates import Speed
from streamridge.runs.selection import Selection
from streamridge.runs.sources import LeftOut, opened_sources
from streamridge.runs.tasks import Task, make_tasks, ready_made
from streamridge.series.clock import parse_zone, step_name
from streamridge.series.holidays import GivenHolidays
from streamridge.series.series import Series
from streamridge.series.spans import spans_of
from streamridge.texts import counted

# The code of a country or of a part of it; all else names a file.
COUNTRY = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)?")


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
    from_: options.From = None,
    to: options.To = None,
    exclude: options.Exclude = None,
    warmup: options.Warmup = None,
    steps: options.Steps = None,
    budget: options.Budget = None,
    train_size: options.TrainSize = None,
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
    start: options.Start = "default",
    extra: options.Extras = None,
    gap: options.Gap = "error",
    layout: options.FileLayout = None,
    date_format: options.DateFormat = None,
    decimal: options.Decimal = None,
    missing: options.Missing = None,
    encoding: options.Encoding = None,
    largest: options.Largest = None,
    aggregate: options.Aggregate = None,
    arrival_order: options.ArrivalOrder = False,
    unit: options.Unit = "",
    predictions: options.Predictions = None,
    report: options.Report = None,
    save: options.Save = None,
    keep: options.Keep = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Forecast a file step by step as if it were live, and say how good the forecasts were.

    Every step is forecast before its value is read. Readings that were dropped, filled in or in
    conflict are counted and shown. A sensor that fails does not stop the others. Exit codes: 0 all
    is there, 2 something given is wrong, 3 a sensor or a file failed, 130 interrupted.

    --budget chooses how large the model is and how often it is refitted; --dry-run says how much
    time and memory the run would take.

    Example: streamridge replay roads.csv --level 0.8,0.95 --steps 960 --report report
    """
    console = Messages(quiet=quiet)
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
        budget=budget,
        train_size=train_size,
        update_every=update_every,
        tune_every=tune_every,
        seed=seed,
        start=start,
        lags=lags,
        extras=tuple(extra) if extra else None,
        holidays=None if holidays is None else _holidays(holidays),
    )
    spans = spans_of(exclude or (), parse_zone(tz))
    wanted = Wanted(files, predictions, report, save, keep, unit, as_json=as_json, force=force)
    read = [*files, *([] if holidays is None else [holidays])]
    if not dry_run:
        wanted.require_possible(read)
    selection = Selection(
        sensors=sensor,
        layout=layout,
        extras=tuple(extra or ()),
        gap=gap,
        step=step,
        tz=tz,
        fold=fold,
        aggregate=aggregate,
        arrival_order=arrival_order,
        from_=from_,
        to=to,
        date_format=date_format,
        decimal=decimal,
        missing=tuple(missing or ()),
        encoding=encoding,
        largest=largest,
    )
    with opened_sources(files, selection, partial(say_what_was_read, console)) as sources:
        for note in sources.notes:
            console.print(note, markup=False, highlight=False)
        made = make_tasks(sources, methods, warmup=warmup, steps=steps, exclude=spans)
        say_left_out(made.left_out, console)
        if budget is not None:
            say_what_budget_buys(budget, made.ready, console)
        if dry_run:
            needs = Needs.of(made.ready, jobs, Speed.measured())
            typer.echo(json.dumps(asdict(needs)) if as_json else str(needs))
            return
        write_results(wanted.tasks(made.ready, read), chosen, wanted, console)


def say_what_was_read(console: Console, series: Series) -> None:
    """Say what a series is, and what was wrong with it."""
    begin, end = series.writing.texts(series.times[[0, -1]], "minutes")
    counts = replace(series.counts, readings=0).found()
    wrong = f"; {in_words(counts)}" if counts else ""
    console.print(
        f"{series.sensor}: {counted(len(series), 'step')} of {step_name(series.clock.step)}, "
        f"{begin} to {end}{wrong}",
        highlight=False,
        markup=False,
    )


def say_what_budget_buys(budget: str, tasks: Iterable[Task], console: Console) -> None:
    """Say what a budget has chosen, for each step that sensors have."""
    for step, horizon in dict.fromkeys((task.source.step, task.settings.horizon) for task in tasks):
        choice = affordable(budget, step, horizon=horizon)
        console.print(f"Budget of {budget}: {choice}.", markup=False, highlight=False)


def say_left_out(sensors: Iterable[LeftOut], console: Console) -> None:
    """Say which sensors are not forecast, and why."""
    for sensor in sensors:
        console.print(str(sensor), markup=False, highlight=False)


def _holidays(given: str) -> GivenHolidays:
    """Return the code of a country, or the dates of a file."""
    return given if COUNTRY.fullmatch(given) else read_dates(Path(given))
