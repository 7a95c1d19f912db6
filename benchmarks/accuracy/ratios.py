"""Figures held against each other: the best of some methods, and ratios by stream and group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from accuracy.rivals import AGO, LAST, PLAIN, REGULARIZED, Figures

# Derived from other methods: the least of the values a season ago, of all rivals, and of fixed and
# those rivals that search for nothing.
SEASON, BEST, UNTUNED = "season ago", "best", "best untuned"
FIXED = "fixed"
ALL = "all"

# What is known of a stream; its "methods" are the figures by method, its "ratios" those by pair.
Row = dict[str, Any]


def with_best(figures: Mapping[str, Figures], rivals: Iterable[str]) -> dict[str, Figures]:
    """Return figures by method, with the best season ago and the best rivals after the others."""
    names = list(rivals)
    ago = [name for name in names if name.endswith(AGO)]
    untuned = [name for name in (LAST, *ago, FIXED, PLAIN, REGULARIZED) if name in figures]
    derived = {SEASON: ago, BEST: names, UNTUNED: untuned}
    return {**figures, **{name: _least(figures, each) for name, each in derived.items() if each}}


def ratios_of(methods: Mapping[str, Figures]) -> dict[str, dict[str, float]]:
    """Return the ratios of our methods that learn to all others, by pair such as "ohl / best"."""
    ours = our_methods(methods)
    learning = [name for name in ours if not name.endswith(FIXED)]
    others = [name for name in methods if name not in learning]
    return {
        f"{one} / {other}": {
            figure: _ratio(methods[one][figure], methods[other][figure])
            for figure in ("rmse", "mae", *(["seconds"] if other in ours else []))
        }
        for one in learning
        for other in others
    }


def our_methods(methods: Mapping[str, Figures]) -> list[str]:
    """Return the names of our own methods: they alone have bands."""
    return [name for name, figures in methods.items() if "coverage" in figures]


def by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of every group, and last those of all groups if there are several."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups if len(groups) == 1 else {**groups, ALL: list(rows)}


def group_ratios(rows: Sequence[Row]) -> dict[str, dict[str, Figures]]:
    """Return the mean and the range of every ratio of some streams, by pair of methods."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        for pair, figures in row["ratios"].items():
            for figure, ratio in figures.items():
                found.setdefault(pair, {}).setdefault(figure, []).append(ratio)
    return {
        pair: {figure: spread(each) for figure, each in figures.items()}
        for pair, figures in found.items()
    }


def group_coverage(rows: Sequence[Row]) -> dict[str, Figures]:
    """Return the mean and the range of the coverage of bands on some streams, by method."""
    names = dict.fromkeys(name for row in rows for name in our_methods(row["methods"]))
    return {
        name: spread([row["methods"][name]["coverage"] for row in rows if name in row["methods"]])
        for name in names
    }


def spread(each: Sequence[float]) -> Figures:
    """Return the mean and the range of some figures, and how many are below one."""
    return {
        "mean": float(np.mean(each)),
        "least": min(each),
        "greatest": max(each),
        "ahead": sum(ratio < 1 for ratio in each),
        "of": len(each),
    }


def _least(figures: Mapping[str, Figures], names: Sequence[str]) -> Figures:
    """Return the least RMSE and the least MAE of some methods, and whose RMSE it is."""
    first = min(names, key=lambda name: figures[name]["rmse"])
    least = min(figures[name]["mae"] for name in names)
    return {"rmse": figures[first]["rmse"], "mae": least, "of": first}


def _ratio(one: float, other: float) -> float:
    """Return a ratio of errors; two that are never wrong are level."""
    return one / other if other else float("inf" if one else 1)
