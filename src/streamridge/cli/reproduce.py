"""`streamridge reproduce`: the experiments of the paper, each with a folder and a page."""

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
from streamridge.cli.commands import INTERRUPTED, require_extra
from streamridge.cli.output_files import require_folder
from streamridge.cli.progress import progress_bar, run_with_progress
from streamridge.cli.results import Completion
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError
from streamridge.experiments.traffic.methods import METHODS, PAPER_METHODS
from streamridge.experiments.traffic.study import FULL, QUICK, STEP, make_study, simulated_series
from streamridge.files.reading import read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.methods import PublishedName, parse_names
from streamridge.runs.run_tasks import parse_engine
from streamridge.series.aggregation import summed_to

Result = TypeVar("Result")
# Called with the name of the current work, and the numbers of finished and of all steps.
NamedProgress = Callable[[str, int, int], None]

Quick = Annotated[bool, typer.Option("--quick", help="Run a small version in a minute or two.")]
Seed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Seed of the series and of random draws.")
]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for tables, figures and a page.")]
StudyMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "--methods",
        metavar="NAME[,NAME...]",
        help=f"Tuning methods: {', '.join(METHODS)}. Repeat the flag for several, or separate them "
        "by commas. By default the methods of the paper.",
    ),
]
PaperModel = Annotated[
    PublishedName,
    typer.Option(
        "--model",
        help="Settings of the paper's model: as printed in the paper, or as in the public code of "
        "its first author.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="File of real detectors, or a quoted pattern such as 'd07_*.txt.gz'. Repeat the flag "
        "for several. Counts of shorter steps are summed to 15 minutes. By default detectors are "
        "simulated.",
    ),
]


def synthetic(
    out: Out = Path("reproduction/synthetic"),
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of series, with seeds from 0.")
    ] = 30,
    quick: Quick = False,
    quiet: options.Quiet = False,
) -> None:
    """Repeat the figure of synthetic series: FIXED and OHL from the same start, with two kernels.

    Example: streamridge reproduce synthetic --quick --out synthetic
    """
    console = _prepare(out, quiet)
    from streamridge.experiments.synthetic.page import write_synthetic
    from streamridge.experiments.synthetic.panels import OTHER_PANELS, PANELS
    from streamridge.experiments.synthetic.study import run_synthetic

    panels = PANELS if quick else (*PANELS, *OTHER_PANELS)
    count = min(seeds, 3) if quick else seeds
    flags = {"--seeds": count, "--quick": quick}
    results = _with_progress(
        console,
        lambda report: run_synthetic(
            range(count), panels=panels, progress=partial(report, "series")
        ),
    )
    if not results:
        raise typer.Exit(INTERRUPTED)
    command, requested = command_of("synthetic", flags), count * len(panels)
    _print_page(write_synthetic(results, out, command=command, requested=requested), console)
    if len(results) < requested:
        raise typer.Exit(INTERRUPTED)


def traffic(
    out: Out = Path("reproduction/traffic"),
    data: Data = None,
    method: StudyMethods = None,
    model: PaperModel = "paper",
    steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of steps to score.")
    ] = None,
    seed: Seed = 0,
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    scheduler: options.Scheduler = None,
    quick: Quick = False,
    quiet: options.Quiet = False,
    **reading: Any,
) -> None:
    """Repeat the traffic study: OHL, HOAG, RDS and FIXED on 13 detectors, with running times.

    Every complete run is stored. After an interruption, the same command continues with the missing
    runs.

    Example: streamridge reproduce traffic --quick --methods fixed,ohl,random --out study
    """
    console = _prepare(out, quiet)
    from streamridge.experiments.traffic.page import write_traffic

    runner = parse_engine(engine, jobs=jobs, scheduler=scheduler)
    methods = parse_names(method or PAPER_METHODS, METHODS)  # before files are read
    size = QUICK if quick else FULL
    size = size if steps is None else replace(size, steps=steps)
    if not data and any(reading[name] for name in ("sensors", "from_", "to")):
        raise InvalidInputError("--sensor, --from and --to must come with --data, got none.")
    detectors = _matching_files(data) if data else simulated_series(size, seed)
    result = read_series(detectors, ReadingOptions.of(reading))
    summed = {name: summed_to(series, STEP) for name, series in result.series.items()}
    if data:
        console.print_each(summed.values())
    result = replace(result, series=summed)
    study = make_study(out, result, size=size, methods=methods, seed=seed, model=model)
    console.print_each(study.left_out)
    study.prepare()
    cells = study.cells()
    completion = Completion(cells)
    with run_with_progress(cells, runner, console) as outcomes:
        for outcome in outcomes:
            completion.count(outcome)  # a complete run is stored by now
    completion.report_stop(console)
    runs = study.stored_runs()
    if not runs:
        completion.require_complete()
    has_more = len(study.detectors) > len(study.series)
    flags = {
        "--data": data,
        "--sensor": list(study.detectors) if has_more else reading["sensors"],
        "--gap": "skip" if reading["gap"] == "skip" else None,
        "--methods": ",".join(study.all_methods),
        "--model": None if model == "paper" else model,
        "--from": reading["from_"],
        "--to": reading["to"],
        "--steps": steps,
        "--seed": seed,
        "--quick": quick,
    }
    command, requested = command_of("traffic", flags), len(study.detectors) * len(study.all_methods)
    _print_page(write_traffic(runs, out, command=command, requested=requested), console)
    completion.require_complete()


options.with_reading_flags(traffic, only=("sensors", "gap", "from_", "to"))


def regret(
    out: Out = Path("reproduction/regret"),
    seed: Seed = 1,
    quick: Quick = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure the local regret of lazy updates and of follow-the-leader, and assumptions A1 to A4.

    The play of every method is stored when it is complete. After an interruption, the same command
    continues with the missing plays.

    Example: streamridge reproduce regret --quick --out regret
    """
    console = _prepare(out, quiet)
    from streamridge.experiments.regret.page import write_regret
    from streamridge.experiments.regret.study import SIZES, players, run_regret, stored_plays

    size, flags = SIZES[quick], {"--seed": seed, "--quick": quick}
    stored, total = len(stored_plays(out, size, seed)), len(players(size))
    if stored:
        console.print(f"{stored} of {total} methods are already stored.")
    try:
        results = _with_progress(console, lambda report: run_regret(size, seed, report, out))
    except KeyboardInterrupt:
        stored = len(stored_plays(out, size, seed))
        console.print(f"Stopped early: {stored} of {total} methods are stored in {out}.")
        raise typer.Exit(INTERRUPTED) from None
    _print_page(write_regret(results, out, command=command_of("regret", flags)), console)


def _matching_files(names: list[str]) -> list[str]:
    """Return the files, and for a pattern the matching files in alphabetical order."""
    files = []
    for name in names:
        found = [name] if name == "-" or Path(name).exists() else sorted(glob(name))
        if not found and has_magic(name):
            raise InvalidInputError(f"--data must match a file, got {name!r}, which matches none.")
        files += found or [name]
    return files


def _prepare(out: Path, quiet: bool) -> Messages:
    """Check the folder and the extras, and return the console."""
    require_folder("out", out)
    require_extra("matplotlib", "plot")
    require_extra("plotly", "plot")
    return Messages(quiet=quiet)


def _with_progress(console: Console, work: Callable[[NamedProgress], Result]) -> Result:
    """Return the result of work, with a progress bar for each of its named parts."""
    with progress_bar(console) as bars, threadpool_limits(1):
        tasks: dict[str, TaskID] = {}

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)

        return work(report)


def command_of(study: str, flags: Mapping[str, Any]) -> str:
    """Return the command that repeats a study.

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


def _print_page(page: Path, console: Console) -> None:
    console.print(f"Open {page} in a browser.")
