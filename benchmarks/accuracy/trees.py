"""LightGBM, refitted every day: with given parameters, or with some that a search has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accuracy.naive import shifted
from accuracy.streams import Stream
from streamridge.arrays import Matrix, Vector
from streamridge.metrics import rmse
from streamridge.series.lengths import DAY, amount, default_seasons
from streamridge.series.series import Series

LAGS = 20
# Refits are a day of steps apart, but these at least.
FEWEST_STEPS = 24
# The last part of the warm-up, on which a search scores what it has fitted on the first.
VALIDATION = 0.2
# One thread and one seed: the same numbers on every machine.
REPEATABLE = {"verbose": -1, "num_threads": 1, "seed": 0, "deterministic": True}
MONDAY = np.datetime64("1970-01-05", "D")

Parameters = Mapping[str, float]
Predict = Callable[[Matrix], Vector]


@dataclass(frozen=True)
class Trees:
    """LightGBM with given parameters, refitted every day on the last known values.

    Parameters
    ----------
    rounds
        How many trees.
    learning_rate, num_leaves, feature_fraction, bagging_fraction, lambda_l2, min_data_in_leaf
        As LightGBM calls them; a fraction is drawn anew for every tree.
    """

    rounds: int = 300
    learning_rate: float = 0.05
    num_leaves: int = 31
    feature_fraction: float = 1.0
    bagging_fraction: float = 1.0
    lambda_l2: float = 0.0
    min_data_in_leaf: int = 20

    def forecasts(self, stream: Stream) -> tuple[Vector, dict[str, float]]:
        """Return the forecasts of the scored steps; nothing was searched for."""
        x, y = features(stream.series), stream.series.values
        every = max(FEWEST_STEPS, stream.day)
        parts = []
        for begin in range(stream.warmup, len(y), every):
            predict = self.fit(x[:begin], y[:begin], stream.size)
            parts.append(predict(x[begin : begin + every]))
        return np.concatenate(parts), {}

    def fit(self, x: Matrix, y: Vector, size: int) -> Predict:
        """Return what predicts after a fit on the last rows with a known value."""
        import lightgbm

        rows = np.flatnonzero(~np.isnan(y))[-size:]
        given = {name: each for name, each in vars(self).items() if name != "rounds"}
        parameters = {**REPEATABLE, **given, "bagging_freq": int(self.bagging_fraction < 1)}
        booster = lightgbm.train(parameters, lightgbm.Dataset(x[rows], y[rows]), self.rounds)
        return lambda ahead: np.asarray(booster.predict(ahead))


@dataclass(frozen=True)
class TunedTrees:
    """LightGBM with the best of some parameters, sought once on the warm-up by Optuna.

    Each trial is fitted on the first part of the warm-up, and scored on its last fifth.

    Parameters
    ----------
    trials
        How many are tried.
    seed
        Of the search.
    """

    trials: int = 50
    seed: int = 0

    def forecasts(self, stream: Stream) -> tuple[Vector, dict[str, float]]:
        """Return the forecasts of the scored steps, and the parameters that were found."""
        import optuna

        x, y = features(stream.series)[: stream.warmup], stream.series.values[: stream.warmup]
        begin = round((1 - VALIDATION) * stream.warmup)

        def loss(trial: Any) -> float:
            predict = suggested(trial).fit(x[:begin], y[:begin], stream.size)
            errors = y[begin:] - predict(x[begin:])
            return rmse(errors[~np.isnan(errors)])

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=self.seed))
        study.optimize(loss, n_trials=self.trials)
        best = suggested(study.best_trial)
        return best.forecasts(stream)[0], vars(best)


def suggested(trial: Any) -> Trees:
    """Return the parameters that a trial of Optuna suggests."""
    return Trees(
        rounds=trial.suggest_int("rounds", 50, 600, log=True),
        learning_rate=trial.suggest_float("learning_rate", 0.01, 0.2, log=True),
        num_leaves=trial.suggest_int("num_leaves", 3, 63, log=True),
        feature_fraction=trial.suggest_float("feature_fraction", 0.3, 1.0),
        bagging_fraction=trial.suggest_float("bagging_fraction", 0.5, 1.0),
        lambda_l2=trial.suggest_float("lambda_l2", 1e-2, 100.0, log=True),
        min_data_in_leaf=trial.suggest_int("min_data_in_leaf", 3, 100, log=True),
    )


def features(series: Series) -> Matrix:
    """Return a row for each step: lags, the values a season ago, and the calendar.

    A value that is missing is NaN, which LightGBM takes as it is.
    """
    step = series.clock.step
    periods = [round(amount(season) / amount(step)) for season in default_seasons(step)]
    columns = [shifted(series.values, lag) for lag in [*range(1, LAGS + 1), *periods]]
    return np.column_stack([*columns, *_calendar(series)])


def _calendar(series: Series) -> list[Vector]:
    """Return the time of day, the day of the week and that of the year, where steps tell them."""
    step, times = series.clock.step, series.local_times
    if isinstance(step, int):
        return []
    days = times.astype("M8[D]")
    if step >= 7 * DAY:
        return [_count(days - days.astype("M8[Y]"))]
    weekday = _count(days - MONDAY) % 7
    if step >= DAY:
        return [weekday, _count(days - days.astype("M8[Y]"))]
    return [_count(times - days), weekday]


def _count(lengths: Any) -> Vector:
    return lengths.astype(np.int64).astype(np.float64)
