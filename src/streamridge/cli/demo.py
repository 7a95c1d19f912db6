"""`streamridge demo`: simulated detectors, forecast by the default model and by its fixed start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamridge.cli import options
from streamridge.cli.checks import require_extra, require_folder
from streamridge.cli.overwriting import outputs_of_runs, require_free
from streamridge.cli.replay import replay
from streamridge.cli.simulate import simulate
from streamridge.cli.terminal import Messages

SENSORS = ["mainline-1", "mainline-5", "ramp-3"]
DAY = 96


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the data and the report.")] = Path("demo"),
    days: Annotated[int, typer.Option(min=2, help="Days to forecast.")] = 14,
    warmup_days: Annotated[int, typer.Option(min=1, help="Days before the first forecast.")] = 21,
    train_size: options.TrainSize = 2016,
    jobs: options.Jobs = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated roads.")] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Simulate 13 detectors, forecast three of them twice, and write a report to look at.

    The default model tunes itself (ohl); the same model stays at its start (fixed).

    Example: streamridge demo --days 4 --warmup-days 4 --out demo
    """
    require_extra("matplotlib", "plot")
    require_extra("plotly", "plot")
    require_folder("out", out)
    roads, predictions = out / "roads.csv", out / "predictions.csv"
    require_free(outputs_of_runs(predictions, out), [], force=force)
    simulate(out=roads, days=warmup_days + days, seed=seed, force=force)
    replay(
        files=[str(roads)],
        sensor=SENSORS,
        method=["fixed", "ohl"],
        warmup=warmup_days * DAY,
        train_size=train_size,
        jobs=jobs,
        unit="vehicles / 15 min",
        predictions=predictions,
        report=out,
        force=force,
        as_json=as_json,
    )
    Messages().print(f"Open {out / 'index.html'} in a browser.")
