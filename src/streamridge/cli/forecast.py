"""`streamridge forecast`: what a saved forecaster expects next, after readings that are new."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from streamridge.cli import options
from streamridge.cli.reading_flags import selection_of_flags, with_reading_flags
from streamridge.cli.tables import Column, fitted
from streamridge.cli.terminal import Messages, columns, is_plain
from streamridge.errors import InvalidInputError, StateError, listed
from streamridge.files.layouts import VALUE
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.levels import band_columns, in_percent, one_or_all
from streamridge.forecaster.settings import Settings
from streamridge.runs.feeding import extras_next, feed
from streamridge.runs.sources import one_sensor
from streamridge.series.clock import parse_zone, step_name, time_text
from streamridge.texts import counted, visible

# What the forecaster decides, and what this command names in its own way.
OWN = ("sensors", "step", "tz", "extras")
SOURCES = {
    "model": "its model",
    "seasonal": "the value a season ago, which stands in for a model",
    "last": "the last reading, which stands in for a model",
}

Checkpoint = Annotated[Path, typer.Argument(metavar="FILE.sr", help="A saved forecaster.")]
NewReadings = Annotated[
    list[str] | None,
    typer.Option(
        "--readings",
        metavar="FILE",
        help="New readings, as replay reads them, to learn from before the forecast; - reads "
        "standard input. What the forecaster knows already is left out. Repeat the flag for "
        "several files.",
    ),
]
SensorName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column of the sensor in the new readings, where it is not called as it was.",
    ),
]
ExtraValues = Annotated[
    list[str] | None,
    typer.Option(
        "--extra",
        metavar="NAME=NUMBER",
        help="Value of a further column at the next step, where no file says it. Repeat the flag "
        "for several.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE[,SHARE...]", help="Level of the bands; the forecaster's own by default."
    ),
]
SaveBack = Annotated[
    bool,
    typer.Option("--save", help="Write the forecaster back to its file, with what it has learned."),
]


def forecast(
    checkpoint: Checkpoint,
    readings: NewReadings = None,
    sensor: SensorName = None,
    extra: ExtraValues = None,
    level: Level = None,
    save: SaveBack = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    **reading: Any,
) -> None:
    """Forecast with a saved forecaster, after it has learned from new readings.

    It is as it was left by `replay --save`, by `Forecaster.save` in Python, or by --save here.
    Without --save its file stays as it is. Times are in its time zone.

    Example: streamridge forecast models/ramp-3.sr --readings new.csv
    """
    console = Messages(quiet=quiet)
    forecaster = Forecaster.load(checkpoint)
    known = parse_extras(extra or [], forecaster.settings)
    if readings:
        known = _learn(forecaster, readings, sensor, reading, console) | known
    if not forecaster.has_readings:
        raise StateError(
            f"{checkpoint} must have had a reading, got none so far. Pass some with --readings."
        )
    levels = None if level is None else options.parse_levels(level)
    made = forecaster.predict(_required(forecaster, known), levels)
    if as_json:
        for line in json_lines(made, forecaster.settings):
            typer.echo(line)
    else:
        _show(made, forecaster.settings)
    if save:
        forecaster.save(checkpoint)
        console.print(f"Saved: {checkpoint}")
    elif readings:
        console.print(f"{checkpoint} is as it was: --save writes back what was learned.")


def json_lines(forecast: Forecast, settings: Settings) -> list[str]:
    """Return a forecast as JSON, an object for each step."""
    ends = band_columns(forecast.levels, forecast.lower, forecast.upper)
    numbers = {"value": forecast.value, **ends}
    return [
        json.dumps(
            {
                "sensor": settings.sensor,
                "time": time,
                "ahead": at + 1,
                **{name: float(column[at]) for name, column in numbers.items()},
                "level": one_or_all(forecast.levels),
                "source": forecast.source,
            }
        )
        for at, time in enumerate(local_texts(forecast, settings))
    ]


def local_texts(forecast: Forecast, settings: Settings) -> list[str]:
    """Return the times of a forecast as text, with their offset where the sensor has a zone."""
    zone = parse_zone(settings.tz)
    if zone is None:
        return forecast.writing.texts(forecast.time)
    moments = forecast.time.astype("M8[us]").tolist()
    return [each.replace(tzinfo=UTC).astimezone(zone).isoformat() for each in moments]


def forecast_table(forecast: Forecast, settings: Settings) -> str:
    """Return a forecast as a table, a line for each step."""
    ends = band_columns(forecast.levels, forecast.lower, forecast.upper)
    numbers = {"value": forecast.value, **ends}
    parts = [Column("time", local_texts(forecast, settings), is_name=True)]
    parts += [Column(name, [f"{each:.6g}" for each in column]) for name, column in numbers.items()]
    mark, rule = ("~", "-") if is_plain() else ("\u2026", "\u2500")
    return fitted(parts, columns(), mark).text(rule)


def parse_extras(texts: Sequence[str], settings: Settings) -> dict[str, float]:
    """Return the values of further columns, each given as NAME=NUMBER."""
    names = settings.preset.features.extras
    found = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = np.nan
        if name not in names or not np.isfinite(found[name]):
            raise InvalidInputError(
                f"--extra must be NAME=NUMBER with a name among {listed(names)}, got {text!r}."
            )
    return found


def _learn(
    forecaster: Forecaster,
    files: list[str],
    sensor: str | None,
    reading: dict[str, Any],
    console: Messages,
) -> dict[str, float]:
    """Let a forecaster learn from files; return the extras of its next step that they know."""
    settings = forecaster.settings
    extras = settings.preset.features.extras
    selection = selection_of_flags(reading, step=settings.step, tz=settings.tz, extras=extras)
    read = one_sensor(files, selection, _chooser(settings.sensor, sensor))
    fed = feed(forecaster, selection.of_readings(read))
    late = f", {fed.late} late" if fed.late else ""
    left_out = f", {fed.known} known already and left out" if fed.known else ""
    console.print(f"{read.sensor}: {counted(fed.taken, 'new step')}{late}{left_out}")
    return extras_next(forecaster, read, selection) if extras else {}


def _chooser(own: str | None, asked: str | None) -> Callable[[Sequence[str]], str]:
    """Return what chooses the sensor among the names of a file."""

    def choose(names: Sequence[str]) -> str:
        wanted = asked or own
        if wanted in names:
            return str(wanted)
        alone = names[0] if len(names) == 1 else None
        # A column may be called by what it holds; another sensor's name is not taken for that.
        if alone is not None and asked is None and (own is None or alone.lower() in VALUE):
            return alone
        raise InvalidInputError(
            f"the readings must have a column {wanted!r}, got {listed(names)}. "
            "Pass the name of its column with --sensor."
            if wanted is not None
            else f"sensor must be one of {listed(names)}, got none. Pass it with --sensor."
        )

    return choose


def _required(forecaster: Forecaster, known: Mapping[str, float]) -> dict[str, float] | None:
    """Return the extras of the next step; raise if one of them is not known."""
    names = forecaster.settings.preset.features.extras
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"{name} must be known at the next step, {time_text(forecaster.next_time)}, got "
                "none. Add a row of that time to the readings, which needs no value, or pass "
                f"--extra {name}=NUMBER."
            )
    return {name: known[name] for name in names} or None


def _show(forecast: Forecast, settings: Settings) -> None:
    name = settings.sensor or "the sensor"
    zone = f", times in {settings.tz}" if settings.tz else ""
    line = (
        f"{name}: {counted(len(forecast), 'step')} of {step_name(settings.step)} by "
        f"{SOURCES[forecast.source]}, bands of {in_percent(forecast.levels)}{zone}"
    )
    typer.echo(visible(line))
    typer.echo(forecast_table(forecast, settings))


with_reading_flags(forecast, besides=OWN)
