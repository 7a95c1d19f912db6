"""Flags that several commands share, each written once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from streamridge.files import blocks, reading
from streamridge.forecaster.methods import METHODS
from streamridge.series import local_time, readings


class ModelName(StrEnum):
    """Which ready-made model forecasts."""

    DEFAULT = "default"
    PAPER = "paper"


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, gzip CSV, Parquet or Caltrans station files; - reads standard input.",
    ),
]
Sensors = Annotated[
    list[str] | None, typer.Option("--sensor", help="Sensor to take; repeatable, all by default.")
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "--methods",
        help=f"How to tune: {', '.join(METHODS)}; repeatable, or parted by commas. replay: ohl by "
        "default; compare: ohl, hoag, random and fixed.",
    ),
]
Model = Annotated[ModelName, typer.Option(help="The default model, or the paper's.")]
Step = Annotated[
    str | None,
    typer.Option(help="Time between readings, such as 15min; found from the file by default."),
]
Tz = Annotated[
    str | None,
    typer.Option("--tz", "--timezone", help="Zone of local times, such as Europe/London."),
]
Fold = Annotated[
    local_time.Fold, typer.Option(help="Which of two a local time is that comes twice.")
]
From = Annotated[str | None, typer.Option("--from", help="First time to take.")]
To = Annotated[str | None, typer.Option("--to", help="Last time to take.")]
Warmup = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Steps before the first scored one; three days by default, 60 with the paper's model.",
    ),
]
Steps = Annotated[int | None, typer.Option(min=1, help="Steps to score; all by default.")]
TrainSize = Annotated[int, typer.Option(min=24, help="Rows of a fit.")]
UpdateEvery = Annotated[
    int | None,
    typer.Option(min=1, help="Readings between refits; a day by default, and 96 at least."),
]
TuneEvery = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Readings between searches of hoag, random, grid and bayes; a week by default, "
        "0 searches once.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Of random draws.")]
Lags = Annotated[int | None, typer.Option(min=1, help="Latest values that a row holds.")]
Horizon = Annotated[int, typer.Option(min=1, help="Steps to forecast.")]
Level = Annotated[float, typer.Option(help="Share of values that the bands shall hold.")]
Jobs = Annotated[
    int, typer.Option(min=1, help="Processes to use, one run each; those of a cluster are its own.")
]
EngineName = Annotated[
    Literal["local", "dask"],
    typer.Option("--engine", help="Where runs are made: on this machine, or by Dask workers."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Dask scheduler that is running already, such as tls://host:8786; implies "
        "--engine dask.",
    ),
]
Extras = Annotated[
    list[str] | None,
    typer.Option("--extra", help="Column that is known in advance; repeatable."),
]
Gap = Annotated[blocks.Gap, typer.Option(help="Refuse cells that are no numbers, or skip them.")]
FileLayout = Annotated[
    reading.Layout | None, typer.Option("--layout", help="Layout of the file; found by default.")
]
Aggregate = Annotated[
    readings.Aggregate | None,
    typer.Option(help="How finer readings make a step; PeMS counts are summed."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")]
Predictions = Annotated[
    Path | None, typer.Option(help="File for every forecast: .csv, .csv.gz or .parquet.")
]
Report = Annotated[
    Path | None, typer.Option(help="Folder for a page with interactive figures, and pictures.")
]
Save = Annotated[
    Path | None,
    typer.Option(help="Folder for the forecasters as they are at the end of whole runs."),
]
Keep = Annotated[
    Path | None,
    typer.Option(
        help="Folder that keeps each run once it is whole: the same command goes on with the rest."
    ),
]
Unit = Annotated[str, typer.Option(help="Unit of the values, for figures.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no messages.")]
