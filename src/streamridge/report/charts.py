"""Interactive figures of a sensor's runs: forecasts, errors, coverage and costs."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from streamridge.arrays import Vector
from streamridge.forecaster.levels import in_percent
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
from streamridge.report.look import (
    make_figure,
    method_bars,
    method_curve,
    stamps,
    time_axis,
    titled,
)
from streamridge.report.sensors import SensorRuns, coverage_in_time, recent_rmse
from streamridge.runs.run import Band, Run
from streamridge.series.clock import Times

SHOWN_DAYS = 28
# What the figure shows before the reader zooms.
FIRST_VIEW_DAYS = 5
# More forecasts than these would make the page slow; 28 days of five minutes have as many.
MOST_FORECASTS = 8064
HOURS = tuple(f"{hour:02d}" for hour in range(24))


def forecast_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the last weeks: actual values, forecasts, bands and gaps."""
    lead = sensor.lead
    shown = _shown(lead)
    times, actual = lead.times[shown], lead.actual[shown]
    gaps = gap_spans(times, actual)
    traces = [
        trace
        for run in sensor.scored
        for trace in _forecast_traces(run, shown, visible=run is lead)
    ]
    edges = low, high = _range(lead)
    inside = np.where((actual < low) | (actual > high), np.nan, actual)
    traces += [_line(times, inside, INK, 1.5, name="actual", legendgroup="actual")]
    traces += [_dots(times, inside), *([_gap_in_legend(times)] if gaps else [])]
    traces += _beyond(times, actual, edges)
    first = times[max(0, len(times) - 1 - FIRST_VIEW_DAYS * lead.day)]
    return make_figure(
        traces,
        height=440,
        shapes=[_shade(*stamps(np.array(span))) for span in gaps],
        xaxis={
            **time_axis(times),
            "range": stamps(np.array([first, times[-1]])),
            "rangeslider": {"visible": True, "thickness": 0.12},
        },
        yaxis={"title": titled(unit or "value"), "range": _with_margin(*edges)},
    )


def readings_beyond(run: Run) -> int:
    """Return how many readings the figure of forecasts marks at its edge."""
    (low, high), actual = _range(run), run.actual[_shown(run)]
    return int(((actual < low) | (actual > high)).sum())


def rmse_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of RMSE(t) of every method."""
    traces = []
    for run in sensor.scored:
        at, curve = running_curve(run.errors_in_time, run.day)
        traces.append(method_curve(run.method, run.method, run.times[at], curve))
    label = titled(with_unit("RMSE(t)", unit))
    return make_figure(
        traces, height=320, xaxis=time_axis(sensor.lead.times), yaxis={"title": label}
    )


def recent_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the RMSE of every method over the last days before each step."""
    curves = [method_curve(run.method, run.method, *recent_rmse(run)) for run in sensor.scored]
    label = titled(with_unit("RMSE", unit))
    return make_figure(
        curves, height=320, xaxis=time_axis(sensor.lead.times), yaxis={"title": label}
    )


def hours_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the RMSE of every method by hour of the day."""
    bars = [
        method_bars(run.method, HOURS, rmse_by_hour(run.local_times, run.errors_in_time))
        for run in sensor.scored
    ]
    figure = _bar_figure(bars, "hour of day", unit)
    return figure.update_xaxes(tickvals=HOURS[::3], tickangle=0)


def weekdays_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return a figure of the RMSE of every method by day of the week."""
    bars = [
        method_bars(run.method, WEEKDAYS, rmse_by_weekday(run.local_times, run.errors_in_time))
        for run in sensor.scored
    ]
    return _bar_figure(bars, "day of week", unit)


def coverage_figure(sensor: SensorRuns) -> go.Figure:
    """Return a figure of the share of values within their band, and the levels it should have."""
    curves = [
        method_curve(run.method, name, run.times, shares)
        for run in sensor.banded
        for name, shares in zip(_names_by_level(run), coverage_in_time(run).T, strict=True)
    ]
    return make_figure(
        [*curves, *(_level_line(sensor, level) for level in sensor.levels)],
        height=320,
        xaxis=time_axis(sensor.lead.times),
        yaxis={"title": "share within the band", "tickformat": ".1%"},
    )


def costs_figure(sensor: SensorRuns) -> go.Figure:
    """Return a figure of the seconds of every method, by kind of work."""
    names = [escape(run.method) for run in sensor.modelled]
    spent = [run.seconds_by_kind() for run in sensor.modelled]
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


def _shown(run: Run) -> slice:
    """Return the steps that the figure of forecasts shows."""
    return slice(-min(SHOWN_DAYS * run.day, MOST_FORECASTS), None)


def _range(run: Run) -> tuple[float, float]:
    """Return the range of values that the figure of forecasts shows: the bulk of them."""
    shown = _shown(run)
    columns = (run.actual[shown], *(ends[shown, 0] for ends in (run.value, run.lower, run.upper)))
    return bulk_range(*(column.ravel() for column in columns))


def _forecast_traces(run: Run, shown: slice, *, visible: bool) -> list[go.Scatter]:
    """Return the forecast of a method and its bands; the legend shows or hides all together."""
    color, _ = method_look(run.method)
    together: dict[str, Any] = {
        "legendgroup": run.method,
        "visible": True if visible else "legendonly",
    }
    times = run.times[shown]
    # The widest first: where bands overlap, the tint is darker.
    bands = run.bands if run.has_bands else ()
    widest_first = sorted(bands, key=lambda band: band.level, reverse=True)
    traces = [
        trace
        for band in widest_first
        for trace in _band_traces(times, band, shown, color, {**together, "showlegend": False})
    ]
    name = f"{escape(run.method)}, forecast" + (f" and {_bands(run)}" if traces else "")
    return [*traces, _line(times, run.value[shown, 0], color, 1.4, name=name, **together)]


def _band_traces(
    times: Times, band: Band, shown: slice, color: str, options: dict[str, Any]
) -> list[go.Scatter]:
    """Return the ends of a band, and the tint between them."""
    name = f"{percent(band.level)}% band"
    upper = _line(times, band.upper[shown, 0], color, 0, name=f"{name}, upper end", **options)
    lower = _line(times, band.lower[shown, 0], color, 0, name=f"{name}, lower end", **options)
    lower.update(fill="tonexty", fillcolor=_faint(color))
    return [upper, lower]


def _names_by_level(run: Run) -> list[str]:
    """Return what the curves of a run's levels are called."""
    if len(run.levels) == 1:
        return [run.method]
    return [f"{run.method}, {percent(level)}%" for level in run.levels]


def _bands(run: Run) -> str:
    return "band" if len(run.levels) == 1 else f"bands of {in_percent(run.levels)}"


def _line(times: Times, values: Vector, color: str, width: float, **options: Any) -> go.Scatter:
    """Return a line over regular times."""
    # A start and a step replace thousands of stamps, so that the page stays small.
    step = times[1] - times[0] if len(times) > 1 else 1.0
    return go.Scatter(
        x0=stamps(times[:1])[0],
        dx=step / np.timedelta64(1, "ms") if isinstance(step, np.timedelta64) else float(step),
        y=values.astype(np.float32),
        mode="lines",
        line={"color": color, "width": width},
        hovertemplate="%{y:.4g}",
        **options,
    )


def _dots(times: Times, actual: Vector) -> go.Scatter:
    """Return dots for the readings between two gaps, where no line can be drawn."""
    lone = lone_readings(actual)
    return go.Scatter(
        x=stamps(times[lone]),
        y=actual[lone],
        mode="markers",
        marker={"color": INK, "size": 4},
        legendgroup="actual",
        showlegend=False,
        hoverinfo="skip",
    )


def _beyond(times: Times, actual: Vector, shown: tuple[float, float]) -> list[go.Scatter]:
    """Return triangles at the edges of what is shown for the readings beyond it, if there are any.

    They lie where no axis of a sensor's values can show them; the pointer tells how far they go.
    """
    low, high = shown
    sides = {"triangle-up": (high, actual > high), "triangle-down": (low, actual < low)}
    return [
        go.Scatter(
            x=stamps(times[out]),
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


def _with_margin(low: float, high: float) -> list[float]:
    room = MARGIN * (high - low) or 1.0
    return [low - room, high + room]


def _gap_in_legend(times: Times) -> go.Scatter:
    """Return a trace without points, for its entry in the legend."""
    look = {"symbol": "square", "size": 12, "color": GAP, "line": {"color": GAP_EDGE, "width": 1}}
    return go.Scatter(x=stamps(times[:1]), y=[None], mode="markers", marker=look, name="no reading")


def _shade(start: str, end: str) -> dict[str, Any]:
    """Return the shading of a gap."""
    return {
        "type": "rect", "x0": start, "x1": end, "yref": "paper", "y0": 0, "y1": 1,
        "fillcolor": GAP, "line": {"color": GAP_EDGE, "width": 0.5}, "layer": "below",
    }  # fmt: skip


def _faint(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"


def _bar_figure(bars: list[go.Bar], title: str, unit: str) -> go.Figure:
    return make_figure(
        bars,
        height=300,
        xaxis={"type": "category", "title": title},
        yaxis={"title": titled(with_unit("RMSE", unit))},
    )


def _level_line(sensor: SensorRuns, level: float) -> go.Scatter:
    times = np.concatenate([run.times for run in sensor.scored])
    return go.Scatter(
        x=stamps(np.array([times.min(), times.max()])),
        y=[level, level],
        mode="lines",
        name=f"level {level:.4g}",
        line={"color": INK, "dash": "dot", "width": 1.4},
        hoverinfo="skip",
    )
