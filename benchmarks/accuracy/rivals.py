"""What people would use instead, and a file that remembers how good it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from time import thread_time
from typing import Any, Protocol

import numpy as np

from accuracy.naive import LastValue, SeasonAgo
from accuracy.streams import Stream
from accuracy.trees import Trees, TunedTrees
from streamridge.arrays import Vector
from streamridge.metrics import mae, rmse
from streamridge.series.lengths import amount, default_seasons, season_name

Figures = dict[str, Any]

LAST = "last value"
AGO = " ago"
PLAIN, REGULARIZED, TUNED = "lightgbm", "lightgbm regularized", "lightgbm tuned"


class Rival(Protocol):
    """A way to forecast a stream; a frozen dataclass, whose fields are its settings."""

    def forecasts(self, stream: Stream) -> tuple[Vector, dict[str, float]]:
        """Return the forecasts of the scored steps, and what a search has found."""
        ...


TREES: dict[str, Rival] = {
    PLAIN: Trees(),
    REGULARIZED: Trees(
        rounds=400,
        learning_rate=0.03,
        num_leaves=15,
        feature_fraction=0.6,
        bagging_fraction=0.8,
        lambda_l2=5.0,
        min_data_in_leaf=30,
    ),
    TUNED: TunedTrees(),
}


class Cache:
    """The figures of rivals, remembered in a JSON file by stream, span, size and settings.

    Parameters
    ----------
    path
        Of the file, which need not be there yet; None remembers nothing.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)

    def known(self, stream: Stream, rivals: Mapping[str, Rival]) -> dict[str, Figures]:
        """Return the figures of those rivals on a stream that the file has."""
        every = self._read()
        keys = {name: cache_key(stream, name, rival) for name, rival in rivals.items()}
        return {name: every[key] for name, key in keys.items() if key in every}

    def add(self, figures: Mapping[str, Figures]) -> None:
        """Write some figures, by key, beside those that the file has by now."""
        if self._path is None or not figures:
            return
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps({**self._read(), **figures}, indent=1))
        partial.replace(self._path)

    def _read(self) -> dict[str, Figures]:
        if self._path is None or not self._path.exists():
            return {}
        return dict(json.loads(self._path.read_text()))


def cache_key(stream: Stream, name: str, rival: Rival) -> str:
    """Return the text by which the figures of a rival on a stream are found again."""
    return f"{stream.label} | {name} {json.dumps(settings(rival))}"


def settings(rival: Any) -> dict[str, float]:
    """Return the settings of a rival by name."""
    return asdict(rival)


def rivals_of(stream: Stream, trees: Iterable[str]) -> dict[str, Rival]:
    """Return the rivals on a stream by name: the last value, each season ago, and some trees."""
    step = stream.series.clock.step
    ago = {
        season_name(season) + AGO: SeasonAgo(amount(season) / amount(step))
        for season in default_seasons(step)
    }
    return {LAST: LastValue(), **ago, **{name: TREES[name] for name in trees}}


def measured(stream: Stream, rival: Rival) -> Figures:
    """Return how good the forecasts of a rival are, what it cost, and what it has found."""
    start = thread_time()
    forecasts, found = rival.forecasts(stream)
    seconds = thread_time() - start
    return {**errors(stream.actual, forecasts), "seconds": seconds, "found": found}


def errors(actual: Vector, forecasts: Vector) -> Figures:
    """Return the RMSE and the MAE where there is a value to compare with."""
    each = (actual - forecasts)[~np.isnan(actual)]
    return {"rmse": rmse(each), "mae": mae(each)}
