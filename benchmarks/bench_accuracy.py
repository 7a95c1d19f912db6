"""Compare the default model's forecasts with what people would use instead.

Every detector of a file is lived through from `--from` on: a warm-up, then scored days. Compared
are the default model (ohl), the same kept at its start (fixed), with `--paper` the paper's model
from its own start, tuned and fixed, with `--misspecified` the default model from a ridge constant a
hundred times too small; persistence; the same time last week; and LightGBM with 20 lags, a day and
a week ago, time of day and day of week, refitted daily on the same days of history: 300 trees,
learning rate 0.05, 31 leaves. Rows flagged in `--mask` are not scored.

LightGBM is not a dependency of the project: run this with a Python that has it.

    python benchmarks/bench_accuracy.py flows.csv.gz --from 2021-06-13 --jobs 2
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import Forecaster, replay
from streamridge.files.reading import read_readings
from streamridge.forecaster.presets import Preset, default_preset, usual_seasons
from streamridge.metrics import coverage, mae, rmse
from streamridge.series.grid import to_series
from streamridge.series.seasons import default_seasons
from streamridge.series.series import Series

LAGS = 20
TREE_COUNT = 300
TREES = {"learning_rate": 0.05, "num_leaves": 31, "verbose": -1, "num_threads": 1}


def main() -> None:
    """Print one line per detector and a summary, and write all figures as JSON if asked."""
    options = parse()
    jobs = [(series, flags, options) for series, flags in load(options)]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        futures = [pool.submit(measure, job) for job in jobs]
        for future in as_completed(futures):
            print(line(future.result()), flush=True)
        rows = [future.result() for future in futures]
    summary(rows)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


def parse() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--from", dest="first", help="first day of the warm-up")
    parser.add_argument("--mask", help="file of the same shape; rows with 1 are not scored")
    parser.add_argument("--sensor", action="append", help="detector to take; all by default")
    parser.add_argument("--warmup-days", type=int, default=60)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--train-days", type=int, default=30)
    parser.add_argument("--paper", action="store_true", help="also the paper's model")
    parser.add_argument("--misspecified", action="store_true", help="also from a start that is off")
    parser.add_argument("--no-trees", action="store_true", help="leave LightGBM out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", help="file for all figures")
    return parser.parse_args()


def load(options: argparse.Namespace) -> list[tuple[Series, np.ndarray]]:
    """Return every detector's series over the days asked for, and which steps are masked."""
    first = None if options.first is None else np.datetime64(options.first, "us")
    flags = read_readings(options.mask, sensors=options.sensor) if options.mask else []
    masks = {each.sensor: to_series(each).between(first, None) for each in flags}
    loaded = []
    for readings in read_readings(options.file, sensors=options.sensor):
        series = to_series(readings).between(first, None)
        length = (options.warmup_days + options.days) * series.clock.day
        series = replace(series, values=series.values[:length])
        mask = masks.get(series.sensor)
        flagged = np.zeros(len(series), bool)
        if mask is not None:
            flagged = mask.values[series.start - mask.start :][: len(series)] == 1
        loaded.append((series, flagged))
    return loaded


def measure(job: tuple[Series, np.ndarray, argparse.Namespace]) -> dict[str, object]:
    """Return the figures of every method on one detector."""
    series, flagged, options = job
    day = series.clock.day
    warmup = options.warmup_days * day
    size = options.train_days * day
    actual = np.where(flagged, np.nan, series.values)[warmup:]
    row: dict[str, object] = {"sensor": series.sensor, "scored": int((~np.isnan(actual)).sum())}
    makers = {"": partial(Forecaster, series.clock.step, train_size=size)}
    if options.misspecified:
        step = series.clock.step
        preset = default_preset(usual_seasons(default_seasons(step), step))
        makers["misspecified "] = partial(makers[""], preset=misspecified(preset))
    if options.paper:
        makers["paper "] = partial(
            Forecaster.paper, series.clock.step, train_size=size, warmup=warmup
        )
    with threadpool_limits(1):
        if not options.no_trees:
            row["lightgbm"] = scores(actual, trees(series.values, day, warmup, size))
        for name, make in makers.items():
            for method, learn in (("ohl", True), ("fixed", False)):
                run = replay(make(learn=learn), series, warmup=warmup)
                row[name + method] = {
                    **scores(actual, run.value[:, 0]),
                    "coverage": coverage(actual, run.lower[:, 0], run.upper[:, 0]),
                    "seconds": run.seconds,
                }
        row["persistence"] = scores(actual, last_known(series.values, 1)[warmup:])
        row["last week"] = scores(actual, last_known(series.values, 7 * day)[warmup:])
    return row


def scores(actual: np.ndarray, forecast: np.ndarray) -> dict[str, float]:
    """Return the errors where there is a value to compare with."""
    errors = (actual - forecast)[~np.isnan(actual)]
    return {"rmse": rmse(errors), "mae": mae(errors)}


def last_known(values: np.ndarray, lag: int) -> np.ndarray:
    """Return the latest known value that is `lag` or a multiple of it before each step."""
    known = np.full(len(values), np.nan)
    for t in range(lag, len(values)):
        known[t] = values[t - lag] if not np.isnan(values[t - lag]) else known[t - lag]
    return known


def trees(values: np.ndarray, day: int, warmup: int, size: int) -> np.ndarray:
    """Return LightGBM's forecasts after the warm-up; it takes missing lags as they are."""
    import lightgbm

    t = np.arange(len(values))
    lags = [*range(1, LAGS + 1), day, 7 * day]
    columns = [np.concatenate([np.full(lag, np.nan), values[:-lag]]) for lag in lags]
    x = np.column_stack([*columns, t % day, t // day % 7])
    forecasts = []
    for begin in range(warmup, len(values), day):
        rows = np.flatnonzero(~np.isnan(values[:begin]))[-size:]
        model = lightgbm.train(TREES, lightgbm.Dataset(x[rows], values[rows]), TREE_COUNT)
        forecasts.append(model.predict(x[begin : begin + day]))
    return np.concatenate(forecasts)


def misspecified(preset: Preset) -> Preset:
    """Return the default preset with a ridge constant a hundred times too small."""
    ridge = preset.model.model
    off = replace(ridge, regularization=ridge.regularization / 100)
    return replace(preset, model=replace(preset.model, model=off))


def line(row: dict[str, object]) -> str:
    """Return one detector's RMSE by every method, and the ratio to the best rival's."""
    parts = [f"{row['sensor']:32s}"]
    for name, figures in row.items():
        if isinstance(figures, dict):
            parts.append(f"{name} {figures['rmse']:.2f}")
    parts.append(f"coverage {row['ohl']['coverage']:.3f}")
    return "  ".join(parts)


def summary(rows: list[dict[str, object]]) -> None:
    """Print mean ratios of RMSE, and on how many detectors the first is ahead."""
    for ours, theirs in (
        ("ohl", "lightgbm"),
        ("ohl", "persistence"),
        ("ohl", "last week"),
        ("ohl", "fixed"),
        ("misspecified ohl", "misspecified fixed"),
        ("paper ohl", "paper fixed"),
        ("ohl", "paper ohl"),
    ):
        pairs = [(row[ours]["rmse"], row[theirs]["rmse"]) for row in rows if theirs in row]
        if pairs:
            ratios = np.array([a / b for a, b in pairs])
            print(
                f"{ours} / {theirs}: mean RMSE ratio {ratios.mean():.4f}, "
                f"ahead on {(ratios < 1).sum()} of {len(ratios)}, worst {ratios.max():.4f}"
            )


if __name__ == "__main__":
    main()
