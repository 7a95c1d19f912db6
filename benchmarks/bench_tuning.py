"""Measure what self-tuning costs in live use, and what a forecaster saves, at several horizons.

A simulated road at 15 minutes, started with 150 days, then forecast and observed for twelve days on
one BLAS thread. Nothing is kept between refits. The self-tuned forecaster, with its ensemble and
its baseline fit, is compared with the same model at fixed hyperparameters:

    python benchmarks/bench_tuning.py [--model default] [--horizons 1 4 12 48 96] [--json]

- day_ms: processor milliseconds of a day, forecasts, observations and refit together
- refit_ms, step_ms: the mean of steps with a refit, the median of steps without
- over_fixed: day_ms of the self-tuned forecaster divided by day_ms of the fixed one
- saved_kb: size of the saved forecaster
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from datetime import timedelta
from statistics import fmean, median
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import Forecaster, Series
from streamridge.datasets import simulate_roads
from streamridge.series.clock import Clock

STEP = timedelta(minutes=15)
KNOWN_DAYS, LIVE_DAYS, DAY = 150, 12, 96


def main() -> None:
    """Print a row per horizon."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="default", choices=["default", "compact", "long"])
    parser.add_argument("--horizons", type=int, nargs="+", default=[1, 4, 12, 48, 96])
    parser.add_argument("--json", action="store_true", help="print one object per horizon")
    options = parser.parse_args()
    days = KNOWN_DAYS + LIVE_DAYS
    with threadpool_limits(1):
        (values,) = simulate_roads(np.random.default_rng(0), detectors=1, days=days).flows.T
        for horizon in options.horizons:
            figures = compared(options.model, horizon, values)
            row = {"model": options.model, "horizon": horizon, **figures}
            print(json.dumps(row) if options.json else as_text(row), flush=True)


def as_text(row: dict[str, object]) -> str:
    """Return a row in one line."""
    shown = (f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
             for name, value in row.items())  # fmt: skip
    return ", ".join(shown)


def compared(model: str, horizon: int, values: np.ndarray) -> dict[str, float]:
    """Return the cost of the self-tuned forecaster, also relative to the fixed one.

    Both take each step one after the other, so that the load of the machine affects both.
    """
    tuned, fixed = (started(model, horizon, values, learn=learn) for learn in (True, False))
    costs: dict[bool, list[tuple[bool, float]]] = {True: [], False: []}
    first = tuned.next_time
    for at, value in enumerate(values[KNOWN_DAYS * DAY :].tolist()):
        # The second refit of a step finds warm caches, so the order changes every three days:
        # there is a gradient on every third day.
        is_first = at // (3 * DAY) % 2
        for learn, forecaster in ((True, tuned), (False, fixed))[:: 1 if is_first else -1]:
            before, start = forecaster.counts["fits"], process_time()
            forecaster.predict()
            forecaster.observe(first + at * STEP, value)
            seconds = process_time() - start
            costs[learn].append((forecaster.counts["fits"] > before, seconds))
    day_ms, fixed_ms = (1e3 * sum(s for _, s in costs[each]) / LIVE_DAYS for each in (True, False))
    return {
        "day_ms": day_ms,
        "refit_ms": 1e3 * fmean(seconds for is_refit, seconds in costs[True] if is_refit),
        "step_ms": 1e3 * median(seconds for is_refit, seconds in costs[True] if not is_refit),
        "saved_kb": len(tuned.to_bytes()) / 1e3,
        "fixed_ms": fixed_ms,
        "over_fixed": day_ms / fixed_ms,
    }


def started(model: str, horizon: int, values: np.ndarray, *, learn: bool) -> Forecaster:
    """Return a forecaster that knows the first days."""
    settings = Forecaster("15min", horizon=horizon, model=model).settings
    series = Series("road", Clock(STEP), 0, values[: KNOWN_DAYS * DAY])
    return Forecaster.from_settings(replace(settings, learn=learn), series)


if __name__ == "__main__":
    main()
