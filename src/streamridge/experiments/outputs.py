"""The files that every study writes: tables, figures, and one page."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamridge.files.atomic import replacing
from streamridge.files.tables import write_table
from streamridge.report.html_tables import Cell, document, number, paragraph, table, text_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
Row = Mapping[str, Any]


def write_json(path: Path, content: object) -> None:
    """Write plain values as JSON; numbers that are not finite become null."""
    with replacing(path) as file:
        file.write(json.dumps(_plain(content), indent=1).encode())


def write_results(folder: Path, command: str, results: Row) -> None:
    """Write results.json: the command, the software, and the results."""
    write_json(folder / "results.json", {"command": command, "software": software(), **results})


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows with the same keys as a CSV table."""
    write_table(path, {name: np.array([row[name] for row in rows]) for name in rows[0]})


def write_figure(path: Path, figure: Figure) -> None:
    """Write a figure as a PNG file."""
    with replacing(path) as file:
        figure.savefig(file, dpi=DOTS_PER_INCH, format="png")


def write_page(path: Path, title: str, body: Sequence[str]) -> None:
    """Write a page that needs no network; its figures are files in the same folder."""
    with replacing(path) as file:
        file.write(document(title, [f"<h1>{escape(title)}</h1>", *body]).encode())


def picture(name: str, caption: str, note: str = "") -> str:
    """Return an image from a file in the same folder, with its caption."""
    small = f"<small>{escape(note)}</small>" if note else ""
    return (
        f"<figure><figcaption>{escape(caption)}{small}</figcaption>"
        f'<img src="{escape(name)}" alt="{escape(caption)}" style="max-width:100%"></figure>'
    )


def table_of(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | float]],
    form: str = ".1f",
    *,
    summary_rows: int = 0,
) -> str:
    """Return a table of text and numbers in a format; a dash replaces an unknown number.

    A line separates the last `summary_rows`, which summarize the others.
    """
    styles = ["first" if len(rows) - i == summary_rows else "" for i in range(len(rows))]
    return table(
        [text_cell(heads[0]), *(text_cell(head, "wrap") for head in heads[1:])],
        [
            (style, [text_cell(str(row[0])), *(_cell(each, form) for each in row[1:])])
            for style, row in zip(styles, rows, strict=True)
        ],
    )


def created_by(command: str) -> str:
    """Return a sentence about the command and the software that created a page."""
    words = f"Created by <code>{escape(command)}</code> with {escape(software())}."
    return f'<p class="soft">{words}</p>'


def numbers_note(files: str) -> str:
    """Return a sentence about the files with all numbers of a page."""
    return paragraph(f"All numbers are in {files}, in the folder of this page.", "soft")


def software() -> str:
    """Return the versions of the software that results depend on."""
    parts = [f"{name} {version(name)}" for name in ("streamridge", "numpy", "scipy")]
    return ", ".join([*parts, f"Python {platform.python_version()}", platform.machine()])


def _cell(value: str | float, form: str) -> Cell:
    return text_cell(value, "") if isinstance(value, str) else Cell(number(value, form))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
