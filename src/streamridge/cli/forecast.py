"""`streamridge forecast`: the next steps of the sensors of a file, or of saved forecasters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any

import typer

from streamridge.cli import options
from streamridge.cli.commands import BAD_INPUT, INCOMPLETE, require_extra
from streamridge.cli.output_files import (
    OutputFile,
    PredictionsTable,
    interrupted_file,
    is_standard,
    require_folder,
    require_replaceable,
    require_table,
)
from streamridge.cli.progress import progress_bar
from streamridge.cli.replay import given_holidays
from streamridge.cli.terminal import Messages, StandardOutput, table_text
from streamridge.errors import InvalidInputError, StreamRidgeError, counted, listed, visible
from streamridge.files.atomic import replacing
from streamridge.files.collector import Collector
from streamridge.files.reading import read_readings, read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.files.written_files import (
    DRAWN_BY,
    FileNames,
    is_checkpoint,
    is_figure,
    is_forecast,
)
from streamridge.forecaster.forecast import Forecast, band_columns, in_percent, one_or_all
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.new_rows import choose_sensor
from streamridge.forecaster.settings import Settings
from streamridge.plots.axes import new_figure
from streamridge.runs.engines import Engine
from streamridge.runs.next_steps import (
    ForecastTask,
    forecast_columns,
    forecast_settings,
    forecast_task,
    new_tasks,
    parse_extras,
)
from streamridge.runs.run_tasks import parse_engine, run_tasks
from streamridge.runs.tasks import TaskOutcome
from streamridge.series.lengths import step_name
from streamridge.series.series import Series
from streamridge.series.zones import parse_zone

# The ending of a saved forecaster.
SAVED = ".sr"
# The formats of a figure, and the name that each gives to the program that drew it.
FIGURES = {".png": "Software", ".svg": "Creator"}
# A figure has at most this number of sensors.
MOST_DRAWN = 20
SOURCES = {
    "model": "the model",
    "seasonal": "the value of a season ago (naive forecast)",
    "last": "the last reading (naive forecast)",
}

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Files of readings, as `replay` reads them; or saved forecasters (.sr), or a folder "
        "of these.",
    ),
]
NewReadings = Annotated[
    list[str] | None,
    typer.Option(
        "--readings",
        metavar="FILE",
        help="File of new readings that saved forecasters learn from before the forecast; - reads "
        "standard input. Known readings are skipped. Repeat the flag for several files.",
    ),
]
Horizon = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Number of steps to forecast; 96 steps of 15 minutes are a day. The default is 1, or "
        "the horizon of a saved forecaster.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE[,SHARE...]",
        help="Levels of the prediction intervals. The default is 0.9, or the levels of a saved "
        "forecaster.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File for the forecasts instead of a table: .csv, .csv.gz or .parquet; - writes CSV "
        "to standard output.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File for a figure of the forecasts: .png or .svg.", show_default=False
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for the forecasters, from which the next `forecast` continues.",
    ),
]


@dataclass(frozen=True)
class Prepared:
    """The tasks of a command, and the sensors that cannot be forecast."""

    tasks: Sequence[ForecastTask]
    settings: Sequence[Settings]  # of each task
    failures: Sequence[str] = ()


def forecast(
    files: Sources,
    horizon: Horizon = None,
    readings: NewReadings = None,
    model: options.Model = "default",
    seasons: options.Seasons = None,
    holidays: options.Holidays = None,
    train_size: options.TrainSize = None,
    budget: options.Budget = None,
    hyperparameter: options.Hyperparameters = None,
    lags: options.Lags = None,
    start: options.Start = "default",
    seed: options.Seed = 0,
    level: Level = None,
    bounds: options.BoundsText = None,
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    scheduler: options.Scheduler = None,
    unit: options.Unit = "",
    out: Out = None,
    plot: Plot = None,
    save: Save = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    **reading: Any,
) -> None:
    """Forecast the next steps of every sensor in a file, or of saved forecasters.

    A file of readings: each sensor gets a model, which is fitted to its whole history. Rows after
    the last reading may tell the values of --extras; --extras rain=0 names the value of steps
    without such a row.

    Saved forecasters (.sr) first learn from --readings. Save them with `replay --save`, with --save
    here, or with `Forecaster.save` in Python. Without --save nothing that was learned is stored.

    A sensor that fails does not stop the others. Exit codes: 0 all forecasts are complete, 2
    invalid input, 3 a sensor or an output failed, 130 interrupted.

    Example: streamridge forecast roads.csv --horizon 96 --plot tomorrow.png
    """
    console = Messages(quiet=quiet)
    runner = parse_engine(engine, jobs=jobs, scheduler=scheduler)
    saved = saved_files(files)
    outputs = Outputs(out, plot, save, unit, as_json=as_json, force=force)
    outputs.require_writable([*(files if saved is None else ()), *(readings or ())])
    levels = None if level is None else options.parse_levels(level)
    names, fills = parse_extras(reading.pop("extras", None) or ())
    settings: dict[str, Any] = {
        "seasons": options.parse_seasons(seasons),
        "holidays": given_holidays(holidays),
        "train_size": train_size,
        "budget": budget,
        "hyperparameters": options.parse_hyperparameters(hyperparameter) or None,
        "lags": lags,
        "bounds": options.parse_bounds(bounds),
    }
    shared = {"levels": levels, "fills": fills}
    if saved is None:
        require_none("readings", readings, "with a file of readings, which is the first argument")
        chosen = ReadingOptions.of(reading, extras=names)
        settings |= {"level": levels, "tz": chosen.tz, "extras": names or None}
        settings |= {"start": start, "seed": seed, "horizon": horizon or 1}
        prepared = _from_readings(
            files, chosen, forecast_settings(model, **settings), shared, console
        )
    else:
        given = {**settings, "model": None if model == "default" else model}
        own = {name: reading.pop(name) for name in ("step", "tz")}
        for name, value in (given | own).items():
            require_none(name.replace("_", "-"), value, "with a saved forecaster, which decides it")
        prepared = _from_saved(saved, readings or [], reading, horizon, names, shared)
    prepared = outputs.with_saved_forecasters(prepared)
    _write(prepared, runner, outputs, horizon, console)


def saved_files(files: Sequence[str]) -> list[Path] | None:
    """Return the saved forecasters among files and folders; None if the files hold readings."""
    found: list[Path] = []
    others = []
    for name in files:
        path = Path(name)
        if path.is_dir():
            inside = sorted(path.glob(f"*{SAVED}"))
            if not inside:
                raise InvalidInputError(
                    f"the folder must hold saved forecasters ({SAVED}), got none in {name!r}."
                )
            found += inside
        elif path.suffix == SAVED or is_checkpoint(path):
            found.append(path)
        else:
            others.append(name)
    if found and others:
        raise InvalidInputError(
            "FILE must be files of readings, or saved forecasters, got both: "
            f"{listed([str(found[0]), others[0]])}. Pass new readings with --readings."
        )
    return found or None


def require_none(flag: str, value: object, where: str) -> None:
    """Raise if a flag was given that has no meaning."""
    if value not in (None, [], ()):
        raise InvalidInputError(f"--{flag} must be left out {where}, got {value!s}.")


def _from_readings(
    files: Sequence[str],
    chosen: ReadingOptions,
    settings_of: Callable[..., Settings],
    shared: Mapping[str, Any],
    console: Messages,
) -> Prepared:
    """Return the tasks of the sensors in files of readings."""
    result = read_series(list(files), chosen)
    console.print_each([*result.series.values(), *result.notes, *result.left_out])
    tasks = new_tasks(result.series, settings_of, **shared)
    settings = [
        replace(each.settings, sensor=each.sensor or None) for each in tasks if each.settings
    ]
    return Prepared(tasks, settings)


def _from_saved(
    paths: Sequence[Path],
    files: Sequence[str],
    reading: dict[str, Any],
    horizon: int | None,
    extras: Sequence[str],
    shared: Mapping[str, Any],
) -> Prepared:
    """Return the tasks of saved forecasters, with the new readings of each."""
    columns = reading.pop("sensors", None) or []
    if columns and len(columns) + len(paths) > 2:
        raise InvalidInputError(
            "--sensor must name the column of one saved forecaster, "
            f"got {counted(len(columns), 'name')} for {counted(len(paths), 'forecaster')}."
        )
    new_readings = NewReadingsOf(files, reading) if files else None
    tasks, settings, failures = [], [], []
    for path in paths:
        name = path.stem
        try:
            forecaster = Forecaster.load(path)
            own, name = forecaster.settings, forecaster.settings.sensor or name
            _require_suitable(path, forecaster, horizon, extras, bool(files))
            series = None if new_readings is None else new_readings.series(own, *columns)
            content = forecaster.to_bytes()
            tasks.append(ForecastTask(name, series, saved=content, save_to=path, **shared))
            settings.append(own)
        except StreamRidgeError as error:
            if len(paths) == 1:
                raise
            failures.append(f"{name}: {error.reason}")
    return Prepared(tasks, settings, failures)


class NewReadingsOf:
    """New readings of many sensors; the files are read once for each kind of forecaster."""

    def __init__(self, files: Sequence[str], reading: Mapping[str, Any]) -> None:
        self._files, self._reading = list(files), reading
        self._collectors: dict[ReadingOptions, tuple[Collector, Sequence[str]]] = {}
        self._series: dict[tuple[ReadingOptions, str], Series] = {}

    def series(self, settings: Settings, column: str | None = None) -> Series:
        """Return the new readings of the sensor of a forecaster, in its step and zone."""
        extras = settings.preset.features.extras
        options = ReadingOptions.of(
            self._reading, step=settings.step, tz=settings.tz, extras=extras
        )
        if options not in self._collectors:
            collector = read_readings(self._files, options)
            self._collectors[options] = collector, collector.names
        collector, names = self._collectors[options]
        name = choose_sensor(names, settings.sensor, column)
        if (options, name) not in self._series:
            self._series[options, name] = options.to_series(collector.take(name))
        return self._series[options, name]


def _require_suitable(
    path: Path, forecaster: Forecaster, horizon: int | None, extras: Sequence[str], learns: bool
) -> None:
    """Raise unless a saved forecaster can make the forecast."""
    own, known = forecaster.settings.horizon, forecaster.settings.preset.features.extras
    if horizon is not None and horizon > own:
        raise InvalidInputError(
            f"horizon must be at most {own}, for which {path} was fitted, got {horizon}. "
            "Forecast from the file of readings for more steps."
        )
    unknown = [name for name in extras if name not in known]
    if unknown:
        raise InvalidInputError(
            f"extras must be among {listed(known)}, the extras of {path}, got {unknown[0]!r}."
        )
    if forecaster.next_time is None and not learns:
        raise InvalidInputError(
            f"{path} must have at least one reading, got none. Pass some with --readings."
        )


@dataclass(frozen=True)
class Outputs:
    """The outputs that a user requested; None if not requested."""

    table: Path | None
    plot: Path | None
    save: Path | None
    unit: str
    as_json: bool
    force: bool

    def require_writable(self, inputs: Sequence[str]) -> None:
        """Raise if an output cannot be written, or would replace a file that it must not."""
        if self.as_json and self.table is not None and is_standard(self.table):
            raise InvalidInputError(
                "--out - must be left out with --json, since both write to standard output."
            )
        require_replaceable(self._files(), inputs, force=self.force)
        if self.table is not None and not is_standard(self.table):
            require_table("out", self.table)
        if self.plot is not None:
            if self.plot.suffix.lower() not in FIGURES:
                raise InvalidInputError(
                    f"--plot must end in {' or '.join(FIGURES)}, got {str(self.plot)!r}."
                )
            require_extra("matplotlib", "plot")
            require_folder("the folder of plot", self.plot.parent)
        if self.save is not None:
            if str(self.save).startswith("-"):
                raise InvalidInputError(f"--save must be a folder, got {str(self.save)!r}.")
            require_folder("save", self.save)

    def _files(self) -> Iterator[OutputFile]:
        if self.table is not None and not is_standard(self.table):
            yield OutputFile("out", self.table, is_forecast)
            yield OutputFile("out", interrupted_file(self.table), is_forecast)
        if self.plot is not None:
            yield OutputFile("plot", self.plot, is_figure)

    def with_saved_forecasters(self, prepared: Prepared) -> Prepared:
        """Return the tasks with the files of their forecasters; a saved one keeps its file name."""
        names, tasks = FileNames(), []
        for task in prepared.tasks:
            file = None
            if self.save is not None:
                own = names.take(task.sensor, SAVED) if task.save_to is None else task.save_to.name
                file = self.save / own
            tasks.append(replace(task, save_to=file))
        files = (task.save_to for task in tasks if task.save_to is not None)
        outputs = (OutputFile("save", file, is_checkpoint) for file in files)
        require_replaceable(outputs, (), force=self.force)
        return replace(prepared, tasks=tasks)


def _write(
    prepared: Prepared,
    engine: Engine | Executor,
    outputs: Outputs,
    horizon: int | None,
    console: Messages,
) -> None:
    """Make the forecasts, write and print them, and exit with an error code if one is missing."""
    errors = list(prepared.failures)
    made: list[tuple[Forecast, Settings]] = []
    done = 0
    for outcome in _outcomes(prepared.tasks, engine, console):
        done += 1
        console.print_each(outcome.notes)
        task = prepared.tasks[outcome.number]
        if outcome.error is not None:
            errors.append(f"{task.sensor}: {outcome.error}")
        if outcome.forecast is not None:
            shown = outcome.forecast.first(horizon or len(outcome.forecast))
            made.append((shown, prepared.settings[outcome.number]))
            if task.save_to is not None and outcome.error is None:
                console.print(f"Saved: {task.save_to}")
    output = StandardOutput()
    interrupted = done < len(prepared.tasks)
    if made:
        forecasts = [each for each, _ in made]
        _write_files(forecasts, outputs, output, errors, console, interrupted=interrupted)
        if outputs.as_json:
            lines = (line for each in made for line in json_lines(*each))
            output.print("".join(f"{line}\n" for line in lines))
        elif outputs.table is None:
            output.print("\n".join(_text(*each) for each in made))
    if output.error is not None:
        errors.append(str(output.error))
    for error in errors:
        typer.echo(visible(f"error: {error}"), err=True)
    if interrupted:
        raise KeyboardInterrupt
    if errors:
        raise typer.Exit(INCOMPLETE if made else BAD_INPUT)
    if outputs.save is None and any(each.saved and each.series for each in prepared.tasks):
        console.print("The saved forecasters were not changed. Pass --save FOLDER to save them.")


def _outcomes(
    tasks: Sequence[ForecastTask], engine: Engine | Executor, console: Messages
) -> list[TaskOutcome]:
    """Run tasks with a progress bar over all sensors, and return their outcomes."""
    bars = progress_bar(console)
    bars.disable |= len(tasks) == 1
    with bars:
        bar = bars.add_task("all sensors", total=len(tasks))
        with closing(run_tasks(tasks, engine, None, forecast_task)) as outcomes:
            every = []
            for outcome in outcomes:
                bars.advance(bar)
                bars.update(bar, description=visible(tasks[outcome.number].sensor))
                every.append(outcome)
        bars.update(bar, description="done")
    return every


def _write_files(
    made: Sequence[Forecast],
    outputs: Outputs,
    output: StandardOutput,
    errors: list[str],
    console: Messages,
    *,
    interrupted: bool,
) -> None:
    """Write the table and the figure; a failure is noted and affects only its own file.

    The table of an interrupted command has another name, and there is no figure.
    """
    with PredictionsTable(outputs.table, output, errors.append) as table:
        table.add(forecast_columns(made))
        written = table.finish(interrupted=interrupted)
    if written is not None:
        console.print(f"Forecasts: {written}")
    if outputs.plot is not None and not interrupted:
        try:
            _draw(made, outputs.plot, outputs.unit)
            console.print(f"Figure: {outputs.plot}")
            if len(made) > MOST_DRAWN:
                console.print(f"The figure has the first {MOST_DRAWN} of {len(made)} sensors.")
        except StreamRidgeError as error:
            errors.append(str(error))


def _draw(made: Sequence[Forecast], path: Path, unit: str) -> None:
    """Write a figure of forecasts, one below the other."""
    shown = made[:MOST_DRAWN]
    figure = new_figure(len(shown))
    for axes, each in zip(figure.axes, shown, strict=True):
        each.draw(axes, unit)
    ending = path.suffix.lower()
    with replacing(path) as file:
        figure.savefig(file, format=ending[1:], metadata={FIGURES[ending]: DRAWN_BY}, dpi=120)


def json_lines(forecast: Forecast, settings: Settings) -> list[str]:
    """Return a forecast as lines of JSON, one object per step."""
    ends = band_columns(forecast.levels, forecast.lower, forecast.upper)
    numbers = {"value": forecast.value, **ends}
    return [
        json.dumps(
            {
                "sensor": settings.sensor,
                "time": time,
                "ahead": at + 1,
                **{name: float(column[at]) for name, column in numbers.items()},
                "level": one_or_all(forecast.levels),
                "source": forecast.source,
            }
        )
        for at, time in enumerate(local_texts(forecast, settings))
    ]


def local_texts(forecast: Forecast, settings: Settings) -> list[str]:
    """Return the times of a forecast as text, with UTC offsets if the sensor has a time zone."""
    zone = parse_zone(settings.tz)
    if zone is None:
        return forecast.time_format.texts(forecast.time)
    moments = forecast.time.astype("M8[us]").tolist()
    return [each.replace(tzinfo=UTC).astimezone(zone).isoformat() for each in moments]


def forecast_table(forecast: Forecast, settings: Settings) -> str:
    """Return a forecast as a table with a row per step."""
    ends = band_columns(forecast.levels, forecast.lower, forecast.upper)
    numbers = {"value": forecast.value, **ends}
    cells = {name: [f"{each:.6g}" for each in column] for name, column in numbers.items()}
    return table_text({"time": local_texts(forecast, settings), **cells}, names=("time",))


def _text(forecast: Forecast, settings: Settings) -> str:
    """Return a forecast as a heading and a table."""
    name = settings.sensor or "the sensor"
    zone = f", times in {settings.tz}" if settings.tz else ""
    heading = (
        f"{name}: {counted(len(forecast), 'step')} of {step_name(settings.step)} by "
        f"{SOURCES[forecast.source]}, {in_percent(forecast.levels)} intervals{zone}"
    )
    return f"{visible(heading)}\n{forecast_table(forecast, settings)}\n"


options.with_reading_flags(forecast)
