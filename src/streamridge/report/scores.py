"""Interactive figures of errors over time, by hour and by weekday, of coverage, and of costs."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go

from streamridge.metrics.breakdowns import WEEKDAYS, rmse_by_hour, rmse_by_weekday, running_curve
from streamridge.plots.forecasts import INK, with_unit
from streamridge.plots.scores import KIND_COLORS
from streamridge.report.look import DATES, make_figure, method_bars, method_curve, stamps, titled
from streamridge.report.sensors import (
    SensorRuns,
    coverage_in_time,
)

HOURS = tuple(f"{hour:02d}" for hour in range(24))


def rmse_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return RMSE(t) of every method."""
    traces = []
    for i, run in enumerate(sensor.scored):
        at, curve = running_curve(run.errors_in_time, run.day)
        traces.append(method_curve(i, run.method, run.times[at], curve))
    label = titled(with_unit("RMSE(t)", unit))
    return make_figure(traces, height=320, xaxis=DATES, yaxis={"title": label})


def hours_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return the RMSE of every method by hour of the day."""
    bars = [
        method_bars(i, run.method, HOURS, rmse_by_hour(run.local_times, run.errors_in_time))
        for i, run in enumerate(sensor.scored)
    ]
    figure = _bar_figure(bars, "hour of day", unit)
    return figure.update_xaxes(tickvals=HOURS[::3], tickangle=0)


def weekdays_figure(sensor: SensorRuns, *, unit: str = "") -> go.Figure:
    """Return the RMSE of every method by day of the week."""
    bars = [
        method_bars(i, run.method, WEEKDAYS, rmse_by_weekday(run.local_times, run.errors_in_time))
        for i, run in enumerate(sensor.scored)
    ]
    return _bar_figure(bars, "day of week", unit)


def coverage_figure(sensor: SensorRuns) -> go.Figure:
    """Return the share of values in their band over time, with the level as a line."""
    curves = [
        method_curve(i, run.method, run.times, coverage_in_time(run))
        for i, run in enumerate(sensor.scored)
    ]
    return make_figure(
        [*curves, _level_line(sensor)],
        height=320,
        xaxis=DATES,
        yaxis={"title": "share within the band", "tickformat": ".1%"},
    )


def costs_figure(sensor: SensorRuns) -> go.Figure:
    """Return the seconds of every method as a bar of its kinds of work."""
    names = [escape(run.method) for run in sensor.runs]
    spent = [run.seconds_by_kind() for run in sensor.runs]
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


def _bar_figure(bars: list[go.Bar], title: str, unit: str) -> go.Figure:
    return make_figure(
        bars,
        height=300,
        xaxis={"type": "category", "title": title},
        yaxis={"title": titled(with_unit("RMSE", unit))},
    )


def _level_line(sensor: SensorRuns) -> go.Scatter:
    level = sensor.lead.level
    times = np.concatenate([run.times for run in sensor.scored])
    return go.Scatter(
        x=stamps(np.array([times.min(), times.max()])),
        y=[level, level],
        mode="lines",
        name=f"level {level:.4g}",
        line={"color": INK, "dash": "dot", "width": 1.4},
        hoverinfo="skip",
    )
