"""The experiment on local regret in files: figures, tables, and one page."""

from __future__ import annotations

from math import nan
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
from streamridge.experiments.regret_figures import plot_refits, plot_regret
from streamridge.experiments.regret_study import RegretStudy
from streamridge.plots import new_figure
from streamridge.report.markup import paragraph

TITLE = "Local regret"
CLAIM = (
    "The paper's claim: lazy updates every m steps have a local regret of order T, as smoothed "
    "follow-the-leader has, with far fewer refits."
)
SUPREMA = "Each is the largest value met on the run or at sampled points: the true one is no less."


def write_regret(study: RegretStudy, folder: Path, *, command: str) -> Path:
    """Write results.json, methods.csv, two figures and index.html; return the page."""
    records = study.records()
    write_json(
        folder / "results.json",
        {"command": command, "software": software(), "seed": study.seed, "records": records},
    )
    write_rows(folder / "methods.csv", [_row(each) for each in _of(records, "method")])
    for name, plot in (("regret", plot_regret), ("refits", plot_refits)):
        figure = new_figure(1, width=5.4, height_per_row=4.2)
        plot(figure.axes[0], study.curves)
        write_figure(folder / f"{name}.png", figure)
    page = folder / "index.html"
    write_page(page, TITLE, _body(study, records, command))
    return page


def _body(study: RegretStudy, records: list[dict[str, Any]], command: str) -> list[str]:
    size, (constants,) = study.size, _of(records, "constants")
    return [
        paragraph(CLAIM),
        paragraph(
            f"The paper's synthetic series, N = {size.train_size}, T = {size.steps}, one learning "
            f"rate of {size.learning_rate:g} for all, seed {study.seed}.",
            "soft",
        ),
        made_by(command),
        '<div class="pair">',
        picture("regret.png", "Local regret per step against the number of steps"),
        picture("refits.png", "What it costs: refits against regret"),
        "</div>",
        table_of(
            ["method", "regret per step, x 1e-3", "in the second half", "refits", "moves", "RMSE"],
            [_method_cells(each) for each in _of(records, "method")],
            ".3f",
        ),
        "<h2>The assumptions as measured</h2>",
        paragraph(SUPREMA),
        table_of(["constant", "measured"], [[k, v] for k, v in _numbers(constants).items()], ".3g"),
        "<h2>The bounds with these constants, per step</h2>",
        _bounds(_of(records, "bounds")),
        paragraph("All figures: methods.csv and results.json beside this page.", "soft"),
    ]


def _bounds(records: list[dict[str, Any]]) -> str:
    names = [name.replace("_", " ") for name in _numbers(records[0])]
    rows = [[f"{value:.3g}" for value in _numbers(each).values()] for each in records]
    return table_of(names, rows)


def _of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] == kind]


def _numbers(record: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a record by name; NaN for those that do not exist."""
    return {
        name: nan if value is None else value
        for name, value in record.items()
        if value is None or isinstance(value, int | float)
    }


def _row(record: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in record.items() if not isinstance(value, list)}
    return plain | {"regret": record["regret"][-1], "fresh_regret": record["fresh_regret"][-1]}


def _method_cells(record: dict[str, Any]) -> list[str | float]:
    counts = [f"{record[name]:,}" for name in ("refits", "moves")]
    regret = [1e3 * record["regret"][-1], 1e3 * record["late_regret"]]
    return [record["name"], *regret, *counts, record["rmse"]]
