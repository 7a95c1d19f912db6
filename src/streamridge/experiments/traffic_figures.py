"""Figures of the traffic study: what every method costs, and RMSE(t) of every detector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.breakdowns import running_curve
from streamridge.experiments.traffic_results import BASELINE, OURS, TrafficResults
from streamridge.plots import COLORS, matplotlib_part, plain, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "FIXED": {"color": COLORS[7], "ls": ":"},
    "OHL": {"color": COLORS[1], "ls": "-"},
    "HOAG": {"color": COLORS[0], "ls": "--"},
    "RDS": {"color": COLORS[2], "ls": "-."},
    "GRID": {"color": COLORS[4], "ls": (0, (5, 1))},
    "BAYES": {"color": COLORS[3], "ls": (0, (1, 1))},
    "DEFAULT": {"color": COLORS[5], "ls": "-"},
}


def figure_of_runtimes(results: TrafficResults) -> Figure:
    """Return the seconds of every detector, in total and of tuning alone, with their averages.

    Detectors are ordered by the total of OHL, as in the paper.
    """
    figure: Figure = matplotlib_part("figure").Figure(figsize=(9.0, 3.6), layout="constrained")
    total, tuning = figure.subplots(1, 2)
    seconds = {method: _seconds(results, method) for method in results.methods}
    plot_runtimes(total, {method: both[:, 0] for method, both in seconds.items()})
    tuned = {method: both[:, 1] for method, both in seconds.items() if method != BASELINE}
    plot_runtimes(tuning, tuned)
    total.set_title("whole run")
    tuning.set_title("tuning alone")
    return figure


def plot_runtimes(axes: Axes, seconds_by_method: Mapping[str, Vector]) -> Axes:
    """Draw a bar per detector and method on a logarithmic axis; the legend has the averages."""
    width = 0.84 / max(1, len(seconds_by_method))
    for i, (method, seconds) in enumerate(seconds_by_method.items()):
        at = np.arange(1, 1 + len(seconds)) - 0.42 + (i + 0.5) * width
        label = f"{plain(method)}, mean {np.nanmean(seconds):.3g} s"
        axes.bar(at, seconds, width, color=_look(method)["color"], label=label)
    axes.set(xlabel="detector, by total time of OHL", ylabel="seconds", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.3)  # room for the legend
    axes.set_xticks(range(1, 1 + max(map(len, seconds_by_method.values()))))
    axes.legend(loc="upper left", ncols=2, fontsize=8, frameon=False)
    return axes


def figure_of_errors(results: TrafficResults, *, unit: str = "") -> Figure:
    """Return RMSE(t) of every method, an axes per detector."""
    rows = -(-len(results.sensors) // COLUMNS)
    columns = min(COLUMNS, len(results.sensors))
    figure: Figure = matplotlib_part("figure").Figure(
        figsize=(2.6 * columns + 0.4, 2.0 * rows + 0.6), layout="constrained"
    )
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axes, sensor in zip(grid, results.sensors, strict=False):
        plot_errors(axes, results, sensor)
    for axes in grid[len(results.sensors) :]:
        axes.remove()
    figure.supxlabel("prediction step t", fontsize="medium")
    figure.supylabel(plain(with_unit("RMSE(t)", unit)), fontsize="medium")
    lines = {str(line.get_label()): line for axes in figure.axes for line in axes.get_lines()}
    handles, labels = list(lines.values()), list(lines)
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def plot_errors(axes: Axes, results: TrafficResults, sensor: str) -> Axes:
    """Draw RMSE(t) of every method on one detector, from the end of the first day on."""
    for run in (run for run in results.runs if run.sensor == sensor):
        at, curve = running_curve(run.actual - run.value[:, 0], run.day)
        axes.plot(at + 1, curve, label=run.method, lw=1.4, **_look(run.method))
    axes.set_title(plain(sensor), fontsize="small")
    axes.tick_params(labelsize="small")
    axes.margins(x=0)
    return axes


def _seconds(results: TrafficResults, method: str) -> Matrix:
    """Return the seconds of every detector, total and tuning, ordered by OHL's total; (n, 2)."""
    ours, runs = results.of(OURS), results.of(method)
    order = sorted(results.sensors, key=lambda name: ours[name].seconds if name in ours else np.inf)
    missing = (np.nan, np.nan)
    return np.array(
        [(runs[s].seconds, runs[s].costs.tuning) if s in runs else missing for s in order]
    )


def _look(method: str) -> Mapping[str, Any]:
    """Return a method's colour and dashes; a change of a method has its colour, and dots."""
    base, _, change = method.partition(",")
    look = LOOKS.get(base, LOOKS[BASELINE])
    return {**look, "ls": ":"} if change else look
