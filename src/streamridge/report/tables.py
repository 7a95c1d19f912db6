"""The tables of a report, and its sentences about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from streamridge.forecaster.levels import Levels
from streamridge.forecaster.methods import needs_model
from streamridge.metrics import percent
from streamridge.report.markup import (
    Cell,
    four_digits,
    link,
    number,
    paragraph,
    table,
    text_cell,
)
from streamridge.report.sensors import Moves, SensorRuns
from streamridge.runs.run import BASELINE, Run
from streamridge.runs.scores import Score

# What each count means, in words; a count that is not listed is shown by its name.
COUNTED = {
    "missing": "steps without a reading, filled by forecasts and not trained on",
    "skipped": "cells without a number or a time, dropped",
    "imputed": "values that the source had filled in, dropped",
    "duplicates": "repeated readings, dropped",
    "conflicts": "readings that differ from another of the same time, of which the first is kept",
    "off_grid": "stamps between two steps, moved to the nearest",
    "out_of_order": "readings out of order",
    "nonexistent": "local times that clocks skip, dropped",
    "partial": "steps with only some of their readings",
    "late": "readings that came late, used",
    "too_late": "readings that came too late, dropped",
    "excluded": "readings in excluded spans, neither learned from nor scored",
    "outlier": "outliers, not learned from",
    "implausible": "implausible readings, replaced by forecasts",
    "stuck": "readings of a stuck sensor, not learned from",
    "failed_refits": "failed refits, replaced by the fit before",
    "rollbacks": "rollbacks of tuning",
}
UNREMARKABLE = ("readings", "fits", "tunings", "tuning_fits", "gradients")
# A table of scores for up to this many steps ahead is not folded away.
FEW_STEPS = 4
# Columns that a phone has no room for.
MORE = ("MAE", "scored", "missing", "fits", "seconds")
# Marks an RMSE that leaves out implausible readings.
MARK = "*"
APART = f"{MARK} Without implausible readings; the section of the sensor says the error with them."
RIVALS = {"last": "the last reading", "week": "the same time a week ago"}
SEASONAL = "forecasts that repeat the last season, since no model could be used"


def summary_table(sensors: Sequence[SensorRuns]) -> str:
    """Return a table with a row per sensor and method."""
    against = any(sensor.baseline for sensor in sensors)
    head = [text_cell("sensor"), text_cell("method"), text_cell("RMSE", "")]
    head += [text_cell(f"against {_rival(sensors)}", "")]
    head += [text_cell(f"against {BASELINE}", "")] if against else []
    levels = _columns_of_coverage(sensors)
    names = ["coverage"] if levels is None else [f"coverage, {percent(each)}%" for each in levels]
    names = [MORE[0], *names, *MORE[1:]]
    head += [text_cell(name, "more" if name in MORE else "") for name in names]
    rows = [
        (
            _row_style(run, first=i == 0),
            _summary_row(sensor, run, f"#sensor-{at}", levels, against=against),
        )
        for at, sensor in enumerate(sensors, start=1)
        for i, run in enumerate(sensor.runs)
    ]
    unseen = paragraph(f"A wider screen shows more: {', '.join(MORE)}.", "soft phone")
    apart = any(run.scored_apart for sensor in sensors for run in sensor.runs)
    return table(head, rows) + unseen + (paragraph(APART, "soft") if apart else "")


def _rival(sensors: Sequence[SensorRuns]) -> str:
    """Return the name of the forecast without a model that relative errors are held against."""
    names = {name for sensor in sensors for run in sensor.runs for name in run.yardsticks}
    return "last" if names == {"last"} else "week"


def _row_style(run: Run, *, first: bool) -> str:
    return " ".join(["first"] * first + ["naive"] * (not needs_model(run.method)))


def mean_changes(sensors: Sequence[SensorRuns]) -> str:
    """Return sentences on how much every method gains over no model and over the baseline."""
    naive = RIVALS[_rival(sensors)]
    against_naive = _gains(sensors, naive, lambda _, run: run.rmse_relative - 1)
    return against_naive + _gains(sensors, BASELINE, SensorRuns.change)


def _gains(
    sensors: Sequence[SensorRuns], rival: str, change: Callable[[SensorRuns, Run], float]
) -> str:
    """Return a sentence on how much every method gains over a rival; empty if nothing is known."""
    changes: dict[str, list[float]] = {}
    for sensor in sensors:
        for run in sensor.modelled:
            if not np.isnan(change(sensor, run)):
                changes.setdefault(run.method, []).append(change(sensor, run))
    parts = [
        f"{method} {number(100 * float(np.mean(each)), '+.1f')} %"
        + (f" ({len(each)} sensors)" if len(each) > 1 else "")
        for method, each in changes.items()
    ]
    average = ", on average" if len(sensors) > 1 else ""
    text = f"RMSE against {rival}{average}: {', '.join(parts)}. Lower is better."
    return paragraph(text, "headline") if parts else ""


def counts_line(sensor: SensorRuns) -> str:
    """Return a sentence on the readings that were dropped, filled, doubted or in conflict."""
    runs = sensor.modelled
    names = dict.fromkeys(name for run in runs for name in run.counts)
    parts = [
        f"{COUNTED.get(name, name.replace('_', ' '))}: "
        + _one_or_each(runs, [run.counts.get(name, 0) for run in runs])
        for name in names
        if name not in UNREMARKABLE
    ]
    seasonal = [int((~run.by_model).sum()) * needs_model(run.method) for run in runs]
    parts += [f"{SEASONAL}: {_one_or_each(runs, seasonal)}"] if any(seasonal) else []
    readings = max(run.counts.get("readings", run.lived) for run in runs)
    found = "; ".join(parts) or "nothing was dropped, filled or in conflict"
    return paragraph(f"{readings:,} readings. {found[0].upper()}{found[1:]}.", "soft")


def remarks(sensor: SensorRuns) -> str:
    """Return remarks to read before comparing the methods of a sensor."""
    stopped = [run.method for run in sensor.modelled if run.interrupted]
    lines = [f"{method} was stopped before its end." for method in stopped]
    if len({(run.times[:1].tolist()[0], len(run.times)) for run in sensor.scored}) > 1:
        lines.append("The methods were scored on different steps: compare them with care.")
    lines += [_same_start(sensor)] if _start_alike(sensor) else []
    lines += [_apart(sensor)] if any(run.scored_apart for run in sensor.modelled) else []
    return "".join(paragraph(line, "soft") for line in lines)


def _start_alike(sensor: SensorRuns) -> bool:
    """Return whether several methods started at the same hyperparameters."""
    starts = [tuple(run.path.values[0]) for run in sensor.modelled if run.path is not None]
    return len(starts) > 1 and len(set(starts)) == 1


def _same_start(sensor: SensorRuns) -> str:
    names = [run.method for run in sensor.modelled if run.path is not None]
    path = next(run.path for run in sensor.modelled if run.path is not None)
    ridge = {group.name for group in path.groups if group.kind == "ridge"} & set(path.names)
    at = ", ".join(f"{name} {path[name][0]:.4g}" for name in sorted(ridge))
    return (
        f"{' and '.join(names)} started at the same hyperparameters{f' ({at})' if at else ''}, "
        "and saw the same readings."
    )


def _apart(sensor: SensorRuns) -> str:
    """Return how many implausible readings are scored apart, and the plain figures."""
    counts = _one_or_each(sensor.modelled, [run.scored_apart for run in sensor.modelled])
    plain = ", ".join(f"{four_digits(run.rmse_all)} ({run.method})" for run in sensor.runs)
    return (
        f"{MARK} Implausible readings, far outside the range of all before, are scored apart: "
        f"{counts}. With them, the plain RMSE is {plain}."
    )


def horizon_table(sensor: SensorRuns) -> str:
    """Return a table of scores by steps ahead; empty where forecasts go one step ahead."""
    if sensor.lead.horizon == 1:
        return ""
    levels = sensor.levels
    shares = (
        ["coverage"] if len(levels) == 1 else [f"coverage, {percent(each)}%" for each in levels]
    )
    head = [text_cell("steps ahead", ""), text_cell("method")]
    against = f"against {_rival([sensor])}"
    head += [text_cell(name, "") for name in ("RMSE", against, "MAE", *shares)]
    rows = [
        ("first" if i == 0 else "", _horizon_row(run, score, levels))
        for scores in zip(*(run.horizons for run in sensor.scored), strict=False)
        for i, (run, score) in enumerate(zip(sensor.scored, scores, strict=True))
    ]
    is_open = " open" if sensor.lead.horizon <= FEW_STEPS else ""
    return (
        f"<details{is_open}><summary>Scores by steps ahead</summary>{table(head, rows)}</details>"
    )


def _horizon_row(run: Run, score: Score, levels: Levels) -> list[Cell]:
    cells = [Cell(f"{score.ahead}"), text_cell(run.method), Cell(four_digits(score.rmse))]
    cells += [_percent(score.relative - 1, "+.1f"), Cell(four_digits(score.mae))]
    return cells + [_percent(score.coverages.get(level, np.nan), ".1f") for level in levels]


def hyperparameter_table(moves: Moves) -> str:
    """Return a table of the first and last value of every hyperparameter, folded away."""
    head = [text_cell("hyperparameter"), *(text_cell(name, "") for name in ("start", "end", "at"))]
    first, last = moves.path.values[0], moves.path.values[-1]
    rows = [
        (
            "",
            [
                text_cell(name),
                Cell(four_digits(start)),
                Cell(four_digits(end)),
                text_cell(f"{moves.bounds[name]} bound" if name in moves.bounds else "", ""),
            ],
        )
        for name, start, end in zip(moves.path.names, first, last, strict=True)
    ]
    return f"<details><summary>All values, first and last</summary>{table(head, rows)}</details>"


def _columns_of_coverage(sensors: Sequence[SensorRuns]) -> Levels | None:
    """Return the levels that have a column each; None if every run has one level."""
    if all(len(run.levels) == 1 for sensor in sensors for run in sensor.runs):
        return None
    return tuple(dict.fromkeys(level for sensor in sensors for level in sensor.levels))


def _summary_row(
    sensor: SensorRuns, run: Run, anchor: str, levels: Levels | None, *, against: bool
) -> list[Cell]:
    record = run.record()
    best = len(sensor.scored) > 1 and run.rmse == min(each.rmse for each in sensor.scored)
    cells = [
        Cell(link(anchor, sensor.sensor), "text name"),
        text_cell(run.method),
        Cell(four_digits(run.rmse) + MARK * bool(run.scored_apart), "best" if best else ""),
        _percent(np.nan if run.method == _rival([sensor]) else run.rmse_relative - 1, "+.1f"),
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
