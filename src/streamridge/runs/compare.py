"""Several tuning methods on the same series, with the same seed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

import narwhals as nw
import numpy as np

from streamridge.errors import (
    InvalidInputError,
    StreamRidgeError,
    counted,
    html_table,
    listed,
    visible,
    warn,
)
from streamridge.files.frames import frame_library
from streamridge.files.reading import LeftOut, read_series
from streamridge.files.reading_options import (
    OPTION_NAMES,
    ReadingOptions,
    reading_arguments,
    require_options,
)
from streamridge.forecaster.forecast import named
from streamridge.forecaster.methods import parse_methods
from streamridge.plots.axes import new_figure, plain
from streamridge.plots.figures import plot_costs, plot_running_rmse
from streamridge.runs.engines import Engine
from streamridge.runs.run import BASELINE, Run, backend_of, change
from streamridge.runs.run_folder import with_stored_runs
from streamridge.runs.run_tasks import TaskProgress, parse_engine, run_tasks
from streamridge.runs.tasks import (
    SHARED_SETTINGS,
    ModelName,
    RunArguments,
    Task,
    TaskOutcome,
    make_tasks,
    named_methods,
)
from streamridge.series.spans import GivenSpan, parse_spans
from streamridge.series.zones import parse_zone

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # silent unless the user sets up logging

# The methods of the paper: its own, two rivals, and no tuning.
PAPER_METHODS = ("ohl", "hoag", "random", "fixed")


class CompareArguments(RunArguments, total=False):
    """The reading options and settings that `compare` accepts."""

    horizon: int


@dataclass(frozen=True)
class Failure:
    """A run that failed, and the reason."""

    sensor: str
    method: str
    reason: str

    def __str__(self) -> str:
        return visible(f"{self.sensor} ({self.method}): {self.reason}")


@dataclass(frozen=True, repr=False)
class Comparison:
    """The runs of all sensors and methods; `print` shows them as a table.

    Parameters
    ----------
    runs
        The runs, sensor by sensor.
    backend
        The library of the frame that the series came from.
    left_out
        Sensors that were not run, with the reason.
    failures
        Runs that failed, with the reason.
    missing
        Runs that were not made because of Ctrl-C, such as "ramp-3 (hoag)".
    """

    runs: tuple[Run, ...]
    backend: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    failures: tuple[Failure, ...] = ()
    missing: tuple[str, ...] = ()

    def run(self, method: str, sensor: str | None = None) -> Run:
        """Return the run of a method and a sensor, by default the first sensor."""
        runs = {run.method: run for run in self._of(sensor)}
        if method not in runs:
            raise InvalidInputError(f"method must be one of {listed(runs)}, got {method!r}.")
        return runs[method]

    def change(self, run: Run) -> float:
        """Return the relative change of a run's RMSE from the method "fixed"; NaN without one."""
        baselines = {each.sensor: each for each in self.runs if each.method == BASELINE}
        return change(run, baselines.get(run.sensor))

    def rows(self) -> list[dict[str, Any]]:
        """Return the results of each run as a row of plain values."""
        return [self._row(run) for run in self.runs]

    def _row(self, run: Run) -> dict[str, Any]:
        record, coverages = run.record(), named("coverage", run.levels, run.levels)
        names = ("sensor", "method", "scored", "rmse", "mae", *coverages, "fits", "gradients")
        return {
            **{name: record[name] for name in names},
            "against_fixed": self.change(run),
            **{name: record[name] for name in ("seconds_tuning", "seconds_total")},
        }

    def frame(self, backend: str | None = None) -> Any:
        """Return `rows` as a frame of the library that the series came from, or of another."""
        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        kind = import_module(frame_library(backend or self.backend))
        return nw.from_dict(columns, backend=kind).to_native()

    def plot(self, sensor: str | None = None) -> Any:
        """Return a figure of RMSE(t) and of the running time of each method."""
        runs = self._of(sensor)
        figure = new_figure(2)
        above, below = figure.axes
        errors = {run.method: run.errors_in_time for run in runs}
        first = runs[0]
        plot_running_rmse(above, errors, steps_a_day=first.day, in_days=first.has_hours)
        above.set_title(plain(first.sensor))
        plot_costs(below, {run.method: run.seconds_by_kind() for run in runs})
        return figure

    def __repr__(self) -> str:
        sensors, methods = (
            list(dict.fromkeys(getattr(run, name) for run in self.runs))
            for name in ("sensor", "method")
        )
        unmade = {name: len(getattr(self, name)) for name in ("left_out", "failures", "missing")}
        less = "".join(f", {name}={count}" for name, count in unmade.items() if count)
        return (
            f"Comparison({counted(len(self.runs), 'run')} of {listed(sensors)} "
            f"by {listed(methods)}{less})"
        )

    def _repr_html_(self) -> str:
        rows = [
            [run.sensor, run.method, f"{run.rmse:.4g}", self._change(run), f"{run.seconds:.1f}"]
            for run in self.runs
        ]
        return html_table(["sensor", "method", "RMSE", "against fixed", "total (s)"], rows)

    def _change(self, run: Run) -> str:
        """Return the change against "fixed" as text, empty without one."""
        change = self.change(run)
        return "" if np.isnan(change) else f"{change:+.1%}"

    def __str__(self) -> str:
        names = [visible(run.sensor) for run in self.runs]
        wide = max(map(len, ["sensor", *names]))
        lines = [
            f"{'sensor':<{wide}} {'method':<8} {'RMSE':>9} {'change':>8} "
            f"{'tuning (s)':>10} {'total (s)':>9}"
        ]
        for name, run in zip(names, self.runs, strict=True):
            lines.append(
                f"{name:<{wide}} {run.method:<8} {run.rmse:>9.4g} {self._change(run):>8} "
                f"{run.costs.tuning:>10.1f} {run.seconds:>9.1f}"
            )
        return "\n".join(lines)

    def _of(self, sensor: str | None) -> list[Run]:
        """Return the runs of a sensor, by default the first."""
        names = list(dict.fromkeys(run.sensor for run in self.runs))
        if sensor is not None and sensor not in names:
            raise InvalidInputError(f"sensor must be one of {listed(names)}, got {sensor!r}.")
        return [run for run in self.runs if run.sensor == (sensor or names[0])]


@reading_arguments()
def compare(
    series: Any,
    methods: Iterable[str] = PAPER_METHODS,
    *,
    model: ModelName = "default",
    warmup: int | None = None,
    steps: int | None = None,
    last_steps: int | None = None,
    exclude: Iterable[GivenSpan] = (),
    jobs: int = 1,
    engine: str | Engine | Executor = "local",
    keep: str | Path | None = None,
    progress: TaskProgress | None = None,
    **options: Unpack[CompareArguments],
) -> Comparison:
    """Return the runs of several tuning methods on the same series.

    Parameters
    ----------
    series
        A `Series` or several, a pandas or polars frame or series, or the path of a file.
    methods
        Names among "ohl", "ohl+", "hoag", "random", "grid", "bayes" and "fixed". "last" and "week"
        are naive forecasts: the last reading, and the reading a week ago.
    model
        The "default" model, the "compact" or the "long" one, or the model of the "paper";
        "paper-prototype" has the settings of the public code of its first author.
    warmup, steps
        The number of steps before the first scored step, and the most steps to score.
    last_steps
        Score only this many steps at the end of each series. All steps before are the warm-up.
    exclude
        Spans such as "2021-06-13T08:00/2021-06-14", or pairs of times, that are forecast, but
        neither learned from nor scored.
    jobs
        The number of processes; the results do not depend on it.
    engine
        "local", "dask", an engine such as `DaskEngine("tls://...")`, or any
        `concurrent.futures.Executor`. The results do not depend on it.
    keep
        A folder that stores each complete run: the same call makes only the missing runs.
    progress
        Called with the number of a run and the number of its steps that are done.
    options
        The reading options: see `ReadingOptions`. All others are settings of `Forecaster` for all
        methods, such as `train_size`, `tune_every`, `level`, `bounds`, `holidays` and `seed`;
        `hyperparameters` are initial values such as {"regularization": 0.01}.

    Notes
    -----
    A sensor whose series is not longer than the warm-up is left out. A run that fails does not stop
    the others: see `Comparison`. Decisions about the format of the data that you may want to check
    are warnings. Ctrl-C ends early: running runs are cut short, and later runs are
    missing.

    Examples
    --------
    >>> import numpy as np
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=6)
    >>> table = compare(roads.frame(), ["ohl", "random", "fixed"], train_size=96, tune_every=96)
    >>> [row["method"] for row in table.rows()], table.run("random").counts["tunings"]
    (['ohl', 'random', 'fixed'], 3)
    """
    names = parse_methods([methods] if isinstance(methods, str) else methods)
    require_options("compare", options, (*OPTION_NAMES, *SHARED_SETTINGS))
    chosen = parse_engine(engine, jobs=jobs)
    given = dict[str, Any](options)
    reading = {name: given.pop(name) for name in OPTION_NAMES if name in given}
    shared = {name: reading[name] for name in ("tz", "extras") if name in reading}
    chosen_reading = ReadingOptions.of(reading)
    spans = parse_spans(exclude, parse_zone(chosen_reading.tz))
    settings = named_methods(model, names, **given, **shared)
    read = read_series(series, chosen_reading)
    tasks, left_out = make_tasks(
        read, settings, warmup=warmup, steps=steps, last_steps=last_steps, exclude=spans
    )
    if keep is not None:
        tasks = with_stored_runs(Path(keep), tasks)
    warn(read.notes)
    for sensor in left_out:
        logger.warning("%s", sensor)
    outcomes = list(run_tasks(tasks, chosen, progress))
    return _comparison(tasks, outcomes, backend_of(series), left_out)


def _comparison(
    tasks: Sequence[Task],
    outcomes: Sequence[TaskOutcome],
    backend: str | None,
    left_out: tuple[LeftOut, ...],
) -> Comparison:
    """Return the comparison of some outcomes; raise if no task has a run."""
    failed = [(tasks[outcome.number], outcome.error) for outcome in outcomes]
    failures = tuple(
        Failure(task.series.sensor, task.method, error) for task, error in failed if error
    )
    for failure in failures:
        logger.error("%s", failure)
    runs = tuple(outcome.run for outcome in outcomes if outcome.run is not None)
    if not runs and failures:
        raise StreamRidgeError(f"every run failed, the first one: {failures[0]}")
    if not runs:
        raise KeyboardInterrupt  # interrupted before there was a result
    numbers = {outcome.number for outcome in outcomes}
    missing = tuple(
        f"{task.series.sensor} ({task.method})"
        for number, task in enumerate(tasks)
        if number not in numbers
    )
    return Comparison(runs, backend, left_out, failures, missing)
