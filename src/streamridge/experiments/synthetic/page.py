"""The files of the synthetic study: figures, tables of all readings, and one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from streamridge.experiments.synthetic.figures import figure_of_forecasts, figure_of_learning
from streamridge.experiments.synthetic.panels import PANELS
from streamridge.experiments.synthetic.study import STRETCH, PanelResult, summarize
from streamridge.report.markup import paragraph

TITLE = "The paper's synthetic study"
CLAIM = (
    "The paper's claim: with the squared exponential kernel FIXED zigzags, and with the periodic "
    "and linear kernels it stays off by a constant. OHL has the same start and soon follows the "
    "truth."
)


def write_synthetic(
    results: Sequence[PanelResult], folder: Path, *, command: str, asked: int
) -> Path:
    """Write results.json, runs.csv, readings.csv, two figures and index.html; return the page.

    If fewer than the `asked` runs are given, the page says how many are missing.
    """
    summary = summarize(results)
    write_json(
        folder / "results.json",
        {
            "command": command,
            "software": software(),
            "readings": summary,
            "runs": [result.record() for result in results],
        },
    )
    write_rows(folder / "runs.csv", [_row(result) for result in results])
    write_rows(folder / "readings.csv", [_medians(record) for record in summary])
    shown = _first_of_each(results)
    write_figure(folder / "forecasts.png", figure_of_forecasts(shown))
    write_figure(folder / "learning.png", figure_of_learning(shown))
    page = folder / "index.html"
    missing = asked - len(results)
    stopped = [paragraph(f"Stopped early: {missing} of {asked} runs are missing.", "headline")]
    write_page(page, TITLE, [*(stopped if missing else []), *_body(summary, command)])
    return page


def _body(summary: Sequence[dict[str, Any]], command: str) -> list[str]:
    return [
        paragraph(CLAIM),
        made_by(command),
        picture(
            "forecasts.png",
            "Truth, FIXED and OHL",
            "Above: the first steps. Below: the steps after 400. Strokes at the bottom are refits.",
        ),
        picture(
            "learning.png",
            "How OHL learns: RMSE of the last 50 steps, and the hyperparameters that moved",
        ),
        "<h2>Every reading of the paper that was tried</h2>",
        paragraph(f"Median RMSE over the seeds, of the first and the last {STRETCH} steps."),
        table_of(
            ["reading", "seeds", "FIXED first", "FIXED last", "OHL first", "OHL last"],
            [_cells(record) for record in summary],
            ".3f",
        ),
        paragraph(
            "All numbers are in runs.csv, readings.csv and results.json beside this page.", "soft"
        ),
    ]


def _first_of_each(results: Sequence[PanelResult]) -> list[PanelResult]:
    """Return the first result of each of the two panels."""
    first = {result.panel: result for result in reversed(results)}
    return [first[panel.name] for panel in PANELS if panel.name in first]


def _row(result: PanelResult) -> dict[str, Any]:
    scores = {
        f"{method.lower()}_{stretch}": value
        for method, stretches in result.scores.items()
        for stretch, value in stretches.items()
    }
    return {"reading": result.panel, "seed": result.seed, **scores}


def _medians(record: dict[str, Any]) -> dict[str, Any]:
    medians = {
        f"{method.lower()}_{stretch}": spread["median"]
        for method, stretches in record["rmse"].items()
        for stretch, spread in stretches.items()
    }
    return {"reading": record["panel"], "seeds": record["seeds"], **medians}


def _cells(record: dict[str, Any]) -> list[str | float]:
    name, seeds, *medians = _medians(record).values()
    return [name, str(seeds), *medians]
