"""A week of operation with this and other libraries: errors and processor seconds.

make bench-peers, or

    .venv-peers/bin/python benchmarks/bench_peers.py [FILE --sensor NAME ... --to DAY]
        [--peer NAME ...] [--json FILE]

Each library gets the same history of six weeks and forecasts the week after it one step ahead. It
sees each reading before the next forecast. It is tuned once, at the beginning of the week, if it
has a search, and refitted once a day, if it does not learn from each reading. Libraries that take
columns get the same ones: 20 lags, the values a day and a week ago, and the time of day and week.

Without a file the roads are simulated. `--json` keeps results, and a later run continues there.
Processor seconds are those of one thread. `start` is the time to learn the history; `week` is the
time of tuning, refits and forecasts.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from streamridge import Forecaster
from streamridge.datasets import simulate_roads

DAY, WEEK = 96, 672  # steps of 15 minutes
HISTORY = 6 * WEEK
LAGS = [*range(1, 21), DAY, WEEK]
TRAIN_ROWS = 2880  # of a kernel method: the default of streamridge, 30 days
GP_ROWS = 1000  # the marginal likelihood takes cubic time for each of its evaluations
SEARCH_DRAWS = 20
LEVEL, Z = 0.9, 1.6449
LIBRARIES = ("streamridge", "scikit-learn", "statsforecast", "mlforecast", "lightgbm", "river")


@dataclass(frozen=True)
class Road:
    """A sensor: its readings on a regular grid, of which the last week is forecast."""

    name: str
    times: pd.DatetimeIndex
    y: np.ndarray

    @property
    def frame(self) -> pd.DataFrame:
        """Return the readings in the long layout of statsforecast and mlforecast."""
        return pd.DataFrame({"unique_id": self.name, "ds": self.times, "y": self.y})

    @property
    def calendar(self) -> pd.DataFrame:
        """Return the columns of the calendar: time of day and of week as sine and cosine."""
        minutes = self.times.hour * 60 + self.times.minute
        angles = {
            "day": 2 * np.pi * minutes / 1440,
            "week": 2 * np.pi * (self.times.dayofweek + minutes / 1440) / 7,
        }
        waves = {"sin": np.sin, "cos": np.cos}
        columns = {f"{a}_{w}": waves[w](angles[a]) for a in angles for w in waves}
        return pd.DataFrame({**columns, "weekday": self.times.dayofweek}, index=self.times)

    @property
    def rows(self) -> np.ndarray:
        """Return a row of columns for each step; the first week has missing lags."""
        lags = [pd.Series(self.y).shift(lag).to_numpy() for lag in LAGS]
        return np.column_stack([*lags, self.calendar.to_numpy()])


@dataclass
class Clock:
    """The processor seconds before and in the week of operation."""

    begun: float
    start: float = 0.0

    def begin(self) -> None:
        """Forget the time so far: imports and compilation."""
        self.begun = process_time()

    def begin_week(self) -> None:
        """Note that the history is known and the week begins."""
        self.start = process_time() - self.begun


Bands = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]  # value, lower, upper
Peer = Callable[[Road, Clock], Bands]


def ours(road: Road, clock: Clock, **settings: Any) -> Bands:
    """Return the forecasts of our own model."""
    clock.begin()
    history = pd.DataFrame({"time": road.times, "flow": road.y})[:HISTORY]
    forecaster = Forecaster.start(history, level=LEVEL, **settings)
    clock.begin_week()
    forecasts = []
    for time, value in zip(road.times[HISTORY:], road.y[HISTORY:], strict=True):
        forecast = forecaster.predict()
        forecasts.append((forecast.value, forecast.lower, forecast.upper))
        forecaster.observe(time.to_pydatetime(), value)
    value, lower, upper = np.array(forecasts, dtype=float).reshape(WEEK, 3).T
    return value, lower, upper


def days() -> Iterator[slice]:
    """Yield the steps of each day of the week."""
    for begin in range(HISTORY, HISTORY + WEEK, DAY):
        yield slice(begin, begin + DAY)


def kernel_ridge(road: Road, clock: Clock) -> Bands:
    """Return forecasts of scikit-learn's kernel ridge regression after a random search."""
    from scipy.stats import loguniform
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import RandomizedSearchCV, TimeSeriesSplit
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")), transformer=StandardScaler()
    )
    space = {
        "regressor__kernelridge__alpha": loguniform(1e-3, 10),
        "regressor__kernelridge__gamma": loguniform(1e-4, 0.3),
    }
    search = RandomizedSearchCV(
        model,
        space,
        n_iter=SEARCH_DRAWS,
        cv=TimeSeriesSplit(3),
        scoring="neg_mean_squared_error",
        refit=False,
        random_state=0,
    )
    clock.begin()
    x, y = road.rows, road.y
    known = slice(HISTORY - TRAIN_ROWS, HISTORY)
    search.fit(x[known], y[known])
    model.set_params(**search.best_params_)
    parts = []
    for day in days():
        known = slice(day.start - TRAIN_ROWS, day.start)
        parts.append(model.fit(x[known], y[known]).predict(x[day]))
    return np.concatenate(parts), None, None


def gaussian_process(road: Road, clock: Clock) -> Bands:
    """Return forecasts of a Gaussian process with hyperparameters by marginal likelihood."""
    from sklearn.base import clone
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    kernel = (
        ConstantKernel(1.0) * Matern(5.0, nu=1.5)
        + ConstantKernel(0.1) * DotProduct(1.0)
        + WhiteKernel(0.1)
    )
    clock.begin()
    x, y = StandardScaler().fit(road.rows[WEEK:HISTORY]).transform(road.rows), road.y
    rng = np.random.default_rng(0)

    def subset(end: int) -> np.ndarray:
        older = rng.choice(TRAIN_ROWS - DAY, GP_ROWS - DAY, replace=False)
        return np.concatenate([end - TRAIN_ROWS + np.sort(older), np.arange(end - DAY, end)])

    known = subset(HISTORY)
    tuned = GaussianProcessRegressor(kernel, normalize_y=True).fit(x[known], y[known])
    parts = []
    for day in days():
        known = subset(day.start)
        model = GaussianProcessRegressor(clone(tuned.kernel_), optimizer=None, normalize_y=True)
        parts.append(model.fit(x[known], y[known]).predict(x[day], return_std=True))
    value, deviation = np.concatenate(parts, axis=1)
    return value, value - Z * deviation, value + Z * deviation


def mstl(road: Road, clock: Clock) -> Bands:
    """Return forecasts of statsforecast: seasons by MSTL, the rest by AutoARIMA, daily refits.

    `MSTL.forward` would decompose the whole series at each step, in seconds. Here the seasons of a
    day stay as the last decomposition has them, and AutoARIMA moves on with each reading.
    """
    from statsforecast.models import MSTL, AutoARIMA

    AutoARIMA().fit(road.y[:DAY]).forward(road.y[:DAY], 1, level=[90])  # compiled
    clock.begin()
    parts = []
    for day in days():
        model = MSTL([DAY, WEEK], AutoARIMA()).fit(road.y[day.start - HISTORY : day.start])
        table = model.model_
        # The last period of each season goes on.
        season = sum(
            table[f"seasonal{length}"].to_numpy()[-length:][:DAY] for length in (DAY, WEEK)
        )
        rest = np.concatenate([table["trend"] + table["remainder"], road.y[day] - season])
        for step in range(DAY):
            known = rest[: HISTORY + step]
            ahead = model.trend_forecaster.forward(known, 1, level=[90])
            parts.append([season[step] + ahead[key][0] for key in ("mean", "lo-90", "hi-90")])
    value, lower, upper = np.array(parts).T
    return value, lower, upper


TREES = {"n_jobs": 1, "verbosity": -1, "random_state": 0, "deterministic": True}
REGULARIZED = {
    "n_estimators": 300,
    "learning_rate": 0.05,
    "num_leaves": 31,
    "colsample_bytree": 0.5,
    "subsample": 0.8,
    "subsample_freq": 1,
    "reg_lambda": 10.0,
}


def mlforecast(road: Road, clock: Clock) -> Bands:
    """Return forecasts of mlforecast with LightGBM, refitted every day."""
    from lightgbm import LGBMRegressor
    from mlforecast import MLForecast
    from mlforecast.utils import PredictionIntervals

    frame = pd.concat([road.frame, road.calendar.reset_index(drop=True)], axis=1)
    columns = list(road.calendar)
    parts = []
    clock.begin()
    for day in days():
        model = MLForecast({"peer": LGBMRegressor(**TREES, **REGULARIZED)}, "15min", lags=LAGS)
        known = frame[day.start - HISTORY : day.start]
        intervals = PredictionIntervals(n_windows=DAY, h=1)
        model.fit(known, static_features=[], prediction_intervals=intervals)
        for step in range(day.start, day.stop):
            now = frame[step : step + 1]
            parts.append(model.predict(1, X_df=now[["unique_id", "ds", *columns]], level=[90]))
            model.update(now)
    table = pd.concat(parts)
    return table["peer"].to_numpy(), table["peer-lo-90"].to_numpy(), table["peer-hi-90"].to_numpy()


def skforecast(road: Road, clock: Clock) -> Bands:
    """Return forecasts of skforecast with LightGBM after a Bayesian search, refitted every day."""
    from lightgbm import LGBMRegressor
    from skforecast.model_selection import (
        OneStepAheadFold,
        TimeSeriesFold,
        backtesting_forecaster,
        bayesian_search_forecaster,
    )
    from skforecast.recursive import ForecasterRecursive

    y = pd.Series(road.y, index=road.times, name="y").asfreq("15min")
    exog = road.calendar.asfreq("15min")
    forecaster = ForecasterRecursive(LGBMRegressor(**TREES, **REGULARIZED), lags=LAGS)

    def space(trial: Any) -> dict[str, Any]:
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.2, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 7, 63, log=True),
            "reg_lambda": trial.suggest_float("reg_lambda", 0.1, 100, log=True),
            "colsample_bytree": trial.suggest_float("colsample_bytree", 0.3, 1.0),
        }

    quiet = {"n_jobs": 1, "show_progress": False, "verbose": False, "suppress_warnings": True}
    clock.begin()
    bayesian_search_forecaster(
        forecaster,
        y[:HISTORY],
        OneStepAheadFold(HISTORY - WEEK, verbose=False),
        space,
        "mean_squared_error",
        exog=exog[:HISTORY],
        n_trials=SEARCH_DRAWS,
        random_state=0,
        **quiet,
    )
    fold = TimeSeriesFold(1, HISTORY, refit=DAY, fixed_train_size=True, verbose=False)
    _, table = backtesting_forecaster(
        forecaster,
        y,
        fold,
        "mean_squared_error",
        exog=exog,
        interval=[0.05, 0.95],
        interval_method="conformal",
        **quiet,
    )
    return tuple(table[name].to_numpy() for name in ("pred", "lower_bound", "upper_bound"))


def online(road: Road, clock: Clock, models: list[Any]) -> Bands:
    """Return forecasts of a model of river that was best in the last week of the history."""
    clock.begin()
    values = np.full((len(models), len(road.y)), np.nan)
    for row, model in zip(values, models, strict=True):
        for step, y in enumerate(road.y[:HISTORY]):
            row[step] = one_step(model, step)
            model.learn_one(float(y))
    recent = slice(HISTORY - WEEK, HISTORY)
    losses = np.mean((values[:, recent] - road.y[recent]) ** 2, axis=1)
    best = int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))
    clock.begin_week()
    for step in range(HISTORY, len(road.y)):
        values[best, step] = one_step(models[best], step)
        models[best].learn_one(float(road.y[step]))
    return values[best, HISTORY:], None, None


def one_step(model: Any, step: int) -> float:
    """Return the next value of a model of river, which cannot forecast in its first season."""
    return model.forecast(horizon=1)[0] if step >= WEEK + DAY else np.nan


def snarimax(road: Road, clock: Clock) -> Bands:
    """Return forecasts of river's SNARIMAX."""
    from river import linear_model, optim, preprocessing, time_series

    def model(rate: float, sp: int) -> Any:
        regressor = preprocessing.StandardScaler() | linear_model.LinearRegression(
            optimizer=optim.SGD(rate), intercept_init=float(np.mean(road.y[:HISTORY])), l2=0.0
        )
        return time_series.SNARIMAX(p=20, d=0, q=2, m=DAY, sp=sp, sd=0, sq=0, regressor=regressor)

    return online(road, clock, [model(rate, sp) for rate in (1e-3, 3e-3) for sp in (1, 7)])


def holt_winters(road: Road, clock: Clock) -> Bands:
    """Return forecasts of river's Holt-Winters with a season of a week."""
    from river.time_series import HoltWinters

    grid = [(alpha, gamma) for alpha in (0.2, 0.4, 0.6, 0.8) for gamma in (0.05, 0.15, 0.3, 0.5)]
    return online(
        road,
        clock,
        [HoltWinters(alpha, 0.01, gamma, seasonality=WEEK) for alpha, gamma in grid],
    )


PEERS: dict[str, tuple[str, Peer]] = {
    "streamridge": ("at each refit", ours),
    "streamridge, compact": (
        "at each refit",
        lambda road, clock: ours(road, clock, model="compact"),
    ),
    "scikit-learn KernelRidge": (f"random search, {SEARCH_DRAWS} draws", kernel_ridge),
    "scikit-learn Gaussian process": ("marginal likelihood", gaussian_process),
    "mlforecast LightGBM": ("no", mlforecast),
    "skforecast LightGBM": (f"Bayesian search, {SEARCH_DRAWS} trials", skforecast),
    "river SNARIMAX": ("best of 4 in the history", snarimax),
    "river Holt-Winters": ("best of 16 in the history", holt_winters),
    "statsforecast MSTL + AutoARIMA": ("orders by AIC", mstl),
}


def interval_score(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the mean width of intervals and the penalty for readings outside of them."""
    outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return float(np.mean(upper - lower + 2 / (1 - LEVEL) * outside))


def figures(road: Road, peer: Peer) -> dict[str, float | None]:
    """Return the scores and the processor seconds of a peer on a road."""
    clock = Clock(process_time())
    value, lower, upper = peer(road, clock)
    seconds = process_time() - clock.begun
    y = road.y[HISTORY:]
    return {
        "rmse": float(np.sqrt(np.mean((value - y) ** 2))),
        "score": None if lower is None or upper is None else interval_score(y, lower, upper),
        "start": clock.start,
        "week": seconds - clock.start,
    }


def simulated_roads() -> list[Road]:
    """Return four simulated roads."""
    roads = simulate_roads(np.random.default_rng(0), detectors=4, days=49)
    times = pd.DatetimeIndex(roads.times)
    return [Road(name, times, y) for name, y in zip(roads.names, roads.flows.T, strict=True)]


def roads_of_file(path: str, sensors: list[str], end: str) -> list[Road]:
    """Return the seven weeks before a day of some columns; missing readings are interpolated."""
    table = pd.read_csv(path, index_col=0, parse_dates=True)[sensors].interpolate()
    table = table[table.index < end][-HISTORY - WEEK :]
    if len(table) < HISTORY + WEEK or table.isna().any(axis=None):
        raise SystemExit("seven weeks of readings are needed")
    return [Road(name, table.index, table[name].to_numpy(dtype=float)) for name in sensors]


def print_table(results: dict[str, dict[str, dict[str, float | None]]], peers: list[str]) -> None:
    """Print a row for each peer: means over the roads, errors relative to our default."""
    roads = [road for road, row in results.items() if all(peer in row for peer in peers)]
    rmse = {peer: np.array([results[road][peer]["rmse"] for road in roads]) for peer in peers}
    base = rmse[peers[0]]
    head = ("library", "tuned", "RMSE", "ratio", "behind on", "interval score", "start s", "week s")
    print(f"\n{len(roads)} roads: {', '.join(roads)}\n\n| {' | '.join(head)} |")
    print("|" + "---|" * len(head))
    for peer in peers:
        rows = [results[road][peer] for road in roads]
        scores = [row["score"] for row in rows]
        cells = (
            peer,
            PEERS[peer][0],
            f"{rmse[peer].mean():.2f}",
            f"{np.exp(np.mean(np.log(rmse[peer] / base))):.3f}",
            f"{int(np.sum(rmse[peer] > base))} of {len(roads)}",
            "-" if None in scores else f"{np.mean(scores):.1f}",
            *(
                two_digits(float(np.mean([row[part] for row in rows])))
                for part in ("start", "week")
            ),
        )
        print(f"| {' | '.join(cells)} |")


def two_digits(seconds: float) -> str:
    """Return seconds for a cell; there are none before the week if nothing is learned then."""
    return f"{seconds:#.2g}".rstrip(".") if seconds else "-"


def main() -> None:
    """Run the peers on the roads and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--sensor", action="append", default=[])
    parser.add_argument("--to", help="the day after the forecast week")
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    roads = roads_of_file(given.file, given.sensor, given.to) if given.file else simulated_roads()
    stored = given.json is not None and given.json.exists()
    results = json.loads(given.json.read_text()) if stored else {}
    peers = given.peer or list(PEERS)
    for road in roads:
        row = results.setdefault(road.name, {})
        for peer in (each for each in peers if each not in row):
            row[peer] = figures(road, PEERS[peer][1])
            print(road.name, peer, row[peer], file=sys.stderr, flush=True)
            if given.json is not None:
                given.json.write_text(json.dumps(results, indent=1))
    print_table(results, peers)
    names = (*LIBRARIES, "skforecast", "numpy", "scipy")
    print(f"\nPython {platform.python_version()}, ", end="")
    print(", ".join(f"{name} {version(name)}" for name in names))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the peers
    threadpool_limits(1)
    main()
