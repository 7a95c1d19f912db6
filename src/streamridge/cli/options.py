"""Flags that several commands share, and the flags of the reading options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from streamridge.errors import InvalidInputError
from streamridge.files.reading_options import OPTIONS, READING, flag_of, flag_type
from streamridge.forecaster import settings
from streamridge.forecaster.forecast import require_levels
from streamridge.forecaster.methods import METHODS
from streamridge.forecaster.plausibility import BoundPair, require_bounds
from streamridge.runs.tasks import ModelName
from streamridge.series.times import index_of, parse_index, parse_time

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, NDJSON, Parquet or Caltrans station files, plain or gzip; - reads standard "
        "input.",
    ),
]


def methods_option(default: str) -> Any:
    """Return the flag of methods, with the names of the default methods in its help."""
    return typer.Option(
        "--method",
        "--methods",
        metavar="NAME[,NAME...]",
        help=f"Tuning method: {', '.join(METHODS)}. ohl is online hyperparameter learning: it "
        "tunes the model at every refit, by its own errors. fixed does not tune. last and week "
        "have no model: they repeat the last reading, and the reading a week ago. Repeat the flag "
        f"for several, or separate them by commas. Default: {default}.",
    )


Methods = Annotated[list[str] | None, methods_option("ohl")]
Model = Annotated[
    ModelName,
    typer.Option(
        help="Model: the default one; compact, at a fraction of its cost; long, with several times "
        "as much history; the paper's as printed, or with the settings of the public code of its "
        "first author."
    ),
]
Seasons = Annotated[
    str | None,
    typer.Option(
        metavar="TIME[,TIME...]",
        help="Periods after which the series repeats, such as 1d,7d; or none. By default day, week "
        "and year, as far as they suit the step.",
    ),
]
Holidays = Annotated[
    str | None,
    typer.Option(
        metavar="CODE|FILE",
        help="Holidays, which are treated like Sundays: the code of a country, such as DE or "
        "GB-ENG, or a file with one ISO date per line.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="START/END",
        help="Time span that is neither learned from nor scored, such as "
        "2021-06-13T08:00/2021-06-14T12:00, both ends included; a date without a time means "
        "midnight. Repeat the flag for several.",
    ),
]
Warmup = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Number of steps before the first scored step. The model is fitted by then, if three "
        "days have passed. The default is three days, 60 days with the paper's model, and less "
        "for steps below five minutes or of a day and more.",
    ),
]
Steps = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of steps to score. All by default.")
]
LastSteps = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Score only the last N steps of each sensor. The model learns from all steps before.",
    ),
]
TrainSize = Annotated[
    int | None,
    typer.Option(
        min=24,
        metavar="N",
        help="Number of rows that the model is fitted to. The default is 5760, 2880 with the "
        "compact model and 8640 with the long one.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Processor time per sensor and day, such as 0.1s/sensor/day. It determines the size "
        "of the default model and the time between refits; the loss of accuracy is printed.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print the estimated time and memory of the run, and stop."),
]
UpdateEvery = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Readings between refits. The default is a day of readings, but at least 96; 24 for "
        "steps of a day or more.",
    ),
]
TuneEvery = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Readings between searches of hoag, random, grid and bayes. The default is a week of "
        "readings; 0 searches once, at the start.",
    ),
]
Hyperparameters = Annotated[
    list[str] | None,
    typer.Option(
        "--hyperparameter",
        metavar="NAME=NUMBER",
        help="Initial value of a hyperparameter, such as regularization=0.01. Repeat the flag for "
        "several.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of random draws.")]
Start = Annotated[
    settings.Start,
    typer.Option(
        help="Initial hyperparameters of ohl: the defaults of the model, or the best ones of a "
        "search on the history, as soon as 960 rows are known."
    ),
]
Lags = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Number of latest values that the model uses."),
]
Horizon = Annotated[
    int, typer.Option(min=1, metavar="N", help="Number of steps ahead to forecast.")
]
NeighbourText = Annotated[
    Literal["none", "auto"],
    typer.Option(
        help="Correct forecasts by the latest errors of other sensors: auto finds the neighbours "
        "that help."
    ),
]
LevelText = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="SHARE[,SHARE...]",
        help="Share of values within the prediction interval; several shares give an interval "
        "each, such as 0.8,0.95.",
    ),
]
BoundsText = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="LEAST,GREATEST",
        help="Least and greatest possible value; one may be left out, as in --bounds '0,' for "
        "counts. Forecasts and intervals stay within the bounds; readings outside are implausible.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Number of worker processes, each with one run at a time."
    ),
]
EngineName = Annotated[
    Literal["local", "dask"],
    typer.Option("--engine", help="Run in processes of this machine, or on Dask workers."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a running Dask scheduler, such as tls://host:8786. Implies --engine dask.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Predictions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File for all forecasts: .csv, .csv.gz or .parquet; - writes CSV to standard output, "
        "and the table of results to standard error. After Ctrl-C, the forecasts so far are in "
        "NAME.interrupted.csv.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace files that streamridge did not write. Input files are never replaced.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Folder for an HTML page with interactive figures, and for images."
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for the forecasters after their runs, from which `forecast` continues.",
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for complete runs. After an interruption, the same command continues with the "
        "missing runs.",
    ),
]
Unit = Annotated[
    str, typer.Option(metavar="UNIT", help="Unit of the values, such as vehicles, for figures.")
]
Events = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        metavar="TIME=TEXT",
        help="Local time to mark in the figures of the report, such as 2021-06-13=roadworks. "
        "Repeat the flag for several.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress and no messages.")]


def parse_levels(text: str) -> tuple[float, ...]:
    """Return the levels of a flag.

    Examples
    --------
    >>> parse_levels("0.8,0.95")
    (0.8, 0.95)
    >>> parse_levels("0.8,abc")
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: --level must be numbers with commas between, such as \
0.8,0.95, got '0.8,abc'.
    """
    try:
        levels = [float(each) for each in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"--level must be numbers with commas between, such as 0.8,0.95, got {text!r}."
        ) from None
    return require_levels(levels)


def parse_bounds(text: str | None) -> BoundPair | None:
    """Return the bounds of a flag, None if it was left out.

    Examples
    --------
    >>> parse_bounds("0,"), parse_bounds(",100"), parse_bounds(None)
    ((0.0, None), (None, 100.0), None)
    >>> parse_bounds("0")
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: --bounds must be two numbers with a comma between, \
of which one may be left out, such as '0,' or '0,100', got '0'.
    """
    if text is None:
        return None
    try:
        lower, upper = (float(each) if each.strip() else None for each in text.split(","))
    except ValueError:
        raise InvalidInputError(
            "--bounds must be two numbers with a comma between, of which one may be left out, "
            f"such as '0,' or '0,100', got {text!r}."
        ) from None
    if lower is None and upper is None:
        raise InvalidInputError(
            f"--bounds must hold at least one number, such as '0,' or ',100', got {text!r}."
        )
    return require_bounds((lower, upper))


def parse_hyperparameters(texts: Sequence[str] | None) -> dict[str, float]:
    """Return hyperparameters by name.

    Examples
    --------
    >>> parse_hyperparameters(["regularization=0.01"]), parse_hyperparameters(None)
    ({'regularization': 0.01}, {})
    >>> parse_hyperparameters(["regularization"])
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: --hyperparameter must be a name and a number, such as \
'regularization=0.01', got 'regularization'.
    >>> parse_hyperparameters(["regularization=1", "regularization=2"])
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: --hyperparameter must name each once, \
got 'regularization' twice.
    """
    starts: dict[str, float] = {}
    for text in texts or ():
        name, _, number = (part.strip() for part in text.partition("="))
        if name in starts:
            raise InvalidInputError(f"--hyperparameter must name each once, got {name!r} twice.")
        try:
            starts[name] = float(number)
        except ValueError:
            raise InvalidInputError(
                "--hyperparameter must be a name and a number, such as 'regularization=0.01', "
                f"got {text!r}."
            ) from None
    return starts


def parse_events(texts: Sequence[str] | None) -> tuple[tuple[Any, str], ...]:
    """Return local times, or whole numbers of an index, with their texts.

    Examples
    --------
    >>> parse_events(["2021-06-13=roadworks", "96=flood"])
    ((np.datetime64('2021-06-13T00:00:00.000000'), 'roadworks'), (np.int64(96), 'flood'))
    """
    events = []
    for text in texts or ():
        time, _, name = (part.strip() for part in text.partition("="))
        try:
            index = parse_index([time])
            stamp, ahead = parse_time(time) if index is None else (index_of(index)[0], None)
        except InvalidInputError:
            name = ""
        if not name:
            raise InvalidInputError(
                "--event must be a time and a text, such as '2021-06-13T08:00=roadworks', "
                f"got {text!r}."
            )
        events.append((stamp + np.timedelta64(ahead, "s") if ahead else stamp, name))
    return tuple(events)


def parse_seasons(text: str | None) -> tuple[str, ...] | None:
    """Return the seasons of a flag, separated by commas; None if it was left out."""
    if text is None:
        return None
    return () if text.strip().lower() == "none" else tuple(text.split(","))


def with_reading_flags(
    command: Callable[..., None],
    *,
    only: Collection[str] = tuple(OPTIONS),
    besides: Collection[str] = (),
) -> Callable[..., None]:
    """Return a command that has a flag for each reading option in place of `**reading`.

    There is a flag for each option of `only` that is not in `besides`.
    """
    own = signature(command, eval_str=True)
    kept = [each for name, each in own.parameters.items() if name != READING]
    flags = [_parameter(name) for name in OPTIONS if name in only and name not in besides]
    command.__signature__ = own.replace(parameters=[*kept, *flags])  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in (*kept, *flags)}
    return command


def _parameter(name: str) -> Parameter:
    """Return an option as a parameter that Typer turns into a flag."""
    flag, kind, default = flag_of(name), flag_type(name), OPTIONS[name]
    if flag.repeated:
        kind, default = list[str] | None, None
    elif default is None:
        kind = kind | None
    described = typer.Option(*flag.names, metavar=flag.metavar, help=flag.help)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, described]
    )
