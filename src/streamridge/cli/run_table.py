"""The table of runs: a line for each, with the figures that there is room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from streamridge.cli.tables import Column, Layout, fitted
from streamridge.forecaster.levels import Levels, named
from streamridge.metrics import percent, rmse
from streamridge.runs.run import BASELINE, Run, change

# What stands for a figure of a run; nothing where there is none.
Cell: TypeAlias = Callable[[Mapping[str, Any]], str]

# Behind the method of a run that there are remarks on.
MARK = "*"
# The RMSE is shown for so many numbers of steps ahead.
MOST_AHEAD = 6


@dataclass(frozen=True)
class Row:
    """What the table says of a run, without its forecasts.

    Parameters
    ----------
    figures
        Its record, and "against_fixed" where it is compared with "fixed".
    levels
        Of its bands.
    ahead
        The RMSE for some numbers of steps ahead.
    remarks
        What has to be known beside the figures, in words.
    """

    figures: Mapping[str, Any]
    levels: Levels
    ahead: Mapping[int, float]
    remarks: Sequence[str] = ()

    @classmethod
    def of(cls, run: Run, fixed: Run | None, remarks: Sequence[str] = ()) -> Row:
        """Return the row of a run, given the run by "fixed" of its sensor, if there is one."""
        figures = run.record()
        against = change(run, fixed)
        if run.method != BASELINE and not np.isnan(against):
            figures["against_fixed"] = against
        some = np.linspace(1, run.horizon, min(run.horizon, MOST_AHEAD)).round().astype(int)
        ahead = {steps: rmse(run.errors(steps)) for steps in some.tolist()}
        return cls(figures, run.levels, ahead, remarks)


def shown(name: str, form: str) -> Cell:
    """Return what shows a figure: a dash where it is not known, nothing where there is none."""

    def cell(figures: Mapping[str, Any]) -> str:
        if name not in figures:
            return ""
        figure = figures[name]
        return "-" if figure is None or np.isnan(figure) else format(figure, form)

    return cell


# In the order of their rank: where there is no room, the last one goes first. The coverage of each
# level stands before the first of the second group.
FIRST: Mapping[str, Cell] = {
    "RMSE": shown("rmse", ".4g"),
    "relative": shown("rmse_relative", ".3f"),
    "against fixed": shown("against_fixed", "+.1%"),
}
SECOND: Mapping[str, Cell] = {
    "MAE": shown("mae", ".4g"),
    "total, s": shown("seconds_total", ".1f"),
    "tuning, s": shown("seconds_tuning", ".1f"),
    "fits": shown("fits", "d"),
    "scored": shown("scored", "d"),
    "missing": shown("missing", "d"),
}


def run_table(rows: Sequence[Row], width: int | None = None, *, plain: bool = False) -> str:
    """Return the table of some runs as text, with what has to be known of them below.

    Parameters
    ----------
    rows
        Of the runs.
    width
        The columns of a terminal that it may take; None for a pipe or a file.
    plain
        Whether to do without signs that an old encoding lacks.
    """
    mark, rule = ("~", "-") if plain else ("\u2026", "\u2500")
    names = [
        Column("sensor", [row.figures["sensor"] for row in rows], is_name=True),
        Column("method", [_method(row) for row in rows], is_name=True),
    ]
    table = fitted([*names, *_figures(rows)], width, mark)
    parts = [table.text(rule), *_notes(rows, table)]
    if any(len(row.ahead) > 1 for row in rows):
        by_steps = fitted([*names, *_ahead(rows)], width, mark)
        parts += ["", "RMSE by the number of steps ahead", by_steps.text(rule)]
    return "\n".join(parts)


def _figures(rows: Sequence[Row]) -> list[Column]:
    """Return the columns of figures that at least one run has."""
    levels = rows[0].levels  # the same for all runs of a command
    shares = dict(zip(named("coverage", levels, levels), _coverage_headings(levels), strict=True))
    coverages = {heading: shown(name, ".1%") for name, heading in shares.items()}
    every = {**FIRST, **coverages, **SECOND}
    columns = [Column(name, [cell(row.figures) for row in rows]) for name, cell in every.items()]
    return [column for column in columns if any(column.cells)]


def _coverage_headings(levels: Levels) -> list[str]:
    if len(levels) == 1:
        return ["coverage"]
    return [f"{percent(level)}% coverage" for level in levels]


def _ahead(rows: Sequence[Row]) -> list[Column]:
    return [
        Column(str(steps), [shown("rmse", ".4g")({"rmse": row.ahead[steps]}) for row in rows])
        for steps in rows[0].ahead
    ]


def _method(row: Row) -> str:
    return row.figures["method"] + (f" {MARK}" if row.remarks else "")


def _notes(rows: Sequence[Row], table: Layout) -> list[str]:
    """Return the remarks on the runs, and what there was no room for."""
    notes = [f"{MARK} {remark}" for row in rows for remark in row.remarks]
    if table.dropped:
        headings = "; ".join(table.dropped)
        notes.append(f"Left out for want of room: {headings}. --json shows all.")
    return notes
