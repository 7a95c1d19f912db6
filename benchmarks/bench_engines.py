"""Measure how the same replays speed up with more workers, on Dask and in local processes.

Simulated detectors at 15 minutes, one run each, with the default model: seconds on one and on two
Dask workers, and in one and in two worker processes. Workers are started before the clock, as the
workers of a cluster are. Every engine must give the same numbers. Run it on an idle machine.

    python benchmarks/bench_engines.py [--json] [--detectors 16] [--days 10] [--train-size 600]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from streamridge import DaskEngine, Forecaster, LocalEngine
from streamridge.datasets import simulate_roads
from streamridge.files.reading import read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.runs.engines import Engine
from streamridge.runs.run import Run
from streamridge.runs.run_tasks import run_tasks
from streamridge.runs.tasks import Task

ENGINES: dict[str, Engine] = {
    "local_one": LocalEngine(1),
    "local_two": LocalEngine(2),
    "dask_one": DaskEngine(jobs=1),
    "dask_two": DaskEngine(jobs=2),
}


def main() -> None:
    """Print the seconds of every engine, and how much faster two workers are than one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--detectors", type=int, default=16)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--train-size", type=int, default=600)
    options = parser.parse_args()
    roads = simulate_roads(
        np.random.default_rng(0), detectors=options.detectors, days=options.days, step_minutes=15
    )
    settings = Forecaster("15min", train_size=options.train_size).settings
    every = read_series(roads.frame(), ReadingOptions()).series.values()
    tasks = [Task(series, settings, "ohl") for series in every]
    measured = {name: measure(engine, tasks) for name, engine in ENGINES.items()}
    require_same([runs for _, runs in measured.values()])
    figures = {f"{name}_seconds": seconds for name, (seconds, _) in measured.items()}
    figures |= {
        f"{engine}_two_over_one": measured[f"{engine}_one"][0] / measured[f"{engine}_two"][0]
        for engine in ("local", "dask")
    }
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:<22} {figure:8.2f}")


def measure(engine: Engine, tasks: Sequence[Task]) -> tuple[float, list[Run]]:
    """Return the seconds from the first task to the last outcome, and the runs."""
    with engine.workers(len(tasks)) as workers:
        list(run_tasks(tasks[:2], workers.executor))  # workers import their modules
        start = perf_counter()
        outcomes = list(run_tasks(tasks, workers.executor))
        seconds = perf_counter() - start
    return seconds, [outcome.run for outcome in outcomes if outcome.run is not None]


def require_same(every: Sequence[Sequence[Run]]) -> None:
    """Raise unless all engines made the same numbers."""
    first = every[0]
    for runs in every[1:]:
        for one, other in zip(first, runs, strict=True):
            if not np.array_equal(one.value, other.value, equal_nan=True):
                raise SystemExit(f"{one.sensor}: engines differ in their forecasts.")


if __name__ == "__main__":
    main()
