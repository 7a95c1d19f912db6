"""Figures of the experiment on local regret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamridge.experiments.regret.play import STILL
from streamridge.experiments.regret.study import Curve
from streamridge.plots.axes import COLORS, INK, line_style, log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^v"


def plot_regret(axes: Axes, curves: Sequence[Curve]) -> Axes:
    """Draw R_T / T against T, with one line per method."""
    for i, curve in enumerate(curves):
        axes.plot(curve.times, curve.regret, label=curve.name, **_look(i, curve))
    axes.set(xlabel="steps $T$", ylabel="local regret per step, $R_T / T$")
    axes.margins(x=0)
    log_axis(axes, "x")
    log_axis(axes)
    _legend_below(axes, len(curves))
    return axes


def plot_refits(axes: Axes, curves: Sequence[Curve]) -> Axes:
    """Draw the number of refits against the regret per step, with two points per method.

    The open point is the mean of all steps, the full one that of the second half.
    """
    for i, curve in enumerate(curves):
        color = _look(i, curve)["color"]
        look: dict[str, Any] = {"color": color, "marker": MARKERS[i % len(MARKERS)], "ms": 7}
        ends = (curve.regret[-1], curve.late_regret)
        axes.plot([curve.refits] * 2, ends, lw=1, color=color)
        axes.plot(curve.refits, ends[0], mfc="white", ls="none", **look)
        axes.plot(curve.refits, ends[1], ls="none", label=curve.name, **look)
    axes.plot([], [], "o", mfc="white", color=INK, label="mean of all steps")
    axes.plot([], [], "o", color=INK, label="mean of the second half")
    axes.set(xlabel="number of refits", ylabel="local regret per step, $R_T / T$")
    log_axis(axes, "x")
    log_axis(axes)
    _legend_below(axes, len(curves) + 2)
    return axes


def _look(i: int, curve: Curve) -> dict[str, Any]:
    """Return the look of a line; that of the method that never moves is thin and grey."""
    if curve.name == STILL:
        return {"color": COLORS[-1], "linestyle": "-", "lw": 1.0}
    return line_style(i)


def _legend_below(axes: Axes, entries: int) -> None:
    """Put the legend below the axes, where it hides no line."""
    columns = 2 if entries > 4 else entries
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.45, -0.15), ncols=columns, frameon=False, fontsize=9
    )
