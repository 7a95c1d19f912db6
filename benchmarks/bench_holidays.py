"""Measure what knowing the holidays gains: RMSE on holidays, a week after them, and on all days.

    python benchmarks/bench_holidays.py FILE --holidays GB-ENG [--jobs 2] [--json]

Each sensor of the file is replayed twice, with and without its holidays, one step ahead. The first
60 days are not scored, unless --warmup says otherwise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import streamridge as sr
from streamridge.arrays import Mask
from streamridge.files.reading import read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.runs.run import Run
from streamridge.series.holidays import Holidays, parse_holidays
from streamridge.series.series import Series

WEEK = 7
SPANS = ("holidays", "a week after", "all days")


def main() -> None:
    """Print a line per sensor, and the mean of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--holidays", required=True, help="a country's code, such as GB-ENG")
    parser.add_argument("--warmup", type=int, help="steps that are not scored")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    every = list(read_series(options.file, ReadingOptions(gap="skip")).series.values())
    work = partial(
        measure,
        holidays=options.holidays,
        warmup=options.warmup,
    )
    with ProcessPoolExecutor(options.jobs) as pool:
        found = dict(zip((each.sensor for each in every), pool.map(work, every), strict=True))
    if options.json:
        print(json.dumps(found))
        return
    for sensor, figures in found.items():
        print(sensor, "  ".join(_shown(span, figures[span]) for span in SPANS))
    print("mean change", "  ".join(f"{span} {_mean(found.values(), span):+.1%}" for span in SPANS))


def measure(series: Series, holidays: str, warmup: int | None) -> dict[str, list[float]]:
    """Return the RMSE of a sensor without and with its holidays, by spans of days."""
    runs = [
        sr.replay(
            sr.Forecaster(series.clock.step, holidays=known),
            series,
            warmup=warmup or 60 * round(np.timedelta64(1, "D") / np.timedelta64(series.clock.step)),
        )
        for known in (None, holidays)
    ]
    days = runs[0].local_times.astype("M8[D]")
    free = _holidays(days, holidays)
    after = np.isin(days, np.unique(days[free]) + WEEK) & ~free
    spans = {"holidays": free, "a week after": after, "all days": np.ones(len(days), dtype=bool)}
    return {span: [_rmse(run, within) for run in runs] for span, within in spans.items()}


def _holidays(days: np.ndarray, code: str) -> Mask:
    """Return which days are holidays of a country, other than Sundays."""
    known = Holidays(parse_holidays(code)).within(
        int(days[0].astype(int)), int(days[-1].astype(int))
    )
    return np.isin(days.astype(int), known)


def _rmse(run: Run, within: Mask) -> float:
    errors = (run.actual - run.value[:, 0])[within]
    return float(np.sqrt(np.nanmean(errors**2)))


def _shown(span: str, pair: Sequence[float]) -> str:
    without, given = pair
    return f"{span} {without:.2f} -> {given:.2f} ({given / without - 1:+.1%})"


def _mean(every: Iterable[Mapping[str, Sequence[float]]], span: str) -> float:
    return float(np.mean([figures[span][1] / figures[span][0] - 1 for figures in every]))


if __name__ == "__main__":
    main()
