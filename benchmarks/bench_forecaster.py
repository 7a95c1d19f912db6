"""Measure what a forecaster costs between refits, at rest, and on disk.

A simulated detector at 15 minutes, after 2880 rows, on one BLAS thread: the median time of a
forecast and of an observation without a refit, the memory that stays after `release()`, and the
size of the saved file.

    python benchmarks/bench_forecaster.py [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import tracemalloc
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import Forecaster
from streamridge.datasets import simulate_roads

DAY = 96
DAYS = 70
ROUNDS = 90


def main() -> None:
    """Print every figure, for one horizon and for four."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    with threadpool_limits(1):
        figures = {f"horizon_{horizon}": measure(horizon) for horizon in (1, 4)}
    if as_json:
        print(json.dumps(figures))
        return
    for name, values in figures.items():
        print(name, "  ".join(f"{key} {value:.3f}" for key, value in values.items()))


def measure(horizon: int) -> dict[str, float]:
    """Return the figures of one forecaster."""
    roads = simulate_roads(np.random.default_rng(0), detectors=1, days=DAYS + 2)
    times, flows = roads.times, roads.flows[:, 0]
    gc.collect()
    tracemalloc.start()
    forecaster = Forecaster("15min", horizon=horizon, warmup=(DAYS - 2) * DAY)
    for time, flow in zip(times[: DAYS * DAY], flows, strict=False):
        forecaster.observe(time, flow)
    forecaster.release()
    gc.collect()
    at_rest = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    predicting, observing = [], []
    for time, flow in zip(times[DAYS * DAY :][:ROUNDS], flows[DAYS * DAY :], strict=False):
        predicting.append(seconds(forecaster.predict))
        observing.append(seconds(lambda time=time, flow=flow: forecaster.observe(time, flow)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forecaster.sr"
        forecaster.save(path)
        size = path.stat().st_size
    return {
        "forecast_ms": 1e3 * float(np.median(predicting)),
        "observe_ms": 1e3 * float(np.median(observing)),
        "rest_mb": at_rest / 1e6,
        "file_mb": size / 1e6,
    }


def seconds(act: object) -> float:
    """Return how long a call takes."""
    start = perf_counter()
    act()
    return perf_counter() - start


if __name__ == "__main__":
    main()
