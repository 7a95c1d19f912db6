"""The report of runs: a page with an overview and a section per sensor, and PNG files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import numpy as np
from plotly.offline import get_plotlyjs

from streamridge.errors import InvalidInputError
from streamridge.forecaster.forecast import in_percent
from streamridge.metrics import RECENT, WEEK
from streamridge.report.charts import (
    SHOWN_DAYS,
    Event,
    costs_figure,
    coverage_figure,
    forecast_figure,
    hours_figure,
    readings_beyond,
    recent_figure,
    rmse_figure,
    weekdays_figure,
)
from streamridge.report.html_tables import (
    counts_line,
    document,
    horizon_table,
    hyperparameter_table,
    link,
    mean_changes,
    minute,
    panel,
    paragraph,
    remarks,
    summary_table,
)
from streamridge.report.images import write_images
from streamridge.report.sensor_runs import (
    SensorRuns,
    TuningPath,
    by_sensor,
    expert_weights,
    feature_labels,
)
from streamridge.report.tuning_charts import (
    experts_figure,
    others_figure,
    scales_figure,
    weights_figure,
)
from streamridge.runs.run import Run
from streamridge.series.lengths import parse_length, step_name

EXPLANATION = (
    "RMSE and MAE measure the errors of forecasts one step ahead; RMSE gives large errors more "
    "weight. The lowest RMSE of each sensor is bold. A model should be well below the naive "
    "forecasts last and week. Coverage is the share of readings within their prediction interval. "
    "Missing steps have no reading, or one outside the known bounds, and are not scored. Seconds "
    "are the running time of the whole run."
)
# A sentence about each method, which continues its name.
METHODS = {
    "ohl": "(online hyperparameter learning) tunes its hyperparameters at every refit, by the "
    "gradient of its own errors.",
    "ohl+": "is ohl from a start that it searched once.",
    "hoag": "searches the past regularly, by approximate gradients.",
    "random": "searches the past regularly, by random draws.",
    "grid": "searches the past regularly, on a grid.",
    "bayes": "searches the past regularly, by Bayesian optimization.",
    "fixed": "is the same model without tuning: it keeps the initial hyperparameters.",
    "last": "has no model: it repeats the last reading.",
    "week": "has no model: it repeats the reading of the same time a week ago, or of the longest "
    "season if there is no week.",
}
ZOOM = "Drag to zoom, double-click to reset. Click a name to show or hide it."
BOUNDS = (
    "\N{BLACK UP-POINTING TRIANGLE} marks a hyperparameter that ended at its upper bound, "
    "\N{BLACK DOWN-POINTING TRIANGLE} one that ended at its lower bound."
)
SCALES = (
    "One row per feature. The larger the inverse scale, the more the feature matters. A feature "
    'such as "day, 3 steps ago" is a reading minus its usual value at that time of day; "next '
    'change" is the usual change after the step.'
)
EXPERTS = (
    "A forecast is a weighted mean of experts: the model, a smaller model that is not tuned, and "
    "naive forecasts. Experts with small recent errors get large weights."
)


def write_report(
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str,
    unit: str = "",
    feature_names: Sequence[str] | None = None,
    events: Sequence[Event] = (),
) -> Path:
    """Write a page about runs, and PNG files into the same folder; return the path of the page.

    The page needs no network. `unit` is the unit of the readings. `feature_names` are for kernels
    that use all features. `events` are times in local time with a text, marked in the figures.
    """
    if not runs:
        raise InvalidInputError("runs must hold at least one run, got none.")
    sensors = by_sensor([run.in_local_time() for run in runs])
    zones = " and ".join(dict.fromkeys(run.zone for run in runs if run.zone))
    zone_note = [paragraph(f"Times are in {zones}.", "soft")] if zones else []
    body = [overview(title, sensors, unit=unit), *zone_note]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for at, sensor in enumerate(sensors, start=1):
            images = write_images(sensor, folder, unit=unit, feature_names=feature_names)
            body.append(
                section(at, sensor, images, unit=unit, feature_names=feature_names, events=events)
            )
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
        _methods(sensors),
        paragraph(f"Errors are in {unit}. {EXPLANATION}" if unit else EXPLANATION, "soft"),
    ]
    items = [
        f"<li>{link(f'#sensor-{at}', sensor.sensor)}</li>"
        for at, sensor in enumerate(sensors, start=1)
    ]
    links = f'<nav aria-label="Sensors"><strong>Sensors</strong><ul>{"".join(items)}</ul></nav>'
    return "\n".join(parts) + (links if len(sensors) > 1 else "")


def section(
    at: int,
    sensor: SensorRuns,
    images: Sequence[str],
    *,
    unit: str = "",
    feature_names: Sequence[str] | None = None,
    events: Sequence[Event] = (),
) -> str:
    """Return the section about one sensor."""
    parts = [f'<h2 id="sensor-{at}">{escape(sensor.sensor)}</h2>']
    parts += [counts_line(sensor), remarks(sensor), horizon_table(sensor)]
    nothing = [paragraph("No step was scored.")]
    parts += _errors(sensor, unit, events) if sensor.scored else nothing
    parts += [panel("Running time", costs_figure(sensor))]
    for run in sensor.runs:
        path = TuningPath.of(run)
        parts += _tuning(path, feature_names, events) if path else []
        if expert_weights(run):
            caption = f"Weights of the experts ({run.method})"
            parts += [panel(caption, experts_figure(run), EXPERTS, events)]
    constant = ", ".join(run.method for run in sensor.with_model if TuningPath.of(run) is None)
    if constant:
        parts.append(paragraph(f"Methods with constant hyperparameters: {constant}.", "soft"))
    return "\n".join(["<section>", *parts, _image_links(images), "</section>"])


def _scope(sensors: Sequence[SensorRuns]) -> str:
    runs = [run for sensor in sensors for run in sensor.runs]
    methods = ", ".join(dict.fromkeys(r.method for s in sensors for r in s.with_model))
    steps = ", ".join(dict.fromkeys(step_name(parse_length("step", run.step)) for run in runs))
    levels = in_percent(tuple(dict.fromkeys(each for run in runs for each in run.levels)))
    times = np.concatenate([run.times for run in runs])
    count = "1 sensor" if len(sensors) == 1 else f"{len(sensors)} sensors"
    span = f"Scored from {minute(times.min())} to {minute(times.max())}. " if len(times) else ""
    return f"{count}, a reading every {steps}. {span}Methods: {methods}. Intervals of {levels}."


def _methods(sensors: Sequence[SensorRuns]) -> str:
    """Return a list with a sentence about each method; empty if none is known."""
    names = dict.fromkeys(run.method for sensor in sensors for run in sensor.runs)
    items = [
        f"<li><strong>{escape(name)}</strong> {escape(METHODS[name])}</li>"
        for name in names
        if name in METHODS
    ]
    return f'<ul class="soft">{"".join(items)}</ul>' if items else ""


def _errors(sensor: SensorRuns, unit: str, events: Sequence[Event]) -> list[str]:
    main, forecasts = sensor.main, forecast_figure(sensor, unit=unit)
    shown = "four weeks" if main.has_hours else f"{SHOWN_DAYS * main.day} steps"
    week = "week" if main.has_hours else f"{WEEK * main.day} steps"
    days = "three days" if main.has_hours else f"{RECENT * main.day} steps"
    coverage, recent = (
        f"Computed over the {window} before each step; over half of the run if it is short."
        for window in (week, days)
    )
    curves = {
        "RMSE(t), the RMSE of all steps so far": (rmse_figure(sensor, unit=unit), ""),
        "RMSE of the last days": (recent_figure(sensor, unit=unit), recent),
    }
    shares = {"Share of readings within the interval": (coverage_figure(sensor), coverage)}
    return [
        panel(
            "Forecast and actual value, one step ahead",
            forecasts,
            f"At most the last {shown}. {_beyond(main)}{ZOOM}",
            events,
        ),
        *(panel(caption, *each, events) for caption, each in curves.items()),
        *_by_calendar(sensor, unit),
        *(panel(caption, *each, events) for caption, each in shares.items() if sensor.with_bands),
    ]


def _beyond(run: Run) -> str:
    """Return a sentence about the readings beyond the figure of forecasts; empty without any."""
    count = readings_beyond(run)
    readings = "1 reading" if count == 1 else f"{count:,} readings"
    return f"Triangles at the edge mark {readings} beyond the range. " if count else ""


def _by_calendar(sensor: SensorRuns, unit: str) -> list[str]:
    """Return the errors by hour and by day of the week, if steps are short enough."""
    panels = []
    if sensor.main.has_hours:
        panels.append(panel("Error by hour of day", hours_figure(sensor, unit=unit)))
    if sensor.main.has_weekdays:
        panels.append(panel("Error by day of week", weekdays_figure(sensor, unit=unit)))
    return ['<div class="pair">', *panels, "</div>"] if len(panels) > 1 else panels


def _tuning(
    path: TuningPath, feature_names: Sequence[str] | None, events: Sequence[Event]
) -> list[str]:
    groups = path.groups
    note = BOUNDS if path.bounds else "No hyperparameter ended at a bound."
    parts = [f"<h3>Hyperparameters of {escape(path.method)}</h3>", paragraph(note, "soft")]
    for group, names in groups.weights.items():
        of = "" if group == "weight" else f" ({_words(group)})"
        parts += [panel(f"Weights of the kernels{of}", weights_figure(path, names), events=events)]
    for group, names in groups.indexed.items():
        figure = scales_figure(path, names, feature_labels(len(names), feature_names))
        parts += [panel(f"Importance of features ({_words(group)})", figure, SCALES, events)]
    if groups.others:
        others = others_figure(path, groups.others)
        parts += [panel("The other hyperparameters", others, events=events)]
    return [*parts, hyperparameter_table(path)]


def _words(name: str) -> str:
    return name.replace(".", " ").replace("_", " ")


def _image_links(images: Sequence[str]) -> str:
    links = ", ".join(link(quote(image), image) for image in images)
    shown = "".join(f'<img src="{quote(image)}" alt="">' for image in images)
    return f'<p class="soft">The same as PNG files: {links}</p><noscript>{shown}</noscript>'
