"""Figures of section 6.1: truth, FIXED and OHL, early and late, and how OHL learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamridge.arrays import Vector
from streamridge.experiments.synthetic.study import UPDATE_EVERY, PanelResult
from streamridge.plots.axes import COLORS, INK, line_style, log_axis, matplotlib_part, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The paper draws FIXED green and OHL red; these are similar, but safe for colour-blind readers.
LOOKS: dict[str, dict[str, Any]] = {
    "FIXED": {"color": COLORS[2], "lw": 1.9, "ls": "--"},
    "OHL": {"color": COLORS[1], "lw": 1.1, "ls": "-"},
}
EARLY, LATE = (0, 80), (400, 480)
WINDOW = 50  # steps of the sliding RMSE
PANEL_WIDTH, ROW_HEIGHT = 3.6, 2.3


def figure_of_forecasts(results: Sequence[PanelResult]) -> Figure:
    """Return a figure with a column per panel: its first steps, and below the steps after 400."""
    figure = _grid(rows=2, columns=len(results))
    for result, (early, late) in zip(results, _columns(figure, 2), strict=True):
        plot_forecasts(early, result, *EARLY).set_title(plain(result.panel))
        plot_forecasts(late, result, *LATE).set_xlabel("steps since the first forecast")
    _legend_of(figure)
    return figure


def figure_of_learning(results: Sequence[PanelResult]) -> Figure:
    """Return a figure with a column per panel: sliding RMSE, and below what OHL learned."""
    figure = _grid(rows=2, columns=len(results))
    for result, (above, below) in zip(results, _columns(figure, 2), strict=True):
        plot_sliding_rmse(above, result).set_title(plain(result.panel))
        plot_path(below, result).set_xlabel("steps since the first forecast")
    _legend_of(figure)
    return figure


def plot_forecasts(axes: Axes, result: PanelResult, first: int, end: int) -> Axes:
    """Draw truth, FIXED and OHL from step `first` up to `end`; strokes at the bottom are refits."""
    shown = slice(first, end)
    steps = np.arange(len(result.actual))[shown]
    axes.plot(steps, result.actual[shown], color=INK, lw=2.6, alpha=0.45, label="truth")
    for name, forecast in result.forecasts.items():
        axes.plot(steps, forecast[shown], label=name, **LOOKS[name])
    refits = steps[steps % UPDATE_EVERY == 0]
    axes.vlines(refits, 0, 0.03, color=INK, lw=0.8, transform=axes.get_xaxis_transform())
    axes.set(ylabel="y(t)")
    axes.margins(x=0.01)
    return axes


def plot_sliding_rmse(axes: Axes, result: PanelResult) -> Axes:
    """Draw the RMSE of FIXED and OHL over the last 50 steps."""
    for name, forecast in result.forecasts.items():
        curve = sliding_rmse(result.actual - forecast, WINDOW)
        steps = np.arange(len(result.actual))[-len(curve) :]
        axes.plot(steps, curve, label=name, **LOOKS[name])
    axes.set(ylabel=f"RMSE of {WINDOW} steps")
    log_axis(axes)
    axes.margins(x=0.01)
    return axes


def plot_path(axes: Axes, result: PanelResult) -> Axes:
    """Draw the hyperparameters that moved, on a logarithmic axis if all are positive."""
    moved = {name: at for name, at in result.path.items() if np.ptp(at) > 1e-3 * np.abs(at).max()}
    for i, (name, at) in enumerate(moved.items()):
        label = plain(name.replace("_", " "))
        axes.plot(at, drawstyle="steps-post", label=label, **line_style(i))
    if moved and min(at.min() for at in moved.values()) > 0:
        log_axis(axes)
    axes.set(ylabel="hyperparameter")
    axes.margins(x=0.01)
    if moved:
        axes.legend(loc="best", frameon=False, fontsize=8)
    return axes


def sliding_rmse(errors: Vector, window: int) -> Vector:
    """Return the RMSE of every `window` consecutive errors.

    Examples
    --------
    >>> sliding_rmse(np.array([3.0, -4.0, 0.0]), 2)
    array([3.53553391, 2.82842712])
    """
    window = min(window, len(errors))
    return np.sqrt(np.convolve(np.square(errors), np.full(window, 1 / window), "valid"))


def _grid(rows: int, columns: int) -> Figure:
    figure: Figure = matplotlib_part("figure").Figure(
        figsize=(columns * PANEL_WIDTH, rows * ROW_HEIGHT), layout="constrained"
    )
    figure.subplots(rows, columns, squeeze=False)
    return figure


def _columns(figure: Figure, rows: int) -> list[tuple[Axes, ...]]:
    """Return the axes of a grid, column by column."""
    axes = figure.axes
    count = len(axes) // rows
    return [tuple(axes[i::count]) for i in range(count)]


def _legend_of(figure: Figure) -> None:
    """Put the legend of the first axes below the whole figure."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
