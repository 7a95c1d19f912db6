"""Interactive figures of the hyperparameters of a run over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from streamridge.arrays import Matrix
from streamridge.plots.axes import method_look
from streamridge.plots.tuning import short_name
from streamridge.report.look import STAMP, make_figure, stacked_figure, stamps, time_axis
from streamridge.report.sensors import Moves

# Height of a row of the heat map, and of a panel of lines, in pixels.
ROW_HEIGHT = 15
PANEL_HEIGHT = 130


def weights_figure(moves: Moves, names: Sequence[str]) -> go.Figure:
    """Return a figure of the weights of the kernels, as stacked areas."""
    shares = {moves.marked(name, short_name(name)): moves.path[name] for name in names}
    return stacked_figure(moves.times, shares, title="weight of the kernel", shape="hv")


def scales_figure(moves: Moves, names: Sequence[str], labels: Sequence[str]) -> go.Figure:
    """Return a heat map of inverse scales over time, with one row per feature."""
    values = np.array([moves.path[name] for name in names])
    logs = np.log10(np.maximum(values, np.finfo(float).tiny))
    ticks = _decades(logs)
    heat = go.Heatmap(
        x=stamps(moves.times),
        y=np.arange(len(names)),
        z=logs.astype(np.float32),
        customdata=values.astype(np.float32),
        text=[[escape(label)] * len(moves.times) for label in labels],
        hovertemplate=f"%{{text}}<br>{_hovered(moves)}<br>%{{customdata:.3g}}<extra></extra>",
        colorscale="Cividis",
        colorbar={
            "title": {"text": "inverse scale", "side": "right", "font": {"size": 13}},
            "tickvals": ticks,
            "ticktext": [f"{10**tick:.2g}" for tick in ticks],
            "thickness": 14,
        },
    )
    rows = [escape(moves.marked(*pair)) for pair in zip(names, labels, strict=True)]
    return make_figure(
        [heat],
        height=90 + ROW_HEIGHT * len(names),
        hovermode="closest",
        xaxis=time_axis(moves.times),
        yaxis={
            "title": "feature",
            "tickvals": list(range(len(rows))),
            "ticktext": rows,
            "tickfont": {"size": 11},
            "autorange": "reversed",
            "showgrid": False,
        },
    )


def others_figure(moves: Moves, names: Sequence[str]) -> go.Figure:
    """Return a figure of the other hyperparameters, each on its own logarithmic axis."""
    figure = make_figure(
        [_step_line(moves, name, i) for i, name in enumerate(names)],
        height=70 + PANEL_HEIGHT * len(names),
        showlegend=False,
        grid={"rows": len(names), "columns": 1, "pattern": "coupled", "ygap": 0.18},
        xaxis=time_axis(moves.times),
    )
    for i, name in enumerate(names):
        low = moves.path[name].min()
        title = escape(moves.marked(name, name.replace(".", " ")))
        figure.layout[_axis("yaxis", i)] = {
            "type": "log" if low > 0 else "linear",
            "title": {"text": title, "font": {"size": 12}},
            "nticks": 5,
            "exponentformat": "e",
        }
    return figure


def _step_line(moves: Moves, name: str, i: int) -> go.Scatter:
    return go.Scatter(
        x=stamps(moves.times),
        y=moves.path[name],
        name=escape(name),
        mode="lines",
        line={"shape": "hv", "color": method_look(moves.method)[0], "width": 1.6},
        xaxis="x",
        yaxis=_axis("y", i),
        hovertemplate="%{y:.4g}",
    )


def _hovered(moves: Moves) -> str:
    """Return how the time under the pointer is written."""
    return f"%{{x|{STAMP}}}" if moves.times.dtype.kind == "M" else "%{x}"


def _axis(kind: str, i: int) -> str:
    """Return the name of the i-th axis; the first has no number."""
    return kind if i == 0 else f"{kind}{i + 1}"


def _decades(logs: Matrix) -> list[float]:
    """Return ticks of a logarithmic colour bar: powers of ten, or three levels within a decade."""
    low, high = float(logs.min()), float(logs.max())
    powers = np.arange(np.ceil(low), np.floor(high) + 1)
    return (powers if len(powers) > 1 else np.linspace(low, high, 3)).tolist()
