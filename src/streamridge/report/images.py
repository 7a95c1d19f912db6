"""Figures of a report as PNG files, and the picture of the demo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.files.written_files import file_stem
from streamridge.forecaster.forecast import band_words
from streamridge.metrics import rmse_by_hour, rmse_by_weekday
from streamridge.plots.axes import INK, drawable, matplotlib_part, new_figure, plain
from streamridge.plots.figures import (
    EXPERT_AXIS,
    KERNEL_AXIS,
    plot_band,
    plot_costs,
    plot_error_by_hour,
    plot_error_by_weekday,
    plot_hyperparameter,
    plot_paths,
    plot_recent_rmse,
    plot_rolling_coverage,
    plot_running_rmse,
    plot_scales,
    plot_shares,
)
from streamridge.report.sensor_runs import (
    BOUND_MARKS,
    NameGroups,
    SensorRuns,
    TuningPath,
    coverage_in_time,
    expert_weights,
    feature_labels,
    recent_rmse,
    short_name,
)
from streamridge.runs.run import Run
from streamridge.series.times import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_DAYS = 7
DOTS_PER_INCH = 120
LONGEST_TITLE = 60
# Height of a row of the heat map, in inches.
ROW_HEIGHT = 0.17
BOUND_NOTE = (
    f" ({', '.join(f'{mark.strip()} at {bound} bound' for bound, mark in BOUND_MARKS.items())})"
)
# Days before and after the event that the picture of the demo shows.
BEFORE, AFTER = 3, 4
# After an event the errors of this method hide the differences between the others.
OMITTED = "week"


def write_images(
    sensor: SensorRuns,
    folder: Path,
    *,
    unit: str = "",
    feature_names: Sequence[str] | None = None,
) -> list[str]:
    """Write the figures of a sensor and return the names of their files."""
    written = []
    short = sensor.sensor[:LONGEST_TITLE]
    for kind, title, figure in _figures(sensor, unit, feature_names):
        figure.suptitle(drawable(f"{short}: {title}"), fontsize="medium")
        name = f"{file_stem(sensor.sensor)}-{file_stem(kind)}.png"
        figure.savefig(folder / name, dpi=DOTS_PER_INCH)
        written.append(name)
    return written


def write_event_image(
    sensor: SensorRuns,
    path: Path,
    *,
    moment: np.datetime64,
    event: str,
    hyperparameter: str,
    unit: str = "",
) -> None:
    """Write a picture of the main run around an event, recent errors, and a hyperparameter."""
    figure = new_figure(3, height_per_row=2.5)
    first, second, third = figure.axes
    run, day = sensor.main, np.timedelta64(1, "D")
    shown = (run.times >= moment - BEFORE * day) & (run.times < moment + AFTER * day)
    _draw_band(first, run, shown, unit)
    intervals = band_words(run.levels)
    first.set(title=plain(f"{run.sensor}: forecasts of {run.method}, with {intervals}"))
    errors = {run.method: recent_rmse(run) for run in sensor.scored if run.method != OMITTED}
    plot_recent_rmse(second, errors, unit=unit)
    second.set(title="error (RMSE) of the last three days", ylabel=plain(unit) or "RMSE")
    paths = {
        run.method: (run.refit_times, run.path[hyperparameter])
        for run in sensor.runs
        if run.path is not None
    }
    plot_paths(third, paths, name=hyperparameter)
    third.set(title=plain(f"a hyperparameter, {hyperparameter}, from a wrong start"))
    at = matplotlib_part("dates").date2num(moment)
    for axes in figure.axes:
        axes.axvline(at, color=INK, lw=1.2, ls="--")
        axes.set(xlabel="")
    first.text(at, 0.88, f"  {event}", transform=first.get_xaxis_transform(), va="center")
    figure.savefig(path, dpi=DOTS_PER_INCH)


def _figures(
    sensor: SensorRuns, unit: str, feature_names: Sequence[str] | None
) -> Iterator[tuple[str, str, Figure]]:
    """Yield a part of the file's name, the title and the figure for every figure."""
    main = sensor.main
    if sensor.scored:
        figure = new_figure(1, height_per_row=4.0)
        _draw_band(figure.axes[0], main, slice(-max(2, SHOWN_DAYS * main.day), None), unit)
        title = f"{main.method}, one step ahead, with {band_words(main.levels)}"
        yield "forecast", title, figure
        yield "errors", "errors and coverage", _errors(sensor, unit)
    figure = new_figure(1, height_per_row=1.5 + 0.4 * len(sensor.with_model))
    plot_costs(figure.axes[0], {run.method: run.seconds_by_kind() for run in sensor.with_model})
    yield "costs", "running time", figure
    for run in sensor.runs:
        path, weights = TuningPath.of(run), expert_weights(run)
        if path:
            yield from _tuning(path, feature_names)
        if weights:
            figure = new_figure(1)
            plot_shares(figure.axes[0], run.expert_path.times, weights, label=EXPERT_AXIS)
            yield f"experts-{run.method}", f"weights of the experts, {run.method}", figure


def _tuning(
    path: TuningPath, feature_names: Sequence[str] | None
) -> Iterator[tuple[str, str, Figure]]:
    method, groups = path.method, path.groups
    at_bound = BOUND_NOTE if path.bounds else ""
    for at, names in enumerate(groups.indexed.values(), start=1):
        title = f"importance of features, {method}{at_bound}"
        kind = f"features-{method}" if at == 1 else f"features-{method}-{at}"
        yield kind, title, _features(path, names, feature_names)
    if groups.weights or groups.others:
        title = f"hyperparameters, {method}{at_bound}"
        yield f"hyperparameters-{method}", title, _hyperparameters(path, groups)


def _draw_band(axes: Axes, run: Run, shown: slice | Mask, unit: str) -> None:
    band = (run.value[shown, 0], run.lower[shown, 0], run.upper[shown, 0])
    times, actual = run.times[shown], run.actual[shown]
    plot_band(axes, times, actual, *band, unit=unit, levels=run.levels, method=run.method)


def _errors(sensor: SensorRuns, unit: str) -> Figure:
    main = sensor.main
    has_bands = bool(sensor.with_bands)  # naive forecasts have no bands
    rows = 1 + main.has_hours + main.has_weekdays + has_bands
    figure = new_figure(rows, height_per_row=2.8)
    first, *others = figure.axes
    errors = {run.method: run.errors_in_time for run in sensor.scored}
    curves = {run.method: (run.times, coverage_in_time(run)) for run in sensor.with_bands}
    plot_running_rmse(first, errors, steps_a_day=main.day, unit=unit, in_days=main.has_hours)
    if main.has_hours:
        plot_error_by_hour(others.pop(0), _grouped(sensor, rmse_by_hour), unit=unit)
    if main.has_weekdays:
        plot_error_by_weekday(others.pop(0), _grouped(sensor, rmse_by_weekday), unit=unit)
    if has_bands:
        plot_rolling_coverage(others.pop(0), curves, levels=sensor.levels)
    return figure


def _grouped(sensor: SensorRuns, rmse_by: Callable[[Times, Vector], Vector]) -> dict[str, Vector]:
    """Return the errors of every method, by hour or by day of the week."""
    return {run.method: rmse_by(run.local_times, run.errors_in_time) for run in sensor.scored}


def _features(
    path: TuningPath, names: Sequence[str], feature_names: Sequence[str] | None
) -> Figure:
    figure = new_figure(1, height_per_row=1.2 + ROW_HEIGHT * len(names))
    values = np.column_stack([path.values[name] for name in names])
    labels = feature_labels(len(names), feature_names)
    marked = [path.marked(*pair) for pair in zip(names, labels, strict=True)]
    plot_scales(figure.axes[0], path.times, values, marked)
    return figure


def _hyperparameters(path: TuningPath, groups: NameGroups) -> Figure:
    figure = new_figure(len(groups.weights) + len(groups.others), height_per_row=2.4)
    above, below = np.split(np.array(figure.axes), [len(groups.weights)])
    for axes, names in zip(above, groups.weights.values(), strict=True):
        shares = {path.marked(name, short_name(name)): path.values[name] for name in names}
        plot_shares(axes, path.times, shares, label=KERNEL_AXIS, step="post")
    for axes, name in zip(below, groups.others, strict=True):
        bound, method = path.bounds.get(name), path.method
        plot_hyperparameter(
            axes, path.times, path.values[name], name=name, bound=bound, method=method
        )
    return figure
