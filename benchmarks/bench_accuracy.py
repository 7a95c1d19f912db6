"""Compare the default model's forecasts with what people would use instead, on any streams.

    python benchmarks/bench_accuracy.py FILE [FILE ...] [--step 5min] [--from DAY] [--jobs 2]

Every stream of the files is read as `streamridge replay` reads it, and lived through: a warm-up,
then scored steps. Where steps are below a day, the warm-up is 60 days but at most half of the
stream, and up to 60 days after it are scored; other streams are halved. Rows flagged in `--mask`
are not scored. Compared are

- ohl and fixed: the default forecaster, and the same kept at its start. `--only` names others: the
  paper's model from its own start, and the default one from a ridge constant a hundred times too
  small ("off");
- the last value, and the value a day, a week or a year ago; "season ago" is the best of these;
- LightGBM with 20 lags, the values a season ago and the calendar, refitted every day on as many
  known values: plain; regularized; and with parameters tuned once on the warm-up by 50 trials of
  Optuna;
- best, the least of all rivals, and best untuned, the least of fixed and those that search nothing.

Rivals do not depend on the package: `--rivals FILE` remembers their figures, so that a later run
costs only our own methods. Neither LightGBM nor Optuna is a dependency of the project: run this
with a Python that has them, or with a file that has all their figures.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from accuracy.ours import OURS, own_figures
from accuracy.ratios import Row, by_group, group_coverage, group_ratios, ratios_of, with_best
from accuracy.rivals import TREES, Cache, Figures, Rival, cache_key, measured, rivals_of
from accuracy.streams import Plan, Stream, load
from accuracy.tables import markdown
from threadpoolctl import threadpool_limits

from streamridge.files.reading_options import ReadingOptions
from streamridge.series.lengths import step_name


@dataclass(frozen=True)
class Job:
    """What is to be measured on a stream: our methods, and the rivals that are not known yet."""

    stream: Stream
    ours: tuple[str, ...]
    rivals: dict[str, Rival]
    known: dict[str, Figures]


def main() -> None:
    """Print the figures of all streams as tables, and write them as JSON if asked."""
    options = parse()
    cache = Cache(options.rivals)
    jobs = [job_of(stream, options, cache) for stream in streams_of(options)]
    rows = []
    for row in measured_rows(jobs, options.jobs, cache):
        print(line(row), flush=True)
        rows.append(row)
    order = [job.stream.label for job in jobs]
    rows.sort(key=lambda row: order.index(row["label"]))
    print("\n" + markdown(rows))
    if options.json:
        Path(options.json).write_text(json.dumps(all_figures(rows), indent=1))


def parse() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--step", help="time between readings; found by default")
    parser.add_argument("--aggregate", help="sum, mean or last: how finer readings make a step")
    parser.add_argument("--from", dest="first", help="first day of the warm-up")
    parser.add_argument("--mask", help="file of the same shape; rows with 1 are not scored")
    parser.add_argument("--sensor", action="append", help="stream to take; all by default")
    parser.add_argument("--group", help="name of all streams together; by default one for a file")
    parser.add_argument("--warmup-days", type=float, help="longest warm-up; 60 below a day's step")
    parser.add_argument("--days", type=float, help="most days to score; 60 below a day's step")
    parser.add_argument("--warmup-share", type=float, default=0.5, help="largest share of a stream")
    parser.add_argument("--train-size", type=int, default=2880, help="rows of LightGBM")
    parser.add_argument("--train-days", type=float, help="the same in days")
    parser.add_argument("--only", type=names_of(OURS), default=("ohl", "fixed"), metavar="NAMES",
                        help=f"our methods among {', '.join(OURS)}, or none")  # fmt: skip
    parser.add_argument("--trees", type=names_of(TREES), default=tuple(TREES), metavar="NAMES",
                        help=f"among {', '.join(TREES)}, or none")  # fmt: skip
    parser.add_argument("--rivals", help="file that remembers the figures of rivals")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", help="file for all figures")
    return parser.parse_args()


def names_of(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return what reads a list of names, separated by commas, all of them known; or none."""

    def names(text: str) -> tuple[str, ...]:
        given = () if text == "none" else tuple(name.strip() for name in text.split(","))
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"names must be among {', '.join(known)}, or none, got {name!r}."
                )
        return given

    return names


def streams_of(options: argparse.Namespace) -> Iterator[Stream]:
    """Yield the streams of all files."""
    reading = ReadingOptions(
        sensors=options.sensor,
        step=options.step,
        aggregate=options.aggregate,
        from_=options.first,
    )
    plan = Plan(
        warmup_days=options.warmup_days,
        days=options.days,
        warmup_share=options.warmup_share,
        train_size=options.train_size,
        train_days=options.train_days,
    )
    for file in options.files:
        yield from load(file, reading, plan, mask=options.mask, group=options.group)


def job_of(stream: Stream, options: argparse.Namespace, cache: Cache) -> Job:
    """Return what there is to do about a stream."""
    rivals = rivals_of(stream, options.trees)
    return Job(stream, options.only, rivals, cache.known(stream, rivals))


def measured_rows(jobs: Sequence[Job], workers: int, cache: Cache) -> Iterator[Row]:
    """Yield the figures of each stream once they are there; those of rivals are remembered."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        running = {pool.submit(measure, job): job for job in jobs}
        for future in as_completed(running):
            job, row = running[future], future.result()
            cache.add(
                {
                    cache_key(job.stream, name, rival): row["methods"][name]
                    for name, rival in job.rivals.items()
                    if name not in job.known
                }
            )
            yield row


def all_figures(rows: Sequence[Row]) -> dict[str, object]:
    """Return the figures of all streams and groups as plain JSON."""
    groups = by_group(rows)
    return {
        "streams": list(rows),
        "ratios": {group: group_ratios(each) for group, each in groups.items()},
        "coverage": {group: group_coverage(each) for group, each in groups.items()},
    }


def measure(job: Job) -> Row:
    """Return the figures of every method on a stream."""
    stream = job.stream
    with threadpool_limits(1):
        ours = {name: own_figures(stream, OURS[name](stream)) for name in job.ours}
        theirs = {
            name: job.known.get(name) or measured(stream, rival)
            for name, rival in job.rivals.items()
        }
    methods = with_best({**ours, **theirs}, theirs)
    return {**described(stream), "methods": methods, "ratios": ratios_of(methods)}


def described(stream: Stream) -> Row:
    """Return what a stream is: its name, its spans, and how much of it is scored."""
    times = [str(time) for time in stream.series.times]
    return {
        "stream": stream.name,
        "group": stream.group,
        "label": stream.label,
        "step": step_name(stream.series.clock.step),
        "warmup": {"from": times[0], "steps": stream.warmup},
        "scored": {"from": times[stream.warmup], "to": times[-1], "steps": len(stream.actual)},
        "scored_values": int((~np.isnan(stream.actual)).sum()),
        "size": stream.size,
    }


def line(row: Row) -> str:
    """Return the RMSE of every method on one stream, to be read while others are running."""
    sizes = [f"{name} {figures['rmse']:.4g}" for name, figures in row["methods"].items()]
    return "  ".join([row["stream"], *sizes])


if __name__ == "__main__":
    main()
