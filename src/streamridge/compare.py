"""The same series under several ways of tuning: same data, same seed, same clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any, Literal

import narwhals as nw
import numpy as np

from streamridge.errors import InvalidInputError
from streamridge.files.reading import read_readings
from streamridge.forecaster import Forecaster
from streamridge.jobs import Progress, Task, run_all
from streamridge.messages import listed
from streamridge.methods import parse_methods, tuned_by
from streamridge.plots import new_figure, plain, plot_running_rmse
from streamridge.plots_errors import plot_costs
from streamridge.runs import BACKENDS, Run, frame_kind
from streamridge.settings import Settings
from streamridge.streams.clock import parse_step, parse_zone
from streamridge.streams.grid import to_series
from streamridge.streams.series import Series

ModelName = Literal["default", "paper"]

# The paper's four: its own method, its two rivals, and no tuning at all.
PAPER_METHODS = ("ohl", "hoag", "random", "fixed")
BASELINE = "fixed"


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
        for run in self.runs:
            if run.method == method and sensor in (None, run.sensor):
                return run
        raise InvalidInputError(
            f"method must be one of {listed(dict.fromkeys(run.method for run in self.runs))}"
            f"{'' if sensor is None else f' of {sensor!r}'}, got {method!r}."
        )

    def change(self, run: Run) -> float:
        """Return by which share a run's RMSE differs from that of "fixed"; NaN without one."""
        baselines = [r.rmse for r in self.runs if (r.method, r.sensor) == (BASELINE, run.sensor)]
        return run.rmse / baselines[0] - 1 if baselines and baselines[0] > 0 else np.nan

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
        name = sensor or self.runs[0].sensor
        runs = [run for run in self.runs if run.sensor == name]
        if not runs:
            sensors = dict.fromkeys(run.sensor for run in self.runs)
            raise InvalidInputError(f"sensor must be one of {listed(sensors)}, got {sensor!r}.")
        figure = new_figure(2)
        above, below = figure.axes
        errors = {run.method: run.actual - run.value[:, 0] for run in runs}
        plot_running_rmse(above, errors, steps_a_day=runs[0].day).set_title(plain(name))
        plot_costs(below, {run.method: run.seconds_by_kind() for run in runs})
        return figure

    def __str__(self) -> str:
        lines = [
            f"{'sensor':<16} {'method':<8} {'RMSE':>9} {'change':>8} {'tuning, s':>10} {'s':>8}"
        ]
        for run in self.runs:
            change = self.change(run)
            lines.append(
                f"{run.sensor:<16} {run.method:<8} {run.rmse:>9.4g} "
                f"{'' if np.isnan(change) else f'{change:+.1%}':>8} "
                f"{run.costs.tuning:>10.1f} {run.seconds:>8.1f}"
            )
        return "\n".join(lines)


def compare(
    series: Any,
    methods: Iterable[str] = PAPER_METHODS,
    *,
    model: ModelName = "default",
    step: str | timedelta | None = None,
    sensors: Iterable[str] | None = None,
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
    warmup, steps
        Steps before the first scored one, and how many are scored at most.
    jobs
        Processes; the results do not depend on it.
    progress
        Called with a run's number and how many of its steps are done.
    settings
        Further ones of `Forecaster`, the same for all methods: `train_size`, `tune_every`,
        `seed`, ...

    Examples
    --------
    >>> from streamridge.datasets import simulate_roads
    >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=6)
    >>> table = compare(roads.frame(), ["ohl", "random", "fixed"], train_size=96, tune_every=96)
    >>> [row["method"] for row in table.rows()], table.run("random").counts["tunings"]
    (['ohl', 'random', 'fixed'], 3)
    """
    names = parse_methods([methods] if isinstance(methods, str) else methods)
    choice = Choice(step, sensors, settings.get("tz"), tuple(settings.get("extras") or ()))
    tasks = [
        Task(
            each,
            tuned_by(name, model_settings(model, each.clock.step, **settings)),
            name,
            warmup,
            steps,
        )
        for each in _series(series, choice)
        for name in names
    ]
    runs = run_all(tasks, jobs=jobs, progress=progress or (lambda number, done: None))
    module = type(series).__module__.partition(".")[0]
    return Comparison(tuple(runs), module if module in BACKENDS else None)


def model_settings(model: ModelName, step: timedelta, **settings: Any) -> Settings:
    """Return the settings of a ready-made model; those that are None keep their default."""
    if model not in ("default", "paper"):
        raise InvalidInputError(f"model must be 'default' or 'paper', got {model!r}.")
    make = Forecaster if model == "default" else Forecaster.paper
    given = {name: value for name, value in settings.items() if value is not None}
    return make(step, **given).settings


@dataclass(frozen=True)
class Choice:
    """Says what to take of a source, and how it becomes series."""

    step: str | timedelta | None
    sensors: Iterable[str] | None
    tz: str | None
    extras: tuple[str, ...]


def _series(source: Any, choice: Choice) -> Sequence[Series]:
    if isinstance(source, Series):
        return [source]
    if isinstance(source, list | tuple) and all(isinstance(each, Series) for each in source):
        return source
    readings = read_readings(source, sensors=choice.sensors, extras=choice.extras)
    step = None if choice.step is None else parse_step(choice.step)
    return [to_series(each, step=step, zone=parse_zone(choice.tz)) for each in readings]
