"""Measure what a step without a refit costs: one forecast and one observation.

Simulated roads at 15 minutes, one step ahead, with 62 days of history, on one BLAS thread:

    python benchmarks/bench_step.py [--json] [--sensors 200]

- default_ms, compact_ms: median processor milliseconds of `predict` and `observe` together
- default_predict_ms, compact_predict_ms: of `predict` alone
- loop_ms: of a loop over the `predict` of `--sensors` compact forecasters, per sensor
"""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timedelta
from statistics import median
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import Forecaster
from streamridge.datasets import simulate_roads

STEP, START = timedelta(minutes=15), datetime(2026, 1, 1)
# Two months before the first fit, and most of the day that follows, before its refit.
BEFORE, STEPS = 60 * 96, 90
ROUNDS, KINDS = 3, 10


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--sensors", type=int, default=200, help="forecasters in the loop")
    options = parser.parse_args()
    with threadpool_limits(1):
        roads = simulate_roads(np.random.default_rng(0), detectors=KINDS, days=62).flows
        figures = stepped("default", roads[:, 0])
        figures |= stepped("compact", roads[:, 0])
        figures |= many(options.sensors, roads)
    print(json.dumps(figures) if options.json else as_text(figures))


def as_text(figures: dict[str, float]) -> str:
    """Return a figure a line."""
    return "\n".join(f"{name} {value:.3f}" for name, value in figures.items())


def started(model: str, values: np.ndarray) -> bytes:
    """Return a forecaster after its first fit to two months, as bytes."""
    forecaster = Forecaster("15min", model=model, warmup=BEFORE)
    for step in range(BEFORE):
        forecaster.observe(START + step * STEP, float(values[step]))
    return forecaster.to_bytes()


def stepped(model: str, values: np.ndarray) -> dict[str, float]:
    """Return what a step costs, and the forecast in it."""
    content, forecasts, steps = started(model, values), [], []
    for _ in range(ROUNDS):
        forecaster = Forecaster.from_bytes(content)
        forecaster.predict()  # the fit wakes
        forecaster.observe(START + BEFORE * STEP, float(values[BEFORE]))
        for step in range(BEFORE + 1, BEFORE + STEPS):
            start = process_time()
            forecaster.predict()
            between = process_time()
            forecaster.observe(START + step * STEP, float(values[step]))
            steps.append(process_time() - start)
            forecasts.append(between - start)
    return {f"{model}_ms": 1e3 * median(steps), f"{model}_predict_ms": 1e3 * median(forecasts)}


def many(count: int, roads: np.ndarray) -> dict[str, float]:
    """Return the cost of one sensor's forecast in a loop over many sensors."""
    kinds = [started("compact", road) for road in roads.T]
    fleet = [Forecaster.from_bytes(kinds[at % KINDS]) for at in range(count)]
    for forecaster in fleet:
        forecaster.predict()  # fits rebuild their rows
    seconds = []
    for step in range(BEFORE, BEFORE + 2 * STEPS // 3):
        for at, forecaster in enumerate(fleet):
            forecaster.observe(START + step * STEP, float(roads[step, at % KINDS]))
        start = process_time()
        for forecaster in fleet:
            forecaster.predict()
        seconds.append(process_time() - start)
    return {"loop_ms": 1e3 * median(seconds) / count}


if __name__ == "__main__":
    main()
