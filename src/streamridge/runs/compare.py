"""The same series under several ways of tuning: same data, same seed, same clock."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamridge.errors import StreamRidgeError
from streamridge.forecaster.methods import parse_methods
from streamridge.runs.carrying import carry_out, parse_engine, started_for
from streamridge.runs.comparison import Comparison, Failure
from streamridge.runs.engines.base import Engine
from streamridge.runs.engines.work import Progress
from streamridge.runs.keeping import kept_tasks
from streamridge.runs.run import backend_of
from streamridge.runs.selection import SELECTING, require_options, selection_of
from streamridge.runs.sources import opened_sources
from streamridge.runs.tasks import ModelName, Tasks, make_tasks, ready_made, settings_of
from streamridge.series.clock import parse_zone
from streamridge.series.spans import GivenSpan, spans_of

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # what is not asked for is not printed

# The paper's four: its own method, its two rivals, and no tuning at all.
PAPER_METHODS = ("ohl", "hoag", "random", "fixed")


def compare(
    series: Any,
    methods: Iterable[str] = PAPER_METHODS,
    *,
    model: ModelName = "default",
    warmup: int | None = None,
    steps: int | None = None,
    exclude: Iterable[GivenSpan] = (),
    jobs: int = 1,
    engine: str | Engine = "local",
    keep: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Return what several ways of tuning make of the same series.

    Parameters
    ----------
    series
        A `Series` or several, a pandas or polars frame or series, or the path of a file.
    methods
        Of "ohl", "ohl+", "hoag", "random", "grid", "bayes" and "fixed"; "last" and "week" need no
        model: the last reading, and the one a week ago.
    model
        The "default" model, a "compact" or a "long" one, the "paper"'s as printed, or with the
        settings of the public code of its first author, "paper-prototype".
    warmup, steps
        Steps before the first scored one, and how many are scored at most.
    exclude
        Spans such as "2021-06-13T08:00/2021-06-14", or pairs of times, that are forecast, but
        neither learned from nor scored.
    jobs
        How many processes; the results do not depend on it.
    engine
        Where the runs are made: "local", "dask", or an engine such as `DaskEngine("tls://...")`.
        The results do not depend on it.
    keep
        A folder that keeps each run as soon as it is whole: the same call goes on with those that
        are missing.
    progress
        Called with a run's number and how many of its steps are done.
    options
        What to read, and how: `sensors` (or `sensor`), `from_`, `to`, `step`, `aggregate`, `tz`,
        `fold`, `extras`, `layout`, `gap` and the other parts of `Selection`. All others are
        settings of `Forecaster`, the same for all methods: `train_size`, `tune_every`, `level`,
        `bounds`, `holidays`, `seed`, ...; and `hyperparameters`: where some of them start, such as
        {"regularization": 0.01}.

    Notes
    -----
    A sensor whose series is not longer than the warm-up is left out, and one that fails does not
    stop the others: see `Comparison`. Ctrl-C ends early with what there is: runs under way are cut
    short, and runs after them are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=6)
    >>> table = compare(roads.frame(), ["ohl", "random", "fixed"], train_size=96, tune_every=96)
    >>> [row["method"] for row in table.rows()], table.run("random").counts["tunings"]
    (['ohl', 'random', 'fixed'], 4)
    """
    names = parse_methods([methods] if isinstance(methods, str) else methods)
    require_options("compare", options, (*SELECTING, *settings_of(model)))
    chosen = parse_engine(engine, jobs=jobs)
    read = {name: options.pop(name) for name in SELECTING if name in options}
    shared = {name: read[name] for name in ("tz", "extras") if name in read}
    selection = selection_of(read)
    spans = spans_of(exclude, parse_zone(selection.tz))
    ways = ready_made(model, names, **options, **shared)
    with opened_sources(series, selection) as sources:
        tasks = make_tasks(sources, ways, warmup=warmup, steps=steps, exclude=spans)
        if keep is not None:
            tasks = Tasks(kept_tasks(Path(keep), tasks.ready), tasks.left_out)
        return _compared(tasks, chosen, progress, backend_of(series))


def _compared(
    tasks: Tasks, engine: Engine, progress: Progress | None, backend: str | None
) -> Comparison:
    for sensor in tasks.left_out:
        logger.warning("%s", sensor)
    with started_for(tasks.ready, engine) as workers:
        tell = progress or (lambda number, done: None)
        outcomes = list(carry_out(tasks.ready, workers, tell))
    failures = tuple(
        Failure(task.source.sensor, task.method, outcome.error)
        for outcome in outcomes
        if outcome.error is not None
        for task in (tasks.ready[outcome.number],)
    )
    for failure in failures:
        logger.error("%s", failure)
    runs = tuple(outcome.run for outcome in outcomes if outcome.run is not None)
    there = {outcome.number for outcome in outcomes}
    missing = tuple(
        f"{task.source.sensor} ({task.method})"
        for number, task in enumerate(tasks.ready)
        if number not in there
    )
    if not runs and failures:
        raise StreamRidgeError(f"every run failed, the first one: {failures[0]}")
    if not runs:
        raise KeyboardInterrupt  # stopped before anything was there
    return Comparison(runs, backend, tasks.left_out, failures, missing)
