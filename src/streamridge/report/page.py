"""The report of runs: a page with an overview and a section per sensor, and PNG files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np
from plotly.offline import get_plotlyjs

from streamridge.errors import InvalidInputError
from streamridge.files.names import FileNames
from streamridge.forecaster.levels import in_percent
from streamridge.metrics import RECENT, WEEK
from streamridge.plots.tuning import NameGroups, feature_labels
from streamridge.report.charts import (
    SHOWN_DAYS,
    costs_figure,
    coverage_figure,
    forecast_figure,
    hours_figure,
    readings_beyond,
    recent_figure,
    rmse_figure,
    weekdays_figure,
)
from streamridge.report.experts import TRUST, trust_figure, trust_of
from streamridge.report.images import write_images
from streamridge.report.markup import document, link, panel, paragraph
from streamridge.report.sensors import Moves, SensorRuns, by_sensor, moves_of
from streamridge.report.tables import (
    counts_line,
    horizon_table,
    hyperparameter_table,
    mean_changes,
    remarks,
    summary_table,
)
from streamridge.report.tuning import others_figure, scales_figure, weights_figure
from streamridge.runs.run import Run
from streamridge.series.clock import parse_length, step_name, time_text

READING = (
    "RMSE and MAE are typical errors of a forecast one step ahead; RMSE gives large errors more "
    "weight. The lowest RMSE of each sensor is bold. Two forecasts need no model: last repeats the "
    "last reading, week the one at the same time a week ago (where there is no week, the longest "
    "season ago). A forecaster should be well below both. Coverage is the share of readings within "
    "their band. Missing steps had no reading, or one outside the known bounds, and are not "
    "scored. Seconds are those of the whole run."
)
ZOOMING = "Drag to zoom, double-click to see everything. Click a name to show or hide it."
BOUNDS = (
    "\N{BLACK UP-POINTING TRIANGLE} marks a hyperparameter that ended at its upper bound, "
    "\N{BLACK DOWN-POINTING TRIANGLE} one at its lower bound."
)
MATTERS = "One row per feature. The larger the inverse scale, the more the feature matters."


def write_report(
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str,
    unit: str = "",
    feature_names: Sequence[str] | None = None,
) -> Path:
    """Write a page about runs that needs no network, and PNG files beside it.

    Parameters
    ----------
    runs
        The runs of one or more sensors, each by one or more methods.
    folder
        Where to write; it is created if it does not exist.
    title
        The title of the page.
    unit
        The unit of the readings.
    feature_names
        The names of the features of a row, for kernels that read all of them.

    Returns
    -------
    Path
        The path of the page.
    """
    if not runs:
        raise InvalidInputError("runs must hold at least one run, got none.")
    sensors, names = by_sensor([run.on_the_clock() for run in runs]), FileNames()
    zones = " and ".join(dict.fromkeys(run.zone for run in runs if run.zone))
    named = [paragraph(f"Times are in {zones}.", "soft")] if zones else []
    body = [overview(title, sensors, unit=unit), *named]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for at, sensor in enumerate(sensors, start=1):
            images = write_images(sensor, folder, names, unit=unit, feature_names=feature_names)
            body.append(section(at, sensor, images, unit=unit, feature_names=feature_names))
        path = folder / "index.html"
        path.write_text(page(title, body), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"report must be a folder that can be written, got {str(folder)!r} ({error})."
        ) from None
    return path


def page(title: str, body: Iterable[str]) -> str:
    """Return a page with interactive figures that needs no network."""
    script = files("streamridge.report").joinpath("page.js").read_text(encoding="utf-8")
    scripts = f"<script>{get_plotlyjs()}</script><script>{script}</script>"
    # Without scripts the interactive figures would be empty boxes.
    without = "<noscript><style>figure {display: none}</style></noscript>"
    return document(title, [*body, scripts], head=without)


def overview(title: str, sensors: Sequence[SensorRuns], *, unit: str = "") -> str:
    """Return the top of the page: title, scope, and a table of all runs."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        paragraph(_scope(sensors), "soft"),
        mean_changes(sensors),
        summary_table(sensors),
        paragraph(f"Errors are in {unit}. {READING}" if unit else READING, "soft"),
    ]
    return "\n".join(parts) + (contents(sensors) if len(sensors) > 1 else "")


def contents(sensors: Sequence[SensorRuns]) -> str:
    """Return links to the sensors."""
    items = [
        f"<li>{link(f'#sensor-{at}', sensor.sensor)}</li>"
        for at, sensor in enumerate(sensors, start=1)
    ]
    return f'<nav aria-label="Sensors"><strong>Sensors</strong><ul>{"".join(items)}</ul></nav>'


def section(
    at: int,
    sensor: SensorRuns,
    images: Sequence[str],
    *,
    unit: str = "",
    feature_names: Sequence[str] | None = None,
) -> str:
    """Return the section about one sensor."""
    parts = [f'<h2 id="sensor-{at}">{escape(sensor.sensor)}</h2>', counts_line(sensor)]
    parts += [remarks(sensor)]
    parts += [horizon_table(sensor)]
    parts += _scored(sensor, unit) if sensor.scored else [paragraph("No step was scored.")]
    parts += [panel("Where the seconds went", costs_figure(sensor))]
    for run in sensor.runs:
        moves = moves_of(run)
        parts += _moved(moves, feature_names) if moves else []
        parts += _trusted(run)
    parts += [_unmoved(sensor), _image_links(images)]
    return "\n".join(["<section>", *parts, "</section>"])


def _scope(sensors: Sequence[SensorRuns]) -> str:
    runs = [run for sensor in sensors for run in sensor.runs]
    methods = ", ".join(dict.fromkeys(r.method for s in sensors for r in s.modelled))
    steps = ", ".join(dict.fromkeys(step_name(parse_length("step", run.step)) for run in runs))
    levels = in_percent(tuple(dict.fromkeys(each for run in runs for each in run.levels)))
    times = np.concatenate([run.times for run in runs])
    count = "1 sensor" if len(sensors) == 1 else f"{len(sensors)} sensors"
    span = f"from {_minute(times.min())} to {_minute(times.max())}, " if len(times) else ""
    return f"{count}, {span}a reading every {steps}. Methods: {methods}. Bands of {levels}."


def _minute(time: np.datetime64 | np.int64) -> str:
    return time_text(time, "m").replace("T", " ")


def _scored(sensor: SensorRuns, unit: str) -> list[str]:
    lead, forecasts = sensor.lead, forecast_figure(sensor, unit=unit)
    shown = "four weeks" if lead.has_hours else f"{SHOWN_DAYS * lead.day} steps"
    window = "week" if lead.has_hours else f"{WEEK * lead.day} steps"
    held = f"At each step, over the {window} before it; in a short run, over half of the run."
    days = "three days" if lead.has_hours else f"{RECENT * lead.day} steps"
    recent = f"At each step, over the {days} before it; in a short run, over half of the run."
    return [
        panel(
            "Forecast and actual, one step ahead",
            forecasts,
            f"At most the last {shown}. {_beyond(lead)}{ZOOMING}",
        ),
        panel("RMSE(t), the RMSE of all steps so far", rmse_figure(sensor, unit=unit)),
        panel("RMSE of the last days", recent_figure(sensor, unit=unit), recent),
        *_by_calendar(sensor, unit),
        *(
            [panel("Share of readings within the band", coverage_figure(sensor), held)]
            if sensor.banded
            else []
        ),
    ]


def _beyond(run: Run) -> str:
    """Return a sentence on the readings that the figure of forecasts marks at its edge, if any."""
    count = readings_beyond(run)
    readings = "1 reading" if count == 1 else f"{count:,} readings"
    return f"Triangles at the edge stand for {readings} far beyond it. " if count else ""


def _by_calendar(sensor: SensorRuns, unit: str) -> list[str]:
    """Return how errors depend on the hour and on the day, where steps are short enough for it."""
    panels = []
    if sensor.lead.has_hours:
        panels.append(panel("Error by hour of day", hours_figure(sensor, unit=unit)))
    if sensor.lead.has_weekdays:
        panels.append(panel("Error by day of week", weekdays_figure(sensor, unit=unit)))
    return ['<div class="pair">', *panels, "</div>"] if len(panels) > 1 else panels


def _moved(moves: Moves, feature_names: Sequence[str] | None) -> list[str]:
    groups = NameGroups.of(moves.path.groups)
    note = BOUNDS if moves.bounds else "No hyperparameter ended at a bound."
    parts = [f"<h3>Hyperparameters of {escape(moves.method)}</h3>", paragraph(note, "soft")]
    for group, names in groups.weights.items():
        parts += [panel(f"Weight of every kernel ({_words(group)})", weights_figure(moves, names))]
    for group, names in groups.indexed.items():
        figure = scales_figure(moves, names, feature_labels(len(names), feature_names))
        parts += [panel(f"Which feature matters ({_words(group)})", figure, MATTERS)]
    if groups.others:
        parts += [panel("The other hyperparameters", others_figure(moves, groups.others))]
    return [*parts, hyperparameter_table(moves)]


def _trusted(run: Run) -> list[str]:
    """Return who was trusted how far in a run, if several experts were."""
    if not trust_of(run):
        return []
    return [panel(f"Who is trusted ({run.method})", trust_figure(run), TRUST)]


def _words(name: str) -> str:
    return name.replace(".", " ").replace("_", " ")


def _unmoved(sensor: SensorRuns) -> str:
    still = ", ".join(run.method for run in sensor.modelled if moves_of(run) is None)
    words = f"Methods whose hyperparameters did not move: {still}."
    return paragraph(words, "soft") if still else ""


def _image_links(images: Sequence[str]) -> str:
    links = ", ".join(link(image, image) for image in images)
    shown = "".join(f'<img src="{escape(image)}" alt="">' for image in images)
    return f'<p class="soft">The same as PNG files: {links}</p><noscript>{shown}</noscript>'
