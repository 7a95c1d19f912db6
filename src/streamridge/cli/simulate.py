"""`streamridge simulate`: write a file of simulated detectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from streamridge.cli.options import Force
from streamridge.cli.output_files import OutputFile, require_replaceable, require_table
from streamridge.cli.terminal import Messages
from streamridge.datasets import simulate_roads
from streamridge.errors import counted
from streamridge.files.tables import write_table
from streamridge.files.written_files import is_simulated


def simulate(
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="File to write: .csv, .csv.gz or .parquet.")
    ] = Path("roads.csv"),
    detectors: Annotated[
        int,
        typer.Option(
            min=1, max=10000, metavar="N", help="Number of detectors; every third is a ramp."
        ),
    ] = 13,
    days: Annotated[
        int, typer.Option(min=1, max=36_525, metavar="N", help="Number of days.")
    ] = 136,
    step_minutes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Minutes between counts.")
    ] = 15,
    start: Annotated[str, typer.Option(metavar="DATE", help="First day.")] = "2017-01-01",
    works: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Day on which roadworks begin, counted from 0. None by default.",
        ),
    ] = None,
    waves: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Relative deviation of waves that pass from each detector to the next.",
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the simulation.")] = 0,
    force: Force = False,
) -> None:
    """Write the counts of simulated traffic detectors, one column per detector.

    Example: streamridge simulate --out roads.csv --days 60
    """
    require_replaceable([OutputFile("out", out, is_simulated)], [], force=force)
    require_table("out", out)
    roads = simulate_roads(
        np.random.default_rng(seed),
        detectors=detectors,
        days=days,
        step_minutes=step_minutes,
        start=start,
        works=works,
        waves=waves,
    )
    columns = {"time": roads.times, **dict(zip(roads.names, roads.flows.T, strict=True))}
    write_table(out, columns)
    Messages().print(f"{counted(detectors, 'detector')}, {counted(days, 'day')}: {out}")
