"""The elements of HTML pages, the tables of a report, and the sentences above and below them.

All text is escaped here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from math import floor, isfinite, log10

import numpy as np
import plotly.graph_objects as go

from streamridge.files.written_files import GENERATOR
from streamridge.forecaster.forecast import Levels
from streamridge.forecaster.methods import needs_model
from streamridge.metrics import percent
from streamridge.report.charts import Event, mark_events
from streamridge.report.sensor_runs import SensorRuns, TuningPath
from streamridge.runs.run import BASELINE, Run
from streamridge.runs.scores import Score
from streamridge.series.times import time_text

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
# The page loads nothing: no scripts, styles, fonts or data.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src 'self' file: data: blob:"
)
# Descriptions of counts; a count that is not listed is shown by its name.
COUNTS = {
    "missing": "steps without a reading, filled by forecasts and not used for training",
    "skipped": "cells without a number or a time, dropped",
    "imputed": "values that the source had filled in, dropped",
    "duplicates": "repeated readings, dropped",
    "conflicts": "readings that contradict an earlier one of the same time, dropped",
    "off_grid": "times between two steps, moved to the nearest step",
    "out_of_order": "readings out of order",
    "nonexistent": "local times skipped by daylight saving, dropped",
    "partial": "steps with only some of their readings",
    "late": "late readings, used",
    "too_late": "readings that were too late, dropped",
    "excluded": "readings in excluded spans, neither learned from nor scored",
    "outlier": "outliers, not learned from",
    "implausible": "implausible readings, replaced by forecasts",
    "stuck": "readings of a stuck sensor, not learned from",
    "failed_refits": "failed refits, replaced by the previous fit",
    "rollbacks": "rollbacks of tuning",
}
# Counts that are not described.
ROUTINE = ("readings", "fits", "tunings", "tuning_fits", "gradients")
# A table of scores is folded if there are more steps ahead than this.
FEW_STEPS = 4
# Columns that a phone does not show.
WIDE_SCREEN = ("MAE", "scored", "missing", "fits", "seconds")
# Marks an RMSE without implausible readings.
MARK = "*"
WITHOUT_IMPLAUSIBLE = (
    f"{MARK} Without implausible readings; the section of the sensor shows the error with them."
)
NAIVE = {"last": "the last reading", "week": "the same time a week ago"}
# Why a forecast of a method with a model was a naive forecast.
REASONS = (
    "steps before the first fit, with a naive forecast",
    "steps after a gap, with a naive forecast",
    "steps at which naive forecasts had more weight than the model, because their recent errors "
    "were smaller",
)


@dataclass(frozen=True)
class Cell:
    """A cell of a table; its `html` is not escaped."""

    html: str
    style: str = ""


def text_cell(text: str, style: str = "text") -> Cell:
    """Return a cell of text."""
    return Cell(escape(text), style)


def number(value: float, form: str) -> str:
    """Return a number as text, or a dash if it is not finite."""
    return format(value, form).replace("-", MINUS) if isfinite(value) else DASH


def four_digits(value: float) -> str:
    """Return a number with four significant digits.

    Examples
    --------
    >>> four_digits(38.7), four_digits(12345.6), four_digits(1.5e12), four_digits(0.0)
    ('38.70', '12,346', '1.500e+12', '0')
    """
    if not 1e-3 <= abs(value) < 1e9:
        return number(value, ".3e") if value else "0"
    return number(value, f",.{max(0, 3 - floor(log10(abs(value))))}f")


def table(head: Sequence[Cell], rows: Iterable[tuple[str, Sequence[Cell]]]) -> str:
    """Return a table; each row is a pair of its style and its cells."""
    body = "".join(f'<tr class="{style}">{_cells(cells, "td")}</tr>' for style, cells in rows)
    return (
        f'<div class="wide"><table><thead><tr>{_cells(head, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def panel(caption: str, figure: go.Figure, note: str = "", events: Sequence[Event] = ()) -> str:
    """Return a figure with its caption; the page's script draws it once it is visible."""
    mark_events(figure, events)
    small = f"<small>{escape(note)}</small>" if note else ""
    # Inside a script element, only "<" could end the element.
    json = figure.to_json().replace("<", "\\u003c")
    return (
        f"<figure><figcaption>{escape(caption)}{small}</figcaption>"
        f'<div class="chart" style="height:{figure.layout.height}px"></div>'
        f'<script type="application/json">{json}</script></figure>'
    )


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of text."""
    return f'<p class="{style}">{escape(text)}</p>'


def link(address: str, text: str) -> str:
    """Return a link."""
    return f'<a href="{escape(address)}">{escape(text)}</a>'


def document(title: str, body: Iterable[str], head: str = "") -> str:
    """Return a whole page with the style sheet of reports."""
    style = files("streamridge.report").joinpath("page.css").read_text(encoding="utf-8")
    first = (
        f'<meta charset="utf-8">{GENERATOR}'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style>{head}"
    )
    content = "\n".join(body)
    whole = f'<html lang="en"><head>{first}</head>\n<body>\n{content}\n</body></html>'
    return f"<!doctype html>\n{whole}\n"


def _cells(cells: Sequence[Cell], tag: str) -> str:
    return "".join(f'<{tag} class="{cell.style}">{cell.html}</{tag}>' for cell in cells)


def summary_table(sensors: Sequence[SensorRuns]) -> str:
    """Return a table with a row per sensor and method."""
    against = any(sensor.baseline for sensor in sensors)
    head = [text_cell("sensor"), text_cell("method"), text_cell("RMSE", "")]
    head += [text_cell(f"against {_naive_name(sensors)}", "")]
    head += [text_cell(f"against {BASELINE}", "")] if against else []
    levels: Levels | None = None  # every run has one level, and they share a column
    if any(len(run.levels) > 1 for sensor in sensors for run in sensor.runs):
        levels = tuple(dict.fromkeys(level for sensor in sensors for level in sensor.levels))
    names = ["coverage"] if levels is None else [f"coverage, {percent(each)}%" for each in levels]
    names = [WIDE_SCREEN[0], *names, *WIDE_SCREEN[1:]]
    head += [text_cell(name, "more" if name in WIDE_SCREEN else "") for name in names]
    rows = [
        (
            " ".join(["first"] * (i == 0) + ["naive"] * (not needs_model(run.method))),
            _summary_row(sensor, run, f"#sensor-{at}", levels, against=against),
        )
        for at, sensor in enumerate(sensors, start=1)
        for i, run in enumerate(sensor.runs)
    ]
    more = paragraph(f"A wider screen shows more: {', '.join(WIDE_SCREEN)}.", "soft phone")
    implausible = any(run.implausible_count for sensor in sensors for run in sensor.runs)
    note = paragraph(WITHOUT_IMPLAUSIBLE, "soft") if implausible else ""
    return table(head, rows) + more + note


def _naive_name(sensors: Sequence[SensorRuns]) -> str:
    """Return the name of the naive forecast that relative errors refer to."""
    names = {name for sensor in sensors for run in sensor.runs for name in run.naive_forecasts}
    return "last" if names == {"last"} else "week"


def mean_changes(sensors: Sequence[SensorRuns]) -> str:
    """Return sentences that compare every method with a naive forecast and with the baseline."""
    naive = NAIVE[_naive_name(sensors)]
    against_naive = _mean_change(sensors, naive, lambda _, run: run.rmse_relative - 1)
    return against_naive + _mean_change(sensors, BASELINE, SensorRuns.change)


def _mean_change(
    sensors: Sequence[SensorRuns], reference: str, change: Callable[[SensorRuns, Run], float]
) -> str:
    """Return a sentence that compares methods with a reference; empty if no change is known."""
    changes: dict[str, list[float]] = {}
    for sensor in sensors:
        for run in sensor.with_model:
            if not np.isnan(change(sensor, run)):
                changes.setdefault(run.method, []).append(change(sensor, run))
    parts = [
        f"{method} {number(100 * float(np.mean(each)), '+.1f')} %"
        + (f" ({len(each)} sensors)" if len(each) > 1 else "")
        for method, each in changes.items()
    ]
    average = ", on average" if len(sensors) > 1 else ""
    text = f"RMSE against {reference}{average}: {', '.join(parts)}. Lower is better."
    return paragraph(text, "headline") if parts else ""


def minute(time: np.datetime64 | np.int64) -> str:
    """Return a time as text, to the minute."""
    return time_text(time, "m").replace("T", " ")


def counts_line(sensor: SensorRuns) -> str:
    """Return a sentence about readings that were dropped, filled or rejected."""
    runs = sensor.with_model
    names = dict.fromkeys(name for run in runs for name in run.counts)
    parts = [
        f"{COUNTS.get(name, name.replace('_', ' '))}: "
        + _one_or_each(runs, [run.counts.get(name, 0) for run in runs])
        for name in names
        if name not in ROUTINE
    ]
    for reason, counts in zip(REASONS, zip(*map(_naive_steps, runs), strict=True), strict=True):
        parts += [f"{reason}: {_one_or_each(runs, counts)}"] if any(counts) else []
    readings = max(run.counts.get("readings", run.steps_done) for run in runs)
    found = "; ".join(parts) or "nothing was dropped or filled"
    times = sensor.main.times
    span = f", scored from {minute(times[0])} to {minute(times[-1])}" if len(times) else ""
    return paragraph(f"{readings:,} readings{span}. {found[0].upper()}{found[1:]}.", "soft")


def _naive_steps(run: Run) -> tuple[int, int, int]:
    """Return the number of steps that the model did not forecast, for each of `REASONS`."""
    naive = ~run.by_model if needs_model(run.method) else np.zeros(len(run.times), dtype=bool)
    first_fit = run.refit_times[:1]
    before = naive & (run.times <= first_fit if len(first_fit) else True)
    after_gap = naive & ~before & np.isnan(np.concatenate([[0.0], run.actual[:-1]]))
    counts = before, after_gap, naive & ~before & ~after_gap
    return tuple(int(each.sum()) for each in counts)  # type: ignore[return-value]


def remarks(sensor: SensorRuns) -> str:
    """Return remarks to read before comparing the methods of a sensor."""
    lines = [f"{run.method} was interrupted." for run in sensor.with_model if run.interrupted]
    if len({(run.times[:1].tolist()[0], len(run.times)) for run in sensor.scored}) > 1:
        lines.append("The methods were scored on different steps: compare them with care.")
    lines += filter(None, (_same_start(sensor), _implausible(sensor)))
    return "".join(paragraph(line, "soft") for line in lines)


def _same_start(sensor: SensorRuns) -> str:
    """Return a sentence if several methods started at the same hyperparameters."""
    paths = {run.method: run.path for run in sensor.with_model if run.path is not None}
    if len(paths) < 2 or len({tuple(path.values[0]) for path in paths.values()}) > 1:
        return ""
    path = next(iter(paths.values()))
    ridge = sorted(group.name for group in path.groups if group.kind == "ridge")
    values = ", ".join(f"{name} {path[name][0]:.4g}" for name in ridge if name in path.names)
    start = f" ({values})" if values else ""
    names = " and ".join(paths)
    return f"{names} started at the same hyperparameters{start}, and saw the same readings."


def _implausible(sensor: SensorRuns) -> str:
    """Return a sentence about implausible readings and the errors with them, if there are any."""
    runs = sensor.with_model
    if not any(run.implausible_count for run in runs):
        return ""
    counts = _one_or_each(runs, [run.implausible_count for run in runs])
    errors = ", ".join(f"{four_digits(run.rmse_all)} ({run.method})" for run in sensor.runs)
    return (
        f"{MARK} Implausible readings, far outside the range of all before, are scored "
        f"separately: {counts}. With them, the RMSE is {errors}."
    )


def horizon_table(sensor: SensorRuns) -> str:
    """Return a table of scores by steps ahead; empty if the horizon is one step."""
    if sensor.main.horizon == 1:
        return ""
    levels = sensor.levels
    shares = (
        ["coverage"] if len(levels) == 1 else [f"coverage, {percent(each)}%" for each in levels]
    )
    head = [text_cell("steps ahead", ""), text_cell("method")]
    against = f"against {_naive_name([sensor])}"
    head += [text_cell(name, "") for name in ("RMSE", against, "MAE", *shares)]
    rows = [
        ("first" if i == 0 else "", _horizon_row(run, score, levels))
        for scores in zip(*(run.horizons for run in sensor.scored), strict=False)
        for i, (run, score) in enumerate(zip(sensor.scored, scores, strict=True))
    ]
    is_open = " open" if sensor.main.horizon <= FEW_STEPS else ""
    return (
        f"<details{is_open}><summary>Scores by steps ahead</summary>{table(head, rows)}</details>"
    )


def _horizon_row(run: Run, score: Score, levels: Levels) -> list[Cell]:
    cells = [Cell(f"{score.ahead}"), text_cell(run.method), Cell(four_digits(score.rmse))]
    cells += [_percent(score.relative - 1, "+.1f"), Cell(four_digits(score.mae))]
    return cells + [_percent(score.coverages.get(level, np.nan), ".1f") for level in levels]


def hyperparameter_table(path: TuningPath) -> str:
    """Return a table of the first and last value of every hyperparameter, folded away."""
    head = [text_cell("hyperparameter"), *(text_cell(name, "") for name in ("start", "end", "at"))]
    first, last = path.values.values[0], path.values.values[-1]
    rows = [
        (
            "",
            [
                text_cell(name),
                Cell(four_digits(start)),
                Cell(four_digits(end)),
                text_cell(f"{path.bounds[name]} bound" if name in path.bounds else "", ""),
            ],
        )
        for name, start, end in zip(path.values.names, first, last, strict=True)
    ]
    return f"<details><summary>All values, first and last</summary>{table(head, rows)}</details>"


def _summary_row(
    sensor: SensorRuns, run: Run, anchor: str, levels: Levels | None, *, against: bool
) -> list[Cell]:
    record = run.record()
    best = len(sensor.scored) > 1 and run.rmse == min(each.rmse for each in sensor.scored)
    cells = [
        Cell(link(anchor, sensor.sensor), "text name"),
        text_cell(run.method),
        Cell(four_digits(run.rmse) + MARK * bool(run.implausible_count), "best" if best else ""),
        _percent(np.nan if run.method == _naive_name([sensor]) else run.rmse_relative - 1, "+.1f"),
    ]
    cells += [_percent(sensor.change(run), "+.1f")] if against else []
    shares = run.coverages
    cells += [Cell(four_digits(run.mae), "more")]
    cells += [_percent(shares.get(level, np.nan), ".1f") for level in levels or run.levels]
    cells += [Cell(f"{record[name]:,}", "more") for name in ("scored", "missing", "fits")]
    return [*cells, Cell(f"{run.seconds:,.1f}", "more")]


def _percent(share: float, form: str) -> Cell:
    return Cell(number(100 * share, form) + (" %" if share == share else ""))


def _one_or_each(runs: Sequence[Run], counts: Sequence[int]) -> str:
    """Return a count, or one per method if they differ."""
    if len(set(counts)) == 1:
        return f"{counts[0]:,}"
    pairs = zip(counts, runs, strict=True)
    return ", ".join(f"{count:,} ({run.method})" for count, run in pairs)
