"""Interactive figures: their style, and the forecasts, errors, coverage and costs of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, TypeAlias

import numpy as np
import plotly.graph_objects as go

from streamridge.arrays import Vector
from streamridge.forecaster.forecast import in_percent
from streamridge.metrics import (
    WEEKDAYS,
    bulk_range,
    gap_spans,
    lone_readings,
    percent,
    rmse_by_hour,
    rmse_by_weekday,
    running_curve,
)
from streamridge.plots.axes import GAP, GAP_EDGE, INK, method_look, with_unit
from streamridge.plots.figures import BEYOND, KIND_COLORS, MARGIN
from streamridge.report.sensor_runs import SensorRuns, coverage_in_time, recent_rmse
from streamridge.runs.run import Band, Run
from streamridge.series.times import Times

SHOWN_DAYS = 28
# Days that the figure of forecasts shows before the reader zooms.
FIRST_VIEW_DAYS = 5
# More forecasts would make the page slow; 28 days of five-minute steps have this many.
MOST_FORECASTS = 8064
HOURS = tuple(f"{hour:02d}" for hour in range(24))
# More points would make the page slow, and no screen could show them.
MOST_POINTS = 1500
DASHES = ("solid", "dash", "dashdot", "dot")
TIME_TITLE = "time"
TIME_FORMAT = "%a %d %b %Y %H:%M"
AXIS = {
    "gridcolor": "#E8E8E8",
    "zeroline": False,
    "automargin": True,
    "title": {"standoff": 10, "font": {"size": 13}},
}
STYLE = go.layout.Template(
    layout={
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "margin": {"l": 56, "r": 12, "t": 30, "b": 20},
        "plot_bgcolor": "white",
        "paper_bgcolor": "white",
        "hovermode": "x unified",
        "legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"},
        "xaxis": AXIS,
        "yaxis": AXIS,
    }
)


# A time, or a whole number of an index, and what happened then.
Event: TypeAlias = tuple[np.datetime64 | np.int64, str]


def mark_events(figure: go.Figure, events: Sequence[Event]) -> go.Figure:
    """Mark events in a figure over time; a figure with a slider opens at the last of them."""
    if not events or figure.layout.xaxis.title.text != TIME_TITLE:
        return figure
    axis = figure.layout.xaxis
    for time, text in events:
        (at,) = page_times(np.array([time]))
        line = {"color": INK, "width": 1.2, "dash": "dash"}
        # The label of a shape, unlike an annotation, does not widen the range of the axis.
        label = {
            "text": escape(text), "textposition": "end", "textangle": 0,
            "xanchor": "left", "yanchor": "top",
        }  # fmt: skip
        figure.add_shape(
            type="line", x0=at, x1=at, yref="paper", y0=0, y1=1, line=line, label=label
        )
        if axis.rangeslider.visible and np.issubdtype(type(time), np.datetime64):
            around = FIRST_VIEW_DAYS * np.timedelta64(12, "h")
            axis.range = page_times(np.array([time - around, time + around]))
    return figure


def make_figure(traces: Sequence[Any], *, height: int, **layout: Any) -> go.Figure:
    """Return a figure in the style of the page."""
    return go.Figure(list(traces), {"template": STYLE, "height": height, **layout})


def axis_title(text: str) -> dict[str, str]:
    """Return the title of an axis; its text is escaped."""
    return {"text": escape(text)}


def time_axis(times: Times) -> dict[str, Any]:
    """Return the horizontal axis for times: dates, or the integers of an index."""
    dates = {"type": "date", "hoverformat": TIME_FORMAT} if times.dtype.kind == "M" else {}
    return {"title": TIME_TITLE, **dates}


def page_times(times: Times) -> list[Any]:
    """Return times for the page's script: dates as text, integers unchanged."""
    if times.dtype.kind != "M":
        return times.tolist()
    return np.datetime_as_string(times, unit="s").tolist()


def method_curve(method: str, name: str, times: Times, values: Vector) -> go.Scatter:
    """Return the curve of a method, thinned to at most 1500 points."""
    thin = slice(None, None, max(1, -(-len(values) // MOST_POINTS)))
    color, dash = method_look(method)
    return go.Scatter(
        x=page_times(times[thin]),
        y=values[thin].astype(np.float32),
        mode="lines" if len(values) > 1 else "markers",
        name=escape(name),
        line={"color": color, "dash": DASHES[dash], "width": 1.8},
        hovertemplate="%{y:.4g}",
    )


def forecast_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the last weeks: actual values, forecasts, intervals and gaps."""
    main = sensor.main
    shown = _shown(main)
    times, actual = main.times[shown], main.actual[shown]
    gaps = gap_spans(times, actual)
    traces = [
        trace
        for run in sensor.scored
        for trace in _forecast_traces(run, shown, visible=run is main)
    ]
    edges = low, high = _range(main)
    inside = np.where((actual < low) | (actual > high), np.nan, actual)
    traces += [_line(times, inside, INK, 1.5, name="actual", legendgroup="actual")]
    traces += [_dots(times, inside), *([_gap_in_legend(times)] if gaps else [])]
    traces += _beyond(times, actual, edges)
    margin = MARGIN * (high - low) or 1.0
    first = times[max(0, len(times) - 1 - FIRST_VIEW_DAYS * main.day)]
    return make_figure(
        traces,
        height=440,
        shapes=[_shade(*page_times(np.array(span))) for span in gaps],
        xaxis={
            **time_axis(times),
            "range": page_times(np.array([first, times[-1]])),
            "rangeslider": {"visible": True, "thickness": 0.12},
        },
        yaxis={"title": axis_title(unit or "value"), "range": [low - margin, high + margin]},
    )


def readings_beyond(run: Run) -> int:
    """Return the number of readings that the figure of forecasts marks at its edge."""
    (low, high), actual = _range(run), run.actual[_shown(run)]
    return int(((actual < low) | (actual > high)).sum())


def rmse_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of RMSE(t) of every method."""
    traces = []
    for run in sensor.scored:
        at, curve = running_curve(run.errors_in_time, run.day)
        traces.append(method_curve(run.method, run.method, run.times[at], curve))
    return _figure_over_time(sensor, traces, title=axis_title(with_unit("RMSE(t)", unit)))


def recent_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the RMSE of every method over the last days before each step."""
    curves = [method_curve(run.method, run.method, *recent_rmse(run)) for run in sensor.scored]
    return _figure_over_time(sensor, curves, title=axis_title(with_unit("RMSE", unit)))


def hours_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the RMSE of every method by hour of the day."""
    figure = _bar_figure(sensor, rmse_by_hour, HOURS, "hour of day", unit)
    return figure.update_xaxes(tickvals=HOURS[::3], tickangle=0)


def weekdays_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the RMSE of every method by day of the week."""
    return _bar_figure(sensor, rmse_by_weekday, WEEKDAYS, "day of week", unit)


def coverage_figure(sensor: SensorRuns) -> go.Figure:
    """Return a figure of the share of values within their interval, and of the nominal levels."""
    curves = []
    for run in sensor.with_bands:
        for level, shares in zip(run.levels, coverage_in_time(run).T, strict=True):
            name = f"{run.method}, {percent(level)}%" if len(run.levels) > 1 else run.method
            curves.append(method_curve(run.method, name, run.times, shares))
    curves += [_level_line(sensor, level) for level in sensor.levels]
    return _figure_over_time(sensor, curves, title="share within the interval", tickformat=".1%")


def costs_figure(sensor: SensorRuns) -> go.Figure:
    """Return a figure of the seconds of every method, by kind of work."""
    names = [escape(run.method) for run in sensor.with_model]
    spent = [run.seconds_by_kind() for run in sensor.with_model]
    bars = [
        go.Bar(
            x=[seconds[kind] for seconds in spent],
            y=names,
            name=kind,
            orientation="h",
            marker={"color": color},
            hovertemplate="%{x:.2f} s",
        )
        for kind, color in zip(spent[0], KIND_COLORS, strict=True)
    ]
    return make_figure(
        bars,
        height=120 + 40 * len(names),
        barmode="stack",
        hovermode="y unified",
        legend={"traceorder": "normal"},
        xaxis={"title": "seconds"},
        yaxis={"title": "method", "autorange": "reversed", "type": "category"},
    )


def _figure_over_time(sensor: SensorRuns, traces: Sequence[Any], **vertical: Any) -> go.Figure:
    """Return a figure of curves over time, with options of its vertical axis."""
    return make_figure(traces, height=320, xaxis=time_axis(sensor.main.times), yaxis=vertical)


def _shown(run: Run) -> slice:
    """Return the steps that the figure of forecasts shows."""
    return slice(-min(SHOWN_DAYS * run.day, MOST_FORECASTS), None)


def _range(run: Run) -> tuple[float, float]:
    """Return the range of values that the figure of forecasts shows; it omits extremes."""
    shown = _shown(run)
    columns = (run.actual[shown], *(ends[shown, 0] for ends in (run.value, run.lower, run.upper)))
    return bulk_range(*(column.ravel() for column in columns))


def _forecast_traces(run: Run, shown: slice, *, visible: bool) -> list[go.Scatter]:
    """Return the forecast of a method and its intervals; the legend hides them together."""
    color, _ = method_look(run.method)
    together: dict[str, Any] = {
        "legendgroup": run.method,
        "visible": True if visible else "legendonly",
    }
    times = run.times[shown]
    # The widest band is drawn first: the tint is darker where bands overlap.
    bands = run.bands if run.has_bands else ()
    widest_first = sorted(bands, key=lambda band: band.level, reverse=True)
    traces = [
        trace
        for band in widest_first
        for trace in _band_traces(times, band, shown, color, {**together, "showlegend": False})
    ]
    bands_name = "interval" if len(run.levels) == 1 else f"{in_percent(run.levels)} intervals"
    name = f"{escape(run.method)}, forecast" + (f" and {bands_name}" if traces else "")
    return [*traces, _line(times, run.value[shown, 0], color, 1.4, name=name, **together)]


def _band_traces(
    times: Times, band: Band, shown: slice, color: str, options: dict[str, Any]
) -> list[go.Scatter]:
    """Return the limits of an interval, and the tint between them."""
    name = f"{percent(band.level)}% interval"
    upper = _line(times, band.upper[shown, 0], color, 0, name=f"{name}, upper limit", **options)
    lower = _line(times, band.lower[shown, 0], color, 0, name=f"{name}, lower limit", **options)
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    lower.update(fill="tonexty", fillcolor=f"rgba({red},{green},{blue},0.2)")
    return [upper, lower]


def _line(times: Times, values: Vector, color: str, width: float, **options: Any) -> go.Scatter:
    """Return a line over regular times."""
    # A start and a step instead of thousands of times keep the page small.
    step = times[1] - times[0] if len(times) > 1 else 1.0
    return go.Scatter(
        x0=page_times(times[:1])[0],
        dx=step / np.timedelta64(1, "ms") if isinstance(step, np.timedelta64) else float(step),
        y=values.astype(np.float32),
        mode="lines",
        line={"color": color, "width": width},
        hovertemplate="%{y:.4g}",
        **options,
    )


def _dots(times: Times, actual: Vector) -> go.Scatter:
    """Return dots for single readings between two gaps, where no line can be drawn."""
    lone = lone_readings(actual)
    return go.Scatter(
        x=page_times(times[lone]),
        y=actual[lone],
        mode="markers",
        marker={"color": INK, "size": 4},
        legendgroup="actual",
        showlegend=False,
        hoverinfo="skip",
    )


def _beyond(times: Times, actual: Vector, shown: tuple[float, float]) -> list[go.Scatter]:
    """Return triangles at the edges for readings beyond the shown range; hovering shows values."""
    low, high = shown
    sides = {"triangle-up": (high, actual > high), "triangle-down": (low, actual < low)}
    return [
        go.Scatter(
            x=page_times(times[out]),
            y=np.full(out.sum(), edge),
            customdata=actual[out],
            mode="markers",
            marker={"symbol": symbol, "size": 10, "color": BEYOND},
            name=f"beyond the {'top' if edge == high else 'bottom'}",
            hovertemplate="%{customdata:.4g}",
        )
        for symbol, (edge, out) in sides.items()
        if out.any()
    ]


def _gap_in_legend(times: Times) -> go.Scatter:
    """Return a trace without points that puts gaps into the legend."""
    look = {"symbol": "square", "size": 12, "color": GAP, "line": {"color": GAP_EDGE, "width": 1}}
    return go.Scatter(
        x=page_times(times[:1]), y=[None], mode="markers", marker=look, name="no reading"
    )


def _shade(start: str, end: str) -> dict[str, Any]:
    """Return the shading of a gap."""
    return {
        "type": "rect", "x0": start, "x1": end, "yref": "paper", "y0": 0, "y1": 1,
        "fillcolor": GAP, "line": {"color": GAP_EDGE, "width": 0.5}, "layer": "below",
    }  # fmt: skip


def _bar_figure(
    sensor: SensorRuns,
    rmse_by: Callable[[Times, Vector], Vector],
    labels: Sequence[str],
    title: str,
    unit: str,
) -> go.Figure:
    bars = [
        go.Bar(
            x=list(labels),
            y=rmse_by(run.local_times, run.errors_in_time),
            name=escape(run.method),
            marker={"color": method_look(run.method)[0]},
            hovertemplate="%{y:.4g}",
        )
        for run in sensor.scored
    ]
    return make_figure(
        bars,
        height=300,
        xaxis={"type": "category", "title": title},
        yaxis={"title": axis_title(with_unit("RMSE", unit))},
    )


def _level_line(sensor: SensorRuns, level: float) -> go.Scatter:
    times = np.concatenate([run.times for run in sensor.scored])
    return go.Scatter(
        x=page_times(np.array([times.min(), times.max()])),
        y=[level, level],
        mode="lines",
        name=f"level {percent(level)}%",
        line={"color": INK, "dash": "dot", "width": 1.4},
        hoverinfo="skip",
    )
