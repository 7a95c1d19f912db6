"""Runs of several sensors by several methods, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np

from streamridge.errors import InvalidInputError, listed
from streamridge.files.framing import frame_kind
from streamridge.forecaster.levels import named
from streamridge.plots.axes import new_figure, plain
from streamridge.plots.figures import plot_costs, plot_running_rmse
from streamridge.runs.run import BASELINE, Run, change
from streamridge.runs.sources import LeftOut


@dataclass(frozen=True)
class Failure:
    """A run that failed, and why."""

    sensor: str
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.sensor} ({self.method}): {self.reason}"


@dataclass(frozen=True)
class Comparison:
    """The runs of every sensor by every method; as text it is a table.

    Parameters
    ----------
    runs
        Sensor by sensor, and method by method within.
    backend
        The kind of frame that the series came in.
    left_out
        Sensors that were not run, and why.
    failures
        Runs that failed, and why.
    missing
        Runs that were not made because Ctrl-C came first, such as "ramp-3 (hoag)".
    """

    runs: tuple[Run, ...]
    backend: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    failures: tuple[Failure, ...] = ()
    missing: tuple[str, ...] = ()

    def run(self, method: str, sensor: str | None = None) -> Run:
        """Return the run of a method; of the first sensor unless one is named."""
        runs = {run.method: run for run in self._of(sensor)}
        if method not in runs:
            raise InvalidInputError(f"method must be one of {listed(runs)}, got {method!r}.")
        return runs[method]

    def change(self, run: Run) -> float:
        """Return the relative change of a run's RMSE from that of "fixed"; NaN without one."""
        baselines = {each.sensor: each for each in self.runs if each.method == BASELINE}
        return change(run, baselines.get(run.sensor))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of figures per run."""
        costs = ("seconds_tuning", "seconds_total")
        return [
            {name: record[name] for name in _figures(run)}
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
        first = runs[0]
        plot_running_rmse(above, errors, steps_a_day=first.day, in_days=first.has_hours)
        above.set_title(plain(first.sensor))
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


def _figures(run: Run) -> list[str]:
    """Return the names of a run's figures; with several levels there is a coverage for each."""
    shares = named("coverage", run.levels, run.levels)
    return ["sensor", "method", "scored", "rmse", "mae", *shares, "fits", "gradients"]
