"""`streamridge inspect`: what a saved forecaster is, knows and expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from streamridge.cli.options import Json
from streamridge.cli.outcome import in_words
from streamridge.forecaster.bounds import BoundPair
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.levels import band_columns, in_percent
from streamridge.series.clock import Length, step_name, time_text
from streamridge.series.holidays import PlainHolidays
from streamridge.series.seasons import season_name


def inspect(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="A saved forecaster.")],
    as_json: Json = False,
) -> None:
    """Show a saved forecaster: settings, hyperparameters and their bounds, and its next forecast.

    Example: streamridge inspect models/ramp-3.sr
    """
    forecaster = Forecaster.load(checkpoint)
    facts = {"file": str(checkpoint), "bytes": checkpoint.stat().st_size, **_facts(forecaster)}
    if as_json:
        typer.echo(json.dumps(facts))
        return
    console = Console()
    settings = forecaster.settings
    console.print(
        f"{checkpoint} ({facts['bytes'] / 1e3:.0f} kB): "
        + (f"sensor {settings.sensor}, " if settings.sensor else "")
        + f"steps of {step_name(settings.step)}, "
        f"{settings.horizon} ahead, bands of {in_percent(settings.levels)}, "
        f"fits on {settings.train_size} rows every {settings.update_every} readings"
        + f", {_shown_seasons(settings.seasons)}"
        + (f", local time of {settings.tz}" if settings.tz else "")
        + (f", holidays {_shown_holidays(settings.holidays)}" if settings.holidays else "")
        + (f", known bounds {_shown_bounds(settings.bounds)}" if settings.bounds else ""),
        markup=False,
        highlight=False,
    )
    console.print(in_words(forecaster.counts), highlight=False)
    console.print(_hyperparameters(forecaster))
    console.print(_forecast(facts["forecast"]))


def _facts(forecaster: Forecaster) -> dict[str, Any]:
    extras = forecaster.settings.preset.features.extras
    forecast = forecaster.predict(dict.fromkeys(extras, np.nan) if extras else None)
    known = forecast.source != "none"
    ends = band_columns(forecast.levels, forecast.lower, forecast.upper)
    columns = {"value": forecast.value, **ends}
    return {
        "settings": forecaster.settings.described(),
        "counts": forecaster.counts,
        "hyperparameters": forecaster.hyperparameters,
        "active_bounds": forecaster.active_bounds,
        "frozen": list(forecaster.frozen),
        "forecast": {
            "source": forecast.source,
            "time": [time_text(time) for time in forecast.time] if known else [],
            **{name: column.tolist() if known else [] for name, column in columns.items()},
        },
    }


def _shown_bounds(bounds: BoundPair) -> str:
    lower, upper = ("" if each is None else f"{each:g}" for each in bounds)
    return f"{lower},{upper}"


def _shown_seasons(seasons: tuple[Length, ...]) -> str:
    names = " and ".join(map(season_name, seasons))
    return f"seasons of {names}" if names else "no seasons"


def _shown_holidays(holidays: PlainHolidays) -> str:
    return f"of {holidays}" if isinstance(holidays, str) else f"on {len(holidays)} dates"


def _hyperparameters(forecaster: Forecaster) -> Table:
    table = Table("hyperparameter", "value", "bound", "")
    for name, value in forecaster.hyperparameters.items():
        bound = forecaster.active_bounds.get(name, "")
        table.add_row(name, f"{value:.4g}", bound, "frozen" if name in forecaster.frozen else "")
    return table


def _forecast(forecast: dict[str, Any]) -> Table:
    names = [name for name in forecast if name not in ("source", "time")]
    table = Table("next", *names, title=f"forecast by {forecast['source']}")
    parts = (forecast[name] for name in names)
    for time, *numbers in zip(forecast["time"], *parts, strict=True):
        table.add_row(time, *(f"{number:.4g}" for number in numbers))
    return table
