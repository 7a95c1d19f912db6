"""Measure how exact models of several sizes are against what they cost, and draw it.

    python benchmarks/bench_pareto.py FILE [FILE ...] [--mask FLAGS] [--from DAY] [--figure PNG]

Every stream of the files is known for a while, lived through for some days, and scored on the last
of them; twice, at two times of the year. Compared are all sizes of `streamridge.forecaster.sizes`,
one of them refitted less often, the former default size, LightGBM (regularized, on a month and on
four, refitted daily), and the last value. The table has the RMSE over LightGBM's on a month and
over the default size's, processor seconds of a sensor and day, of a mean refit and of a step, and
the size of a saved forecaster. `--json` writes the figures of all streams, and continues a file
that exists, which must be of the same commit. LightGBM is not a dependency of the project: run this
with a Python that has it.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import thread_time

import numpy as np
from accuracy.rivals import REGULARIZED, TREES, Figures, errors
from accuracy.streams import Plan, Stream, load
from threadpoolctl import threadpool_limits

from streamridge import Forecaster
from streamridge.arrays import Vector
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.sizes import NAMED, RARER, SIZES, Size
from streamridge.series.lengths import default_seasons

DAY = 96
TICKS, RARELY = (0.05, 0.1, 0.2, 0.5), ", a refit every "
MEASURED = {"seconds", "refit", "step", "bytes"}
MONTH, MONTHS = 2880, 11520
DEFAULT, COMPACT, TREES_NAME, LAST = "default", "compact", "LightGBM", "the last value"
# The size of the default model until 2026-11-17, with profiles of 7 days and 6 weeks. It learns as
# the present sizes do.
FORMER = replace(
    NAMED["default"], train_size=MONTH, landmarks=MONTH, rates=(), profile_seasons=(7, 6)
)


@dataclass(frozen=True)
class Job:
    """One model on one stream."""

    stream: Stream
    name: str
    live: int
    scored: int


def main() -> None:
    """Measure what is missing, and print a table."""
    options = parse()
    path = None if options.json is None else Path(options.json)
    known: dict[str, dict[str, Figures]] = (
        json.loads(path.read_text()) if path is not None and path.exists() else {}
    )
    names = options.only or list(MODELS)
    jobs = [
        Job(stream, name, DAY * options.live_days, DAY * options.days)
        for stream in streams_of(options)
        for name in names
        if known.get(stream.name, {}).get(name, {}).get("of") != settings_of(name)
    ]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        running = {pool.submit(measured, job): job for job in jobs}
        for done, future in enumerate(as_completed(running), start=1):
            job, figures = running[future], future.result()
            figures = {"of": settings_of(job.name), **figures}
            known.setdefault(job.stream.name, {})[job.name] = figures
            print(f"{done} of {len(jobs)}: {job.stream.name}, {job.name}: {figures}", flush=True)
            if path is not None:
                path.write_text(json.dumps(known, indent=1))
    table = summary(known)
    print(markdown(table))
    if options.figure:
        draw(table, options.figure)


def parse() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--from", dest="first", help="first day")
    parser.add_argument("--mask", help="file of the same shape; rows with 1 are not scored")
    parser.add_argument("--sensor", action="append", help="stream to take; all by default")
    parser.add_argument("--known-days", type=int, nargs="+", default=[100, 165],
                        help="days before the first step, each for itself")  # fmt: skip
    parser.add_argument("--live-days", type=int, default=35, help="days that are lived through")
    parser.add_argument("--days", type=int, default=25, help="days of these that are scored")
    parser.add_argument("--only", action="append", choices=list(MODELS), metavar="MODEL",
                        help="model to measure, may be repeated; all by default")  # fmt: skip
    parser.add_argument("--json", help="file for the figures of all streams")
    parser.add_argument("--figure", help="PNG file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def streams_of(options: argparse.Namespace) -> list[Stream]:
    """Return the streams of all files."""
    reading = ReadingOptions(sensors=options.sensor, from_=options.first)
    streams = []
    for known in options.known_days:
        plan = Plan(warmup_days=known, days=options.live_days, warmup_share=1.0)
        for file in options.files:
            for stream in load(file, reading, plan, options.mask):
                streams.append(replace(stream, name=f"{stream.name} after {known} days"))
    return streams


def measured(job: Job) -> Figures:
    """Return how good a model is on a stream, and what it costs."""
    with threadpool_limits(1):
        return MODELS[job.name](job)


def own(size: Size, job: Job) -> Figures:
    """Return the figures of a size of our model."""
    series, known = job.stream.series, job.stream.warmup
    step = series.clock.step
    forecaster = Forecaster(
        step,
        train_size=size.train_size,
        update_every=size.update_every(step, 1),
        preset=size.preset(default_seasons(step), step),
    )
    history = replace(series, values=series.values[:known])
    forecaster = Forecaster.from_settings(forecaster.settings, history)
    times, values = series.times[known:], series.values[known:]
    forecasts, seconds = np.empty(len(values)), np.empty(len(values))
    fits = np.zeros(len(values), dtype=bool)
    for i, (time, value) in enumerate(zip(times, values.tolist(), strict=True)):
        before, start = forecaster.counts["fits"], thread_time()
        forecasts[i] = forecaster.predict().value[0]
        forecaster.observe(time, None if np.isnan(value) else value)
        seconds[i] = thread_time() - start
        fits[i] = forecaster.counts["fits"] > before
    usual = float(np.median(seconds[~fits]))
    return {
        "rmse": scored(job, forecasts),
        "seconds": float(seconds.sum()) / (len(values) / DAY),
        "refit": float(np.mean(seconds[fits])) - usual,
        "step": usual,
        "bytes": len(forecaster.to_bytes()),
    }


def trees(size: int, job: Job) -> Figures:
    """Return the figures of LightGBM, refitted daily."""
    start = thread_time()
    forecasts, _ = TREES[REGULARIZED].forecasts(replace(job.stream, size=size))
    seconds = (thread_time() - start) / (job.live / DAY)
    return {"rmse": scored(job, forecasts), "seconds": seconds}


def last_value(job: Job) -> Figures:
    """Return the figures of the last value."""
    values, known = job.stream.series.values, job.stream.warmup
    filled = values.copy()
    for i in np.flatnonzero(np.isnan(filled)):
        filled[i] = filled[i - 1]
    return {"rmse": scored(job, filled[known - 1 : -1]), "seconds": 0.0}


def scored(job: Job, forecasts: Vector) -> float:
    """Return the RMSE of the last days."""
    return float(errors(job.stream.actual[-job.scored :], forecasts[-job.scored :])["rmse"])


def name_of(size: Size) -> str:
    """Return what a size is called in tables."""
    for name, each in NAMED.items():
        if each is size:
            return name
    return str(size) if size.every == 1 else f"{size}{RARELY}{size.every} days"


MODELS: dict[str, Callable[[Job], Figures]] = {
    **{name_of(size): partial(own, size) for size in SIZES},
    **{
        name_of(rarer): partial(own, rarer)
        for rarer in (replace(NAMED[COMPACT], every=times) for times in RARER)
    },
    "30 exact days, former profiles": partial(own, FORMER),
    TREES_NAME: partial(trees, MONTH),
    f"{TREES_NAME}, four months": partial(trees, MONTHS),
    LAST: last_value,
}


def settings_of(name: str) -> str:
    """Return what a model is, so that figures of another by the same name are measured again."""
    size = getattr(MODELS[name], "args", ("",))[0]
    return repr(replace(size, measured=None)) if isinstance(size, Size) else f"{name} {size}"


def summary(known: dict[str, dict[str, Figures]]) -> dict[str, Figures]:
    """Return the means over all streams that have all models in common, by model."""
    shared = set.intersection(*(set(figures) for figures in known.values()))
    table = {}
    for name in (name for name in MODELS if name in shared):
        each = [figures[name] for figures in known.values()]
        mean = {key: float(np.mean([one[key] for one in each])) for key in MEASURED & {*each[0]}}
        over = {
            f"over {rival}": float(
                np.mean([of[name]["rmse"] / of[rival]["rmse"] for of in known.values()])
            )
            for rival in (TREES_NAME, DEFAULT)
            if rival in shared
        }
        table[name] = {**over, **mean}
    return table


def markdown(table: dict[str, Figures]) -> str:
    """Return the table as Markdown."""
    lines = [
        "| model | RMSE over LightGBM | over default | s/day | of default | refit, ms | step, ms "
        "| kB saved | sensors a core |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    usual = table.get(DEFAULT, {}).get("seconds", np.nan)
    for name, row in table.items():
        ours = "refit" in row
        cells = [
            name,
            f"{row.get(f'over {TREES_NAME}', np.nan):.4f}",
            f"{row.get(f'over {DEFAULT}', np.nan):.4f}",
            f"{row['seconds']:.3f}",
            f"{row['seconds'] / usual:.2f}",
            f"{1e3 * row['refit']:.0f}" if ours else "",
            f"{1e3 * row['step']:.2f}" if ours else "",
            f"{row['bytes'] / 1e3:.0f}" if ours else "",
            f"{86400 / row['seconds']:,.0f}" if row["seconds"] else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(table: dict[str, Figures], path: str) -> None:
    """Draw errors against costs."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    for name, row in table.items():
        ratio, cost = row[f"over {TREES_NAME}"], row["seconds"]
        if name == LAST:
            axes.text(0.01, 0.02, f"{name}: {ratio:.2f}, at no cost", transform=axes.transAxes)
            continue
        if RARELY in name:  # they are in the table
            continue
        ours = "refit" in row
        named = name in NAMED or not ours
        axes.plot(cost, ratio, "o" if ours else "s", color="#1f6feb" if ours else "#8a8f98",
                  alpha=1.0 if named else 0.45)  # fmt: skip
        style = {"fontsize": 9, "color": "black"} if named else {"fontsize": 7, "color": "#6e7681"}
        # Sizes with a name have it left above, those on landmarks right above, all others right
        # below, so that none covers another.
        left, above = name in NAMED, "landmarks" in name or name in NAMED
        place = {
            "xytext": (-5 if left else 6, 5 if above else -10),
            "ha": "right" if left else "left",
        }
        axes.annotate(name, (cost, ratio), textcoords="offset points", **place, **style)
    axes.set_xscale("log")
    axes.set_xlim(0.035, 0.7)
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("processor seconds of a sensor and day")
    axes.set_ylabel("RMSE over regularized LightGBM")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
