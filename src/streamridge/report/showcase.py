"""One picture of self-tuning: a road that changes, and how the methods live through it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamridge.plots.axes import INK, matplotlib_part, new_figure, plain
from streamridge.plots.figures import plot_band, plot_recent_rmse
from streamridge.plots.tuning import NameGroups, plot_moves
from streamridge.report.images import DOTS_PER_INCH
from streamridge.report.sensors import Moves, SensorRuns, moves_of, recent_rmse
from streamridge.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Days before and after the change whose forecasts are shown.
BEFORE, AFTER = 3, 4


def write_showcase(
    sensor: SensorRuns, path: Path, *, moment: np.datetime64, event: str, unit: str = ""
) -> None:
    """Write a picture of forecasts around a moment, recent errors, and the hyperparameters.

    Parameters
    ----------
    sensor
        Its runs; the one that is shown first is the one whose hyperparameters are drawn.
    path
        The PNG file.
    moment, event
        When the road changes, and how that is called.
    unit
        Of the readings.
    """
    moves = moves_of(sensor.lead)
    figure = new_figure(2 if moves is None else 3, height_per_row=2.5)
    first, second, *third = figure.axes
    _draw_forecasts(first, sensor.lead, moment)
    plot_recent_rmse(second, {run.method: recent_rmse(run) for run in sensor.scored})
    second.set(title="typical error (RMSE) of the last three days", ylabel=plain(unit) or "RMSE")
    if moves is not None:
        _draw_moves(third[0], moves, sensor.lead.times[0])
        third[0].set(xlim=second.get_xlim())
    at = matplotlib_part("dates").date2num(moment)
    for axes in figure.axes:
        axes.axvline(at, color=INK, lw=1.2, ls="--")
        axes.set(xlabel="")
    first.set(ylabel=plain(unit) or "value")
    first.text(at, 0.05, f" {event}", transform=first.get_xaxis_transform())
    figure.savefig(path, dpi=DOTS_PER_INCH)


def _draw_forecasts(axes: Axes, run: Run, moment: np.datetime64) -> None:
    day = np.timedelta64(1, "D")
    shown = (run.times >= moment - BEFORE * day) & (run.times < moment + AFTER * day)
    band = (run.value[shown, 0], run.lower[shown, 0], run.upper[shown, 0])
    plot_band(
        axes, run.times[shown], run.actual[shown], *band, levels=run.levels, method=run.method
    )
    axes.set(title=plain(f"{run.sensor}: forecasts of {run.method}, one step ahead"))


def _draw_moves(axes: Axes, moves: Moves, since: np.datetime64) -> None:
    groups = NameGroups.of(moves.path.groups)
    names = [*groups.others, *(name for each in groups.weights.values() for name in each)]
    late = moves.times >= since
    drawn = {name.replace(".", " "): moves.path[name][late] for name in names}
    plot_moves(axes, moves.times[late], drawn)
    axes.set(title=plain(f"how {moves.method} moves its hyperparameters; fixed stays at 1"))
