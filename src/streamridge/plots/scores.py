"""Figures of errors by hour and by weekday, of coverage over time, and of costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from streamridge.arrays import Vector
from streamridge.metrics.breakdowns import WEEKDAYS
from streamridge.plots.forecasts import (
    COLORS,
    INK,
    date_axis,
    legend_above_data,
    line_style,
    plain,
    with_unit,
)
from streamridge.series.clock import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Tuning stands out; then fitting, predicting, and the rest.
KIND_COLORS = (COLORS[1], COLORS[0], COLORS[5], "#BBBBBB")


def plot_error_by_hour(axes: Axes, rmse_by_name: Mapping[str, Vector], *, unit: str = "") -> Axes:
    """Draw the RMSE of every method, (24,), at each hour of the day."""
    _bars(axes, rmse_by_name)
    axes.set(xlabel="hour of day", ylabel=plain(with_unit("RMSE", unit)), xticks=range(0, 24, 3))
    return axes


def plot_error_by_weekday(
    axes: Axes, rmse_by_name: Mapping[str, Vector], *, unit: str = ""
) -> Axes:
    """Draw the RMSE of every method, (7,), on each day of the week."""
    _bars(axes, rmse_by_name)
    axes.set(xlabel="day of week", ylabel=plain(with_unit("RMSE", unit)))
    axes.set_xticks(range(7), WEEKDAYS)
    return axes


def plot_rolling_coverage(
    axes: Axes, curves_by_name: Mapping[str, tuple[Times, Vector]], *, level: float
) -> Axes:
    """Draw the share of values in their band over time, against the level it should have."""
    for i, (name, (times, shares)) in enumerate(curves_by_name.items()):
        axes.plot(times, shares, label=plain(name), **line_style(i))
    axes.axhline(level, color=INK, lw=1, linestyle=":", label=f"level {level:g}")
    axes.set(ylabel="share within the band")
    date_axis(axes)
    legend_above_data(axes)
    return axes


def plot_costs(axes: Axes, seconds_by_name: Mapping[str, Mapping[str, float]]) -> Axes:
    """Draw the seconds of every method as a bar of its kinds of work."""
    rows = range(len(seconds_by_name))
    kinds = next(iter(seconds_by_name.values()), {})
    ends = np.zeros(len(rows))
    for kind, color in zip(kinds, KIND_COLORS, strict=False):
        seconds = np.array([by_kind[kind] for by_kind in seconds_by_name.values()])
        axes.barh(rows, seconds, left=ends, color=color, height=0.6, label=kind)
        ends += seconds
    axes.set_yticks(rows, [plain(name) for name in seconds_by_name])
    axes.set(xlabel="seconds", ylabel="method", xlim=(0, None))
    axes.invert_yaxis()
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return axes


def _bars(axes: Axes, heights_by_name: Mapping[str, Vector]) -> None:
    """Draw groups of bars, one bar per method."""
    width = 0.8 / max(1, len(heights_by_name))
    for i, (name, heights) in enumerate(heights_by_name.items()):
        at = np.arange(len(heights)) - 0.4 + (i + 0.5) * width
        axes.bar(at, heights, width, color=COLORS[i % len(COLORS)], label=plain(name))
    legend_above_data(axes)
