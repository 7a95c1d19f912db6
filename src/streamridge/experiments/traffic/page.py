"""The files of the traffic study: figures, tables with the paper's numbers, and one page."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path

from streamridge.experiments.outputs import (
    made_by,
    picture,
    software,
    table_of,
    write_figure,
    write_json,
    write_page,
    write_rows,
)
from streamridge.experiments.traffic.figures import figure_of_errors, figure_of_runtimes
from streamridge.experiments.traffic.paper import (
    TOTAL_MINUTES,
    TUNING_MINUTES,
    mean_improvements,
)
from streamridge.experiments.traffic.results import BASELINE, OURS, TrafficResults
from streamridge.report.markup import paragraph
from streamridge.runs.run import Run

TITLE = "The paper's traffic study"
UNIT = "vehicles / 15 min"
MISSING = (nan, nan)
# Up to this many methods, two tables fit side by side.
SIDE_BY_SIDE = 4


def write_traffic(
    runs: Sequence[Run], folder: Path, *, command: str, cells: int | None = None
) -> Path:
    """Write results.json, cells.csv, methods.csv, two figures and index.html; return the page.

    Parameters
    ----------
    runs
        All runs so far.
    folder
        The folder to write to.
    command
        The command that makes the same study again.
    cells
        The number of runs in a finished study; by default, as many as are given.
    """
    results = TrafficResults(tuple(runs))
    rows, summary = results.rows(), results.summary()
    write_json(
        folder / "results.json",
        {"command": command, "software": software(), "methods": summary, "cells": rows},
    )
    write_rows(folder / "cells.csv", rows)
    write_rows(folder / "methods.csv", summary)
    write_figure(folder / "runtime.png", figure_of_runtimes(results))
    write_figure(folder / "rmse.png", figure_of_errors(results, unit=UNIT))
    page = folder / "index.html"
    write_page(page, TITLE, _body(results, command, cells or len(runs)))
    return page


def _body(results: TrafficResults, command: str, cells: int) -> list[str]:
    rivals = [name for name in results.methods if name not in (BASELINE, OURS) and "," not in name]
    headlines = filter(None, (_sentence(results, rival) for rival in rivals))
    return [
        paragraph(_scope(results), "soft"),
        made_by(command),
        _unfinished(len(results.runs), cells),
        *(paragraph(line, "headline") for line in headlines),
        "<h2>Improvement of RMSE over FIXED, in percent</h2>",
        paragraph(
            "A positive number means that the RMSE of all steps so far is below that of FIXED.",
            "soft",
        ),
        *_improvements(results),
        "<h2>Costs</h2>",
        paragraph("Mean seconds per detector, and their ratio to those of OHL.", "soft"),
        _costs(results),
        picture("runtime.png", "Seconds per detector", "The axis is logarithmic."),
        "<h2>RMSE(t)</h2>",
        picture("rmse.png", "RMSE(t), the RMSE of all steps up to t, per detector"),
        paragraph(
            "All numbers are in cells.csv, methods.csv and results.json beside this page.", "soft"
        ),
    ]


def _scope(results: TrafficResults) -> str:
    sensors, methods = len(results.sensors), "; ".join(results.methods)
    detectors = "1 detector" if sensors == 1 else f"{sensors} detectors"
    scored = max(len(run.times) for run in results.runs)
    return f"{detectors}, {scored:,} forecasts each, 15 minutes ahead. Methods: {methods}."


def _unfinished(there: int, cells: int) -> str:
    if there == cells:
        return ""
    return paragraph(f"Not finished: this page shows {there} of {cells} runs.", "headline")


def _sentence(results: TrafficResults, rival: str) -> str:
    """Return a sentence that compares a method with OHL; empty if nothing can be compared."""
    total, tuning = results.ratios(rival)
    theirs, ours = (
        results.mean_improvements(method, beside=other)[1]
        for method, other in ((rival, OURS), (OURS, rival))
    )
    parts = []
    if not isnan(total):
        parts.append(f"takes {total:.1f} times as long as OHL in all")
    if not isnan(tuning):
        parts.append(f"and {tuning:.1f} times as long to tune")
    costs = ", ".join(parts)
    gain = f"improves RMSE over FIXED by {theirs:.1f} %, OHL by {ours:.1f} %"
    said = [part for part in (costs, "" if isnan(theirs + ours) else gain) if part]
    return f"{rival} {'; it '.join(said)}." if said else ""


def _improvements(results: TrafficResults) -> list[str]:
    """Return tables of improvements per detector, early and at the end, with the paper's means."""
    methods = [method for method in results.methods if method != BASELINE]
    every = {method: results.improvements(method) for method in methods}
    means = {method: results.mean_improvements(method) for method in methods}
    papers = {method: mean_improvements(method) for method in methods}
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
        parts += [table_of(["detector", *methods], rows, summing_up=2), "</div>"]
    return ['<div class="pair">', *parts, "</div>"] if len(methods) <= SIDE_BY_SIDE else parts


def _costs(results: TrafficResults) -> str:
    heads = [
        *("method", "total, s", "tuning, s", "total / OHL", "tuning / OHL"),
        *("paper: total / OHL", "paper: tuning / OHL"),
    ]
    rows: list[list[str | float]] = []
    for method in results.methods:
        total, tuning = results.mean_seconds(method)
        theirs = [_against_ours(minutes, method) for minutes in (TOTAL_MINUTES, TUNING_MINUTES)]
        rows.append([method, total, tuning, *results.ratios(method), *theirs])
    return table_of(heads, rows)


def _against_ours(minutes: dict[str, float], method: str) -> float:
    return minutes.get(method, nan) / minutes[OURS]
