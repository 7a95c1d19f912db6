"""The files of the experiment on local regret: figures, tables, and one page."""

from __future__ import annotations

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
from streamridge.experiments.regret.figures import plot_refits, plot_regret
from streamridge.experiments.regret.study import RegretStudy
from streamridge.plots.axes import new_figure
from streamridge.report.markup import paragraph

TITLE = "Local regret"
CLAIM = (
    "The paper's claim: lazy updates every m steps have a local regret of order T, like smoothed "
    "follow-the-leader, but need far fewer refits."
)
METHODS = (
    *("method", "regret per step / 0.001", "second half alone", "on fresh models"),
    *("refits", "moves", "RMSE"),
)
FRESH_EXPLAINED = (
    "Regret is measured on the models that each method used; lazy methods refit them less often. "
    "On fresh models it is measured at the same points, but with a refit before every step. Then "
    "all methods have the same costs."
)
# Words of the page for the names of records; the symbols are the paper's.
CONSTANTS = {
    "largest_cost": "M, the largest cost",
    "lipschitz": "L, the largest norm of a gradient",
    "smoothness": "Q, the largest change of a gradient per distance, anywhere in C",
    "smoothness_on_path": "the same, if one point of each pair is a played one",
    "diameter": "D, the diameter of C",
    "learning_rate": "the learning rate of all methods",
    "greatest_rate": "2 / Q; the learning rate of Theorem 2 must be below it",
}
BOUNDS = {
    "update_every": "m",
    "variation": "V_m on the run",
    "variation_over_set": "V_m anywhere in C",
    "noise_share": "share of noise",
    "proposition": "Proposition 1",
    "proposition_in_print": "as printed",
    "theorem": "Theorem 2",
    "theorem_in_print": "as printed",
}
BOUNDS_EXPLAINED = (
    "V_m is the largest variation of the gradients within a window of m steps (A4). The share of "
    "noise is the part of the regret that comes from this variation; no single point can avoid it. "
    "As printed, the bounds lack a factor m before their first sum. A dash means that there is no "
    "bound at this learning rate."
)
SUPREMA = "Each is the largest value seen, so the true constant is at least as large."


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
            f"The paper's synthetic series, read as a stationary process. N = {size.train_size}, "
            f"T = {size.steps}, learning rate {size.learning_rate:g} for all methods, "
            f"seed {study.seed}.",
            "soft",
        ),
        made_by(command),
        '<div class="pair">',
        picture("regret.png", "Local regret per step by number of steps"),
        picture("refits.png", "Number of refits and local regret per step"),
        "</div>",
        table_of(
            list(METHODS),
            [_method_cells(each) for each in _of(records, "method")],
            ".3f",
        ),
        paragraph(FRESH_EXPLAINED, "soft"),
        "<h2>The constants of the assumptions, measured</h2>",
        paragraph(SUPREMA),
        table_of(
            ["constant", "measured"],
            [[words, constants[name]] for name, words in CONSTANTS.items()],
            ".3g",
        ),
        "<h2>The bounds with these constants, per step</h2>",
        paragraph(BOUNDS_EXPLAINED),
        _bounds(_of(records, "bounds")),
        paragraph("All numbers are in methods.csv and results.json beside this page.", "soft"),
    ]


def _bounds(records: list[dict[str, Any]]) -> str:
    first, *others = BOUNDS
    rows: list[list[str | float]] = [
        [str(each[first]), *(each[name] for name in others)] for each in records
    ]
    return table_of(list(BOUNDS.values()), rows, ".3g")


def _of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] == kind]


def _row(record: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in record.items() if not isinstance(value, list)}
    return plain | {"regret": record["regret"][-1], "fresh_regret": record["fresh_regret"][-1]}


def _method_cells(record: dict[str, Any]) -> list[str | float]:
    counts = [f"{record[name]:,}" for name in ("refits", "moves")]
    regret = (record["regret"][-1], record["late_regret"], record["fresh_regret"][-1])
    return [record["name"], *(1e3 * each for each in regret), *counts, record["rmse"]]
