"""`streamridge replay`: forecast a file step by step as if it were live."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from streamridge.cli import options
from streamridge.cli.output_files import RequestedOutputs
from streamridge.cli.progress import Estimate
from streamridge.cli.results import write_results
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError
from streamridge.files.reading import read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.candidates import Candidates
from streamridge.forecaster.methods import parse_methods
from streamridge.forecaster.sizes import affordable
from streamridge.runs.run_tasks import parse_engine
from streamridge.runs.tasks import Task, make_tasks, named_methods
from streamridge.series.holidays import GivenHolidays, read_dates
from streamridge.series.series import Series
from streamridge.series.spans import parse_spans
from streamridge.series.zones import parse_zone

# The code of a country or a region; other texts are names of files.
COUNTRY = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)?")


def replay(
    files: options.Files,
    method: options.Methods = None,
    model: options.Model = "default",
    seasons: options.Seasons = None,
    holidays: options.Holidays = None,
    exclude: options.Exclude = None,
    warmup: options.Warmup = None,
    steps: options.Steps = None,
    last_steps: options.LastSteps = None,
    budget: options.Budget = None,
    train_size: options.TrainSize = None,
    update_every: options.UpdateEvery = None,
    tune_every: options.TuneEvery = None,
    hyperparameter: options.Hyperparameters = None,
    lags: options.Lags = None,
    horizon: options.Horizon = 1,
    level: options.LevelText = "0.9",
    bounds: options.BoundsText = None,
    neighbours: options.NeighbourText = "none",
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    scheduler: options.Scheduler = None,
    seed: options.Seed = 0,
    start: options.Start = "default",
    unit: options.Unit = "",
    event: options.Events = None,
    predictions: options.Predictions = None,
    report: options.Report = None,
    save: options.Save = None,
    keep: options.Keep = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    **reading: Any,
) -> None:
    """Forecast a file step by step as if it were live, and show the errors of the forecasts.

    Each step is forecast before its value is read. Dropped, missing and contradictory readings are
    counted. A sensor that fails does not stop the others. Exit codes: 0 all results are complete, 2
    invalid input, 3 a sensor or an output failed, 130 interrupted.

    --budget chooses the size of the model and the number of refits. --dry-run estimates time and
    memory without running anything.

    Example: streamridge replay roads.csv --level 0.8,0.95 --steps 960 --report report
    """
    console = Messages(quiet=quiet)
    reading_options = ReadingOptions.of(reading)
    runner = parse_engine(engine, jobs=jobs, scheduler=scheduler)
    methods = named_methods(
        model,
        parse_methods(method or ["ohl"]),
        options.parse_hyperparameters(hyperparameter),
        seasons=options.parse_seasons(seasons),
        horizon=horizon,
        level=options.parse_levels(level),
        bounds=options.parse_bounds(bounds),
        tz=reading_options.tz,
        budget=budget,
        train_size=train_size,
        update_every=update_every,
        tune_every=tune_every,
        seed=seed,
        start=start,
        lags=lags,
        extras=reading_options.extras or None,
        holidays=given_holidays(holidays),
    )
    spans = parse_spans(exclude or (), parse_zone(reading_options.tz))
    outputs = RequestedOutputs(
        files,
        predictions,
        report,
        save,
        keep,
        unit,
        options.parse_events(event),
        as_json=as_json,
        force=force,
    )
    inputs = [*files, *([] if holidays is None else [holidays])]
    if not dry_run:
        outputs.require_writable(inputs)
    result = read_series(files, reading_options)
    _require_events(outputs.events, result.series.values())
    console.print_each([*result.series.values(), *result.notes])
    tasks, left_out = make_tasks(
        result, methods, warmup=warmup, steps=steps, last_steps=last_steps, exclude=spans
    )
    console.print_each(left_out)
    if budget is not None:
        _print_budget(budget, tasks, console)
    if dry_run:
        estimate = Estimate.of(tasks, jobs)
        typer.echo(json.dumps(asdict(estimate)) if as_json else str(estimate))
        return
    candidates = None if neighbours == "none" else Candidates(neighbours)
    write_results(outputs.tasks(tasks, inputs), runner, outputs, console, candidates)


options.with_reading_flags(replay)


def given_holidays(text: str | None) -> GivenHolidays | None:
    """Return the holidays of a flag: the code of a country, or the dates in a file."""
    if text is None or COUNTRY.fullmatch(text):
        return text
    return read_dates(Path(text))


def _require_events(events: Iterable[tuple[Any, str]], every: Iterable[Series]) -> None:
    """Raise unless events are whole numbers where times are, and times elsewhere."""
    indexed = {isinstance(series.clock.step, int) for series in every}
    for time, text in events:
        if isinstance(time, np.integer) not in indexed:
            wanted = "a whole number" if indexed == {True} else "a time"
            raise InvalidInputError(
                f"--event must be at {wanted}, as the readings are, got '{time}={text}'."
            )


def _print_budget(budget: str, tasks: Iterable[Task], console: Console) -> None:
    """Print the model that a budget allows, for each step and horizon."""
    kinds = ((task.series.clock.step, task.settings.horizon) for task in tasks)
    for step, horizon in dict.fromkeys(kinds):
        choice = affordable(budget, step, horizon=horizon)
        console.print(f"Budget of {budget}: {choice}.")
