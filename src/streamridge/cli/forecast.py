"""`streamridge forecast`: forecast with a saved forecaster after new readings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from threadpoolctl import threadpool_limits

from streamridge.cli import options
from streamridge.cli.terminal import Messages, table_text
from streamridge.errors import InvalidInputError, StateError, about, counted, listed, visible
from streamridge.files.layouts import VALUE
from streamridge.files.reading import read_one_sensor
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.forecast import Forecast, band_columns, in_percent, one_or_all
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.settings import Settings
from streamridge.runs.new_readings import learned_text
from streamridge.runs.step_loop import datetimes_of, extras_of
from streamridge.series.lengths import step_name
from streamridge.series.series import Readings, Series
from streamridge.series.times import time_text
from streamridge.series.zones import parse_zone

# Reading options that the forecaster decides, or that have another flag here.
OWN = ("sensors", "step", "tz", "extras")
SOURCES = {
    "model": "the model",
    "seasonal": "the value of a season ago (naive forecast)",
    "last": "the last reading (naive forecast)",
}

Checkpoint = Annotated[Path, typer.Argument(metavar="FILE.sr", help="A saved forecaster.")]
NewReadings = Annotated[
    list[str] | None,
    typer.Option(
        "--readings",
        metavar="FILE",
        help="File of new readings to learn from before the forecast; - reads standard input. "
        "Known readings are skipped. Repeat the flag for several files.",
    ),
]
SensorName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column of the sensor in the new readings, if it is not the name of the sensor.",
    ),
]
ExtraValues = Annotated[
    list[str] | None,
    typer.Option(
        "--extra",
        metavar="NAME=NUMBER",
        help="Value of an extra column at the next step, if no file contains it. Repeat the flag "
        "for several.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE[,SHARE...]",
        help="Levels of the prediction intervals. By default the levels of the forecaster.",
    ),
]
SaveBack = Annotated[
    bool, typer.Option("--save", help="Save the forecaster to its file after it has learned.")
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

    Save a forecaster with `replay --save`, with `Forecaster.save` in Python, or with --save here.
    Without --save the file is not changed. Times are in the time zone of the forecaster.

    Example: streamridge forecast models/ramp-3.sr --readings new.csv
    """
    console = Messages(quiet=quiet)
    forecaster = Forecaster.load(checkpoint)
    known = parse_extras(extra or [], forecaster.settings)
    if readings:
        known = _learn(forecaster, readings, sensor, reading, console) | known
    if forecaster.next_time is None:
        raise StateError(
            f"{checkpoint} must have at least one reading, got none. Pass some with --readings."
        )
    levels = None if level is None else options.parse_levels(level)
    made = forecaster.predict(_required_extras(forecaster, known), levels)
    if as_json:
        for line in json_lines(made, forecaster.settings):
            typer.echo(line)
    else:
        _print_forecast(made, forecaster.settings)
    if save:
        forecaster.save(checkpoint)
        console.print(f"Saved: {checkpoint}")
    elif readings:
        console.print(f"{checkpoint} was not changed. Pass --save to save what was learned.")


def json_lines(forecast: Forecast, settings: Settings) -> list[str]:
    """Return a forecast as lines of JSON, one object per step."""
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
    """Return the times of a forecast as text, with UTC offsets if the sensor has a time zone."""
    zone = parse_zone(settings.tz)
    if zone is None:
        return forecast.time_format.texts(forecast.time)
    moments = forecast.time.astype("M8[us]").tolist()
    return [each.replace(tzinfo=UTC).astimezone(zone).isoformat() for each in moments]


def forecast_table(forecast: Forecast, settings: Settings) -> str:
    """Return a forecast as a table with a row per step."""
    ends = band_columns(forecast.levels, forecast.lower, forecast.upper)
    numbers = {"value": forecast.value, **ends}
    cells = {name: [f"{each:.6g}" for each in column] for name, column in numbers.items()}
    return table_text({"time": local_texts(forecast, settings), **cells}, names=("time",))


def parse_extras(texts: Sequence[str], settings: Settings) -> dict[str, float]:
    """Return the values of extra columns, each given as NAME=NUMBER."""
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
    """Let a forecaster learn from files, and return their extras of its next step."""
    settings = forecaster.settings
    extras = settings.preset.features.extras
    options = ReadingOptions.of(reading, step=settings.step, tz=settings.tz, extras=extras)
    read = read_one_sensor(
        files, options, partial(_choose_sensor, own=settings.sensor, requested=sensor)
    )
    before = forecaster.counts
    new, known = _observe_new(forecaster, options.to_series(read))
    console.print(learned_text(read.sensor, new, known, before, forecaster.counts))
    return _extras_of_next_step(forecaster, read, options) if extras else {}


def _observe_new(forecaster: Forecaster, series: Series) -> tuple[int, int]:
    """Let a forecaster learn from a series; return the number of new and of known steps."""
    first = _first_new(forecaster, series)
    readings = zip(
        datetimes_of(series, series.times), series.values.tolist(), extras_of(series), strict=False
    )
    with threadpool_limits(1), about(series.sensor):
        for at, (time, value, extras) in enumerate(readings):
            if at >= first or not np.isnan(value):  # an earlier reading may fill a gap
                forecaster.observe(time, value, extras)
    return len(series) - first, first


def _extras_of_next_step(
    forecaster: Forecaster, readings: Readings, options: ReadingOptions
) -> dict[str, float]:
    """Return the known extras of the forecaster's next step; its row may lack a value."""
    names = forecaster.settings.preset.features.extras
    known = ~np.isnan([readings.extras[name] for name in names]).all(axis=0)
    # A series ends at its last value, so rows with an extra get a value here.
    rows = options.to_series(replace(readings, values=np.where(known, 0.0, np.nan)))
    at = _first_new(forecaster, rows)
    if at == len(rows) or rows.times[at] > forecaster.next_time + _half_step(forecaster):
        return {}
    return {
        name: float(column[at]) for name, column in rows.extras.items() if not np.isnan(column[at])
    }


def _first_new(forecaster: Forecaster, series: Series) -> int:
    """Return the number of steps of a series before the next step of the forecaster."""
    if forecaster.next_time is None:
        return 0
    return int(np.searchsorted(series.times, forecaster.next_time - _half_step(forecaster)))


def _half_step(forecaster: Forecaster) -> Any:
    """Return half a step: a time belongs to the nearest step."""
    step = forecaster.settings.step
    return step // 2 if isinstance(step, int) else np.timedelta64(step) // 2


def _choose_sensor(names: Sequence[str], own: str | None, requested: str | None) -> str:
    """Return the column of the sensor among the names of a file.

    A single column of another name counts only if it says what it holds, such as "value".
    """
    name = requested or own
    if name in names:
        return str(name)
    if len(names) == 1 and requested is None and (own is None or names[0].lower() in VALUE):
        return names[0]
    raise InvalidInputError(
        f"the readings must have a column {name!r}, got {listed(names)}. "
        "Pass the name of its column with --sensor."
        if name is not None
        else f"sensor must be one of {listed(names)}, got none. Pass it with --sensor."
    )


def _required_extras(forecaster: Forecaster, known: Mapping[str, float]) -> dict[str, float] | None:
    """Return the extras of the next step; raise if one is unknown."""
    names = forecaster.settings.preset.features.extras
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"{name} must be known at the next step, {time_text(forecaster.next_time)}, got "
                "none. Add a row with that time to the readings (its value may be empty), or pass "
                f"--extra {name}=NUMBER."
            )
    return {name: known[name] for name in names} or None


def _print_forecast(forecast: Forecast, settings: Settings) -> None:
    name = settings.sensor or "the sensor"
    zone = f", times in {settings.tz}" if settings.tz else ""
    line = (
        f"{name}: {counted(len(forecast), 'step')} of {step_name(settings.step)} by "
        f"{SOURCES[forecast.source]}, {in_percent(forecast.levels)} intervals{zone}"
    )
    typer.echo(visible(line))
    typer.echo(forecast_table(forecast, settings))


options.with_reading_flags(forecast, besides=OWN)
