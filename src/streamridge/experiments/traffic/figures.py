"""Figures of the traffic study: seconds and RMSE(t) of every detector and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.experiments.traffic.results import BASELINE, OURS, TrafficResults, seconds_of
from streamridge.metrics import running_curve
from streamridge.plots.axes import COLORS, WINE, log_axis, matplotlib_part, plain, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
MOST_TICKS = 16
# If there are more methods than this, the axes are one below the other.
SIDE_BY_SIDE = 6
# Widths in a legend: of a line, and of a letter of its name.
LINE_INCHES, LETTER_INCHES = 0.65, 0.085
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "FIXED": {"color": COLORS[7], "ls": ":"},
    "OHL": {"color": COLORS[1], "ls": "-"},
    "OHL+": {"color": WINE, "ls": "-"},
    "HOAG": {"color": COLORS[0], "ls": "--"},
    "RDS": {"color": COLORS[2], "ls": "-."},
    "GRID": {"color": COLORS[4], "ls": (0, (5, 1))},
    "BAYES": {"color": COLORS[3], "ls": (0, (1, 1))},
    "DEFAULT": {"color": COLORS[5], "ls": "-"},
}


def figure_of_runtimes(results: TrafficResults) -> Figure:
    """Return a figure of the seconds of every detector, in total and for tuning, with their means.

    Detectors are ordered by the total seconds of OHL, as in the paper.
    """
    seconds = {method: _seconds(results, method) for method in results.methods}
    tuned = {method: both[:, 1] for method, both in seconds.items() if method != BASELINE}
    shown = 2 if tuned else 1
    rows, columns = (1, shown) if len(seconds) <= SIDE_BY_SIDE else (shown, 1)
    height = rows * (3.4 + 0.12 * len(seconds))
    figure: Figure = matplotlib_part("figure").Figure(figsize=(9.0, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    plot_runtimes(axes[0], {method: both[:, 0] for method, both in seconds.items()})
    axes[0].set_title("whole run")
    if tuned:
        plot_runtimes(axes[1], tuned).set_title("tuning alone")
    return figure


def plot_runtimes(axes: Axes, seconds_by_method: Mapping[str, Vector]) -> Axes:
    """Draw a bar per detector and method on a logarithmic axis; the legend shows the means."""
    looks = looks_of(tuple(seconds_by_method))
    width = 0.84 / len(looks)
    for i, (method, seconds) in enumerate(seconds_by_method.items()):
        at = np.arange(1, 1 + len(seconds)) - 0.42 + (i + 0.5) * width
        label = f"{plain(method)}, mean {np.nanmean(seconds):.3g} s"
        hatch = None if method in LOOKS else "////"
        color = looks[method]["color"]
        axes.bar(at, seconds, width, color=color, hatch=hatch, edgecolor="white", lw=0, label=label)
    axes.set(xlabel="detector, ordered by total time of OHL", ylabel="seconds")
    log_axis(axes)
    count = max(map(len, seconds_by_method.values()))
    axes.set_xticks(range(1, 1 + count, -(-count // MOST_TICKS)))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize=9, frameon=False)
    return axes


def figure_of_errors(results: TrafficResults, *, unit: str = "") -> Figure:
    """Return a figure of RMSE(t) of every method, with one axes per detector."""
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
    for axes in grid[max(0, len(results.sensors) - columns) : len(results.sensors)]:
        axes.tick_params(labelbottom=True)  # the lowest of its column
    figure.supxlabel("prediction step t", fontsize="medium")
    figure.supylabel(plain(with_unit("RMSE(t)", unit)), fontsize="medium")
    lines = {str(line.get_label()): line for axes in figure.axes for line in axes.get_lines()}
    handles, labels = list(lines.values()), list(lines)
    entry = LINE_INCHES + LETTER_INCHES * max(map(len, labels))
    ncols = max(1, min(len(labels), int(figure.get_figwidth() / entry)))
    figure.legend(handles, labels, loc="outside upper center", ncols=ncols, frameon=False)
    return figure


def plot_errors(axes: Axes, results: TrafficResults, sensor: str) -> Axes:
    """Draw RMSE(t) of every method on one detector from the end of the first day on."""
    looks = looks_of(results.methods)
    for run in (run for run in results.runs if run.sensor == sensor):
        at, curve = running_curve(run.errors_in_time, run.day)
        axes.plot(at + 1, curve, label=plain(run.method), lw=1.4, **looks[run.method])
    axes.set_title(plain(sensor), fontsize="small")
    axes.tick_params(labelsize="small")
    axes.margins(x=0)
    return axes


def _seconds(results: TrafficResults, method: str) -> Matrix:
    """Return the total and tuning seconds of every detector, ordered by OHL's total; (n, 2)."""
    ours, runs = results.of(OURS), results.of(method)
    order = sorted(results.sensors, key=lambda name: ours[name].seconds if name in ours else np.inf)
    missing = (np.nan, np.nan)
    return np.array([seconds_of(runs[name]) if name in runs else missing for name in order])


def looks_of(methods: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return colour and dashes by method; a method that is not listed gets dots and dashes."""
    looks = {method: LOOKS[method] for method in methods if method in LOOKS}
    for i, method in enumerate(method for method in methods if method not in LOOKS):
        dots = (0, (4, 1, *(1, 1) * (1 + i // len(COLORS))))
        looks[method] = {"color": COLORS[i % len(COLORS)], "ls": dots}
    return looks
