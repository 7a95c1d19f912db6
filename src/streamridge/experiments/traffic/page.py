"""The figures, the tables and the page of the traffic study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.experiments import outputs
from streamridge.experiments.traffic.results import (
    BASELINE,
    OURS,
    TOTAL_MINUTES,
    TUNING_MINUTES,
    TrafficResults,
    paper_improvements,
    seconds_of,
)
from streamridge.metrics import running_curve
from streamridge.plots.axes import (
    COLORS,
    WINE,
    log_axis,
    matplotlib_part,
    new_figure,
    plain,
    with_unit,
)
from streamridge.report.html_tables import paragraph
from streamridge.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "The paper's traffic study"
UNIT = "vehicles / 15 min"
MISSING = (nan, nan)
COLUMNS = 4
MOST_TICKS = 16
# Up to these numbers of methods, two figures or two tables are side by side.
FIGURES_SIDE_BY_SIDE, TABLES_SIDE_BY_SIDE = 6, 4
# Widths of a line and of a letter in a legend.
LINE_INCHES, LETTER_INCHES = 0.65, 0.085
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "FIXED": {"color": COLORS[7], "ls": ":"},
    "OHL": {"color": COLORS[1], "ls": "-"},
    "OHL+": {"color": WINE, "ls": "-"},
    "HOAG": {"color": COLORS[0], "ls": "--"},
    "RDS": {"color": COLORS[2], "ls": "-."},
    "GRID": {"color": COLORS[4], "ls": (0, (5, 1))},
    "BAYES": {"color": COLORS[3], "ls": (0, (1, 1))},
    "DEFAULT": {"color": COLORS[5], "ls": "-"},
}


def write_traffic(
    runs: Sequence[Run], folder: Path, *, command: str, requested: int | None = None
) -> Path:
    """Write results.json, cells.csv, methods.csv, two figures and index.html; return the page.

    `requested` is the number of runs in a finished study; the number of `runs` by default.
    """
    results = TrafficResults(tuple(runs))
    rows, summary = results.rows(), results.summary()
    outputs.write_results(folder, command, {"methods": summary, "cells": rows})
    outputs.write_rows(folder / "cells.csv", rows)
    outputs.write_rows(folder / "methods.csv", summary)
    outputs.write_figure(folder / "runtime.png", figure_of_runtimes(results))
    outputs.write_figure(folder / "rmse.png", figure_of_errors(results, unit=UNIT))
    page = folder / "index.html"
    outputs.write_page(page, TITLE, _body(results, command, requested or len(runs)))
    return page


def figure_of_runtimes(results: TrafficResults) -> Figure:
    """Return a figure of the total and the tuning seconds of every detector.

    Detectors are ordered by the total seconds of OHL, as in the paper.
    """
    seconds = {method: _seconds(results, method) for method in results.methods}
    tuned = {method: both[:, 1] for method, both in seconds.items() if method != BASELINE}
    shown = 2 if tuned else 1
    rows, columns = (1, shown) if len(seconds) <= FIGURES_SIDE_BY_SIDE else (shown, 1)
    figure = new_figure(rows, columns, height_per_row=3.4 + 0.12 * len(seconds))
    totals = {method: both[:, 0] for method, both in seconds.items()}
    plot_runtimes(figure.axes[0], totals).set_title("whole run")
    if tuned:
        plot_runtimes(figure.axes[1], tuned).set_title("tuning alone")
    return figure


def plot_runtimes(axes: Axes, seconds_by_method: Mapping[str, Vector]) -> Axes:
    """Draw a bar per detector and method on a logarithmic axis; the legend shows the means."""
    looks = looks_of(tuple(seconds_by_method))
    width = 0.84 / len(looks)
    for i, (method, seconds) in enumerate(seconds_by_method.items()):
        at = np.arange(1, 1 + len(seconds)) - 0.42 + (i + 0.5) * width
        label = f"{plain(method)}, mean {np.nanmean(seconds):.3g} s"
        hatch = None if method in LOOKS else "////"
        color = looks[method]["color"]
        axes.bar(at, seconds, width, color=color, hatch=hatch, edgecolor="white", lw=0, label=label)
    axes.set(xlabel="detector, ordered by total time of OHL", ylabel="seconds")
    log_axis(axes)
    count = max(map(len, seconds_by_method.values()))
    axes.set_xticks(range(1, 1 + count, -(-count // MOST_TICKS)))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize=9, frameon=False)
    return axes


def figure_of_errors(results: TrafficResults, *, unit: str = "") -> Figure:
    """Return a figure of RMSE(t) of every method, with one axes per detector."""
    rows = -(-len(results.sensors) // COLUMNS)
    columns = min(COLUMNS, len(results.sensors))
    figure: Figure = matplotlib_part("figure").Figure(
        figsize=(2.6 * columns + 0.4, 2.0 * rows + 0.6), layout="constrained"
    )
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axes, sensor in zip(grid, results.sensors, strict=False):
        plot_errors(axes, results, sensor)
    for axes in grid[len(results.sensors) :]:
        axes.remove()
    for axes in grid[max(0, len(results.sensors) - columns) : len(results.sensors)]:
        axes.tick_params(labelbottom=True)  # the lowest of its column
    figure.supxlabel("prediction step t", fontsize="medium")
    figure.supylabel(plain(with_unit("RMSE(t)", unit)), fontsize="medium")
    lines = {str(line.get_label()): line for axes in figure.axes for line in axes.get_lines()}
    handles, labels = list(lines.values()), list(lines)
    entry = LINE_INCHES + LETTER_INCHES * max(map(len, labels))
    ncols = max(1, min(len(labels), int(figure.get_figwidth() / entry)))
    figure.legend(handles, labels, loc="outside upper center", ncols=ncols, frameon=False)
    return figure


def plot_errors(axes: Axes, results: TrafficResults, sensor: str) -> Axes:
    """Draw RMSE(t) of every method on one detector from the end of the first day on."""
    looks = looks_of(results.methods)
    for run in (run for run in results.runs if run.sensor == sensor):
        at, curve = running_curve(run.errors_in_time, run.day)
        axes.plot(at + 1, curve, label=plain(run.method), lw=1.4, **looks[run.method])
    axes.set_title(plain(sensor), fontsize="small")
    axes.tick_params(labelsize="small")
    axes.margins(x=0)
    return axes


def _seconds(results: TrafficResults, method: str) -> Matrix:
    """Return the total and the tuning seconds of every detector, ordered by OHL's total, (n, 2)."""
    ours, runs = results.of(OURS), results.of(method)
    order = sorted(results.sensors, key=lambda name: ours[name].seconds if name in ours else np.inf)
    return np.array([seconds_of(runs[name]) if name in runs else MISSING for name in order])


def looks_of(methods: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the colour and the dashes of each method."""
    looks = {method: LOOKS[method] for method in methods if method in LOOKS}
    for i, method in enumerate(method for method in methods if method not in LOOKS):
        dots = (0, (4, 1, *(1, 1) * (1 + i // len(COLORS))))
        looks[method] = {"color": COLORS[i % len(COLORS)], "ls": dots}
    return looks


def _body(results: TrafficResults, command: str, requested: int) -> list[str]:
    others = [name for name in results.methods if name not in (BASELINE, OURS) and "," not in name]
    headlines = filter(None, (_sentence(results, other) for other in others))
    finished = len(results.runs)
    unfinished = f"Not finished: this page shows {finished} of {requested} runs."
    return [
        paragraph(_scope(results), "soft"),
        outputs.created_by(command),
        paragraph(unfinished, "headline") if finished != requested else "",
        *(paragraph(line, "headline") for line in headlines),
        "<h2>Improvement of RMSE over FIXED, in percent</h2>",
        paragraph(
            "A positive number means that the RMSE of all steps so far is below the RMSE of FIXED.",
            "soft",
        ),
        *_improvements(results),
        "<h2>Costs</h2>",
        paragraph("Mean seconds per detector, and their ratio to OHL.", "soft"),
        _costs(results),
        outputs.picture("runtime.png", "Seconds per detector", "The axis is logarithmic."),
        "<h2>RMSE(t)</h2>",
        outputs.picture("rmse.png", "RMSE(t), the RMSE of all steps up to t, per detector"),
        outputs.numbers_note("cells.csv, methods.csv and results.json"),
    ]


def _scope(results: TrafficResults) -> str:
    sensors, methods = len(results.sensors), "; ".join(results.methods)
    detectors = "1 detector" if sensors == 1 else f"{sensors} detectors"
    scored = max(len(run.times) for run in results.runs)
    return f"{detectors}, {scored:,} forecasts each, 15 minutes ahead. Methods: {methods}."


def _sentence(results: TrafficResults, method: str) -> str:
    """Return a sentence that compares a method with OHL; empty if nothing can be compared."""
    total, tuning = results.ratios(method)
    theirs, ours = (
        results.mean_improvements(one, other)[1] for one, other in ((method, OURS), (OURS, method))
    )
    costs = [] if isnan(total) else [f"takes {total:.1f} times as long as OHL in total"]
    costs += [] if isnan(tuning) else [f"and {tuning:.1f} times as long to tune"]
    gain = f"improves RMSE over FIXED by {theirs:.1f} %, OHL by {ours:.1f} %"
    parts = [part for part in (", ".join(costs), "" if isnan(theirs + ours) else gain) if part]
    return f"{method} {'; it '.join(parts)}." if parts else ""


def _improvements(results: TrafficResults) -> list[str]:
    """Return tables of improvements per detector, early and at the end, with the paper's means."""
    methods = [method for method in results.methods if method != BASELINE]
    every = {method: results.improvements(method) for method in methods}
    means = {method: results.mean_improvements(method) for method in methods}
    papers = {method: paper_improvements(method) for method in methods}
    parts = []
    for at, (when, papers_when) in enumerate(
        [(f"after {results.early:,} steps", "4,000 steps"), ("at the end", "the end")]
    ):
        rows: list[list[str | float]] = [
            [sensor, *(every[method].get(sensor, MISSING)[at] for method in methods)]
            for sensor in results.sensors
        ]
        rows.append(["mean", *(means[method][at] for method in methods)])
        rows.append([f"paper, at {papers_when}", *(papers[method][at] for method in methods)])
        parts += [f"<div><h3>{when.capitalize()}</h3>"]
        parts += [outputs.table_of(["detector", *methods], rows, summary_rows=2), "</div>"]
    return (
        ['<div class="pair">', *parts, "</div>"] if len(methods) <= TABLES_SIDE_BY_SIDE else parts
    )


def _costs(results: TrafficResults) -> str:
    heads = [
        *("method", "total, s", "tuning, s", "total / OHL", "tuning / OHL"),
        *("paper: total / OHL", "paper: tuning / OHL"),
    ]
    rows: list[list[str | float]] = []
    for method in results.methods:
        total, tuning = results.mean_seconds(method)
        minutes = (TOTAL_MINUTES, TUNING_MINUTES)
        theirs = [each.get(method, nan) / each[OURS] for each in minutes]
        rows.append([method, total, tuning, *results.ratios(method), *theirs])
    return outputs.table_of(heads, rows)
