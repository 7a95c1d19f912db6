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
from streamridge.texts import counted, html_table, visible


@dataclass(frozen=True)
class Failure:
    """A run that failed, and why."""

    sensor: str
    method: str
    reason: str

    def __str__(self) -> str:
        return visible(f"{self.sensor} ({self.method}): {self.reason}")


@dataclass(frozen=True, repr=False)
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
        return html_table(["sensor", "method", "RMSE", "against fixed", "total, s"], rows)

    def _change(self, run: Run) -> str:
        """Return the change against "fixed" as text, empty without one."""
        change = self.change(run)
        return "" if np.isnan(change) else f"{change:+.1%}"

    def __str__(self) -> str:
        names = [visible(run.sensor) for run in self.runs]
        wide = max(map(len, ["sensor", *names]))
        lines = [
            f"{'sensor':<{wide}} {'method':<8} {'RMSE':>9} {'change':>8} "
            f"{'tuning, s':>10} {'total, s':>9}"
        ]
        for name, run in zip(names, self.runs, strict=True):
            lines.append(
                f"{name:<{wide}} {run.method:<8} {run.rmse:>9.4g} {self._change(run):>8} "
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
