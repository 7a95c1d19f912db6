"""`streamridge inspect`: show a saved forecaster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from streamridge.cli.forecast_output import forecast_table, local_texts
from streamridge.cli.options import Json
from streamridge.cli.terminal import table_text
from streamridge.errors import counted, counts_text, visible
from streamridge.forecaster.extra_columns import column_names
from streamridge.forecaster.forecast import Forecast, band_columns, in_percent
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import method_of
from streamridge.forecaster.plausibility import BoundPair
from streamridge.forecaster.settings import Settings
from streamridge.hyperparameters.space import Group
from streamridge.series.holidays import PlainHolidays
from streamridge.series.lengths import season_name, step_name
from streamridge.series.times import time_text

# The purpose of each kind of hyperparameters.
PURPOSES = {
    "weight": "kernel weight",
    "rate": "forgetting rate",
    "period": "period",
    "ridge": "smoothness",
    "scale": "all features",
}


def inspect(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE.sr", help="A saved forecaster.")],
    as_json: Json = False,
) -> None:
    """Show the settings, the hyperparameters and the next forecast of a saved forecaster.

    The table of hyperparameters shows the feature or the purpose of each, its value and its limits,
    and whether it is at a limit.

    Example: streamridge inspect models/ramp-3.sr
    """
    forecaster = Forecaster.load(checkpoint)
    extras = forecaster.settings.preset.features.extras
    forecast = forecaster.predict("last" if extras else None)
    size = checkpoint.stat().st_size
    if as_json:
        about = {"file": str(checkpoint), "bytes": size}
        typer.echo(json.dumps(about | _facts(forecaster, forecast)))
        return
    words = {"file": f"{checkpoint} ({size / 1e3:.0f} kB)", **_summary(forecaster)}
    wide = max(map(len, words))
    for name, text in words.items():
        typer.echo(visible(f"{name:<{wide}}  {text}"))
    typer.echo("\n" + table_text(_hyperparameters(forecaster), ("hyperparameter", "purpose")))
    if forecast.source != "none":
        known = ", with the last known extras" if extras else ""
        typer.echo(f"\nforecast by {forecast.source}{known}")
        typer.echo(forecast_table(forecast, forecaster.settings))


def purposes(settings: Settings) -> dict[str, str]:
    """Return the feature that each hyperparameter scales, or its purpose."""
    return {
        name: purpose
        for group in settings.model.space.groups
        for name, purpose in zip(group.names, _purposes_in(group, settings), strict=True)
    }


def _purposes_in(group: Group, settings: Settings) -> list[str]:
    features = settings.preset.features
    for names in (features.compared, features.layout.names):
        if group.kind == "scale" and len(names) == len(group.names):
            own = {f"extras {i}": name for i, name in enumerate(column_names(features), start=1)}
            return [own.get(name, name) for name in names]
    return [PURPOSES[group.kind]] * len(group.names)


def _limits(settings: Settings) -> dict[str, str]:
    """Return the limits of each hyperparameter, such as "1e-06 to 100"."""
    return {
        name: group.feasible.limits.removeprefix("between ").replace(" and ", " to ", 1)
        for group in settings.model.space.groups
        for name in group.names
    }


def _facts(forecaster: Forecaster, forecast: Forecast) -> dict[str, Any]:
    settings, known = forecaster.settings, forecast.source != "none"
    ends = band_columns(forecast.levels, forecast.lower, forecast.upper)
    numbers = {"value": forecast.value, **ends}
    return {
        "sensor": settings.sensor,
        "method": method_of(settings),
        "last_time": _last_time(forecaster),
        "settings": settings.described(),
        "counts": forecaster.counts,
        "hyperparameters": forecaster.hyperparameters,
        "correction": forecaster.tuning.correction,
        "experts": forecaster.tuning.experts or None,
        "belongs_to": purposes(settings),
        "limits": _limits(settings),
        "active_bounds": forecaster.tuning.active_bounds,
        "frozen": list(forecaster.tuning.frozen),
        "forecast": {
            "source": forecast.source,
            "time": local_texts(forecast, settings) if known else [],
            **{name: column.tolist() if known else [] for name, column in numbers.items()},
        },
    }


def _summary(forecaster: Forecaster) -> dict[str, str]:
    """Return the settings and the state of the forecaster in words."""
    settings = forecaster.settings
    return {
        "sensor": settings.sensor or "unnamed",
        "step": f"{step_name(settings.step)}, horizon {settings.horizon}",
        "last time": _last_time(forecaster) or "none",
        "time zone": settings.tz or "none",
        "seasons": " and ".join(map(season_name, settings.seasons)) or "none",
        "holidays": _holidays_text(settings.holidays) if settings.holidays else "none",
        "bounds": _bounds_text(settings.bounds) if settings.bounds else "none",
        "intervals": in_percent(settings.levels),
        "extras": ", ".join(settings.preset.features.extras) or "none",
        "method": f"{method_of(settings)}, fitted to {counted(settings.train_size, 'row')} "
        f"every {counted(settings.update_every, 'reading')}",
        "correction": _correction_text(forecaster.tuning.correction),
        "experts": _experts_text(forecaster.tuning.experts),
        "counts": counts_text(forecaster.counts) or "none",
    }


def _correction_text(correction: dict[str, float]) -> str:
    if not correction:
        return "none"
    share, half_life = correction["share"], correction["half_life"]
    return f"{share:.0%} of the mean of recent errors, with a half-life of {half_life:.2g} steps"


def _experts_text(experts: dict[str, float]) -> str:
    """Return the experts with a weight in the next forecast, the largest first."""
    ranked = sorted(experts, key=experts.__getitem__, reverse=True)
    weights = {name: f"{experts[name]:.0%}" for name in ranked}
    shown = [f"{name} {weight}" for name, weight in weights.items() if weight != "0%"]
    return ", ".join(shown) or "none"


def _last_time(forecaster: Forecaster) -> str | None:
    """Return the time of the latest step, in UTC if there is a zone; None without any step."""
    if forecaster.next_time is None:
        return None
    step = forecaster.settings.step
    length = step if isinstance(step, int) else np.timedelta64(step)
    utc = " UTC" if forecaster.settings.tz else ""
    return time_text(forecaster.next_time - length) + utc


def _bounds_text(bounds: BoundPair) -> str:
    lower, upper = ("" if each is None else f"{each:g}" for each in bounds)
    return f"{lower},{upper}"


def _holidays_text(holidays: PlainHolidays) -> str:
    return f"of {holidays}" if isinstance(holidays, str) else counted(len(holidays), "date")


def _hyperparameters(forecaster: Forecaster) -> dict[str, list[str]]:
    """Return the columns of a table of hyperparameters, the most important first."""
    values, tuning = forecaster.hyperparameters, forecaster.tuning
    at, frozen = tuning.active_bounds, tuning.frozen
    purpose_of, limits = purposes(forecaster.settings), _limits(forecaster.settings)
    columns = {
        "hyperparameter": list(values),
        "purpose": [purpose_of[name] for name in values],
        "value": [f"{value:.4g}" for value in values.values()],
        "at bound": [at.get(name, "") for name in values],
        "frozen": ["yes" if name in frozen else "" for name in values],
        "limits": [limits[name] for name in values],
    }
    return {heading: cells for heading, cells in columns.items() if any(cells)}
