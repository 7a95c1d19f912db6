"""Figures of a run: forecasts, errors, coverage and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.metrics import (
    WEEKDAYS,
    bulk_range,
    gap_spans,
    lone_readings,
    percent,
    running_curve,
)
from streamridge.plots.axes import (
    GAP,
    GAP_EDGE,
    INK,
    legend_above_data,
    matplotlib_part,
    method_look,
    method_style,
    part_color,
    plain,
    time_axis,
    with_unit,
)
from streamridge.series.clock import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of tuning, of fitting, of predicting, and of the rest.
KIND_COLORS = (*map(part_color, range(3)), "#BBBBBB")

# Readings beyond what an axis shows, and the room between what it shows and its ends.
BEYOND, MARGIN = "#B00020", 0.05

# The tint of the widest band, by how much that of each narrower one is darker, and the darkest.
TINT, DARKER, DARKEST = 0.22, 0.1, 0.6


def plot_band(
    axes: Axes,
    times: Times,
    actual: Vector,
    value: Vector,
    lower: Vector,
    upper: Vector,
    *,
    unit: str = "",
    levels: Sequence[float] = (),
    method: str = "ohl",
) -> Axes:
    """Draw actual values, forecasts and their band; steps without a reading are shaded.

    With several levels, `lower` and `upper` are (T, L), and narrow bands are darker than wide ones.
    The axis shows the bulk of what is drawn; readings beyond it are triangles at its edge.
    """
    low, high = bulk_range(actual, value, lower.ravel(), upper.ravel())
    shown = np.where((actual < low) | (actual > high), np.nan, actual)
    color, _ = method_look(method)
    axes.plot(times, shown, color=INK, lw=1.3, label="actual")
    lone = lone_readings(shown)
    axes.plot(times[lone], shown[lone], ".", color=INK, ms=3)
    axes.plot(times, value, color=color, lw=1.2, label="forecast")
    _fill_bands(axes, times, lower, upper, levels, color)
    _shade_gaps(axes, times, actual)
    _mark_beyond(axes, times, actual, (low, high))
    axes.set(ylabel=plain(unit) or "value")
    time_axis(axes, times)
    legend_above_data(axes)
    return axes


def plot_running_rmse(
    axes: Axes,
    errors_by_name: Mapping[str, Vector],
    *,
    steps_a_day: int,
    unit: str = "",
    in_days: bool = True,
) -> Axes:
    """Draw RMSE(t) of every method from the end of the first day on, over days or over steps."""
    for name, errors in errors_by_name.items():
        at, curve = running_curve(errors, steps_a_day)
        since = (at + 1) / steps_a_day if in_days else at + 1
        axes.plot(since, curve, label=plain(name), **method_style(name))
    counted = "days" if in_days else "steps"
    axes.set(xlabel=f"{counted} since the first forecast", ylabel=plain(with_unit("RMSE(t)", unit)))
    axes.margins(x=0)
    legend_above_data(axes)
    return axes


def plot_recent_rmse(
    axes: Axes, curves_by_name: Mapping[str, tuple[Times, Vector]], *, unit: str = ""
) -> Axes:
    """Draw the RMSE of every method over the last days before each step."""
    for name, (times, sizes) in curves_by_name.items():
        axes.plot(times, sizes, label=plain(name), **method_style(name))
    axes.set(ylabel=plain(with_unit("recent RMSE", unit)))
    time_axis(axes, np.concatenate([times for times, _ in curves_by_name.values()]))
    legend_above_data(axes)
    return axes


def plot_error_by_hour(axes: Axes, rmse_by_name: Mapping[str, Vector], *, unit: str = "") -> Axes:
    """Draw the RMSE of every method by hour of the day, (24,) each."""
    _bars(axes, rmse_by_name)
    axes.set(xlabel="hour of day", ylabel=plain(with_unit("RMSE", unit)), xticks=range(0, 24, 3))
    return axes


def plot_error_by_weekday(
    axes: Axes, rmse_by_name: Mapping[str, Vector], *, unit: str = ""
) -> Axes:
    """Draw the RMSE of every method by day of the week, (7,) each."""
    _bars(axes, rmse_by_name)
    axes.set(xlabel="day of week", ylabel=plain(with_unit("RMSE", unit)))
    axes.set_xticks(range(7), WEEKDAYS)
    return axes


def plot_rolling_coverage(
    axes: Axes,
    curves_by_name: Mapping[str, tuple[Times, Vector | Matrix]],
    *,
    levels: Sequence[float],
) -> Axes:
    """Draw the share of values within their band over time, and the levels it should have.

    With several levels, the shares of a method are (T, L), and its lines look the same.
    """
    for name, (times, shares) in curves_by_name.items():
        lines = axes.plot(times, shares, **method_style(name))
        lines[0].set_label(plain(name))
    for level in levels:
        axes.axhline(level, color=INK, lw=1, linestyle=":", label=f"level {level:g}")
    axes.set(ylabel="share within the band")
    time_axis(axes, np.concatenate([times for times, _ in curves_by_name.values()]))
    legend_above_data(axes)
    return axes


def plot_costs(axes: Axes, seconds_by_name: Mapping[str, Mapping[str, float]]) -> Axes:
    """Draw the seconds of every method as a stacked bar, by kind of work."""
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


def _mark_beyond(axes: Axes, times: Times, actual: Vector, shown: tuple[float, float]) -> None:
    """Show a range, with a triangle at its edge for each reading beyond it; all if none is."""
    low, high = shown
    beyond = {"^": (high, actual > high), "v": (low, actual < low)}
    if not any(out.any() for _, out in beyond.values()):
        return
    axes.set_ylim(low - MARGIN * (high - low), high + MARGIN * (high - low))
    for mark, (edge, out) in beyond.items():
        if out.any():
            label = f"beyond, to {actual[out][np.argmax(np.abs(actual[out]))]:.3g}"
            at = np.full(out.sum(), edge)
            axes.plot(times[out], at, mark, color=BEYOND, ms=6, label=label, linestyle="none")


def _fill_bands(
    axes: Axes,
    times: Times,
    lower: Vector | Matrix,
    upper: Vector | Matrix,
    levels: Sequence[float],
    color: str,
) -> None:
    """Fill bands, the widest first and the faintest."""
    below, above = (ends.reshape(len(times), -1) for ends in (lower, upper))
    several = len(levels) > 1
    for rank, i in enumerate(np.argsort(levels)[::-1] if several else [0]):
        label = f"{percent(levels[i])}% band" if several else "band"
        tint = min(TINT + rank * DARKER, DARKEST)
        ends = below[:, i], above[:, i]
        axes.fill_between(times, *ends, color=color, alpha=tint, lw=0, label=label)


def _shade_gaps(axes: Axes, times: Times, actual: Vector) -> None:
    spans = gap_spans(times, actual)
    if spans:
        number = matplotlib_part("dates").date2num if times.dtype.kind == "M" else float
        bars = [(number(first), number(end) - number(first)) for first, end in spans]
        # The edge keeps gaps of one step visible, and the legend's patch on top of a gap.
        axes.broken_barh(
            bars,
            (0, 1),
            transform=axes.get_xaxis_transform(),
            facecolor=GAP,
            edgecolor=GAP_EDGE,
            lw=0.5,
            zorder=0,
            label="no reading",
        )


def _bars(axes: Axes, heights_by_name: Mapping[str, Vector]) -> None:
    """Draw groups of bars with one bar per method."""
    width = 0.8 / max(1, len(heights_by_name))
    for i, (name, heights) in enumerate(heights_by_name.items()):
        at = np.arange(len(heights)) - 0.4 + (i + 0.5) * width
        axes.bar(at, heights, width, color=method_look(name)[0], label=plain(name))
        axes.set_xlim(-0.5, len(heights) - 0.5)  # hours or days without an error have room too
    legend_above_data(axes)
