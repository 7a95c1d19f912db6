"""The figures, the tables and the page of the synthetic study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamridge.arrays import Vector
from streamridge.experiments import outputs
from streamridge.experiments.synthetic.panels import PANELS
from streamridge.experiments.synthetic.study import STRETCH, UPDATE_EVERY, PanelResult, summarize
from streamridge.plots.axes import COLORS, INK, line_style, log_axis, new_figure, plain
from streamridge.report.html_tables import paragraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "The paper's synthetic study"
CLAIM = (
    "The paper's claim: with the squared exponential kernel FIXED oscillates; with the periodic "
    "and linear kernels it stays off by a constant. OHL has the same start and soon follows the "
    "truth."
)
# The paper draws FIXED green and OHL red; these are similar, but safe for colour-blind readers.
LOOKS: dict[str, dict[str, Any]] = {
    "FIXED": {"color": COLORS[2], "lw": 1.9, "ls": "--"},
    "OHL": {"color": COLORS[1], "lw": 1.1, "ls": "-"},
}
EARLY, LATE = (0, 80), (400, 480)
# Steps of the sliding RMSE.
WINDOW = 50
PANEL_WIDTH, ROW_HEIGHT = 3.6, 2.3


def write_synthetic(
    results: Sequence[PanelResult], folder: Path, *, command: str, requested: int
) -> Path:
    """Write results.json, runs.csv, readings.csv, two figures and index.html; return the page.

    If there are fewer results than the `requested` number, the page says how many are missing.
    """
    summary = summarize(results)
    runs = [result.record() for result in results]
    outputs.write_results(folder, command, {"readings": summary, "runs": runs})
    rows = [{"reading": r.panel, "seed": r.seed, **_by_stretch(r.scores)} for r in results]
    outputs.write_rows(folder / "runs.csv", rows)
    outputs.write_rows(folder / "readings.csv", [_medians(record) for record in summary])
    shown = _first_of_each(results)
    outputs.write_figure(folder / "forecasts.png", figure_of_forecasts(shown))
    outputs.write_figure(folder / "learning.png", figure_of_learning(shown))
    page = folder / "index.html"
    missing = requested - len(results)
    stopped = [paragraph(f"Stopped early: {missing} of {requested} runs are missing.", "headline")]
    outputs.write_page(page, TITLE, [*(stopped if missing else []), *_body(summary, command)])
    return page


def figure_of_forecasts(results: Sequence[PanelResult]) -> Figure:
    """Return a figure with a column per panel: the first steps, and the steps after 400."""
    figure, columns = _grid(len(results))
    for result, (early, late) in zip(results, columns, strict=True):
        plot_forecasts(early, result, *EARLY).set_title(plain(result.panel))
        plot_forecasts(late, result, *LATE).set_xlabel("steps since the first forecast")
    _legend_of(figure)
    return figure


def figure_of_learning(results: Sequence[PanelResult]) -> Figure:
    """Return a figure with a column per panel: sliding RMSE, and the path of OHL."""
    figure, columns = _grid(len(results))
    for result, (above, below) in zip(results, columns, strict=True):
        plot_sliding_rmse(above, result).set_title(plain(result.panel))
        plot_path(below, result).set_xlabel("steps since the first forecast")
    _legend_of(figure)
    return figure


def plot_forecasts(axes: Axes, result: PanelResult, first: int, end: int) -> Axes:
    """Draw truth, FIXED and OHL from step `first` to `end`; ticks at the bottom mark refits."""
    shown = slice(first, end)
    steps = np.arange(len(result.actual))[shown]
    axes.plot(steps, result.actual[shown], color=INK, lw=2.6, alpha=0.45, label="truth")
    for name, forecast in result.forecasts.items():
        axes.plot(steps, forecast[shown], label=name, **LOOKS[name])
    refits = steps[steps % UPDATE_EVERY == 0]
    axes.vlines(refits, 0, 0.03, color=INK, lw=0.8, transform=axes.get_xaxis_transform())
    axes.set(ylabel="y(t)")
    axes.margins(x=0.01)
    return axes


def plot_sliding_rmse(axes: Axes, result: PanelResult) -> Axes:
    """Draw the RMSE of FIXED and OHL over the last 50 steps."""
    for name, forecast in result.forecasts.items():
        curve = sliding_rmse(result.actual - forecast, WINDOW)
        steps = np.arange(len(result.actual))[-len(curve) :]
        axes.plot(steps, curve, label=name, **LOOKS[name])
    axes.set(ylabel=f"RMSE of {WINDOW} steps")
    log_axis(axes)
    axes.margins(x=0.01)
    return axes


def plot_path(axes: Axes, result: PanelResult) -> Axes:
    """Draw the hyperparameters that changed, on a logarithmic axis if all are positive."""
    changed = {name: at for name, at in result.path.items() if np.ptp(at) > 1e-3 * np.abs(at).max()}
    for i, (name, at) in enumerate(changed.items()):
        label = plain(name.replace("_", " "))
        axes.plot(at, drawstyle="steps-post", label=label, **line_style(i))
    if changed and min(at.min() for at in changed.values()) > 0:
        log_axis(axes)
    axes.set(ylabel="hyperparameter")
    axes.margins(x=0.01)
    if changed:
        axes.legend(loc="best", frameon=False, fontsize=8)
    return axes


def sliding_rmse(errors: Vector, window: int) -> Vector:
    """Return the RMSE of every `window` consecutive errors.

    Examples
    --------
    >>> sliding_rmse(np.array([3.0, -4.0, 0.0]), 2)
    array([3.53553391, 2.82842712])
    """
    window = min(window, len(errors))
    return np.sqrt(np.convolve(np.square(errors), np.full(window, 1 / window), "valid"))


def _grid(columns: int) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """Return a figure with two rows of axes, and its axes column by column."""
    figure = new_figure(2, columns, width=columns * PANEL_WIDTH, height_per_row=ROW_HEIGHT)
    return figure, list(zip(figure.axes[:columns], figure.axes[columns:], strict=True))


def _legend_of(figure: Figure) -> None:
    """Put the legend of the first axes below the whole figure."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


def _body(summary: Sequence[dict[str, Any]], command: str) -> list[str]:
    table_rows = [_medians(record).values() for record in summary]
    return [
        paragraph(CLAIM),
        outputs.created_by(command),
        outputs.picture(
            "forecasts.png",
            "Truth, FIXED and OHL",
            "Top: the first steps. Bottom: the steps after 400. Ticks at the bottom mark refits.",
        ),
        outputs.picture(
            "learning.png",
            "How OHL learns: RMSE of the last 50 steps, and the hyperparameters that changed",
        ),
        "<h2>All interpretations of the paper that were tried</h2>",
        paragraph(f"Median RMSE over the seeds, of the first and the last {STRETCH} steps."),
        outputs.table_of(
            ["interpretation", "seeds", "FIXED first", "FIXED last", "OHL first", "OHL last"],
            [[name, str(seeds), *medians] for name, seeds, *medians in table_rows],
            ".3f",
        ),
        outputs.numbers_note("runs.csv, readings.csv and results.json"),
    ]


def _first_of_each(results: Sequence[PanelResult]) -> list[PanelResult]:
    """Return the first result of each of the two panels."""
    first = {result.panel: result for result in reversed(results)}
    return [first[panel.name] for panel in PANELS if panel.name in first]


def _by_stretch(scores: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return scores by method and stretch as one dictionary, with names such as "ohl_last"."""
    return {
        f"{method.lower()}_{stretch}": value
        for method, stretches in scores.items()
        for stretch, value in stretches.items()
    }


def _medians(record: dict[str, Any]) -> dict[str, Any]:
    medians = {name: spread["median"] for name, spread in _by_stretch(record["rmse"]).items()}
    return {"reading": record["panel"], "seeds": record["seeds"], **medians}
