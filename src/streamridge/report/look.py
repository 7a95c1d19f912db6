"""How the page's figures look, and their lines and bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from streamridge.arrays import Vector
from streamridge.plots.axes import INK, method_look, part_color
from streamridge.series.clock import Times

# More points than these make the page slow, and no screen could show them.
MOST_POINTS = 1500
DASHES = ("solid", "dash", "dashdot", "dot")
STAMP = "%a %d %b %Y %H:%M"
AXIS = {
    "gridcolor": "#E8E8E8",
    "zeroline": False,
    "automargin": True,
    "title": {"standoff": 10, "font": {"size": 13}},
}
LOOK = go.layout.Template(
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


def make_figure(traces: Sequence[Any], *, height: int, **layout: Any) -> go.Figure:
    """Return a figure that looks like the others on the page."""
    return go.Figure(list(traces), {"template": LOOK, "height": height, **layout})


def titled(text: str) -> dict[str, str]:
    """Return the title of an axis, escaped so that it is text and not markup."""
    return {"text": escape(text)}


def time_axis(times: Times) -> dict[str, Any]:
    """Return the horizontal axis of some times: dates, or the whole numbers of an index."""
    dates = {"type": "date", "hoverformat": STAMP} if times.dtype.kind == "M" else {}
    return {"title": "time", **dates}


def stamps(times: Times) -> list[Any]:
    """Return times as the page's script understands them: dates as text, numbers as they are."""
    if times.dtype.kind != "M":
        return times.tolist()
    return np.datetime_as_string(times, unit="s").tolist()


def method_curve(method: str, name: str, times: Times, values: Vector) -> go.Scatter:
    """Return a curve of a method with at most 1500 points; it should vary slowly."""
    thin = slice(None, None, max(1, -(-len(values) // MOST_POINTS)))
    color, dash = method_look(method)
    return go.Scatter(
        x=stamps(times[thin]),
        y=values[thin].astype(np.float32),
        mode="lines" if len(values) > 1 else "markers",
        name=escape(name),
        line={"color": color, "dash": DASHES[dash], "width": 1.8},
        hovertemplate="%{y:.4g}",
    )


def stacked_figure(
    times: Times, shares_by_name: Mapping[str, Vector], *, title: str, shape: str = "linear"
) -> go.Figure:
    """Return a figure of shares that sum to one, as stacked areas.

    Parameters
    ----------
    times
        (n,), of the shares.
    shares_by_name
        (n,) each.
    title
        Of the vertical axis.
    shape
        How a share goes on to the next: "linear", or "hv" if it stays until then.
    """
    areas = [
        go.Scatter(
            x=stamps(times),
            y=shares,
            name=escape(name),
            mode="lines",
            line={"shape": shape, "width": 0.5, "color": part_color(i)},
            fillcolor=part_color(i),
            stackgroup="shares",
            hovertemplate="%{y:.3f}",
        )
        for i, (name, shares) in enumerate(shares_by_name.items())
    ]
    return make_figure(
        areas,
        height=300,
        legend={"traceorder": "normal"},
        xaxis=time_axis(times),
        yaxis={"title": title, "range": [0, 1]},
    )


def method_bars(method: str, labels: Sequence[str], heights: Vector) -> go.Bar:
    """Return the bars of a method."""
    return go.Bar(
        x=list(labels),
        y=heights,
        name=escape(method),
        marker={"color": method_look(method)[0]},
        hovertemplate="%{y:.4g}",
    )
