"""The figures, the tables and the page of the study of local regret."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamridge.experiments import outputs
from streamridge.experiments.regret.study import NEVER_MOVES, Curve, RegretResults
from streamridge.plots.axes import COLORS, INK, line_style, log_axis, new_figure
from streamridge.report.html_tables import paragraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    "smoothness_on_path": "the same for pairs with one played point",
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
MARKERS = "osD^v"


def write_regret(results: RegretResults, folder: Path, *, command: str) -> Path:
    """Write results.json, methods.csv, two figures and index.html; return the page."""
    records = results.records()
    outputs.write_results(folder, command, {"seed": results.seed, "records": records})
    outputs.write_rows(folder / "methods.csv", [_row(each) for each in _of(records, "method")])
    for name, plot in (("regret", plot_regret), ("refits", plot_refits)):
        figure = new_figure(1, width=5.4, height_per_row=4.2)
        plot(figure.axes[0], results.curves)
        outputs.write_figure(folder / f"{name}.png", figure)
    page = folder / "index.html"
    outputs.write_page(page, TITLE, _body(results, records, command))
    return page


def plot_regret(axes: Axes, curves: Sequence[Curve]) -> Axes:
    """Draw R_T / T against T, with one line per method."""
    for i, curve in enumerate(curves):
        axes.plot(curve.times, curve.regret, label=curve.name, **_look(i, curve))
    axes.set(xlabel="steps $T$", ylabel="local regret per step, $R_T / T$")
    axes.margins(x=0)
    log_axis(axes, "x")
    log_axis(axes)
    _legend_below(axes, len(curves))
    return axes


def plot_refits(axes: Axes, curves: Sequence[Curve]) -> Axes:
    """Draw the number of refits against the regret per step, with two points per method.

    Open points are means of all steps, filled points are means of the second half.
    """
    for i, curve in enumerate(curves):
        color = _look(i, curve)["color"]
        look: dict[str, Any] = {"color": color, "marker": MARKERS[i % len(MARKERS)], "ms": 7}
        ends = (curve.regret[-1], curve.late_regret)
        axes.plot([curve.refits] * 2, ends, lw=1, color=color)
        axes.plot(curve.refits, ends[0], mfc="white", ls="none", **look)
        axes.plot(curve.refits, ends[1], ls="none", label=curve.name, **look)
    axes.plot([], [], "o", mfc="white", color=INK, label="mean of all steps")
    axes.plot([], [], "o", color=INK, label="mean of the second half")
    axes.set(xlabel="number of refits", ylabel="local regret per step, $R_T / T$")
    log_axis(axes, "x")
    log_axis(axes)
    _legend_below(axes, len(curves) + 2)
    return axes


def _look(i: int, curve: Curve) -> dict[str, Any]:
    """Return the style of a line; the method that never moves has a thin grey line."""
    if curve.name == NEVER_MOVES:
        return {"color": COLORS[-1], "linestyle": "-", "lw": 1.0}
    return line_style(i)


def _legend_below(axes: Axes, entries: int) -> None:
    """Put the legend below the axes, where it hides no line."""
    columns = 2 if entries > 4 else entries
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.45, -0.15), ncols=columns, frameon=False, fontsize=9
    )


def _body(results: RegretResults, records: list[dict[str, Any]], command: str) -> list[str]:
    size, (constants,) = results.size, _of(records, "constants")
    return [
        paragraph(CLAIM),
        paragraph(
            f"The paper's synthetic series, read as a stationary process. N = {size.train_size}, "
            f"T = {size.steps}, learning rate {size.learning_rate:g} for all methods, "
            f"seed {results.seed}.",
            "soft",
        ),
        outputs.created_by(command),
        '<div class="pair">',
        outputs.picture("regret.png", "Local regret per step by number of steps"),
        outputs.picture("refits.png", "Number of refits and local regret per step"),
        "</div>",
        outputs.table_of(
            list(METHODS), [_method_cells(each) for each in _of(records, "method")], ".3f"
        ),
        paragraph(FRESH_EXPLAINED, "soft"),
        "<h2>The constants of the assumptions, measured</h2>",
        paragraph(SUPREMA),
        outputs.table_of(
            ["constant", "measured"],
            [[words, constants[name]] for name, words in CONSTANTS.items()],
            ".3g",
        ),
        "<h2>The bounds with these constants, per step</h2>",
        paragraph(BOUNDS_EXPLAINED),
        _bounds(_of(records, "bounds")),
        outputs.numbers_note("methods.csv and results.json"),
    ]


def _bounds(records: list[dict[str, Any]]) -> str:
    first, *others = BOUNDS
    rows: list[list[str | float]] = [
        [str(each[first]), *(each[name] for name in others)] for each in records
    ]
    return outputs.table_of(list(BOUNDS.values()), rows, ".3g")


def _of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] == kind]


def _row(record: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in record.items() if not isinstance(value, list)}
    return plain | {"regret": record["regret"][-1], "fresh_regret": record["fresh_regret"][-1]}


def _method_cells(record: dict[str, Any]) -> list[str | float]:
    counts = [f"{record[name]:,}" for name in ("refits", "moves")]
    regret = (record["regret"][-1], record["late_regret"], record["fresh_regret"][-1])
    return [record["name"], *(1e3 * each for each in regret), *counts, record["rmse"]]
