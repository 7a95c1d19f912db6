"""Hold what is said before and during a run against what the run then takes.

Each case is a command in a process of its own. Printed are the processor seconds said and used, the
memory said and used in MB, and the ratio of said to true time left after 10, 25, 50 and 75 % of the
processor time. Time is that of the processor, so that other work on the machine counts little.

    python benchmarks/bench_estimates.py [--json] [--cases week-1s,...]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from subprocess import PIPE, run
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.progress import Progress, TaskID

from streamridge.cli import watching
from streamridge.cli.main import app
from streamridge.files.tables import write_table
from streamridge.runs.estimates import Speed, expected_megabytes, expected_seconds
from streamridge.runs.tasks import Task

SHARES = (0.1, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Case:
    """A command on a simulated sensor: its step in seconds, its number of steps, and flags."""

    step: int
    steps: int
    flags: tuple[str, ...] = ()


def _case(step: int, steps: int, flags: str = "") -> Case:
    return Case(step, steps, tuple(flags.split()))


MINUTE, DAY = 60, 86400
CASES = {
    "demo": _case(15 * MINUTE, 35 * 96, "--methods ohl,fixed --warmup 2016 --train-size 2016"),
    "15min-year": _case(15 * MINUTE, 365 * 96),
    "15min-960": _case(15 * MINUTE, 60 * 96, "--train-size 960"),
    "15min-12-ahead": _case(15 * MINUTE, 60 * 96, "--train-size 960 --horizon 12"),
    "15min-fixed": _case(15 * MINUTE, 60 * 96, "--method fixed"),
    "15min-compact": _case(15 * MINUTE, 60 * 96, "--model compact"),
    "15min-long": _case(15 * MINUTE, 130 * 96, "--model long"),
    "15min-6000": _case(15 * MINUTE, 80 * 96, "--train-size 6000 --update-every 960"),
    "1min-month": _case(MINUTE, 30 * 1440),
    "1s-two-days": _case(1, 2 * DAY),
    "1s-week": _case(1, 7 * DAY, "--train-size 480 --update-every 7200 --predictions p.csv"),
    "random": _case(15 * MINUTE, 30 * 96, "--train-size 960 --method random"),
    "hoag": _case(15 * MINUTE, 30 * 96, "--train-size 960 --method hoag"),
    "bayes": _case(15 * MINUTE, 30 * 96, "--train-size 960 --method bayes"),
    "grid": _case(15 * MINUTE, 20 * 96, "--train-size 480 --method grid"),
    "paper-ohl": _case(15 * MINUTE, 45 * 96, "--model paper --warmup 2880 --train-size 1920"),
    "paper-random": _case(
        15 * MINUTE, 30 * 96, "--model paper --warmup 960 --train-size 960 --method random"
    ),
    "two-jobs": _case(15 * MINUTE, 40 * 96, "--train-size 960 --methods ohl,fixed --jobs 2"),
}


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(CASES[options.one])))
        return
    if not options.json:
        print(f"{'case':<16} {'s said':>8} {'used':>8} {'MB said':>8} {'used':>8}  left said/true")
    for name in options.cases.split(","):
        found = in_a_process(name)
        print(json.dumps({"case": name, **found}) if options.json else line(name, found))


def in_a_process(name: str) -> dict[str, Any]:
    """Return the figures of a case, measured in a process of its own."""
    command = [sys.executable, __file__, "--one", name]
    done = run(command, stdout=PIPE, check=True, env={**os.environ, "COLUMNS": "200"})
    return json.loads(done.stdout)


def measured(case: Case) -> dict[str, Any]:
    """Return what is said of a command, and what it takes."""
    said: dict[str, float] = {}
    seen: list[tuple[float, float]] = []  # processor seconds, and the share that is done

    def note(tasks: Sequence[Task], width: int, speed: Speed, console: Console) -> None:
        at_once = min(width, len(tasks))
        said["seconds"] = expected_seconds(tasks, 1, speed)
        said["megabytes"] = expected_megabytes(tasks, at_once)
        said["workers"], said["begun"] = at_once, process_time()

    with patch.object(watching, "announce", note), watched_bar(seen), quiet_folder():
        write_file(case, Path("sensor.csv"))
        app(["replay", "sensor.csv", "--json", *case.flags], standalone_mode=False)
    own, children = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    workers = said["workers"] if said["workers"] > 1 else 0
    in_workers = children.ru_utime + children.ru_stime
    return {
        "seconds_said": said["seconds"],
        "seconds_used": process_time() - said["begun"] + in_workers,
        "megabytes_said": said["megabytes"],
        "megabytes_used": (own.ru_maxrss + workers * children.ru_maxrss) / 1e3,
        "left": [] if workers else left(seen),
    }


@contextmanager
def watched_bar(seen: list[tuple[float, float]]) -> Iterator[None]:
    """Note the share that is done each time that the bar moves."""
    advance = Progress.advance

    def noted(self: Progress, task_id: TaskID, more: float = 1) -> None:
        advance(self, task_id, more)
        bar = self.tasks[task_id]
        seen.append((process_time(), bar.completed / (bar.total or 1.0)))

    with patch.object(Progress, "advance", noted):
        yield


@contextmanager
def quiet_folder() -> Iterator[None]:
    """Work in an empty folder, and print nothing."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w") as nowhere,
        chdir(folder),
        redirect_stdout(nowhere),
    ):
        yield


def left(seen: Sequence[tuple[float, float]]) -> list[float]:
    """Return the ratio of said to true time left at some shares of the time."""
    times, shares = np.array(seen).T
    told = times - times[0]
    marks = np.array(SHARES) * told[-1]
    at = np.searchsorted(told, marks, side="right") - 1
    said = [
        watching.time_left(now, told[i], shares[i]) or 0.0 for now, i in zip(marks, at, strict=True)
    ]
    return (np.array(said) / (told[-1] - marks)).tolist()


def write_file(case: Case, path: Path) -> None:
    """Write a file of one sensor with days in it."""
    rng = np.random.default_rng(0)
    seconds = case.step * np.arange(case.steps)
    flow = 50 + 30 * np.sin(2 * np.pi * seconds / DAY) + rng.normal(0, 5, case.steps)
    times = np.datetime64("2021-06-13T00:00:00", "s") + seconds
    write_table(path, {"time": times, "flow": np.round(flow, 2)})


def line(name: str, found: dict[str, Any]) -> str:
    """Return the figures of a case as a line."""
    figures = [
        found[f"{what}_{how}"] for what in ("seconds", "megabytes") for how in ("said", "used")
    ]
    ratios = " ".join(f"{ratio:5.2f}" for ratio in found["left"])
    return f"{name:<16} " + " ".join(f"{each:8.1f}" for each in figures) + f"  {ratios}"


if __name__ == "__main__":
    main()
