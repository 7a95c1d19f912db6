"""Compare forecasts at several steps ahead with seasonal forecasts and LightGBM, road by road.

    python benchmarks/bench_horizons.py FILE [--mask FLAGS] [--from DAY] [--sensor NAME ...]

FILE has a column of times and a column for each sensor. Rows flagged in `--mask` are not scored.
The history has 100 days. Forecasts of the 20 days after it are scored, with an origin every hour.
The alternatives are

- the last value, the value a day and a week ago, the mean of the last 4 weeks and the median of the
  last 8 weeks at the same time of week, up to the origin;
- regularized LightGBM, one for each number of steps ahead, fitted at the start and after ten days
  to all rows before. It forecasts the difference from the median of 8 weeks. Its columns are lags,
  profiles, deviations from the profile, and the calendar.

The table has the ratio of root mean square errors, ours over each alternative's. LightGBM is not a
dependency of the project: run this with a Python that has it.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import process_time
from typing import NamedTuple

import lightgbm
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import streamridge as sr

HORIZONS = {96: (1, 2, 4, 8, 16, 48, 96), 24: (1, 2, 4, 8, 16, 48)}  # by the steps of a day
HISTORY_DAYS, SCORED_DAYS, REFIT_DAYS = 100, 20, 10
WEEKS, LAGS = 8, 16
NAIVE = ("last", "day", "week", "mean of 4", "median of 8")
REGULARIZED = {
    "learning_rate": 0.03,
    "num_leaves": 15,
    "feature_fraction": 0.6,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "min_data_in_leaf": 30,
    "num_threads": 1,
    "verbose": -1,
}
TREES = 400


class Road(NamedTuple):
    """The values of one sensor, which of them are scored, and the first step after the history."""

    name: str
    times: pd.DatetimeIndex
    values: np.ndarray
    scored: np.ndarray
    day: int  # steps of a day

    @property
    def first(self) -> int:
        """Return the first step after the history."""
        return HISTORY_DAYS * self.day

    @property
    def origins(self) -> np.ndarray:
        """Return the last known step before each forecast: one in every hour."""
        return np.arange(self.first, self.first + SCORED_DAYS * self.day, self.day // 24) - 1


def main() -> None:
    """Print the ratios of each road, and their means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--mask", type=Path, help="file of the same shape; rows with 1 count not")
    parser.add_argument("--from", dest="start", help="first day of the history")
    parser.add_argument("--sensor", nargs="+", help="sensors to score; all by default")
    parser.add_argument("--model", help="size of our model, such as compact")
    options = parser.parse_args()
    roads = roads_of(options)
    horizons = HORIZONS[roads[0].day]
    print("| road | " + " | ".join(f"{each}" for each in horizons) + " | seconds |")
    print("|---|" + "---|" * (len(horizons) + 1))
    ratios = [printed(road, horizons, options.model) for road in roads]
    for word, each in (("best", -1), ("LightGBM", len(NAIVE)), ("best naive", -2)):
        means = np.mean(ratios, axis=0)[:, each]
        print(f"| mean over {word} | " + " | ".join(f"{mean:.3f}" for mean in means) + " | |")
    worst = np.max(ratios, axis=0)[:, -2]
    print("| worst over best naive | " + " | ".join(f"{each:.3f}" for each in worst) + " | |")


def roads_of(options: argparse.Namespace) -> list[Road]:
    """Return the sensors of a file, from the first day of the history on."""
    frame = pd.read_csv(options.file, index_col=0, parse_dates=True)
    start = frame.index[0] if options.start is None else frame[options.start :].index[0]
    step = frame.index.to_series().diff().mode()[0]
    day = round(pd.Timedelta("1D") / step)
    steps = (HISTORY_DAYS + SCORED_DAYS) * day + max(HORIZONS[day])
    times = pd.date_range(start, periods=steps, freq=step)
    frame = frame.reindex(times)
    known = frame.notna()
    if options.mask is not None:
        known &= pd.read_csv(options.mask, index_col=0, parse_dates=True).reindex(times) != 1
    return [
        Road(name, times, frame[name].to_numpy(float), known[name].to_numpy(bool), day)
        for name in options.sensor or frame.columns
    ]


def printed(road: Road, horizons: tuple[int, ...], model: str | None) -> np.ndarray:
    """Print the row of a road, and return its ratios, (horizons, alternatives + 2)."""
    began = process_time()
    with threadpool_limits(1):
        ours = own_forecasts(road, max(horizons), model)
    seconds = process_time() - began
    rows = [ratios_at(road, lead, ours[:, lead - 1]) for lead in horizons]
    names = (*NAIVE, "LightGBM")
    cells = [f"{row[-1]:.3f} ({names[int(np.argmax(row[:-2]))]})" for row in rows]
    print(f"| {road.name} | " + " | ".join(cells) + f" | {seconds:.0f} |", flush=True)
    return np.array(rows)


def ratios_at(road: Road, lead: int, ours: np.ndarray) -> list[float]:
    """Return our error over each alternative's; over the best naive one's; over the best's."""
    targets = road.origins + lead
    used, actual = road.scored[targets], road.values[targets]
    naive = naive_forecasts(road.values, road.origins, lead, road.day)
    others = [*naive, boosted(road, lead)]
    own, *theirs = (rmse((each - actual)[used]) for each in (ours, *others))
    best = [min(theirs[: len(NAIVE)]), min(theirs)]
    return [own / each for each in (*theirs, *best)]


def rmse(errors: np.ndarray) -> float:
    """Return the root mean square of the errors that are known."""
    return float(np.sqrt(np.nanmean(np.square(errors))))


def own_forecasts(road: Road, horizon: int, model: str | None) -> np.ndarray:
    """Return our forecasts of all steps ahead from each origin, (n, H)."""
    frame = pd.DataFrame({"time": road.times, "value": road.values})
    settings = {} if model is None else {"model": model}
    forecaster = sr.Forecaster.start(frame[: road.first], horizon=horizon, **settings)
    forecasts, origins = [], set(road.origins.tolist())
    for at in range(road.first, road.first + SCORED_DAYS * road.day):
        if at - 1 in origins:
            forecasts.append(forecaster.predict().value)
        value = road.values[at]
        forecaster.observe(road.times[at], None if np.isnan(value) else float(value))
    return np.array(forecasts)


def ago(values: np.ndarray, origins: np.ndarray, lead: int, period: int, count: int) -> np.ndarray:
    """Return the values at the same time of the last known seasons, (count, n)."""
    first = -(-lead // period)
    at = origins + lead - period * (first + np.arange(count)[:, None])
    return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)


def naive_forecasts(
    values: np.ndarray, origins: np.ndarray, lead: int, day: int
) -> list[np.ndarray]:
    """Return the naive forecasts, (n,) each; the mean of 4 weeks replaces missing ones."""
    weeks = ago(values, origins, lead, 7 * day, WEEKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of nothing
        mean, median = np.nanmean(weeks[:4], axis=0), np.nanmedian(weeks, axis=0)
    last = pd.Series(values).ffill().to_numpy()[origins]
    single = (last, ago(values, origins, lead, day, 1)[0], weeks[0])
    return [*(np.where(np.isnan(each), mean, each) for each in single), mean, median]


def boosted(road: Road, lead: int) -> np.ndarray:
    """Return the forecasts of LightGBM at one number of steps ahead, (n,)."""
    origins, forecasts = road.origins, np.full(len(road.origins), np.nan)
    for days in range(0, SCORED_DAYS, REFIT_DAYS):
        now = road.first + days * road.day
        past = np.arange(7 * road.day + 2 * LAGS, now - lead)
        median = naive_forecasts(road.values, past, lead, road.day)[-1]
        target = road.values[past + lead] - median
        known = ~np.isnan(target)
        data = lightgbm.Dataset(columns(road, past, lead)[known], target[known])
        trees = lightgbm.train(REGULARIZED, data, TREES)
        here = (origins >= now - 1) & (origins < now - 1 + REFIT_DAYS * road.day)
        median = naive_forecasts(road.values, origins[here], lead, road.day)[-1]
        forecasts[here] = median + trees.predict(columns(road, origins[here], lead))
    return forecasts


def columns(road: Road, origins: np.ndarray, lead: int) -> np.ndarray:
    """Return the columns of LightGBM, (n, p)."""
    values, day = road.values, road.day
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        days = ago(values, origins, lead, day, 7)
        deviations = recent_deviations(values, origins, day)
        profiles = [np.nanmean(days, axis=0), np.nanmedian(days[:3], axis=0)]
        means = [np.nanmean(deviations[:4], axis=0), np.nanmean(deviations, axis=0)]
    lags = values[origins - np.arange(LAGS)[:, None]]
    target = origins + lead
    return np.vstack(
        [
            *(lags, naive_forecasts(values, origins, lead, day), profiles),
            *(deviations[:LAGS], means, [target % day, target // day % 7]),
        ]
    ).T


def recent_deviations(values: np.ndarray, origins: np.ndarray, day: int) -> np.ndarray:
    """Return how far the last values, and one value of every hour, are from their medians."""
    back = [*range(LAGS), *range(LAGS, day, day // 24)]
    medians = [np.nanmedian(ago(values, origins - b - 1, 1, 7 * day, WEEKS), axis=0) for b in back]
    return np.stack([values[origins - b] - each for b, each in zip(back, medians, strict=True)])


if __name__ == "__main__":
    main()
