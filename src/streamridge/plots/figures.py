"""Figures of a run: forecasts, errors, coverage, costs, and hyperparameters over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    log_axis,
    matplotlib_part,
    method_look,
    method_style,
    part_color,
    plain,
    time_axis,
    with_unit,
)
from streamridge.series.times import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The vertical axes of the weights of experts and of kernels.
EXPERT_AXIS, KERNEL_AXIS = "weight in the forecast", "weight of the kernel"
# The most rows of a heat map that have a label each.
LABELLED_ROWS = 40

# Colours of tuning, fitting, predicting, and everything else.
KIND_COLORS = (*map(part_color, range(3)), "#BBBBBB")

# The colour of readings beyond an axis, and the margin of an axis.
BEYOND, MARGIN = "#B00020", 0.05

# The opacity of the widest band, the increase for each narrower band, and the maximum.
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
    """Draw actual values, forecasts and their intervals; steps without a reading are shaded.

    `lower` and `upper` are (T, L) for L levels; narrow intervals are darker. The axis omits extreme
    readings; triangles at its edge mark them.
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


def plot_next_steps(
    axes: Axes,
    recent: tuple[Times, Vector],
    times: Times,
    value: Vector,
    lower: Vector | Matrix,
    upper: Vector | Matrix,
    *,
    unit: str = "",
    levels: Sequence[float] = (),
) -> Axes:
    """Draw the forecast of the next steps with its intervals, after the recent readings."""
    color, _ = method_look("ohl")
    before, actual = recent
    if len(before):
        axes.plot(before, actual, color=INK, lw=1.3, label="actual")
        lone = lone_readings(actual)
        axes.plot(before[lone], actual[lone], ".", color=INK, ms=3)
        _shade_gaps(axes, before, actual)
    # A single step has no line and no area.
    style = "." if len(times) == 1 else "-"
    axes.plot(times, value, style, color=color, lw=1.5, label="forecast")
    if len(times) == 1:
        axes.vlines(np.repeat(times, np.size(lower)), np.ravel(lower), np.ravel(upper), color=color)
    else:
        _fill_bands(axes, times, lower, upper, levels, color)
    axes.set(ylabel=plain(unit) or "value")
    time_axis(axes, np.concatenate([before, times]))
    axes.margins(x=0.01)
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
    """Draw the share of values within their interval over time, and the nominal levels.

    The shares of a method are (T, L) for L levels; its lines have the same style.
    """
    for name, (times, shares) in curves_by_name.items():
        lines = axes.plot(times, shares, **method_style(name))
        lines[0].set_label(plain(name))
    for level in levels:
        axes.axhline(level, color=INK, lw=1, linestyle=":", label=f"level {percent(level)}%")
    axes.set(ylabel="share within the interval")
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


def plot_shares(
    axes: Axes, times: Times, shares_by_name: Mapping[str, Vector], *, label: str, **look: Any
) -> Axes:
    """Draw shares that sum to one as stacked areas, with their names above.

    With step="post" a share holds until the next time.
    """
    axes.stackplot(
        times,
        *shares_by_name.values(),
        labels=[plain(name) for name in shares_by_name],
        colors=[part_color(i) for i in range(len(shares_by_name))],
        **look,
    )
    axes.set(ylim=(0, 1), ylabel=label)
    time_axis(axes, times)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return axes


def plot_scales(axes: Axes, times: Times, values: Matrix, labels: Sequence[str]) -> Axes:
    """Draw a heat map of inverse scales; a large inverse scale means an important feature.

    The values are (n, p), for n times and p labels of features.
    """
    norm = matplotlib_part("colors").LogNorm()
    rows = np.arange(len(labels))
    mesh = axes.pcolormesh(times, rows, values.T, norm=norm, cmap="cividis", shading="nearest")
    every = -(-len(labels) // LABELLED_ROWS)
    axes.set_yticks(rows[::every], [plain(label) for label in labels[::every]], fontsize=8)
    axes.invert_yaxis()
    axes.set(ylabel="feature")
    time_axis(axes, times)
    axes.figure.colorbar(mesh, ax=axes, label="inverse scale (large: matters more)", pad=0.01)
    return axes


def plot_paths(
    axes: Axes, paths_by_method: Mapping[str, tuple[Times, Vector]], *, name: str
) -> Axes:
    """Draw one hyperparameter over time for each method."""
    for method, (times, values) in paths_by_method.items():
        axes.plot(
            times, values, drawstyle="steps-post", label=plain(method), **method_style(method)
        )
    axes.set(ylabel=plain(name))
    log_axis(axes)
    time_axis(axes, np.concatenate([times for times, _ in paths_by_method.values()]))
    legend_above_data(axes)
    return axes


def plot_hyperparameter(
    axes: Axes,
    times: Times,
    values: Vector,
    *,
    name: str,
    bound: str | None = None,
    method: str = "ohl",
) -> Axes:
    """Draw one hyperparameter over time; mark its end if it is at a "lower" or "upper" bound."""
    color, _ = method_look(method)
    axes.plot(times, values, color=color, lw=1.5, drawstyle="steps-post", label=plain(name))
    if bound:
        mark, label = "v" if bound == "lower" else "^", f"at its {bound} bound"
        axes.plot(times[-1:], values[-1:], mark, color=INK, ms=8, clip_on=False, label=label)
        axes.legend(loc="best", frameon=False)
    axes.set(ylabel=plain(name))
    if (values > 0).all():
        log_axis(axes)
    time_axis(axes, times)
    return axes


def _mark_beyond(axes: Axes, times: Times, actual: Vector, shown: tuple[float, float]) -> None:
    """Limit the axis to a range, and mark each reading beyond it by a triangle at the edge."""
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
    """Fill intervals; the widest is drawn first and is the lightest."""
    below, above = (ends.reshape(len(times), -1) for ends in (lower, upper))
    several = len(levels) > 1
    for rank, i in enumerate(np.argsort(levels)[::-1] if several else [0]):
        label = f"{percent(levels[i])}% interval" if several else "interval"
        tint = min(TINT + rank * DARKER, DARKEST)
        ends = below[:, i], above[:, i]
        axes.fill_between(times, *ends, color=color, alpha=tint, lw=0, label=label)


def _shade_gaps(axes: Axes, times: Times, actual: Vector) -> None:
    spans = gap_spans(times, actual)
    if spans:
        number = matplotlib_part("dates").date2num if times.dtype.kind == "M" else float
        bars = [(number(first), number(end) - number(first)) for first, end in spans]
        # The edge makes gaps of one step visible.
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
        axes.set_xlim(-0.5, len(heights) - 0.5)  # includes hours or days without an error
    legend_above_data(axes)
