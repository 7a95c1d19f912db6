"""The same series under several ways of tuning: same data, same seed, same clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any, Literal

import narwhals as nw
import numpy as np

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, listed
from streamridge.files.reading import read_readings
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import parse_methods, tuned_by
from streamridge.forecaster.settings import Settings
from streamridge.plots.axes import new_figure, plain
from streamridge.plots.figures import plot_costs, plot_running_rmse
from streamridge.runs.jobs import Progress, Task, run_all
from streamridge.runs.run import BACKENDS, BASELINE, Run, change, frame_kind
from streamridge.series.clock import parse_step, parse_zone, step_name
from streamridge.series.grid import to_series
from streamridge.series.readings import Aggregate
from streamridge.series.series import Series

ModelName = Literal["default", "paper"]

# The paper's four: its own method, its two rivals, and no tuning at all.
PAPER_METHODS = ("ohl", "hoag", "random", "fixed")


@dataclass(frozen=True)
class Comparison:
    """Holds the runs of every sensor by every method; as text it is a table.

    Parameters
    ----------
    runs
        Sensor by sensor, and method by method within.
    backend
        The kind of frame that the series came in.
    """

    runs: tuple[Run, ...]
    backend: str | None = None

    def run(self, method: str, sensor: str | None = None) -> Run:
        """Return the run of a method; of the first sensor unless one is named."""
        runs = {run.method: run for run in self._of(sensor)}
        if method not in runs:
            raise InvalidInputError(f"method must be one of {listed(runs)}, got {method!r}.")
        return runs[method]

    def change(self, run: Run) -> float:
        """Return by which share a run's RMSE differs from that of "fixed"; NaN without one."""
        baselines = {each.sensor: each for each in self.runs if each.method == BASELINE}
        return change(run, baselines.get(run.sensor))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of figures per run."""
        wanted = ("sensor", "method", "scored", "rmse", "mae", "coverage", "fits", "gradients")
        costs = ("seconds_tuning", "seconds_total")
        return [
            {name: record[name] for name in wanted}
            | {"against_fixed": self.change(run)}
            | {name: record[name] for name in costs}
            for run in self.runs
            for record in (run.record(),)
        ]

    def frame(self, backend: str | None = None) -> Any:
        """Return `rows` as a frame of the kind that the series came in, or of another."""
        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        kind = import_module(frame_kind(backend or self.backend))
        return nw.from_dict(columns, backend=kind).to_native()

    def plot(self, sensor: str | None = None) -> Any:
        """Return a figure of RMSE(t) per method, and of where the seconds went."""
        runs = self._of(sensor)
        figure = new_figure(2)
        above, below = figure.axes
        errors = {run.method: run.errors_in_time for run in runs}
        plot_running_rmse(above, errors, steps_a_day=runs[0].day).set_title(plain(runs[0].sensor))
        plot_costs(below, {run.method: run.seconds_by_kind() for run in runs})
        return figure

    def __str__(self) -> str:
        wide = max(map(len, ["sensor", *(run.sensor for run in self.runs)]))
        lines = [
            f"{'sensor':<{wide}} {'method':<8} {'RMSE':>9} {'change':>8} "
            f"{'tuning, s':>10} {'total, s':>9}"
        ]
        for run in self.runs:
            change = self.change(run)
            lines.append(
                f"{run.sensor:<{wide}} {run.method:<8} {run.rmse:>9.4g} "
                f"{'' if np.isnan(change) else f'{change:+.1%}':>8} "
                f"{run.costs.tuning:>10.1f} {run.seconds:>9.1f}"
            )
        return "\n".join(lines)

    def _of(self, sensor: str | None) -> list[Run]:
        """Return the runs of a sensor, the first unless one is named."""
        names = list(dict.fromkeys(run.sensor for run in self.runs))
        if sensor is not None and sensor not in names:
            raise InvalidInputError(f"sensor must be one of {listed(names)}, got {sensor!r}.")
        return [run for run in self.runs if run.sensor == (sensor or names[0])]


def compare(
    series: Any,
    methods: Iterable[str] = PAPER_METHODS,
    *,
    model: ModelName = "default",
    step: str | timedelta | None = None,
    sensors: Iterable[str] | None = None,
    aggregate: Aggregate | None = None,
    warmup: int | None = None,
    steps: int | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    **settings: Any,
) -> Comparison:
    """Return what several ways of tuning make of the same series.

    Parameters
    ----------
    series
        A `Series` or several, a pandas or polars frame or series, or the path of a file.
    methods
        Of "ohl", "hoag", "random", "grid", "bayes" and "fixed".
    model
        The "default" model, or the "paper"'s.
    step
        Time between readings; found by default.
    sensors
        Which ones; all by default.
    aggregate
        How finer readings make a value of a step: "sum", "mean" or "last".
    warmup, steps
        Steps before the first scored one, and how many are scored at most.
    jobs
        Processes; the results do not depend on it.
    progress
        Called with a run's number and how many of its steps are done.
    settings
        Further ones of `Forecaster`, the same for all methods: `train_size`, `tune_every`,
        `seed`, ...

    Notes
    -----
    Ctrl-C ends early with what there is: the last run is cut short, and runs after it are missing.

    Examples
    --------
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=6)
    >>> table = compare(roads.frame(), ["ohl", "random", "fixed"], train_size=96, tune_every=96)
    >>> [row["method"] for row in table.rows()], table.run("random").counts["tunings"]
    (['ohl', 'random', 'fixed'], 3)
    """
    names = parse_methods([methods] if isinstance(methods, str) else methods)
    if warmup is not None:
        require_count("warmup", warmup, least=0)
    if steps is not None:
        require_count("steps", steps)
    tasks = [
        Task(
            each,
            tuned_by(name, model_settings(model, each.clock.step, **settings)),
            name,
            warmup,
            steps,
        )
        for each in _series(series, step, sensors, aggregate, settings)
        for name in names
    ]
    for task in tasks:
        if len(task.series) <= task.first:
            raise InvalidInputError(
                f"{task.series.sensor}: the series must have more than the {task.first} steps of "
                f"the warm-up, got {len(task.series)}."
            )
    runs = run_all(tasks, jobs=jobs, progress=progress or (lambda number, done: None))
    if not runs:
        raise KeyboardInterrupt  # stopped before anything was there
    module = type(series).__module__.partition(".")[0]
    return Comparison(tuple(runs), module if module in BACKENDS else None)


def model_settings(model: ModelName, step: timedelta, **settings: Any) -> Settings:
    """Return the settings of a ready-made model; those that are None keep their default."""
    if model not in ("default", "paper"):
        raise InvalidInputError(f"model must be 'default' or 'paper', got {model!r}.")
    make = Forecaster if model == "default" else Forecaster.paper
    given = {name: value for name, value in settings.items() if value is not None}
    return make(step, **given).settings


def _series(
    source: Any,
    step: str | timedelta | None,
    sensors: Iterable[str] | None,
    aggregate: Aggregate | None,
    settings: Mapping[str, Any],
) -> Sequence[Series]:
    length = None if step is None else parse_step(step)
    every = source if isinstance(source, list | tuple) else [source]
    if all(isinstance(each, Series) for each in every):
        return _chosen(every, length, sensors)
    readings = read_readings(source, sensors=sensors, extras=settings.get("extras") or ())
    zone = parse_zone(settings.get("tz"))
    return [to_series(each, step=length, zone=zone, aggregate=aggregate) for each in readings]


def _chosen(
    every: Sequence[Series], step: timedelta | None, sensors: Iterable[str] | None
) -> Sequence[Series]:
    """Return those that are asked for of series that are regular already."""
    if not every:
        raise InvalidInputError("series must hold at least one sensor, got none.")
    for each in every:
        if step not in (None, each.clock.step):
            raise InvalidInputError(
                f"{each.sensor}: step must be that of the series, {step_name(each.clock.step)}, "
                f"got {step_name(step)}."
            )
    if sensors is None:
        return every
    by_name = {each.sensor: each for each in every}
    asked = [sensors] if isinstance(sensors, str) else list(sensors)
    for name in asked:
        if name not in by_name:
            raise InvalidInputError(f"sensors must be among {listed(by_name)}, got {name!r}.")
    return [by_name[name] for name in asked]
