"""`streamridge forecast`: the next steps of the sensors of a file, or of saved forecasters."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from streamridge.cli import options
from streamridge.cli.forecast_output import SAVED, Outputs, Prepared, write_forecasts
from streamridge.cli.replay import given_holidays
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError, StreamRidgeError, counted, listed
from streamridge.files.collector import Collector
from streamridge.files.open_files import STDIN, open_source, source_name
from streamridge.files.reading import read_readings, read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.files.written_files import is_checkpoint
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.new_rows import choose_sensor
from streamridge.forecaster.settings import Settings
from streamridge.runs.next_steps import (
    ForecastTask,
    forecast_settings,
    new_tasks,
    parse_extras,
)
from streamridge.runs.run_tasks import parse_engine
from streamridge.series.series import Series

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
        require_none("readings", readings, "because FILE holds the readings")
        chosen = ReadingOptions.of(reading, extras=names)
        settings |= {"level": levels, "tz": chosen.tz, "extras": names or None}
        settings |= {"start": start, "seed": seed, "horizon": horizon or 1}
        prepared = _from_readings(
            files, chosen, forecast_settings(model, **settings), shared, console
        )
    else:
        usual = {"model": (model, "default"), "start": (start, "default"), "seed": (seed, 0)}
        given = {name: None if value == other else value for name, (value, other) in usual.items()}
        own = {name: reading.pop(name) for name in ("step", "tz")}
        for name, value in (settings | given | own).items():
            flag = name.replace("_", "-").replace("hyperparameters", "hyperparameter")
            require_none(flag, value, "because the saved forecaster decides it")
        columns = reading.pop("sensors", None) or []
        new_readings = NewReadingsOf(readings, reading) if readings else None
        prepared = _from_saved(saved, new_readings, columns, horizon, names, shared)
        console.print_each(() if new_readings is None else new_readings.notes)
    prepared = outputs.with_saved_forecasters(prepared)
    write_forecasts(prepared, runner, outputs, horizon, console)


def saved_files(files: Sequence[str]) -> list[Path] | None:
    """Return the saved forecasters among files and folders; None if the files hold readings."""
    found: list[Path] = []
    others = []
    for name in files:
        path = Path(name)
        if not name or "\0" in name:  # no path; reading it says so
            others.append(name)
        elif path.is_dir():
            inside = sorted(path.glob(f"*{SAVED}"))
            if not inside:
                raise InvalidInputError(
                    f"the folder must hold saved forecasters ({SAVED}), got none in {name!r}."
                )
            found += inside
        elif path.suffix == SAVED or (path.is_file() and is_checkpoint(path)):
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
    new_readings: NewReadingsOf | None,
    columns: Sequence[str],
    horizon: int | None,
    extras: Sequence[str],
    shared: Mapping[str, Any],
) -> Prepared:
    """Return the tasks of saved forecasters, with the new readings of each."""
    if columns and len(columns) + len(paths) > 2:
        raise InvalidInputError(
            "--sensor must name the column of one saved forecaster, "
            f"got {counted(len(columns), 'name')} for {counted(len(paths), 'forecaster')}."
        )
    loaded, tasks, settings = [], [], []
    failures: list[str] = []
    alone = len(paths) == 1
    for path in paths:
        with _collected(failures, path.stem, alone):
            forecaster = Forecaster.load(path)
            name = forecaster.settings.sensor or path.stem
            with _collected(failures, name, alone):
                _require_suitable(path, forecaster, horizon, extras, new_readings is not None)
                task = ForecastTask(name, saved=forecaster.to_bytes(), save_to=path, **shared)
                loaded.append((task, forecaster.settings))
    with nullcontext() if new_readings is None else new_readings.for_each(own for _, own in loaded):
        for task, own in loaded:
            with _collected(failures, task.sensor, alone):
                series = None if new_readings is None else new_readings.series(own, *columns)
                tasks.append(replace(task, series=series))
                settings.append(replace(own, sensor=task.sensor))
    return Prepared(tasks, settings, failures)


@contextmanager
def _collected(failures: list[str], name: str, alone: bool) -> Iterator[None]:
    """Add an error within the block to the failures; raise it if there is one forecaster alone."""
    try:
        yield
    except StreamRidgeError as error:
        if alone:
            raise
        failures.append(f"{name}: {error.reason}")


class NewReadingsOf:
    """New readings of many sensors; the files are read once for each kind of forecaster."""

    def __init__(self, files: Sequence[str], reading: Mapping[str, Any]) -> None:
        self._files, self._reading = list(files), reading
        self._collectors: dict[ReadingOptions, tuple[Collector, Sequence[str]]] = {}
        self._series: dict[tuple[ReadingOptions, str], Series] = {}

    @contextmanager
    def for_each(self, settings: Iterable[Settings]) -> Iterator[None]:
        """Let forecasters of several kinds read what can be read only once, within the block."""
        kinds = {self._options(each) for each in settings}
        if len(kinds) < 2:
            yield
            return
        most = next(iter(kinds)).most_bytes
        with TemporaryDirectory() as folder:
            self._files = [
                _copied(file, Path(folder, f"{at}-{source_name(file).rpartition('/')[2]}"), most)
                for at, file in enumerate(self._files)
            ]
            yield

    @property
    def notes(self) -> list[str]:
        """Return the decisions about formats that a user may want to check, each once."""
        every = (note for collector, _ in self._collectors.values() for note in collector.notes)
        return list(dict.fromkeys(every))

    def series(self, settings: Settings, column: str | None = None) -> Series:
        """Return the new readings of the sensor of a forecaster, in its step and zone."""
        options = self._options(settings)
        if options not in self._collectors:
            collector = read_readings(self._files, options)
            self._collectors[options] = collector, collector.names
        collector, names = self._collectors[options]
        name = choose_sensor(names, settings.sensor, column)
        if (options, name) not in self._series:
            self._series[options, name] = options.to_series(collector.take(name))
        return self._series[options, name]

    def _options(self, settings: Settings) -> ReadingOptions:
        """Return the reading options of a kind of forecaster."""
        extras = settings.preset.features.extras
        return ReadingOptions.of(self._reading, step=settings.step, tz=settings.tz, extras=extras)


def _copied(file: str, to: Path, most_bytes: int | None) -> str:
    """Return the path of a file; standard input and pipes are copied."""
    if file != STDIN and (os.path.isfile(file) or not os.path.exists(file)):
        return file
    with open_source(file, most_bytes) as source, open(to, "wb") as copy:
        shutil.copyfileobj(source, copy)
    return str(to)


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
        must = f"must be among {listed(known)}, the extras of {path}"
        none = f"must be left out, since {path} has no extras"
        raise InvalidInputError(f"extras {must if known else none}, got {unknown[0]!r}.")
    if forecaster.next_time is None and not learns:
        raise InvalidInputError(
            f"{path} must have at least one reading, got none. Pass some with --readings."
        )


options.with_reading_flags(forecast)
