"""Measure what lost readings cost: errors over those of naive forecasts, and coverage of bands.

    python benchmarks/bench_sparse.py [FILE] [--sensor NAME ...] [--from DAY] [--jobs 2] [--json]

Each sensor is lived through for ten whole days. Then readings are lost: a share of them at random,
every second or third, or in blocks of six hours; in half of the cases the level rises by 1.6 at the
same moment. What comes a day later and after that is scored for a fortnight, against the same time
yesterday and a week ago, whichever is better. Where their reading was lost, these two take the one
a day or a week before it. Without a file, simulated roads are used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

import streamridge as sr
from streamridge.arrays import Mask, Vector
from streamridge.datasets import simulate_roads
from streamridge.files.reading import read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.series.series import Series

CLEAN, SCORED = 10, 15  # days
RISE = 1.6
BLOCK = 24  # steps
LOSSES = (0.0, 0.1, 0.33, 0.5, 0.8)
SEASONS_BACK = 8


@dataclass(frozen=True)
class Case:
    """A way of losing readings, and whether the level rises meanwhile."""

    loss: float
    way: str
    rises: bool

    def lost(self, count: int, rng: np.random.Generator) -> Mask:
        """Return which of some readings are lost."""
        if self.way == "regular":
            return np.arange(count) % round(1 / self.loss) == 0
        if self.way == "random":
            return rng.random(count) < self.loss
        lost = np.zeros(count, dtype=bool)
        while lost.mean() < self.loss:
            start = rng.integers(count)
            lost[start : start + BLOCK] = True
        return lost


def cases() -> Iterator[Case]:
    """Yield all cases."""
    for rises, loss, way in product((False, True), LOSSES, ("random", "blocks", "regular")):
        if way == "random" or (loss and way == "blocks") or loss in (0.33, 0.5):
            yield Case(loss, way, rises)


def main() -> None:
    """Print a line per case: the mean over all sensors, and the worst of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--sensor", action="append")
    parser.add_argument("--from", dest="first")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    source = options.file or simulate_roads(
        np.random.default_rng(0), detectors=3, days=CLEAN + SCORED
    )
    given = source if options.file else source.frame()
    reading = ReadingOptions(sensors=options.sensor, gap="skip", from_=options.first)
    every = list(read_series(given, reading).series.values())
    work = list(product(every, cases()))
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(pool.map(measure, *zip(*work, strict=True)))
    if options.json:
        print(json.dumps(found))
        return
    print("level  lost     | MAE over naive, mean worst | coverage, mean lowest highest | by model")
    for case in cases():
        rows = [row for row, (_, each) in zip(found, work, strict=True) if each == case]
        ratios, covered, modelled = (
            [row[name] for row in rows] for name in ("over_naive", "coverage", "by_model")
        )
        level = "rises" if case.rises else "stays"
        print(
            f"{level}  {case.loss:4.0%} {case.way:8}|  {np.mean(ratios):.2f} {max(ratios):.2f}  |  "
            f"{np.mean(covered):.2f} {min(covered):.2f} {max(covered):.2f}  |  "
            f"{np.mean(modelled):.2f}"
        )


def measure(series: Series, case: Case) -> dict[str, float]:
    """Return the figures of a sensor in one case."""
    day = round(np.timedelta64(1, "D") / np.timedelta64(series.clock.step))
    clean, end = CLEAN * day, (CLEAN + SCORED) * day
    values = series.values[:end].copy()
    if case.rises:
        values[clean:] *= RISE
    if case.loss:
        values[clean:][case.lost(len(values) - clean, np.random.default_rng(0))] = np.nan
    run = sr.replay(
        sr.Forecaster(series.clock.step),
        replace(series, values=values, extras={}),
        warmup=clean + day,
    )
    naive = [_season_ago(values, season) for season in (day, 7 * day)]
    own = np.nanmean(np.abs(run.errors_in_time))
    other = min(np.nanmean(np.abs(values - each)[clean + day :]) for each in naive)
    return {
        "over_naive": float(own / other),
        "coverage": run.coverage,
        "by_model": float(run.by_model.mean()),
    }


def _season_ago(values: Vector, season: int) -> Vector:
    """Return the reading a season before each step, or some seasons before where it was lost."""
    found = np.full(len(values), np.nan)
    for back in range(season, SEASONS_BACK * season + 1, season):
        before = np.concatenate([np.full(back, np.nan), values])[: len(values)]
        found = np.where(np.isnan(found), before, found)
    return found


if __name__ == "__main__":
    main()
