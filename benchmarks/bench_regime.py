"""Measure how fast hyperparameters follow a change of regime, and draw it.

    python benchmarks/bench_regime.py [--seeds 5] [--figure docs/images/regime.png]

For 200 days a stream repeats one daily course under strong noise: the best forecast is the mean of
many days. Then the noise falls, and the course begins to wander from day to day: yesterday counts
most. The best values before and after are the medians of the last days of each part. Reported is
after how many days a hyperparameter has come halfway, in logarithms.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import Forecaster
from streamridge.arrays import Vector

DAY, CHANGE, AFTER = 96, 200, 50
# Rows of a fit: ten days.
TRAIN_SIZE = 960
# What the change asks for: smoothness, and how fast the daily course forgets.
WATCHED = {"regularization": "regularization", "day_forgetting": "forgetting of the daily course"}
SETTLED = 20


def main() -> None:
    """Print the days to halfway for each hyperparameter, and draw their paths if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--figure", help="PNG file of the paths")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        paths = list(pool.map(path, range(options.seeds)))
    days = {name: [halfway(each[name]) for each in paths] for name in WATCHED}
    if options.figure:
        draw(paths, options.figure)
    if options.json:
        print(json.dumps(days))
        return
    for name, each in days.items():
        print(f"{name}: halfway after {np.median(each):g} days (range {min(each)} - {max(each)})")


def stream(seed: int) -> Vector:
    """Return readings: a course under strong noise, then one that wanders, under weak noise."""
    rng = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(DAY) / DAY
    usual = 300 - 200 * np.cos(t) + 60 * np.cos(2 * t)
    course, deviation, days = usual, 0.0, []
    for day in range(CHANGE + AFTER):
        changed = day >= CHANGE
        if changed:
            waves = sum(
                rng.normal() * np.cos(k * t + rng.uniform(0, 2 * np.pi)) for k in range(1, 9)
            )
            course = usual + 0.98 * (course - usual) + 12.5 * waves
        for value in course:
            deviation = 0.7 * deviation + rng.normal(0, 8.0 if changed else 25.0)
            days.append(value + deviation)
    return np.array(days)


def path(seed: int) -> dict[str, Vector]:
    """Return the hyperparameters that are watched at the end of each day, by name."""
    forecaster = Forecaster(step="15min", train_size=TRAIN_SIZE)
    start, step = np.datetime64("2021-01-01"), np.timedelta64(15, "m")
    found: dict[str, list[float]] = {name: [] for name in WATCHED}
    with threadpool_limits(1):
        for at, value in enumerate(stream(seed).tolist()):
            forecaster.predict()
            forecaster.observe(start + at * step, value)
            if at % DAY == DAY - 1:
                for name, values in found.items():
                    values.append(forecaster.hyperparameters[name])
    return {name: np.array(values) for name, values in found.items()}


def halfway(values: Vector) -> int:
    """Return after how many days a value has come halfway from its old best to its new one."""
    logs = np.log(values)
    old, new = np.median(logs[CHANGE - SETTLED : CHANGE]), np.median(logs[-SETTLED:])
    passed = (logs[CHANGE:] - (old + new) / 2) * np.sign(new - old) >= 0
    return int(np.argmax(passed)) + 1


def draw(paths: list[dict[str, Vector]], file: str) -> None:
    """Draw the path of each hyperparameter around the change, a line for each seed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, every = plt.subplots(len(WATCHED), 1, figsize=(8, 6), sharex=True)
    days = np.arange(CHANGE + AFTER) - CHANGE
    for axes, (name, words) in zip(every, WATCHED.items(), strict=True):
        for each in paths:
            axes.plot(days, each[name], color="tab:blue", alpha=0.7)
        axes.axvline(0, color="black", linewidth=1)
        axes.axvspan(0, 10, color="tab:orange", alpha=0.2, label="ten days after the change")
        axes.set(yscale="log", ylabel=words, xlim=(-60, AFTER))
        axes.grid(alpha=0.3)
    every[0].set_title("A change of regime, and the hyperparameters that follow it")
    every[0].legend(loc="lower left")
    every[-1].set_xlabel("days since the change")
    figure.savefig(Path(file), dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
