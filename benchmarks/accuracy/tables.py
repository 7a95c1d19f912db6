"""The figures and ratios of streams as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from accuracy.ratios import Row, by_group, group_coverage, group_ratios
from accuracy.rivals import Figures


def markdown(rows: Sequence[Row]) -> str:
    """Return the errors and ratios of all streams, and the ratios and coverage of all groups."""
    groups = by_group(rows)
    tables = [
        _by_stream("RMSE", "methods", "rmse", ".4g", rows),
        _by_stream("MAE", "methods", "mae", ".4g", rows),
        _by_stream("coverage", "methods", "coverage", ".1%", rows),
        _by_stream("seconds", "methods", "seconds", ".1f", rows),
        _by_stream("ratio of RMSE", "ratios", "rmse", ".3f", rows),
        _ratio_table({group: group_ratios(each) for group, each in groups.items()}),
        _coverage_table({group: group_coverage(each) for group, each in groups.items()}),
    ]
    return "\n\n".join(table for table in tables if table)


def _by_stream(title: str, part: str, figure: str, form: str, rows: Sequence[Row]) -> str:
    """Return one figure of every stream, a column for each method or pair that has it."""
    names = list(
        dict.fromkeys(
            name for row in rows for name, figures in row[part].items() if figure in figures
        )
    )
    lines = []
    for row in rows:
        figures = [row[part].get(name, {}).get(figure) for name in names]
        lines.append([row["group"], row["stream"], *(_shown(each, form) for each in figures)])
    return _table(["group", title, *names], lines) if names else ""


def _ratio_table(groups: Mapping[str, Mapping[str, Figures]]) -> str:
    """Return the ratios of every group, a line for each pair of methods."""
    pairs = dict.fromkeys(pair for found in groups.values() for pair in found)
    lines = [
        [pair, group, *_ratio_cells(found[pair])]
        for pair in pairs
        for group, found in groups.items()
        if pair in found
    ]
    head = ["ratio, mean (range)", "group", "RMSE", "ahead on", "MAE", "ahead on", "seconds"]
    return _table(head, lines) if lines else ""


def _ratio_cells(found: Mapping[str, Figures]) -> list[str]:
    rmse, mae, cost = found["rmse"], found["mae"], found.get("seconds")
    return [_range(rmse), _ahead(rmse), _range(mae), _ahead(mae), _range(cost) if cost else ""]


def _coverage_table(groups: Mapping[str, Mapping[str, Figures]]) -> str:
    """Return the share of values within the bands in every group."""
    lines = [
        [method, group, *(f"{found[part]:.1%}" for part in ("mean", "least", "greatest"))]
        for group, methods in groups.items()
        for method, found in methods.items()
    ]
    return _table(["coverage", "group", "mean", "least", "greatest"], lines) if lines else ""


def _range(found: Figures) -> str:
    return f"{found['mean']:.4f} ({found['least']:.3f} - {found['greatest']:.3f})"


def _ahead(found: Figures) -> str:
    return f"{found['ahead']} of {found['of']}"


def _shown(figure: float | None, form: str) -> str:
    return "" if figure is None else format(figure, form)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    every = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)
