"""Pieces of HTML; text from outside is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from math import floor, isfinite, log10

import plotly.graph_objects as go

from streamridge.files.own import GENERATOR

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
# The page fetches nothing: no scripts, styles, fonts or data.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src 'self' file: data: blob:"
)


@dataclass(frozen=True)
class Cell:
    """A cell of a table; its `html` is inserted as it is."""

    html: str
    style: str = ""


def text_cell(text: str, style: str = "text") -> Cell:
    """Return a cell of text."""
    return Cell(escape(text), style)


def number(value: float, form: str) -> str:
    """Return a number as text, or a dash if it is not finite."""
    return format(value, form).replace("-", MINUS) if isfinite(value) else DASH


def four_digits(value: float) -> str:
    """Return a number with four digits, so that the numbers of a column can be compared.

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


def panel(caption: str, figure: go.Figure, note: str = "") -> str:
    """Return a figure with its caption; the page's script draws it when it comes into view."""
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
