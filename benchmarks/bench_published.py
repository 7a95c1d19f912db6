"""Compare forecasts with published results on the same series, by the protocols of their authors.

    python benchmarks/bench_published.py DIR [--only madrid-48 ...] [--sensors 30] [--model SIZE]

DIR has the series and the published results as CSV files:

- madrid-48, -480, -720: hourly traffic of 30 sensors (M_DENSE of GIFT-Eval, hourly: short, medium
  and long), the last 20, 4 and 3 windows of that length.
- madrid-168: the same (M_DENSE_1H of fev-bench), the last 10 windows of 168 hours.
- madrid-28d: daily means (M_DENSE_1D of fev-bench), the last 10 windows of 28 days.
- madrid-30d: the same (M_DENSE of GIFT-Eval, daily), the last 3 windows of 30 days; its season is a
  day, so seasonal naive is the last value.
- taxi: passengers every 30 minutes, five steps ahead, scored from row 10,000 on.
- perturbed: the same with a changed daily pattern from row 13,152 on, and its first week alone.
- lane: vehicles every 5 minutes, one step ahead.

MASE is the mean absolute error of a window, divided by the mean absolute seasonal difference of the
history before it. CRPS is the mean weighted quantile loss of the nine deciles, SQL their loss
divided like MASE. MAPE is the mean absolute error divided by the mean value, NRMSE the root mean
square error divided by the standard deviation. Seasonal naive checks the protocol: its published
MASE must come out. Every forecaster has default settings; `--model` names another size.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

import streamridge as sr

WEEK = 7
DECILES = np.arange(1, 10) / 10
# Intervals whose ends are the deciles.
LEVELS = (0.2, 0.4, 0.6, 0.8)


class Task(NamedTuple):
    """A task of the series of Madrid: its windows, and where its results are published."""

    horizon: int
    windows: int
    file: str
    task: str
    season: int = 24  # of MASE and of seasonal naive, in steps
    daily: bool = False

    @property
    def week(self) -> int:
        """Return the steps of a week."""
        return WEEK if self.daily else 24 * WEEK


GIFT, FEV = "gift_eval_m_dense.csv", "fev_bench_m_dense.csv"
MADRID = {
    "madrid-48": Task(48, 20, GIFT, "m_dense/H/short"),
    "madrid-480": Task(480, 4, GIFT, "m_dense/H/medium"),
    "madrid-720": Task(720, 3, GIFT, "m_dense/H/long"),
    "madrid-168": Task(168, 10, FEV, "M_DENSE_1H"),
    "madrid-28d": Task(28, 10, FEV, "M_DENSE_1D", season=7, daily=True),
    "madrid-30d": Task(30, 3, GIFT, "m_dense/D/short", season=1, daily=True),
}
CASES = (*MADRID, "taxi", "perturbed", "lane")


class WindowScores(NamedTuple):
    """The scores of one sensor: means over its windows."""

    mase: float
    sql: float
    mae: float
    squared: float
    loss: float  # mean quantile loss
    level: float  # mean size of a value
    median_mase: float  # of the median of the last eight weeks
    naive_mase: float  # of seasonal naive
    seconds: float


def main() -> None:
    """Print a table for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--sensors", type=int, default=30, help="sensors of Madrid to score")
    parser.add_argument("--model", help="size of the model, such as compact")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--figure", type=Path, help="where to draw the weeks around the change")
    options = parser.parse_args()
    settings: dict[str, Any] = {} if options.model is None else {"model": options.model}
    for case in options.only:
        if case in MADRID:
            madrid(options, MADRID[case], settings)
        elif case == "lane":
            lane(options.directory, settings)
        else:
            figure = options.figure if case == "perturbed" else None
            taxi(options.directory, settings, perturbed=case == "perturbed", figure=figure)


def madrid(options: argparse.Namespace, task: Task, settings: dict[str, Any]) -> None:
    """Print the scores of the sensors of Madrid, and the rank among published ones."""
    path = options.directory / "madrid_hourly_2018_2019.csv.gz"
    frame = pd.read_csv(path, index_col="timestamp", parse_dates=True)
    frame = frame.resample("1D").mean() if task.daily else frame
    series = [frame[name].rename("value").reset_index() for name in frame][: options.sensors]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        scores = list(pool.map(partial(windowed, task=task, settings=settings), series))
    means = WindowScores(*np.mean(scores, axis=0))
    worst = max(each.mase / each.median_mase for each in scores)
    published = pd.read_csv(options.directory / task.file)
    published = published[published.task == task.task]
    rank = 1 + int((means.mase > published.MASE).sum())
    print(f"Madrid, {task.task}: {task.windows} windows of {task.horizon}, {len(scores)} sensors")
    print(
        f"  MASE {means.mase:.4f}, rank {rank} of {len(published) + 1};"
        f" CRPS {means.loss / means.level:.4f}, SQL {means.sql:.4f},"
        f" MAE {means.mae:.2f}, RMSE {np.sqrt(means.squared):.1f}"
    )
    print(
        f"  median of the last 8 weeks: MASE {means.median_mase:.4f};"
        f" ours over it at most {worst:.3f}"
    )
    print(f"  seasonal naive: MASE {means.naive_mase:.4f}")
    print(f"  processor seconds: {means.seconds * len(scores):.0f}", flush=True)
    named = published.model.str.replace("_", " ").isin(["Seasonal Naive", "TimesFM-2.5", "DeepAR"])
    for _, row in pd.concat([published.nsmallest(3, "MASE"), published[named]]).iterrows():
        rest = [f"{name} {row[name]:.4f}" for name in ("CRPS", "SQL") if name in row]
        print(f"  published: {row.model} MASE {row.MASE:.4f}, {', '.join(rest)}", flush=True)


def windowed(frame: pd.DataFrame, task: Task, settings: dict[str, Any]) -> WindowScores:
    """Return the scores of the last windows of one sensor."""
    began, horizon = process_time(), task.horizon
    times, values = list(frame.timestamp), frame["value"].to_numpy(float)
    first, scores = len(values) - task.windows * horizon, []
    with threadpool_limits(1):
        forecaster = sr.Forecaster.start(frame[:first], horizon=horizon, level=LEVELS, **settings)
        for at in range(first, len(values)):
            if (len(values) - at) % horizon == 0:
                scores.append(window_scores(values, at, forecaster.predict(), task))
            forecaster.observe(times[at], values[at])
    return WindowScores._make([*np.mean(scores, axis=0), process_time() - began])


def window_scores(values: np.ndarray, at: int, forecast: sr.Forecast, task: Task) -> list[float]:
    """Return the scores of the window that begins at a step, as in `WindowScores`."""
    season, week = task.season, task.week
    steps = np.arange(at, at + task.horizon)
    actual, scale = values[steps], np.abs(values[season:at] - values[: at - season]).mean()
    weeks = steps - week * ((steps - at) // week + np.arange(1, 9)[:, None])
    naive = values[at - season + (steps - at) % season]
    quantiles = np.column_stack([forecast.lower[:, ::-1], forecast.value, forecast.upper])
    left = actual[:, None] - quantiles
    loss = 2 * np.maximum(DECILES * left, (DECILES - 1) * left).mean()
    mae, of_median, of_naive = (
        np.abs(each - actual).mean()
        for each in (forecast.value, np.median(values[weeks], axis=0), naive)
    )
    squared, level = np.square(forecast.value - actual).mean(), np.abs(actual).mean()
    scaled = mae / scale, loss / scale
    return [*scaled, mae, squared, loss, level, of_median / scale, of_naive / scale]


def taxi(
    directory: Path, settings: dict[str, Any], *, perturbed: bool, figure: Path | None = None
) -> None:
    """Print the scores five steps ahead on taxi passengers, next to the saved forecasts."""
    began = process_time()
    infix = "_perturb" if perturbed else ""
    name = f"nyc_taxi{infix}_30min_2014_2015_with_rivals.csv.gz"
    frame = pd.read_csv(directory / name, parse_dates=["timestamp"])
    actual = frame.passengers.to_numpy(float)
    first = 13_152 if perturbed else 10_000
    ours = ahead(frame[["timestamp", "passengers"]], 9_000, 5, settings)
    spans = {"all": slice(first, None)}
    if perturbed:
        spans |= {"first week": slice(first, first + 336), "later": slice(first + 336, None)}
    print(f"New York taxi{', changed pattern' if perturbed else ''}, 5 steps ahead: MAPE, NRMSE")
    for word, span in spans.items():
        rivals = {
            rival: _relative_errors(np.roll(frame[rival].to_numpy(float), 5), actual, span)
            for rival in frame.columns[2:]
        }
        own, best = _relative_errors(ours, actual, span), min(rivals, key=lambda name: rivals[name])
        print(f"  {word}: {_both(own)}; best published: {best} {_both(rivals[best])}")
    print(f"  processor seconds: {process_time() - began:.0f}", flush=True)
    if figure is not None:
        fixed = ahead(frame[["timestamp", "passengers"]], 9_000, 5, {**settings, "learn": False})
        lines = {"streamridge": ours, "streamridge, not learning": fixed}
        lines |= {
            words: np.roll(frame[name].to_numpy(float), 5)
            for name, words in {"TM": "HTM", "esn": "ESN"}.items()
        }
        draw_change(lines, actual, first, figure)


def draw_change(lines: dict[str, np.ndarray], actual: np.ndarray, first: int, path: Path) -> None:
    """Draw the error of each day from two weeks before a change to four weeks after it."""
    days = range(-14, 28)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, forecasts in lines.items():
        spans = [slice(first + 48 * day, first + 48 * (day + 1)) for day in days]
        errors = [_relative_errors(forecasts, actual, span)[0] for span in spans]
        width = 2.4 if name == "streamridge" else 1.2
        axes.plot(days, errors, label=name, linewidth=width)
    axes.axvline(0, color="grey", linestyle=":")
    axes.set(xlabel="days after the change of pattern", ylabel="MAPE of the day")
    axes.set_ylim(0, 0.25)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


def _relative_errors(forecasts: np.ndarray, actual: np.ndarray, span: slice) -> tuple[float, float]:
    """Return MAPE and NRMSE over a span of rows."""
    errors, truth = (forecasts - actual)[span], actual[span]
    mape = np.nanmean(np.abs(errors)) / np.abs(truth).mean()
    return float(mape), float(np.sqrt(np.nanmean(errors**2)) / truth.std())


def _both(errors: tuple[float, float]) -> str:
    return ", ".join(f"{error:.4f}" for error in errors)


def lane(directory: Path, settings: dict[str, Any]) -> None:
    """Print the scores one step ahead on a lane, whose weekends are missing."""
    began = process_time()
    frame = pd.read_csv(directory / "pems_lane_5min_2016.csv.gz", parse_dates=["timestamp"])
    first = 7_776 + 12
    errors = (ahead(frame, first, 1, settings) - frame.flow.to_numpy(float))[first:]
    rmse, mae = np.sqrt(np.mean(errors**2)), np.abs(errors).mean()
    print("PeMS lane, 5 minutes ahead")
    print(f"  RMSE {rmse:.2f}, MAE {mae:.2f}; published: autoencoders 9.60, 7.06")
    print(f"  processor seconds: {process_time() - began:.0f}", flush=True)


def ahead(frame: pd.DataFrame, first: int, lead: int, settings: dict[str, Any]) -> np.ndarray:
    """Return the forecast of each row from `lead` rows before it; NaN for the first rows."""
    times, values = list(frame.iloc[:, 0]), frame.iloc[:, 1].to_numpy(float)
    forecasts = np.full(len(values) + lead, np.nan)
    with threadpool_limits(1):
        forecaster = sr.Forecaster.start(frame[: first - lead], horizon=lead, **settings)
        for at in range(first - lead, len(values)):
            forecasts[at + lead - 1] = forecaster.predict().value[lead - 1]
            forecaster.observe(times[at], values[at])
    return forecasts[: len(values)]


if __name__ == "__main__":
    main()
