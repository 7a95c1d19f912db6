"""Interactive figures of the hyperparameters and the experts' weights of a run over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from streamridge.arrays import Matrix, Vector
from streamridge.plots.axes import method_look, part_color
from streamridge.plots.figures import EXPERT_AXIS, KERNEL_AXIS
from streamridge.report.charts import TIME_FORMAT, make_figure, page_times, time_axis
from streamridge.report.sensor_runs import TuningPath, expert_weights, short_name
from streamridge.runs.run import Run
from streamridge.series.times import Times

# Height of a row of the heat map, and of a panel of lines, in pixels.
ROW_HEIGHT = 15
MOST_TICKS = 6
PANEL_HEIGHT = 130


def experts_figure(run: Run) -> go.Figure:
    """Return a figure of the weights of a run's experts, as stacked areas."""
    return stacked_figure(run.expert_path.times, expert_weights(run), title=EXPERT_AXIS)


def stacked_figure(
    times: Times, shares_by_name: Mapping[str, Vector], *, title: str, shape: str = "linear"
) -> go.Figure:
    """Return a figure of shares that sum to one, as stacked areas; the vertical axis has a title.

    The `shape` of the line between two shares is "hv" if a share holds until the next one.
    """
    areas = [
        go.Scatter(
            x=page_times(times),
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


def weights_figure(path: TuningPath, names: Sequence[str]) -> go.Figure:
    """Return a figure of the weights of the kernels, as stacked areas."""
    shares = {path.marked(name, short_name(name)): path.values[name] for name in names}
    return stacked_figure(path.times, shares, title=KERNEL_AXIS, shape="hv")


def scales_figure(path: TuningPath, names: Sequence[str], labels: Sequence[str]) -> go.Figure:
    """Return a heat map of inverse scales over time, with one row per feature."""
    values = np.array([path.values[name] for name in names])
    logs = np.log10(np.maximum(values, np.finfo(float).tiny))
    ticks = _decades(logs)
    time = f"%{{x|{TIME_FORMAT}}}" if path.times.dtype.kind == "M" else "%{x}"
    heat = go.Heatmap(
        x=page_times(path.times),
        y=np.arange(len(names)),
        z=logs.astype(np.float32),
        customdata=values.astype(np.float32),
        text=[[escape(label)] * len(path.times) for label in labels],
        hovertemplate=f"%{{text}}<br>{time}<br>%{{customdata:.3g}}<extra></extra>",
        colorscale="Cividis",
        colorbar={
            "title": {"text": "inverse scale", "side": "right", "font": {"size": 13}},
            "tickvals": ticks,
            "ticktext": [f"{10**tick:.2g}" for tick in ticks],
            "thickness": 14,
        },
    )
    rows = [escape(path.marked(*pair)) for pair in zip(names, labels, strict=True)]
    return make_figure(
        [heat],
        height=90 + ROW_HEIGHT * len(names),
        hovermode="closest",
        xaxis=time_axis(path.times),
        yaxis={
            "title": "feature",
            "tickvals": list(range(len(rows))),
            "ticktext": rows,
            "tickfont": {"size": 11},
            "autorange": "reversed",
            "showgrid": False,
        },
    )


def others_figure(path: TuningPath, names: Sequence[str]) -> go.Figure:
    """Return a figure of the other hyperparameters, each on its own logarithmic axis."""
    figure = make_figure(
        [_step_line(path, name, i) for i, name in enumerate(names)],
        height=70 + PANEL_HEIGHT * len(names),
        showlegend=False,
        grid={"rows": len(names), "columns": 1, "pattern": "coupled", "ygap": 0.18},
        xaxis=time_axis(path.times),
    )
    for i, name in enumerate(names):
        low = path.values[name].min()
        title = escape(path.marked(name, name.replace(".", " ").replace("_", " ")))
        ticks = {"tickvals": _log_ticks(low, path.values[name].max())} if low > 0 else {"nticks": 5}
        figure.layout[_axis("yaxis", i)] = {
            "type": "log" if low > 0 else "linear",
            "title": {"text": title, "font": {"size": 12}},
            "exponentformat": "e",
            **ticks,
        }
    return figure


def _step_line(path: TuningPath, name: str, i: int) -> go.Scatter:
    return go.Scatter(
        x=page_times(path.times),
        y=path.values[name],
        name=escape(name),
        mode="lines",
        line={"shape": "hv", "color": method_look(path.method)[0], "width": 1.6},
        xaxis="x",
        yaxis=_axis("y", i),
        hovertemplate="%{y:.4g}",
    )


def _axis(kind: str, i: int) -> str:
    """Return the name of the i-th axis; the first has no number."""
    return kind if i == 0 else f"{kind}{i + 1}"


def _log_ticks(low: float, high: float) -> list[float]:
    """Return at most six round numbers around a range, for a logarithmic axis.

    Plotly labels every digit of a decade, and the labels of a small panel overlap.

    Examples
    --------
    >>> _log_ticks(0.02, 0.4)
    [0.02, 0.05, 0.1, 0.2, 0.5]
    >>> _log_ticks(1e-5, 1e3)
    [1e-05, 0.001, 0.1, 10.0, 1000.0]
    """
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    for digits in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{d}e{power}") for power in range(first, last + 1) for d in digits]
        near = [tick for tick in ticks if low / 1.3 <= tick <= 1.3 * high]
        if len(near) <= MOST_TICKS:
            break
    return near[:: -(-len(near) // MOST_TICKS) or 1]


def _decades(logs: Matrix) -> list[float]:
    """Return ticks of a logarithmic colour bar: powers of ten, or three levels within a decade."""
    low, high = float(logs.min()), float(logs.max())
    powers = np.arange(np.ceil(low), np.floor(high) + 1)
    return (powers if len(powers) > 1 else np.linspace(low, high, 3)).tolist()
