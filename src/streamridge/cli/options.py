"""Flags that several commands share, each written once."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamridge.errors import InvalidInputError
from streamridge.files import blocks, reading
from streamridge.files.dialect import DATE_WORDS
from streamridge.files.numbers import DecimalMark
from streamridge.forecaster import settings
from streamridge.forecaster.bounds import BoundPair, require_bounds
from streamridge.forecaster.levels import require_levels
from streamridge.forecaster.methods import METHODS
from streamridge.series import local_time, readings


class ModelName(StrEnum):
    """Which ready-made model forecasts."""

    DEFAULT = "default"
    COMPACT = "compact"
    LONG = "long"
    PAPER = "paper"
    PROTOTYPE = "paper-prototype"


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, NDJSON, Parquet or Caltrans station files, packed with gzip or not; - reads "
        "standard input.",
    ),
]
Sensors = Annotated[
    list[str] | None,
    typer.Option(
        "--sensor",
        metavar="NAME",
        help="Sensor to forecast; repeat the flag for several. All by default.",
    ),
]


def methods_option(default: str) -> Any:
    """Return the flag of methods, with the names of those that are taken by default."""
    return typer.Option(
        "--method",
        "--methods",
        metavar="NAME[,NAME...]",
        help=f"How hyperparameters are tuned: {', '.join(METHODS)}. The last two need no model: "
        "the last reading, and the one a week ago. Repeat the flag for several, or separate them "
        f"by commas. By default: {default}.",
    )


Methods = Annotated[list[str] | None, methods_option("ohl")]
Model = Annotated[
    ModelName,
    typer.Option(
        help="The default model; the compact one, at a fraction of its cost; the long one, which "
        "knows several times as much of the past; the paper's as printed, or with the settings of "
        "the public code of its first author."
    ),
]
Step = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time between readings, such as 15min, 7d or 1mo; a whole number for an index. Found "
        "from the file by default.",
    ),
]
Seasons = Annotated[
    str | None,
    typer.Option(
        metavar="TIME[,TIME...]",
        help="Times after which the series repeats itself, such as 1d,7d; none for none. By "
        "default those of day, week and year that suit the step.",
    ),
]
Tz = Annotated[
    str | None,
    typer.Option(
        "--tz",
        "--timezone",
        metavar="ZONE",
        help="Time zone of local times, such as Europe/London.",
    ),
]
Holidays = Annotated[
    str | None,
    typer.Option(
        metavar="CODE|FILE",
        help="Days that run like a Sunday: the code of a country, such as DE or GB-ENG, or a file "
        "with one ISO date a line.",
    ),
]
Fold = Annotated[
    local_time.Fold,
    typer.Option(
        help="Which of two equal local times to take when clocks are set back: the first, the "
        "second, or the one that fits its neighbours."
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help="First time to use, such as 2021-06-13 or 2021-06-13T08:00."
    ),
]
To = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Last time to use, in the same form.")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="START/END",
        help="Times whose readings are not learned from and not scored, such as "
        "2021-06-13T08:00/2021-06-14T12:00, both ends included; a bare date is its midnight. "
        "Repeat the flag for several.",
    ),
]
Warmup = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Steps before the first scored one; the model is fitted by then, if three days have "
        "passed. Three days by default, fewer where a step is below five minutes or a day and "
        "more; with the paper's model 60 days.",
    ),
]
Steps = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of steps to score. All by default.")
]
TrainSize = Annotated[
    int | None,
    typer.Option(
        min=24,
        metavar="N",
        help="Number of rows that the model is fitted to. 2880 by default; with the compact model "
        "fewer, with the long one more.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Processor time of a sensor and day, such as 0.1s/sensor/day: it chooses the size of "
        "the default model and how often it is refitted, and says what that costs in accuracy.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say how much time and memory the run would take; do nothing."),
]
UpdateEvery = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Readings between refits. Those of a day by default, but at least 96; for steps of a "
        "day and more 24.",
    ),
]
TuneEvery = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Readings between searches of hoag, random, grid and bayes. Those of a week by "
        "default; 0 searches once, at the start.",
    ),
]
Hyperparameters = Annotated[
    list[str] | None,
    typer.Option(
        "--hyperparameter",
        metavar="NAME=NUMBER",
        help="Where a hyperparameter starts, such as regularization=0.01. Repeat the flag for "
        "several.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of random draws.")]
Start = Annotated[
    settings.Start,
    typer.Option(
        help="Where hyperparameters of ohl start: where the model says, or where a search on the "
        "history finds it best, once 960 rows are known."
    ),
]
Lags = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="How many of the latest values the model reads."),
]
Horizon = Annotated[
    int, typer.Option(min=1, metavar="N", help="Number of steps ahead to forecast.")
]
LevelText = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="SHARE[,SHARE...]",
        help="Share of values that shall lie within the bands; several for a band each, such as "
        "0.8,0.95.",
    ),
]
BoundsText = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="LEAST,GREATEST",
        help="Least and greatest value that sensors can show; one may be left out, as in "
        "--bounds 0, for counts. No forecast or band goes beyond, and a reading beyond is "
        "implausible.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Number of worker processes; each makes one run at a time."
    ),
]
EngineName = Annotated[
    Literal["local", "dask"],
    typer.Option(
        "--engine", help="Where runs are made: in processes of this machine, or by Dask workers."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a Dask scheduler that is already running, such as tls://host:8786. "
        "Implies --engine dask.",
    ),
]
Extras = Annotated[
    list[str] | None,
    typer.Option(
        "--extra",
        metavar="NAME",
        help="Column that is known in advance; repeat the flag for several.",
    ),
]
Gap = Annotated[
    blocks.Gap, typer.Option(help="At a cell that is not a number, stop with an error or skip it.")
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN|WORD",
        help="How times are written, such as '%d/%m/%Y %H:%M', or one of the words "
        f"{', '.join(DATE_WORDS)}. Found from the whole column by default.",
    ),
]
Decimal = Annotated[
    DecimalMark | None,
    typer.Option(help="Decimal mark of numbers. Found from the whole column by default."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="Number or text that stands for no value, such as -9999; repeat the flag for several. "
        "With none, every number is a value.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of text, such as latin-1. UTF-8 by default, or as the file says."),
]
Largest = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Most bytes that a gzip file may unpack to, such as 20GB. By default 250 times its "
        "size.",
    ),
]
FileLayout = Annotated[
    reading.Layout | None,
    typer.Option("--layout", help="How the file is laid out. Found by default."),
]
Aggregate = Annotated[
    readings.Aggregate | None,
    typer.Option(help="How several readings make one step. PeMS counts are summed by default."),
]
ArrivalOrder = Annotated[
    bool,
    typer.Option(
        "--arrival-order",
        help="Take readings in the order of the file, as a live stream would bring them: what "
        "comes late is late, and the step is found from the first days. By default readings are "
        "sorted, and the step is found from all.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Predictions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File for every forecast: .csv, .csv.gz or .parquet; - writes CSV to standard output, "
        "and the table of results to standard error. After Ctrl-C, what there is goes to "
        "NAME.interrupted.csv.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace files that streamridge did not write. Files that are read never are.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Folder for a page with interactive figures, and for pictures."
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for the forecasters as they are after their runs, to go on with.",
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder that keeps each finished run; the same command makes only what is missing.",
    ),
]
Unit = Annotated[
    str, typer.Option(metavar="UNIT", help="Unit of the values, such as vehicles, for figures.")
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
    """Return the bounds of a flag, None where there is none.

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


def parse_seasons(text: str | None) -> tuple[str, ...] | None:
    """Return the seasons of a flag, separated by commas; None if it was left out."""
    if text is None:
        return None
    return () if text.strip().lower() == "none" else tuple(text.split(","))
