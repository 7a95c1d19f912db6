"""How axes look: colours, dates, logarithms, legends, and text that is drawn as it stands."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from streamridge.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours and a grey, which stay apart for colour-blind readers.
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#7F7F7F",
)  # fmt: skip
INK = "#333333"
GAP, GAP_EDGE = "#E4E4E4", "#AAAAAA"
DASHES = ("-", "--", "-.", ":")
LEGEND_COLUMNS = 4
# From this ratio of the ends of a logarithmic axis on, only powers of ten are written.
MANY_DECADES = 2000
DECADE = 10


def new_figure(rows: int, *, width: float = 9.0, height_per_row: float = 3.2) -> Figure:
    """Return a figure with axes one above the other."""
    figure: Figure = matplotlib_part("figure").Figure(
        figsize=(width, rows * height_per_row), layout="constrained"
    )
    figure.subplots(rows, 1)
    return figure


def line_style(i: int) -> dict[str, Any]:
    """Return the look of the i-th line; dashes part those whose colours come round again."""
    return {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[i % len(DASHES)], "lw": 1.5}


def date_axis(axes: Axes) -> None:
    """Write dates on the horizontal axis, as short as they can be."""
    dates = matplotlib_part("dates")
    locator = dates.AutoDateLocator(minticks=3, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.set(xlabel="time")
    axes.margins(x=0)


def legend_above_data(axes: Axes) -> None:
    """Make room above what is drawn, and put the legend there."""
    rows = -(-len(axes.get_legend_handles_labels()[1]) // LEGEND_COLUMNS)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.14 * rows * (high - low))
    axes.legend(loc="upper left", ncols=LEGEND_COLUMNS, framealpha=0.85, edgecolor="none")


def log_axis(axes: Axes, name: Literal["x", "y"] = "y") -> None:
    """Make an axis logarithmic, with plain numbers at its ticks.

    Ticks stand at 1, 2 and 5 of each decade, at 1 alone where there are many decades, and at round
    numbers within a single one. Call this after drawing: it looks at the span of what is drawn.
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
    """Return the label of an axis.

    Examples
    --------
    >>> with_unit("RMSE", "vehicles"), with_unit("RMSE", "")
    ('RMSE, vehicles', 'RMSE')
    """
    return f"{what}, {unit}" if unit else what


def plain(text: str) -> str:
    """Return text that is drawn as it stands; between two dollars it would be a formula."""
    return text.replace("$", r"\$")


def matplotlib_part(name: str) -> ModuleType:
    """Return a module of matplotlib, which is not imported before a figure is asked for."""
    try:
        return import_module(f"matplotlib.{name}")
    except ModuleNotFoundError:
        raise MissingExtraError(
            "matplotlib must be installed for figures. "
            "Install it with: pip install 'streamridge[plot]'"
        ) from None
