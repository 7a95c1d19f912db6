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
from streamridge.forecaster.forecaster import Forecaster
from streamridge.series.clock import step_name


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
        f"{settings.horizon} ahead, bands of {settings.level:.0%}, fits on {settings.train_size} "
        f"rows every {settings.update_every} readings"
        + (f", local time of {settings.tz}" if settings.tz else ""),
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
    return {
        "settings": forecaster.settings.described(),
        "counts": forecaster.counts,
        "hyperparameters": forecaster.hyperparameters,
        "active_bounds": forecaster.active_bounds,
        "frozen": list(forecaster.frozen),
        "forecast": {
            "source": forecast.source,
            "time": [str(time.astype("M8[s]")) for time in forecast.time] if known else [],
            **{
                part: getattr(forecast, part).tolist() if known else []
                for part in ("value", "lower", "upper")
            },
        },
    }


def _hyperparameters(forecaster: Forecaster) -> Table:
    table = Table("hyperparameter", "value", "bound", "")
    for name, value in forecaster.hyperparameters.items():
        bound = forecaster.active_bounds.get(name, "")
        table.add_row(name, f"{value:.4g}", bound, "frozen" if name in forecaster.frozen else "")
    return table


def _forecast(forecast: dict[str, Any]) -> Table:
    table = Table("next", "value", "lower", "upper", title=f"forecast by {forecast['source']}")
    parts = (forecast[name] for name in ("time", "value", "lower", "upper"))
    for time, *numbers in zip(*parts, strict=True):
        table.add_row(time, *(f"{number:.4g}" for number in numbers))
    return table
