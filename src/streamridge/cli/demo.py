"""`streamridge demo`: works begin on a simulated motorway, and a start that is off tunes itself."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from streamridge.cli import options
from streamridge.cli.checks import require_extra, require_folder
from streamridge.cli.overwriting import outputs_of_runs, require_free
from streamridge.cli.replay import replay
from streamridge.cli.simulate import simulate
from streamridge.cli.terminal import Messages
from streamridge.runs.keeping import RUNS
from streamridge.runs.run_files import read_run

SENSORS = ["mainline-1", "mainline-5", "ramp-3"]
METHODS = ["ohl", "fixed", "last", "week"]
DAY = 96
UNIT = "vehicles / 15 min"
SHOWN = {"event": "works begin", "hyperparameter": "regularization", "unit": UNIT}
FIRST_DAY = np.datetime64("2017-01-01")
# A guess of the start that is off: the default model starts at 2.
OFF = "regularization=0.01"
# Readings between refits: four windows a day, so that there is much to see in a few weeks.
WINDOW = 24


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the data and the report.")] = Path("demo"),
    days: Annotated[int, typer.Option(min=2, help="Days to forecast.")] = 42,
    warmup_days: Annotated[int, typer.Option(min=1, help="Days before the first forecast.")] = 14,
    train_size: options.TrainSize = 672,
    jobs: options.Jobs = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated roads.")] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Simulate a motorway on which works begin, forecast it, and write a report to look at.

    The start is off on purpose: a regularization of 0.01, where 2 is usual. From there the model
    tunes itself (ohl), or stays where it is (fixed). The last reading (last) and the one a week ago
    (week) need no model. Works begin halfway.

    Example: streamridge demo --days 4 --warmup-days 4 --out demo
    """
    require_extra("matplotlib", "plot")
    require_extra("plotly", "plot")
    require_folder("out", out)
    roads, works = out / "roads.csv", warmup_days + days // 2
    predictions = out / "predictions.csv"
    require_free(outputs_of_runs(predictions, out), [], force=force)
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
            sensor=SENSORS,
            method=METHODS,
            hyperparameter=[OFF],
            warmup=warmup_days * DAY,
            train_size=train_size,
            update_every=WINDOW,
            jobs=jobs,
            unit=UNIT,
            predictions=predictions,
            report=out,
            keep=Path(folder),
            force=force,
            as_json=as_json,
        )
        _write_picture(Path(folder) / RUNS, out / "demo.png", FIRST_DAY + works)
    Messages().print(
        f"Works begin on {FIRST_DAY + works}. All methods start alike, at {OFF}: see the picture "
        f"{out / 'demo.png'}, and open {out / 'index.html'} in a browser."
    )


def _write_picture(runs: Path, path: Path, moment: np.datetime64) -> None:
    """Write how the methods live through the works, as far as their runs are whole."""
    from streamridge.report.sensors import by_sensor
    from streamridge.report.showcase import write_showcase

    files = [runs / f"{SENSORS[0]}-{method}.run" for method in METHODS]
    kept = [read_run(file) for file in files if file.exists()]
    if kept:
        (sensor,) = by_sensor(kept)
        write_showcase(sensor, path, moment=moment, **SHOWN)
