"""The traffic study in files: figures, tables beside the paper's, and one page."""

from __future__ import annotations

from collections.abc import Sequence
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
from streamridge.experiments.paper_figures import (
    IMPROVEMENTS,
    TOTAL_MINUTES,
    TUNING_MINUTES,
    mean_improvements,
)
from streamridge.experiments.traffic_figures import figure_of_errors, figure_of_runtimes
from streamridge.experiments.traffic_results import BASELINE, OURS, TrafficResults
from streamridge.report.markup import paragraph
from streamridge.runs import Run

TITLE = "The paper's traffic study"
UNIT = "vehicles / 15 min"


def write_traffic(runs: Sequence[Run], folder: Path, *, command: str) -> Path:
    """Write results.json, cells.csv, methods.csv, two figures and index.html; return the page."""
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
    write_page(page, TITLE, _body(results, command))
    return page


def _body(results: TrafficResults, command: str) -> list[str]:
    rivals = [method for method in results.methods if method not in (BASELINE, OURS)]
    return [
        paragraph(
            f"{len(results.sensors)} detectors, one step of 15 minutes ahead, methods "
            f"{', '.join(results.methods)}.",
            "soft",
        ),
        made_by(command),
        *(paragraph(_sentence(results, rival), "headline") for rival in rivals),
        "<h2>Improvement of RMSE over FIXED, in percent</h2>",
        _improvements(results),
        "<h2>What it costs</h2>",
        _costs(results),
        picture("runtime.png", "Seconds per detector", "Logarithmic; averages in the legend."),
        "<h2>RMSE(t)</h2>",
        picture("rmse.png", "RMSE of all steps up to t, per detector"),
        paragraph("All figures: cells.csv, methods.csv, results.json beside this page.", "soft"),
    ]


def _sentence(results: TrafficResults, rival: str) -> str:
    total, tuning = results.ratios(rival)
    return (
        f"{rival} takes {total:.1f} times as long as OHL in all, and {tuning:.1f} times as long to "
        f"tune; it improves RMSE over FIXED by {results.mean_improvements(rival)[1]:.1f} %, "
        f"OHL by {results.mean_improvements(OURS)[1]:.1f} %."
    )


def _improvements(results: TrafficResults) -> str:
    """Return the paper's table: every detector early and at the end, and means beside its own."""
    methods = [method for method in results.methods if method != BASELINE]
    early = f"at {results.early}"
    heads = ["detector", *(f"{m} {early}" for m in methods), *(f"{m} at the end" for m in methods)]
    every = {method: results.improvements(method) for method in methods}
    missing = (float("nan"), float("nan"))
    rows: list[list[str | float]] = [
        [sensor, *(every[m].get(sensor, missing)[at] for at in (0, 1) for m in methods)]
        for sensor in results.sensors
    ]
    means = [results.mean_improvements(method) for method in methods]
    papers = [mean_improvements(m) if m in IMPROVEMENTS else missing for m in methods]
    rows += [
        ["mean", *(pair[at] for at in (0, 1) for pair in means)],
        ["the paper's mean", *(pair[at] for at in (0, 1) for pair in papers)],
    ]
    return table_of(heads, rows)


def _costs(results: TrafficResults) -> str:
    heads = [
        *("method", "total, s", "tuning, s", "total / OHL", "tuning / OHL"),
        *("the paper's total / OHL", "the paper's tuning / OHL"),
    ]
    rows: list[list[str | float]] = []
    for method in results.methods:
        total, tuning = results.mean_seconds(method)
        theirs = [_against_ours(minutes, method) for minutes in (TOTAL_MINUTES, TUNING_MINUTES)]
        rows.append([method, total, tuning, *results.ratios(method), *theirs])
    return table_of(heads, rows)


def _against_ours(minutes: dict[str, float], method: str) -> float:
    return minutes.get(method, float("nan")) / minutes[OURS]
