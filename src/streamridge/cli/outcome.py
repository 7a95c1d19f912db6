"""What a command shows of its runs: a table, or JSON, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamridge.files.tables import write_table
from streamridge.runs.run import BASELINE, Run, change


def print_json(runs: Sequence[Run]) -> None:
    """Print one object per run."""
    for run in runs:
        typer.echo(json.dumps(run.record()))


def print_table(runs: Sequence[Run]) -> None:
    """Print one line per run."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("sensor")
    table.add_column("method")
    headings = ("RMSE", "MAE", "coverage", "scored", "missing", "fits", "tuning, s", "total, s")
    fixed = {run.sensor: run for run in runs if run.method == BASELINE}
    compared = bool(fixed) and len(fixed) < len(runs)
    for heading in (*headings, *(("against fixed",) if compared else ())):
        table.add_column(heading, justify="right")
    for run in runs:
        cells = _cells(run)
        if compared:
            cells.append(_change(run, fixed.get(run.sensor)))
        table.add_row(Text(run.sensor), run.method, *cells)  # a name may hold brackets
    # Into a pipe or a file a line stays a line, however long.
    Console(width=None if Console().is_terminal else 160).print(table)


def write_predictions(runs: Sequence[Run], path: Path) -> None:
    """Write every forecast of every run as a row."""
    columns: dict[str, list[Any]] = {}
    for run in runs:
        for name, column in run.columns().items():
            columns.setdefault(name, []).append(column)
    write_table(path, {name: np.concatenate(parts) for name, parts in columns.items()})


def in_words(counts: Mapping[str, int]) -> str:
    """Return counts as text, such as "979 missing, 3 off grid"."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def _cells(run: Run) -> list[str]:
    record = run.record()
    return [
        f"{run.rmse:.4g}",
        f"{run.mae:.4g}",
        f"{run.coverage:.1%}",
        str(record["scored"]),
        str(record["missing"]),
        str(record["fits"]),
        f"{run.costs.tuning:.1f}",
        f"{run.seconds:.1f}",
    ]


def _change(run: Run, fixed: Run | None) -> str:
    share = change(run, fixed)
    return "" if run is fixed or np.isnan(share) else f"{share:+.1%}"
