"""`streamridge reproduce`: the paper's experiments, each into a folder with one page to open."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import TaskID
from threadpoolctl import threadpool_limits

from streamridge.cli import options
from streamridge.cli.checks import INTERRUPTED, require_extra, require_folder
from streamridge.cli.outcome import Counted
from streamridge.cli.replay import say_left_out, say_what_was_read
from streamridge.cli.terminal import Messages
from streamridge.cli.watching import progress_bar, watched
from streamridge.errors import InvalidInputError
from streamridge.experiments.traffic.methods import METHODS, PAPER_METHODS
from streamridge.experiments.traffic.study import FULL, QUICK, STEP, make_study, simulated_series
from streamridge.forecaster.methods import parse_names
from streamridge.forecaster.published import PublishedName
from streamridge.runs.carrying import parse_engine
from streamridge.runs.selection import Selection
from streamridge.runs.sources import opened_sources

Result = TypeVar("Result")
# Called with what is going on, how much of it is done, and of how much.
Tell = Callable[[str, int, int], None]

Quick = Annotated[bool, typer.Option("--quick", help="A small version that takes a minute or two.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of series and random draws.")]
Out = Annotated[Path, typer.Option(help="Folder for tables, figures and a page.")]
StudyMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "--methods",
        help=f"Of {', '.join(METHODS)}. Repeat the flag for several, or separate them by commas. "
        "The paper's by default.",
    ),
]
PaperModel = Annotated[
    PublishedName,
    typer.Option(
        "--model",
        help="The settings of the paper's model: as the paper prints them, or as in the public "
        "code of its first author.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        help="File of real detectors, or a pattern in quotes such as 'd07_*.txt.gz'; repeat the "
        "flag for several. Counts that come more often than every 15 minutes are summed. Simulated "
        "roads by default."
    ),
]


def synthetic(
    out: Out = Path("reproduction/synthetic"),
    seeds: Annotated[int, typer.Option(min=1, help="How many series, from seed 0 on.")] = 30,
    quick: Quick = False,
    quiet: options.Quiet = False,
) -> None:
    """Repeat the synthetic figure: FIXED and OHL from the same start, on both kernels.

    Example: streamridge reproduce synthetic --quick --out synthetic
    """
    console = _prepared(out, quiet)
    from streamridge.experiments.synthetic.page import write_synthetic
    from streamridge.experiments.synthetic.panels import OTHER_READINGS, PANELS
    from streamridge.experiments.synthetic.study import run_synthetic

    panels = PANELS if quick else (*PANELS, *OTHER_READINGS)
    count = min(seeds, 3) if quick else seeds
    flags = {"--seeds": count, "--quick": quick}
    results = _watched(
        console,
        lambda tell: run_synthetic(range(count), panels=panels, progress=partial(tell, "series")),
    )
    if not results:
        raise typer.Exit(INTERRUPTED)  # stopped before anything was there
    command, asked = command_of("synthetic", flags), count * len(panels)
    _show(console, write_synthetic(results, out, command=command, asked=asked))
    if len(results) < asked:
        raise typer.Exit(INTERRUPTED)


def traffic(
    out: Out = Path("reproduction/traffic"),
    data: Data = None,
    sensor: options.Sensors = None,
    gap: options.Gap = "error",
    method: StudyMethods = None,
    model: PaperModel = "paper",
    first: options.From = None,
    last: options.To = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps to score.")] = None,
    seed: Seed = 0,
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    scheduler: options.Scheduler = None,
    quick: Quick = False,
    quiet: options.Quiet = False,
) -> None:
    """Repeat the study of 13 detectors: OHL, HOAG, RDS and FIXED, with times and improvements.

    Each run of a detector and a method is kept once it is finished. After a stop, the same command
    makes only those that are missing.

    Example: streamridge reproduce traffic --quick --methods fixed,ohl,random --out study
    """
    console = _prepared(out, quiet)
    from streamridge.experiments.traffic.page import write_traffic

    chosen = parse_engine(engine, jobs=jobs, scheduler=scheduler)
    methods = parse_names(method or PAPER_METHODS, METHODS)  # before files are read
    scale = QUICK if quick else FULL
    size = scale if steps is None else replace(scale, steps=steps)
    if not data and (sensor or first or last):
        raise InvalidInputError("--sensor, --from and --to must come with --data, got none.")
    detectors = _matching(data) if data else simulated_series(size, seed)
    selection = Selection(sensors=sensor, gap=gap, from_=first, to=last, sum_to=STEP)
    seen = partial(say_what_was_read, console) if data else None
    with opened_sources(detectors, selection, seen) as sources:
        study = make_study(out, sources, size=size, methods=methods, seed=seed, model=model)
        say_left_out(study.left_out, console)
        study.prepare()
        cells = study.cells()
        counted = Counted(cells)
        with watched(cells, chosen, console) as outcomes:
            for outcome in outcomes:
                counted.count(outcome)  # a whole run is in the folder by now
        counted.say_if_stopped(console)
    runs = study.kept()
    if not runs:
        counted.require_all()
    flags = {
        "--data": data,
        "--sensor": list(study.detectors) if len(study.detectors) > len(study.sources) else sensor,
        "--gap": "skip" if gap == "skip" else None,
        "--methods": ",".join(study.shown),
        "--model": None if model == "paper" else model,
        "--from": first,
        "--to": last,
        "--steps": steps,
        "--seed": seed,
        "--quick": quick,
    }
    command, asked = command_of("traffic", flags), len(study.detectors) * len(study.shown)
    _show(console, write_traffic(runs, out, command=command, cells=asked))
    counted.require_all()


def regret(
    out: Out = Path("reproduction/regret"),
    seed: Seed = 1,
    quick: Quick = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure local regret of lazy updates and of time-smoothed follow-the-leader, and A1 to A4.

    The play of each method is kept once it is finished. After a stop, the same command makes only
    those that are missing.

    Example: streamridge reproduce regret --quick --out regret
    """
    console = _prepared(out, quiet)
    from streamridge.experiments.regret.page import write_regret
    from streamridge.experiments.regret.play import kept_plays, players, run_regret
    from streamridge.experiments.regret.study import SIZES

    size, flags = SIZES[quick], {"--seed": seed, "--quick": quick}
    there, every = len(kept_plays(out, size, seed)), len(players(size))
    if there:
        console.print(f"{there} of {every} methods are there already.")
    try:
        study = _watched(console, lambda tell: run_regret(size, seed, tell, out))
    except KeyboardInterrupt:
        there = len(kept_plays(out, size, seed))
        console.print(f"Stopped early: {there} of {every} methods are kept in {out}.")
        raise typer.Exit(INTERRUPTED) from None
    _show(console, write_regret(study, out, command=command_of("regret", flags)))


def _matching(names: list[str]) -> list[str]:
    """Return files, those that match a pattern in the order of their names."""
    files = []
    for name in names:
        found = [name] if name == "-" or Path(name).exists() else sorted(glob(name))
        if not found and has_magic(name):
            raise InvalidInputError(f"--data must match a file, got {name!r}, which matches none.")
        files += found or [name]
    return files


def _prepared(out: Path, quiet: bool) -> Console:
    """Return the console after all that can be checked before any work."""
    require_folder("out", out)
    require_extra("matplotlib", "plot")
    require_extra("plotly", "plot")
    return Messages(quiet=quiet)


def _watched(console: Console, work: Callable[[Tell], Result]) -> Result:
    """Return the result of work that tells what it does and how much is done, with a bar each."""
    with progress_bar(console) as bars, threadpool_limits(1):
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        return work(tell)


def command_of(study: str, flags: Mapping[str, Any]) -> str:
    """Return the command that gives the same results again.

    Examples
    --------
    >>> command_of("regret", {"--seed": 1, "--steps": None, "--data": ["a b.csv"], "--quick": True})
    "streamridge reproduce regret --seed 1 --data 'a b.csv' --quick"
    """
    words = ["streamridge", "reproduce", study]
    for flag, value in flags.items():
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            for each in value if isinstance(value, list) else [value]:
                words += [flag, str(each)]
    return shlex.join(words)


def _show(console: Console, page: Path) -> None:
    console.print(f"Open {page} in a browser.", markup=False, highlight=False)
