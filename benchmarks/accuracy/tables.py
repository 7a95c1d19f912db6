"""Figures of streams side by side, ratios of one method to another, and both as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from accuracy.rivals import AGO, LAST, PLAIN, REGULARIZED, Figures

# Derived from other methods: the least of the values a season ago, of all rivals, and of those
# that neither search nor learn hyperparameters.
SEASON, BEST, UNTUNED = "season ago", "best", "best untuned"
COST = "seconds"

Row = dict[str, Any]


def with_best(figures: Mapping[str, Figures], rivals: Iterable[str]) -> dict[str, Figures]:
    """Return figures by method, with the best season ago and the best rivals after the others."""
    names = list(rivals)
    ago = [name for name in names if name.endswith(AGO)]
    untuned = [name for name in (LAST, *ago, "fixed", PLAIN, REGULARIZED) if name in figures]
    derived = {SEASON: ago, BEST: names, UNTUNED: untuned}
    least = {name: _least(figures, among) for name, among in derived.items() if among}
    return {**figures, **least}


def ratios(rows: Sequence[Row]) -> dict[str, dict[str, Figures]]:
    """Return the ratios of our methods to others in every group, and in all streams together."""
    groups = list(dict.fromkeys(row["group"] for row in rows))
    found = {group: _of_group([row for row in rows if row["group"] == group]) for group in groups}
    return found if len(groups) == 1 else {**found, "all": _of_group(rows)}


def markdown(rows: Sequence[Row]) -> str:
    """Return the figures of all streams, and the ratios of all groups, as tables."""
    groups = dict.fromkeys(row["group"] for row in rows)
    parts = [
        _stream_table(group, [row for row in rows if row["group"] == group]) for group in groups
    ]
    return "\n\n".join([*parts, _ratio_table(ratios(rows))])


def _least(figures: Mapping[str, Figures], names: Sequence[str]) -> Figures:
    """Return the least RMSE and the least MAE of some methods, and whose RMSE it is."""
    first = min(names, key=lambda name: figures[name]["rmse"])
    least = min(figures[name]["mae"] for name in names)
    return {"rmse": figures[first]["rmse"], "mae": least, "of": first}


def _of_group(rows: Sequence[Row]) -> dict[str, Figures]:
    """Return the ratios of each of our methods to the others, on the streams that have both."""
    methods = list(dict.fromkeys(name for row in rows for name in row["methods"]))
    ours = [name for name in methods if any("coverage" in _figures(row, name) for row in rows)]
    pairs = [(one, other) for one in ours for other in methods if _is_compared(one, other, ours)]
    return {
        f"{one} / {other}": {
            figure: _spread(
                [_ratio(row, one, other, figure) for row in rows if _has(row, one, other)]
            )
            for figure in ("rmse", "mae", *([COST] if other in ours else []))
        }
        for one, other in pairs
    }


def _is_compared(one: str, other: str, ours: Sequence[str]) -> bool:
    """Return whether a method that learns is held against another; of ours, against fixed ones."""
    learns = not one.endswith("fixed")
    return learns and one != other and (other not in ours or other.endswith("fixed"))


def _figures(row: Row, method: str) -> Figures:
    return dict(row["methods"].get(method, {}))


def _has(row: Row, *methods: str) -> bool:
    return all(method in row["methods"] for method in methods)


def _ratio(row: Row, one: str, other: str, figure: str) -> float:
    a, b = _figures(row, one)[figure], _figures(row, other)[figure]
    return a / b if b else float("inf" if a else 1)


def _spread(each: Sequence[float]) -> Figures:
    """Return the mean and the range of some ratios, and how many are below one."""
    return {
        "mean": float(np.mean(each)),
        "least": min(each),
        "greatest": max(each),
        "ahead": sum(ratio < 1 for ratio in each),
        "of": len(each),
    }


def _stream_table(group: str, rows: Sequence[Row]) -> str:
    """Return the RMSE of every method on the streams of a group, with coverage and costs."""
    methods = list(dict.fromkeys(name for row in rows for name in row["methods"]))
    ours = [name for name in methods if any("coverage" in _figures(row, name) for row in rows)]
    head = [f"{group}: RMSE", *methods, *(f"{name}, coverage" for name in ours)]
    lines = []
    for row in rows:
        sizes = [_shown(_figures(row, name).get("rmse"), ".4g") for name in methods]
        covered = [_shown(_figures(row, name).get("coverage"), ".1%") for name in ours]
        lines.append([row["stream"], *sizes, *covered])
    return _table(head, lines)


def _ratio_table(every: Mapping[str, Mapping[str, Figures]]) -> str:
    """Return the ratios of all groups, a line for each pair of methods."""
    head = [
        "ratio",
        "group",
        "RMSE, mean (range)",
        "ahead on",
        "MAE, mean (range)",
        "seconds, mean",
    ]
    pairs = dict.fromkeys(pair for found in every.values() for pair in found)
    lines = [
        [pair, group, *_ratio_cells(found[pair])]
        for pair in pairs
        for group, found in every.items()
        if pair in found
    ]
    return _table(head, lines)


def _ratio_cells(found: Mapping[str, Figures]) -> list[str]:
    rmse, mae = found["rmse"], found["mae"]
    cost = found.get(COST, {}).get("mean")
    ahead = f"{rmse['ahead']} of {rmse['of']}"
    return [_range(rmse), ahead, _range(mae), _shown(cost, ".2f")]


def _range(spread: Figures) -> str:
    return f"{spread['mean']:.4f} ({spread['least']:.3f} - {spread['greatest']:.3f})"


def _shown(figure: float | None, form: str) -> str:
    return "" if figure is None else format(figure, form)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    every = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)
