"""The figures of a report, as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamridge.arrays import Vector
from streamridge.files.names import FileNames
from streamridge.forecaster.levels import band_words
from streamridge.metrics import rmse_by_hour, rmse_by_weekday
from streamridge.plots.axes import matplotlib_part, new_figure, plain
from streamridge.plots.figures import (
    plot_band,
    plot_costs,
    plot_error_by_hour,
    plot_error_by_weekday,
    plot_rolling_coverage,
    plot_running_rmse,
)
from streamridge.plots.tuning import (
    BOUND_MARKS,
    NameGroups,
    feature_labels,
    plot_hyperparameter,
    plot_scales,
    plot_trust,
    plot_weights,
    short_name,
)
from streamridge.report.experts import trust_of
from streamridge.report.sensors import (
    Moves,
    SensorRuns,
    coverage_in_time,
    moves_of,
)
from streamridge.runs.run import Run
from streamridge.series.clock import Times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_DAYS = 7
DOTS_PER_INCH = 120
LONGEST_TITLE = 60
# Height of a row of the heat map, in inches.
ROW_HEIGHT = 0.17
BOUND_NOTE = (
    f" ({', '.join(f'{mark.strip()} at {bound} bound' for bound, mark in BOUND_MARKS.items())})"
)


def write_images(
    sensor: SensorRuns,
    folder: Path,
    names: FileNames,
    *,
    unit: str = "",
    feature_names: Sequence[str] | None = None,
) -> list[str]:
    """Write the figures of a sensor and return the names of their files."""
    written = []
    short = sensor.sensor[:LONGEST_TITLE]
    for kind, title, figure in _figures(sensor, unit, feature_names):
        figure.suptitle(drawable(f"{short}: {title}"), fontsize="medium")
        name = names.take(f"{short}-{kind}", ".png")
        figure.savefig(folder / name, dpi=DOTS_PER_INCH)
        written.append(name)
    return written


def drawable(text: str) -> str:
    """Return text that the font can draw; a question mark replaces a missing character."""
    manager = matplotlib_part("font_manager")
    font = manager.get_font(manager.findfont(manager.FontProperties()))
    return plain("".join(char if font.get_char_index(ord(char)) else "?" for char in text))


def _figures(
    sensor: SensorRuns, unit: str, feature_names: Sequence[str] | None
) -> Iterator[tuple[str, str, Figure]]:
    """Yield for every figure a part of its file's name, its title, and the figure."""
    lead = sensor.lead
    if sensor.scored:
        title = f"{lead.method}, one step ahead, with {band_words(lead.levels)}"
        yield "forecast", title, _forecast(lead, unit)
        yield "errors", "errors and coverage", _errors(sensor, unit)
    yield "costs", "where the seconds went", _costs(sensor)
    for run in sensor.runs:
        moves = moves_of(run)
        if moves:
            yield from _tuning(moves, feature_names)
        if trust_of(run):
            yield f"experts-{run.method}", f"who is trusted, {run.method}", _trust(run)


def _tuning(moves: Moves, feature_names: Sequence[str] | None) -> Iterator[tuple[str, str, Figure]]:
    method, groups = moves.method, NameGroups.of(moves.path.groups)
    at_bound = BOUND_NOTE if moves.bounds else ""
    for names in groups.indexed.values():
        title = f"which feature matters, {method}{at_bound}"
        yield f"features-{method}", title, _features(moves, names, feature_names)
    if groups.weights or groups.others:
        title = f"hyperparameters, {method}{at_bound}"
        yield f"hyperparameters-{method}", title, _hyperparameters(moves, groups)


def _forecast(run: Run, unit: str) -> Figure:
    figure = new_figure(1, height_per_row=4.0)
    last = slice(-max(2, SHOWN_DAYS * run.day), None)
    band = (run.value[last, 0], run.lower[last, 0], run.upper[last, 0])
    times, actual = run.times[last], run.actual[last]
    plot_band(figure.axes[0], times, actual, *band, unit=unit, levels=run.levels, method=run.method)
    return figure


def _errors(sensor: SensorRuns, unit: str) -> Figure:
    lead = sensor.lead
    banded = bool(sensor.banded)  # the yardsticks have no bands
    rows = 1 + lead.has_hours + lead.has_weekdays + banded
    figure = new_figure(rows, height_per_row=2.8)
    first, *others = figure.axes
    errors = {run.method: run.errors_in_time for run in sensor.scored}
    curves = {run.method: (run.times, coverage_in_time(run)) for run in sensor.banded}
    plot_running_rmse(first, errors, steps_a_day=lead.day, unit=unit, in_days=lead.has_hours)
    if lead.has_hours:
        plot_error_by_hour(others.pop(0), _grouped(sensor, rmse_by_hour), unit=unit)
    if lead.has_weekdays:
        plot_error_by_weekday(others.pop(0), _grouped(sensor, rmse_by_weekday), unit=unit)
    if banded:
        plot_rolling_coverage(others.pop(0), curves, levels=sensor.levels)
    return figure


def _grouped(sensor: SensorRuns, rmse_by: Callable[[Times, Vector], Vector]) -> dict[str, Vector]:
    """Return the errors of every method, by hour or by day of the week."""
    return {run.method: rmse_by(run.local_times, run.errors_in_time) for run in sensor.scored}


def _costs(sensor: SensorRuns) -> Figure:
    figure = new_figure(1, height_per_row=1.5 + 0.4 * len(sensor.modelled))
    plot_costs(figure.axes[0], {run.method: run.seconds_by_kind() for run in sensor.modelled})
    return figure


def _features(moves: Moves, names: Sequence[str], feature_names: Sequence[str] | None) -> Figure:
    figure = new_figure(1, height_per_row=1.2 + ROW_HEIGHT * len(names))
    values = np.column_stack([moves.path[name] for name in names])
    labels = feature_labels(len(names), feature_names)
    marked = [moves.marked(*pair) for pair in zip(names, labels, strict=True)]
    plot_scales(figure.axes[0], moves.times, values, marked)
    return figure


def _hyperparameters(moves: Moves, groups: NameGroups) -> Figure:
    figure = new_figure(len(groups.weights) + len(groups.others), height_per_row=2.4)
    above, below = np.split(np.array(figure.axes), [len(groups.weights)])
    for axes, names in zip(above, groups.weights.values(), strict=True):
        shares = {moves.marked(name, short_name(name)): moves.path[name] for name in names}
        plot_weights(axes, moves.times, shares)
    for axes, name in zip(below, groups.others, strict=True):
        bound, method = moves.bounds.get(name), moves.method
        plot_hyperparameter(
            axes, moves.times, moves.path[name], name=name, bound=bound, method=method
        )
    return figure


def _trust(run: Run) -> Figure:
    figure = new_figure(1)
    plot_trust(figure.axes[0], run.expert_path.times, trust_of(run))
    return figure
