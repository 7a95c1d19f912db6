"""Compare forecasts with published results on the same series, by the protocols of their authors.

    python benchmarks/bench_published.py DIR [--only madrid-48 ...] [--sensors 30] [--jobs 2]

DIR has the series and the published results as CSV files:

- madrid-48: hourly traffic of 30 sensors (M_DENSE of GIFT-Eval), the last 20 windows of 48 hours.
- madrid-168: the same (M_DENSE_1H of fev-bench), the last 10 windows of 168 hours.
- taxi: passengers every 30 minutes, five steps ahead, scored from row 10,000 on.
- perturbed: the same with a changed daily pattern from row 13,152 on, and its first week alone.
- lane: vehicles every 5 minutes, one step ahead.

MASE is the mean absolute error of a window, divided by the mean absolute seasonal difference of the
history before it. CRPS is the mean weighted quantile loss of the nine deciles. MAPE is the mean
absolute error divided by the mean value. Every forecaster has default settings.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import streamridge as sr

CASES = ("madrid-48", "madrid-168", "taxi", "perturbed", "lane")
DECILES = np.arange(1, 10) / 10
# Intervals whose ends are the deciles.
LEVELS = (0.2, 0.4, 0.6, 0.8)


class WindowScores(NamedTuple):
    """The scores of one sensor: means over its windows, and sums for the quantile loss."""

    mase: float
    median_mase: float  # of the median of the last eight weeks
    loss: float
    total: float
    squared: float
    seconds: float


def main() -> None:
    """Print a table for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--sensors", type=int, default=30, help="sensors of Madrid to score")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for case in options.only:
        if case.startswith("madrid"):
            madrid(options.directory, int(case.partition("-")[2]), options.sensors, options.jobs)
        elif case == "lane":
            lane(options.directory)
        else:
            taxi(options.directory, perturbed=case == "perturbed")


def madrid(directory: Path, horizon: int, sensors: int, jobs: int) -> None:
    """Print the scores of the hourly sensors of Madrid, and the rank among published ones."""
    frame = pd.read_csv(directory / "madrid_hourly_2018_2019.csv.gz", parse_dates=["timestamp"])
    series = [
        frame[["timestamp", name]].rename(columns={name: "value"})
        for name in frame.columns[1 : sensors + 1]
    ]
    windows = 20 if horizon == 48 else 10
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        scores = list(pool.map(partial(windowed, horizon=horizon, windows=windows), series))
    mase = float(np.mean([each.mase for each in scores]))
    crps = sum(each.loss for each in scores) / sum(each.total for each in scores)
    worst = max(each.mase / each.median_mase for each in scores)
    if horizon == 48:
        published = pd.read_csv(directory / "gift_eval_m_dense.csv")
        published = published[published.task == "m_dense/H/short"]
    else:
        published = pd.read_csv(directory / "fev_bench_m_dense.csv")
        published = published[published.task == "M_DENSE_1H"]
    rank = 1 + int((mase > published.MASE).sum())
    print(f"Madrid, {horizon} hours ahead, {len(scores)} sensors")
    print(f"  MASE {mase:.4f}, rank {rank} of {len(published) + 1}; CRPS {crps:.4f}")
    print(f"  RMSE {np.sqrt(np.mean([each.squared for each in scores])):.1f}")
    print(
        f"  median of the last 8 weeks: MASE {np.mean([each.median_mase for each in scores]):.4f};"
        f" ours over it at most {worst:.3f}"
    )
    print(f"  processor seconds: {sum(each.seconds for each in scores):.0f}")
    for _, row in published.nsmallest(3, "MASE").iterrows():
        print(f"  published: {row.model} {row.MASE:.4f}")


def windowed(frame: pd.DataFrame, horizon: int, windows: int) -> WindowScores:
    """Return the scores of the last windows of one sensor."""
    began = process_time()
    times, values = list(frame.timestamp), frame["value"].to_numpy(float)
    first = len(values) - windows * horizon
    errors, medians, loss, total, squared = [], [], 0.0, 0.0, []
    with threadpool_limits(1):
        forecaster = sr.Forecaster.start(frame[:first], horizon=horizon, level=LEVELS)
        for at in range(first, len(values)):
            if (len(values) - at) % horizon == 0:
                actual = values[at : at + horizon]
                forecast = forecaster.predict()
                scale = np.abs(values[24:at] - values[: at - 24]).mean()
                weeks = [values[at - 168 * k : at - 168 * k + horizon] for k in range(1, 9)]
                errors.append(np.abs(forecast.value - actual).mean() / scale)
                medians.append(np.abs(np.median(weeks, axis=0) - actual).mean() / scale)
                squared.append(np.square(forecast.value - actual).mean())
                quantiles = np.column_stack(
                    [forecast.lower[:, ::-1], forecast.value, forecast.upper]
                )
                left = actual[:, None] - quantiles
                loss += 2 * np.maximum(DECILES * left, (DECILES - 1) * left).mean(axis=1).sum()
                total += np.abs(actual).sum()
            forecaster.observe(times[at], values[at])
    return WindowScores(
        float(np.mean(errors)),
        float(np.mean(medians)),
        loss,
        total,
        float(np.mean(squared)),
        process_time() - began,
    )


def taxi(directory: Path, *, perturbed: bool) -> None:
    """Print the scores five steps ahead on taxi passengers, beside the saved forecasts."""
    infix = "_perturb" if perturbed else ""
    name = f"nyc_taxi{infix}_30min_2014_2015_with_rivals.csv.gz"
    frame = pd.read_csv(directory / name, parse_dates=["timestamp"])
    actual = frame.passengers.to_numpy(float)
    first = 13_152 if perturbed else 10_000
    ours = ahead(frame[["timestamp", "passengers"]], first=9_000, lead=5)
    spans = {"all": slice(first, None)}
    if perturbed:
        spans |= {"first week": slice(first, first + 336), "later": slice(first + 336, None)}
    print(f"New York taxi{', changed pattern' if perturbed else ''}, 5 steps ahead: MAPE")
    for word, span in spans.items():
        rivals = {
            rival: _relative_error(np.roll(frame[rival].to_numpy(float), 5), actual, span)
            for rival in frame.columns[2:]
        }
        best = min(rivals, key=lambda rival: rivals[rival])
        own = _relative_error(ours, actual, span)
        print(f"  {word}: {own:.4f}; best published: {best} {rivals[best]:.4f}")


def _relative_error(forecasts: np.ndarray, actual: np.ndarray, span: slice) -> float:
    return float(np.abs(forecasts - actual)[span].mean() / np.abs(actual[span]).mean())


def lane(directory: Path) -> None:
    """Print the scores one step ahead on a lane, whose weekends are missing."""
    frame = pd.read_csv(directory / "pems_lane_5min_2016.csv.gz", parse_dates=["timestamp"])
    first = 7_776 + 12
    errors = (ahead(frame, first=first, lead=1) - frame.flow.to_numpy(float))[first:]
    rmse, mae = np.sqrt(np.mean(errors**2)), np.abs(errors).mean()
    print("PeMS lane, 5 minutes ahead")
    print(f"  RMSE {rmse:.2f}, MAE {mae:.2f}; published: autoencoders 9.60, 7.06")


def ahead(frame: pd.DataFrame, first: int, lead: int) -> np.ndarray:
    """Return the forecast of each row from `lead` rows before it; NaN for the first rows."""
    times, values = list(frame.iloc[:, 0]), frame.iloc[:, 1].to_numpy(float)
    forecasts = np.full(len(values) + lead, np.nan)
    with threadpool_limits(1):
        forecaster = sr.Forecaster.start(frame[: first - lead], horizon=lead)
        for at in range(first - lead, len(values)):
            forecasts[at + lead - 1] = forecaster.predict().value[lead - 1]
            forecaster.observe(times[at], values[at])
    return forecasts[: len(values)]


if __name__ == "__main__":
    main()
