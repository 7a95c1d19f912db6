"""Measure forecasts of streams that are zero, or nearly constant, most of the time.

    python benchmarks/bench_bursts.py [--model compact] [--seed 0] [--only NAMES] [--no-trees]

Bursts are data, and the forecaster must learn from them without `guard=False`. Each simulated
stream has readings every five minutes: twelve days of warm-up, then eight scored days. The table
has the RMSE of the forecaster, of LightGBM with two settings (as in `bench_accuracy.py`), of the
last value and of the mean of the warm-up, and how many readings were judged to be faults.

LightGBM is not a dependency of the project: run this with a Python that has it, or `--no-trees`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from accuracy.rivals import LAST, PLAIN, REGULARIZED, errors, measured, rivals_of
from accuracy.streams import Stream
from threadpoolctl import threadpool_limits

from streamridge import Forecaster, replay, series_from_arrays
from streamridge.arrays import Vector

DAY, WARMUP_DAYS, SCORED_DAYS = 288, 12, 8
STEPS = DAY * (WARMUP_DAYS + SCORED_DAYS)
FAULTS = ("implausible", "outlier", "stuck")


def random_bursts(rng: np.random.Generator) -> Vector:
    """Return zeros with bursts of random size at random times."""
    sizes = np.rint(rng.lognormal(13, 1.2, STEPS))
    return np.where(rng.random(STEPS) < 0.03, sizes, 0.0)


def runs(rng: np.random.Generator) -> Vector:
    """Return zeros with bursts that last some steps, at one level each."""
    values, at = np.zeros(STEPS), 0
    while at < STEPS:
        at += int(rng.geometric(1 / 60))
        end, level = at + int(rng.geometric(1 / 4)), rng.lognormal(12, 1.0)
        values[at:end] = np.rint(level * rng.lognormal(0, 0.3, len(values[at:end])))
        at = end
    return values


def cron(rng: np.random.Generator) -> Vector:
    """Return zeros with a large burst at 03:00 every day, and a small one every two hours."""
    steps = np.arange(STEPS)
    small = np.rint(2e5 * rng.lognormal(0, 0.5, STEPS))
    large = np.rint(5e7 * rng.lognormal(0, 0.2, STEPS))
    values = np.where(steps % 24 == 5, small, 0.0)
    return np.where((steps % DAY >= 36) & (steps % DAY < 40), large, values)


def periodic(rng: np.random.Generator) -> Vector:
    """Return zeros with a burst every 37 steps, a period that no calendar has."""
    sizes = np.rint(1e6 * rng.lognormal(0, 0.4, STEPS))
    return np.where(np.arange(STEPS) % 37 == 7, sizes, 0.0)


def network_bytes(rng: np.random.Generator) -> Vector:
    """Return a noise floor with bursts of a thousand times at random times."""
    floor = np.rint(200 * rng.lognormal(0, 0.15, STEPS))
    bursts = np.rint(1000 * floor * rng.lognormal(0, 0.6, STEPS))
    return np.where(rng.random(STEPS) < 0.02, bursts, floor)


def disk_writes(rng: np.random.Generator) -> Vector:
    """Return zeros with multiples of a few block sizes at random times."""
    blocks = rng.choice([4096.0, 8192.0, 65536.0, 4194304.0], STEPS, p=[0.5, 0.3, 0.15, 0.05])
    return np.where(rng.random(STEPS) < 0.08, blocks * rng.integers(1, 5, STEPS), 0.0)


def working_hours(rng: np.random.Generator) -> Vector:
    """Return zeros with bursts that are frequent from 8 to 18 o'clock, and rare at night."""
    at = np.arange(STEPS) % DAY
    chance = np.where((at > 96) & (at < 216), 0.15, 0.01)
    return np.where(rng.random(STEPS) < chance, np.rint(rng.lognormal(10, 1.0, STEPS)), 0.0)


STREAMS: dict[str, Callable[[np.random.Generator], Vector]] = {
    each.__name__: each
    for each in (random_bursts, runs, cron, periodic, network_bytes, disk_writes, working_hours)
}


def main() -> None:
    """Print a row of figures for every stream."""
    options = parse()
    print("| stream | ours | over LightGBM | plain | regularized | last | mean | faults |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.only.split(",") if options.only else STREAMS:
        with threadpool_limits(1):
            print(row(stream_of(name, options.seed), options), flush=True)


def parse() -> argparse.Namespace:
    """Return the parsed options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="default", help="size of the model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help=f"streams among {', '.join(STREAMS)}")
    parser.add_argument("--no-trees", action="store_true", help="leave LightGBM out")
    return parser.parse_args()


def stream_of(name: str, seed: int) -> Stream:
    """Return a simulated stream."""
    values = STREAMS[name](np.random.default_rng(seed))
    times = np.datetime64("2026-01-05T00:00") + np.arange(STEPS) * np.timedelta64(5, "m")
    series = series_from_arrays(times, values, step="5min", sensor=name)
    return Stream(name, "bursts", series, np.zeros(STEPS, dtype=bool), WARMUP_DAYS * DAY, 2880)


def row(stream: Stream, options: argparse.Namespace) -> str:
    """Return the figures of a stream as a row of the table."""
    forecaster = Forecaster(stream.series.clock.step, model=options.model)
    run = replay(forecaster, stream.series, warmup=stream.warmup)
    ours = errors(stream.actual, run.value[:, 0])["rmse"]
    trees = () if options.no_trees else (PLAIN, REGULARIZED)
    rivals = rivals_of(stream, trees)
    figures = {name: measured(stream, rivals[name])["rmse"] for name in (*trees, LAST)}
    mean = np.mean(stream.series.values[: stream.warmup])
    figures["mean"] = float(np.sqrt(np.mean((stream.actual - mean) ** 2)))
    least = min((figures[name] for name in trees), default=np.nan)
    each = [f"{figures.get(name, np.nan):.4g}" for name in (PLAIN, REGULARIZED, LAST, "mean")]
    faults = ", ".join(f"{run.counts.get(name, 0)} {name}" for name in FAULTS)
    return f"| {stream.name} | {ours:.4g} | {ours / least:.3f} | {' | '.join(each)} | {faults} |"


if __name__ == "__main__":
    main()
