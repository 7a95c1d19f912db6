"""One picture of self-tuning: a road that changes, and how the methods live through it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamridge.plots.axes import INK, matplotlib_part, new_figure, plain
from streamridge.plots.figures import plot_band, plot_recent_rmse
from streamridge.plots.tuning import plot_paths
from streamridge.report.images import DOTS_PER_INCH
from streamridge.report.sensors import SensorRuns, recent_rmse
from streamridge.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Days before and after the change whose forecasts are shown.
BEFORE, AFTER = 3, 4
# Its errors are so large after a change that those of the others would look alike beside them.
LEFT_OUT = "week"


def write_showcase(
    sensor: SensorRuns,
    path: Path,
    *,
    moment: np.datetime64,
    event: str,
    hyperparameter: str,
    unit: str = "",
) -> None:
    """Write a picture of forecasts around a moment, recent errors, and a hyperparameter.

    Parameters
    ----------
    sensor
        Its runs; the forecasts are those of the one that is shown first.
    path
        The PNG file.
    moment, event
        When the road changes, and how that is called.
    hyperparameter
        The one that is drawn, by its name.
    unit
        Of the readings.
    """
    figure = new_figure(3, height_per_row=2.5)
    first, second, third = figure.axes
    _draw_forecasts(first, sensor.lead, moment, unit)
    errors = {run.method: recent_rmse(run) for run in sensor.scored if run.method != LEFT_OUT}
    plot_recent_rmse(second, errors, unit=unit)
    second.set(title="RMSE of the last three days", ylabel=plain(unit) or "RMSE")
    paths = {
        run.method: (run.refit_times, run.path[hyperparameter])
        for run in sensor.runs
        if run.path is not None
    }
    plot_paths(third, paths, name=hyperparameter)
    third.set(title=plain(f"{hyperparameter}, from a start that is off"))
    at = matplotlib_part("dates").date2num(moment)
    for axes in figure.axes:
        axes.axvline(at, color=INK, lw=1.2, ls="--")
        axes.set(xlabel="")
    first.text(at, 0.88, f"  {event}", transform=first.get_xaxis_transform(), va="center")
    figure.savefig(path, dpi=DOTS_PER_INCH)


def _draw_forecasts(axes: Axes, run: Run, moment: np.datetime64, unit: str) -> None:
    day = np.timedelta64(1, "D")
    shown = (run.times >= moment - BEFORE * day) & (run.times < moment + AFTER * day)
    band = (run.value[shown, 0], run.lower[shown, 0], run.upper[shown, 0])
    times, actual = run.times[shown], run.actual[shown]
    plot_band(axes, times, actual, *band, unit=unit, levels=run.levels, method=run.method)
    axes.set(title=plain(f"{run.sensor}: forecasts of {run.method}, one step ahead"))
