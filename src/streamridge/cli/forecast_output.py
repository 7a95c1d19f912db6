"""The results of `streamridge forecast`: files and a figure, then a table or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

import typer

from streamridge.cli.commands import BAD_INPUT, INCOMPLETE, require_extra
from streamridge.cli.output_files import (
    OutputFile,
    PredictionsTable,
    interrupted_file,
    is_standard,
    require_folder,
    require_replaceable,
    require_table,
    saved_name,
)
from streamridge.cli.progress import progress_bar
from streamridge.cli.terminal import Messages, StandardOutput, table_text
from streamridge.errors import InvalidInputError, StreamRidgeError, counted, visible
from streamridge.files.atomic import replacing
from streamridge.files.written_files import (
    DRAWN_BY,
    is_checkpoint,
    is_figure,
    is_forecast,
)
from streamridge.forecaster.forecast import Forecast, band_columns, in_percent, one_or_all
from streamridge.forecaster.forecast_table import forecast_columns
from streamridge.forecaster.settings import Settings
from streamridge.plots.axes import new_figure
from streamridge.runs.engines import Engine
from streamridge.runs.next_steps import ForecastTask, forecast_task, stopped_notes
from streamridge.runs.run_tasks import run_tasks
from streamridge.runs.tasks import TaskOutcome
from streamridge.series.lengths import step_name
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


@dataclass(frozen=True)
class Prepared:
    """The tasks of a command, and the sensors that cannot be forecast."""

    tasks: Sequence[ForecastTask]
    settings: Sequence[Settings]  # of each task
    failures: Sequence[str] = ()


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
        tasks = []
        for task in prepared.tasks:
            file = None
            if self.save is not None:
                own = saved_name(task.sensor, "ohl") if task.save_to is None else task.save_to.name
                file = self.save / own
            tasks.append(replace(task, save_to=file))
        files = (task.save_to for task in tasks if task.save_to is not None)
        outputs = (OutputFile("save", file, is_checkpoint) for file in files)
        require_replaceable(outputs, (), force=self.force)
        return replace(prepared, tasks=tasks)


def write_forecasts(
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
            settings = prepared.settings[outcome.number]
            shown = outcome.forecast.first(horizon or len(outcome.forecast))
            made.append((replace(shown, sensor=settings.sensor), settings))
            if task.save_to is not None and outcome.error is None:
                console.print(f"Saved: {task.save_to}")
    output = StandardOutput()
    interrupted = done < len(prepared.tasks)
    if made:
        forecasts = [each for each, _ in made]
        console.print_each(stopped_notes(forecasts))
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
    if outputs.table is not None:
        try:
            _write_table(made, outputs.table, output, errors, console, interrupted=interrupted)
        except StreamRidgeError as error:
            errors.append(str(error))
    if outputs.plot is not None and not interrupted:
        try:
            _draw(made, outputs.plot, outputs.unit)
            console.print(f"Figure: {outputs.plot}")
            if len(made) > MOST_DRAWN:
                console.print(f"The figure has the first {MOST_DRAWN} of {len(made)} sensors.")
        except StreamRidgeError as error:
            errors.append(str(error))


def _write_table(
    made: Sequence[Forecast],
    path: Path,
    output: StandardOutput,
    errors: list[str],
    console: Messages,
    *,
    interrupted: bool,
) -> None:
    """Write the table; raise if the forecasts do not fit into one."""
    columns = forecast_columns(made)
    with PredictionsTable(path, output, errors.append) as table:
        table.add(columns)
        written = table.finish(interrupted=interrupted)
    if written is not None:
        console.print(f"Forecasts: {written}")


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
