"""Measure what a forecaster costs: at rest, waking, step by step, starting, on disk, by the fleet.

A simulated detector at 15 minutes, with 74 days of history, on one BLAS thread:

    python benchmarks/bench_forecaster.py [--json]

- rest_mb: memory of a forecaster at rest, the mean over copies in one process
- wake_ms, predict_ms: the first forecast of a forecaster at rest, and later ones; from_bytes_ms
  beside it, for one that is not in memory yet
- observe_ms: an observation without a refit
- start_over_fit: `Forecaster.start` with a month against one fit; start_minus_fit_s in seconds
- file_mb: the saved file

With --fleet N it also lives through three days with N forecasters in one process and one workspace,
each at rest after the refit that ends its day, and shows the process's memory day by day:

    python benchmarks/bench_forecaster.py --fleet 2000
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import Forecaster, Workspace
from streamridge.datasets import simulate_roads

DAY, DAYS = 96, 74
ROUNDS, COPIES = 85, 40
FLEET_DAYS, KINDS = 3, 20


def main() -> None:
    """Print every figure, for one horizon and for four."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--fleet", type=int, default=0, help="forecasters in one process")
    options = parser.parse_args()
    with threadpool_limits(1):
        figures = measure(1) | {"horizon_4": measure(4)}
        if options.fleet:
            figures["fleet"] = live_as_fleet(options.fleet)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(name, value if isinstance(value, dict) else f"{value:.3f}")


def measure(horizon: int) -> dict[str, float]:
    """Return the figures of one forecaster that has lived long enough to be as large as it gets."""
    roads = simulate_roads(np.random.default_rng(0), detectors=1, days=DAYS + 2)
    frame = roads.frame()
    forecaster = Forecaster.start(frame[: DAYS * DAY], horizon=horizon)
    times, flows = roads.times[DAYS * DAY :], roads.flows[DAYS * DAY :, 0]
    lived = DAY + horizon  # a window with its refit, and the labels that come after it
    for time, flow in zip(times[:lived], flows, strict=False):
        forecaster.observe(time, flow)
    content = forecaster.to_bytes()
    predicting, observing = [], []
    for time, flow in zip(times[lived:][:ROUNDS], flows[lived:], strict=False):
        predicting.append(seconds(forecaster.predict))
        observing.append(seconds(lambda time=time, flow=flow: forecaster.observe(time, flow)))
    waking = [seconds(Forecaster.from_bytes(content).predict) for _ in range(9)]
    month = frame[-30 * DAY :]
    starting = [seconds(lambda: Forecaster.start(month, horizon=horizon)) for _ in range(5)]
    fitting = seconds_of_a_fit(Forecaster.start(frame, horizon=horizon))
    return {
        "rest_mb": rest_megabytes(content),
        "wake_ms": 1e3 * median(waking),
        "from_bytes_ms": 1e3
        * median(seconds(lambda: Forecaster.from_bytes(content)) for _ in range(9)),
        "predict_ms": 1e3 * median(predicting),
        "observe_ms": 1e3 * median(observing),
        "start_over_fit": median(starting) / fitting,
        "start_minus_fit_s": median(starting) - fitting,
        "fit_s": fitting,
        "file_mb": len(content) / 1e6,
    }


def rest_megabytes(content: bytes) -> float:
    """Return the memory of a forecaster at rest, the mean over several."""
    Forecaster.from_bytes(content)  # what all forecasters share
    gc.collect()
    tracemalloc.start()
    fleet = [Forecaster.from_bytes(content) for _ in range(COPIES)]
    gc.collect()
    traced = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return traced / len(fleet) / 1e6


def seconds_of_a_fit(forecaster: Forecaster) -> float:
    """Return how long the model takes to fit its training set once, in new memory."""
    learner = forecaster._model
    model, samples, lam = forecaster.settings.model, learner.training, learner.lam
    return median(seconds(lambda: model.fit(samples, lam)) for _ in range(5))


def live_as_fleet(count: int) -> dict[str, float]:
    """Return the memory of a process, in MB, whose forecasters live through some days in turn."""
    roads = simulate_roads(np.random.default_rng(1), detectors=KINDS, days=DAYS + FLEET_DAYS)
    frame, workspace = roads.frame(), Workspace()
    started = [
        Forecaster.start(frame[["time", name]][: DAYS * DAY], defer_refits=True)
        for name in roads.names
    ]
    for forecaster in started:
        forecaster.refit(workspace)
    contents = [forecaster.to_bytes() for forecaster in started]
    before = resident()
    fleet = [Forecaster.from_bytes(contents[i % KINDS]) for i in range(count)]
    memory = {"forecasters": count, "before": before, "at_rest": resident()}
    memory["mb_each"] = (memory["at_rest"] - before) / count
    for day in range(FLEET_DAYS):
        begun = perf_counter()
        steps = range((DAYS + day) * DAY, (DAYS + day + 1) * DAY)
        for i, forecaster in enumerate(fleet):
            for step in steps:
                forecaster.predict()
                forecaster.observe(roads.times[step], roads.flows[step, i % KINDS])
            if forecaster.refit_due:
                forecaster.refit(workspace)
        memory[f"after_day_{day + 1}"] = resident()
        memory[f"seconds_of_day_{day + 1}"] = perf_counter() - begun
        print(f"day {day + 1}: {memory}", file=sys.stderr, flush=True)
    return memory


def resident() -> float:
    """Return the memory of this process, in MB."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def seconds(act: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = perf_counter()
    act()
    return perf_counter() - start


if __name__ == "__main__":
    main()
