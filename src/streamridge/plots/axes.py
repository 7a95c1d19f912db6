"""The style of axes: colours, dates, logarithmic scales, legends and labels."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import numpy as np

from streamridge.errors import MissingExtraError, visible
from streamridge.series.times import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito and a grey, safe for colour-blind readers.
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#7F7F7F",
)  # fmt: skip
# One more safe colour.
WINE = "#882255"
# The colour and the dash of every method, the same in all figures. Naive forecasts are grey.
METHOD_LOOKS = {
    "ohl": (COLORS[1], 0),
    "ohl+": (WINE, 0),
    "fixed": (COLORS[0], 1),
    "hoag": (COLORS[5], 2),
    "random": (COLORS[2], 3),
    "grid": (COLORS[4], 1),
    "bayes": (COLORS[3], 2),
    "last": ("#6E6E6E", 3),
    "week": ("#A8A8A8", 1),
}
INK = "#333333"
GAP, GAP_EDGE = "#E4E4E4", "#AAAAAA"
DASHES = ("-", "--", "-.", ":")
LEGEND_COLUMNS = 4
# Only powers of ten have ticks if the limits of a logarithmic axis have at least this ratio.
MANY_DECADES = 2000
DECADE = 10


def new_figure(
    rows: int, columns: int = 1, *, width: float = 9.0, height_per_row: float = 3.2
) -> Figure:
    """Return a figure with a grid of axes, row by row."""
    figure: Figure = matplotlib_part("figure").Figure(
        figsize=(width, rows * height_per_row), layout="constrained"
    )
    figure.subplots(rows, columns)
    return figure


def line_style(i: int) -> dict[str, Any]:
    """Return the style of the i-th line; the first 32 styles differ."""
    dash = (i + i // len(COLORS)) % len(DASHES)  # lines of the same colour differ
    return {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[dash], "lw": 1.5}


def method_look(name: str) -> tuple[str, int]:
    """Return the colour of a method and the index of its dash, which depend on its name only.

    A second run of a method, such as "ohl (2)", has the same colour and another dash.

    Examples
    --------
    >>> method_look("ohl"), method_look("ohl (2)")
    (('#D55E00', 0), ('#D55E00', 1))
    """
    base, _, again = name.partition(" (")
    if base in METHOD_LOOKS:
        color, dash = METHOD_LOOKS[base]
        return color, (dash + bool(again)) % len(DASHES)
    number = crc32(name.encode())
    return COLORS[number % len(COLORS)], number // len(COLORS) % len(DASHES)


def method_style(name: str) -> dict[str, Any]:
    """Return the style of a method's line."""
    color, dash = method_look(name)
    return {"color": color, "linestyle": DASHES[dash], "lw": 1.5}


def part_color(i: int) -> str:
    """Return the colour of the i-th part of a whole; the colours of ohl and fixed come last."""
    return COLORS[(i + 2) % len(COLORS)]


def time_axis(axes: Axes, times: Times) -> None:
    """Label the horizontal axis with short dates, or with the integers of an index."""
    if times.dtype.kind == "M":
        dates = matplotlib_part("dates")
        locator = dates.AutoDateLocator(minticks=3, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.set(xlabel="time")
    axes.margins(x=0)


def legend_above_data(axes: Axes) -> None:
    """Extend the axis above the data and put the legend there."""
    rows = -(-len(axes.get_legend_handles_labels()[1]) // LEGEND_COLUMNS)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.14 * rows * (high - low))
    axes.legend(loc="upper left", ncols=LEGEND_COLUMNS, framealpha=0.85, edgecolor="none")


def log_axis(axes: Axes, name: Literal["x", "y"] = "y") -> None:
    """Make an axis logarithmic, with plain numbers at its ticks.

    Ticks are at 1, 2 and 5 of each decade; at powers of ten if there are many decades; at round
    numbers if there is less than one. Call this after drawing, since it reads the limits.
    """
    ticker = matplotlib_part("ticker")
    axes.set(**{f"{name}scale": "log"})
    axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < MANY_DECADES * low else (1.0,)
    within_a_decade = high < DECADE * low
    axis.set_major_locator(
        ticker.MaxNLocator(4) if within_a_decade else ticker.LogLocator(subs=subs)
    )
    axis.set_major_formatter(lambda tick, _: plain_number(tick))
    axis.set_minor_locator(ticker.NullLocator())


def plain_number(value: float) -> str:
    """Return a number without an exponent.

    Examples
    --------
    >>> plain_number(20000.0), plain_number(2e-05), plain_number(0.1 + 0.2)
    ('20000', '0.00002', '0.3')
    """
    return np.format_float_positional(value, precision=6, fractional=False, trim="-")


def with_unit(what: str, unit: str) -> str:
    """Return the label of an axis, with the unit if there is one.

    Examples
    --------
    >>> with_unit("RMSE", "vehicles"), with_unit("RMSE", "")
    ('RMSE, vehicles', 'RMSE')
    """
    return f"{what}, {unit}" if unit else what


def plain(text: str) -> str:
    """Return text with escaped dollar signs, which would start a formula."""
    return visible(text).replace("$", r"\$")


def drawable(text: str) -> str:
    """Return text that the font can draw; a question mark replaces a missing character."""
    manager = matplotlib_part("font_manager")
    font = manager.get_font(manager.findfont(manager.FontProperties()))
    return plain("".join(char if font.get_char_index(ord(char)) else "?" for char in text))


def matplotlib_part(name: str) -> ModuleType:
    """Return a module of matplotlib, which is imported only when a figure is drawn."""
    try:
        return import_module(f"matplotlib.{name}")
    except ModuleNotFoundError:
        raise MissingExtraError(
            "matplotlib must be installed to draw figures. "
            "Install it with: pip install 'streamridge[plot]'"
        ) from None
