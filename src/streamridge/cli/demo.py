"""`streamridge demo`: forecast a simulated motorway with roadworks."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from streamridge.cli import options
from streamridge.cli.commands import PLOTS, has_extra, missing_extra
from streamridge.cli.output_files import outputs_of_runs, require_folder, require_replaceable
from streamridge.cli.replay import replay
from streamridge.cli.simulate import simulate
from streamridge.cli.terminal import Messages
from streamridge.runs.run_files import read_run
from streamridge.runs.run_folder import RUNS

SENSORS = ["mainline-1", "mainline-5", "ramp-3"]
METHODS = ["ohl", "fixed", "last", "week"]
DAY = 96
UNIT = "vehicles / 15 min"
EVENT = "roadworks begin"
PICTURE = {"event": EVENT, "hyperparameter": "regularization", "unit": UNIT}
FIRST_DAY = np.datetime64("2017-01-01")
# A wrong start: the default model starts at 2.
WRONG_START = "regularization=0.01"
# Four refits a day, so that the hyperparameters change visibly within a few weeks.
UPDATE_EVERY = 24


def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the data and the report.")
    ] = Path("demo"),
    days: Annotated[int, typer.Option(min=2, metavar="N", help="Days to forecast.")] = 42,
    warmup_days: Annotated[
        int, typer.Option(min=1, metavar="N", help="Days before the first forecast.")
    ] = 14,
    train_size: options.TrainSize = 672,
    jobs: options.Jobs = 2,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the simulated roads.")] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Simulate a motorway with roadworks, forecast it, and write a report.

    The regularization starts at 0.01, although 2 is usual. The method ohl (online hyperparameter
    learning) tunes the model from there, and fixed keeps the start. The naive forecasts last and
    week repeat the last reading and the reading of a week ago. The roadworks begin after half of
    the forecast days. Without the extra `plot` there is no report.

    Example: streamridge demo --days 4 --warmup-days 4 --out demo
    """
    require_folder("out", out)
    roads, works = out / "roads.csv", warmup_days + days // 2
    predictions, report = out / "predictions.csv", out if has_extra(*PLOTS) else None
    require_replaceable(outputs_of_runs(predictions, report), [], force=force)
    simulate(
        out=roads,
        days=warmup_days + days,
        works=works,
        start=str(FIRST_DAY),
        seed=seed,
        force=force,
    )
    with TemporaryDirectory() as folder:
        replay(
            files=[str(roads)],
            sensors=SENSORS,
            method=METHODS,
            hyperparameter=[WRONG_START],
            warmup=warmup_days * DAY,
            train_size=train_size,
            update_every=UPDATE_EVERY,
            jobs=jobs,
            unit=UNIT,
            event=[f"{FIRST_DAY + works}={EVENT}"],
            predictions=predictions,
            report=report,
            keep=Path(folder),
            force=force,
            as_json=as_json,
        )
        if report is not None:
            _write_picture(Path(folder) / RUNS, out / "demo.png", FIRST_DAY + works)
    result = f"There is no report: {missing_extra(PLOTS, 'plot')}."
    if report is not None:
        result = f"Look at {out / 'demo.png'}, and open {out / 'index.html'} in a browser."
    Messages().print(
        f"Roadworks begin on {FIRST_DAY + works}. All methods start at {WRONG_START}. {result}"
    )


def _write_picture(runs: Path, path: Path, moment: np.datetime64) -> None:
    """Write the picture of the complete runs around the start of the roadworks."""
    from streamridge.report.images import write_event_image
    from streamridge.report.sensor_runs import by_sensor

    files = [runs / f"{SENSORS[0]}-{method}.run" for method in METHODS]
    complete = [read_run(file) for file in files if file.exists()]
    if complete:
        (sensor,) = by_sensor(complete)
        write_event_image(sensor, path, moment=moment, **PICTURE)
