"""`streamridge inspect`: what a saved forecaster is, knows and expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from streamridge.cli.forecast import forecast_table, local_texts
from streamridge.cli.options import Json
from streamridge.cli.outcome import in_words
from streamridge.cli.tables import Column, fitted
from streamridge.cli.terminal import columns, is_plain
from streamridge.forecaster.bounds import BoundPair
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.levels import band_columns, in_percent
from streamridge.forecaster.methods import method_of
from streamridge.forecaster.settings import Settings
from streamridge.hyperparameters.groups import Group
from streamridge.series.clock import Length, step_name, time_text
from streamridge.series.holidays import PlainHolidays
from streamridge.series.seasons import season_name
from streamridge.texts import counted, visible

# What hyperparameters of a kind are for.
PURPOSES = {
    "weight": "its kernel's share",
    "rate": "forgetting",
    "period": "cycle",
    "ridge": "smoothness",
    "scale": "all features",
}


def inspect(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE.sr", help="A saved forecaster.")],
    as_json: Json = False,
) -> None:
    """Show what a saved forecaster is: its settings, hyperparameters and next forecast.

    Each hyperparameter stands with what it belongs to, its limits, and the limit it is at, if any.

    Example: streamridge inspect models/ramp-3.sr
    """
    forecaster = Forecaster.load(checkpoint)
    extras = forecaster.settings.preset.features.extras
    forecast = forecaster.predict(dict.fromkeys(extras, np.nan) if extras else None)
    size = checkpoint.stat().st_size
    if as_json:
        about = {"file": str(checkpoint), "bytes": size}
        typer.echo(json.dumps(about | _facts(forecaster, forecast)))
        return
    words = {"file": f"{checkpoint} ({size / 1e3:.0f} kB)", **_words(forecaster)}
    wide = max(map(len, words))
    for name, text in words.items():
        typer.echo(visible(f"{name:<{wide}}  {text}"))
    mark, rule = ("~", "-") if is_plain() else ("\u2026", "\u2500")
    typer.echo("\n" + fitted(_hyperparameters(forecaster), columns(), mark).text(rule))
    if forecast.source != "none":
        typer.echo(f"\nforecast by {forecast.source}")
        typer.echo(forecast_table(forecast, forecaster.settings))


def belongings(settings: Settings) -> dict[str, str]:
    """Return what each hyperparameter belongs to: the feature that it scales, or its purpose."""
    return {
        name: owner
        for group in settings.model.space.groups
        for name, owner in zip(group.names, _owners(group, settings), strict=True)
    }


def _owners(group: Group, settings: Settings) -> list[str]:
    features = settings.preset.features
    for names in (features.compared, features.layout.names):
        if group.kind == "scale" and len(names) == len(group.names):
            own = {f"extras {i}": name for i, name in enumerate(features.extras, start=1)}
            return [own.get(name, name) for name in names]
    return [PURPOSES[group.kind]] * len(group.names)


def _limits(settings: Settings) -> dict[str, str]:
    """Return where each hyperparameter may lie, such as "1e-06 to 100"."""
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
        "correction": forecaster.correction,
        "experts": forecaster.experts or None,
        "belongs_to": belongings(settings),
        "limits": _limits(settings),
        "active_bounds": forecaster.active_bounds,
        "frozen": list(forecaster.frozen),
        "forecast": {
            "source": forecast.source,
            "time": local_texts(forecast, settings) if known else [],
            **{name: column.tolist() if known else [] for name, column in numbers.items()},
        },
    }


def _words(forecaster: Forecaster) -> dict[str, str]:
    """Return what the forecaster is and where it stands, each in a few words."""
    settings = forecaster.settings
    return {
        "sensor": settings.sensor or "without a name",
        "steps": f"of {step_name(settings.step)}, {settings.horizon} ahead",
        "last step": _last_time(forecaster) or "none yet",
        "time zone": settings.tz or "none: times as they are",
        "seasons": _shown_seasons(settings.seasons),
        "holidays": _shown_holidays(settings.holidays) if settings.holidays else "none",
        "known bounds": _shown_bounds(settings.bounds) if settings.bounds else "none",
        "bands of": in_percent(settings.levels),
        "extras": ", ".join(settings.preset.features.extras) or "none",
        "method": f"{method_of(settings)}, fitted to {counted(settings.train_size, 'row')} "
        f"every {counted(settings.update_every, 'reading')}",
        "correction": _shown_correction(forecaster.correction),
        "experts": _shown_experts(forecaster.experts),
        "met so far": in_words(forecaster.counts) or "nothing",
    }


def _shown_correction(correction: dict[str, float]) -> str:
    if not correction:
        return "none"
    share, half_life = correction["share"], correction["half_life"]
    return (
        f"{share:.0%} of the mean of the last errors, which count half after {half_life:.2g} steps"
    )


def _shown_experts(experts: dict[str, float]) -> str:
    """Return the experts that have a share in the next forecast, the largest first."""
    ranked = sorted(experts, key=experts.__getitem__, reverse=True)
    shares = {name: f"{experts[name]:.0%}" for name in ranked}
    return ", ".join(f"{name} {share}" for name, share in shares.items() if share != "0%") or "none"


def _last_time(forecaster: Forecaster) -> str | None:
    """Return the time of the latest step, None before the first; in UTC where there is a zone."""
    if not forecaster.has_readings:
        return None
    step = forecaster.settings.step
    length = step if isinstance(step, int) else np.timedelta64(step)
    utc = " UTC" if forecaster.settings.tz else ""
    return time_text(forecaster.next_time - length) + utc


def _shown_bounds(bounds: BoundPair) -> str:
    lower, upper = ("" if each is None else f"{each:g}" for each in bounds)
    return f"{lower},{upper}"


def _shown_seasons(seasons: tuple[Length, ...]) -> str:
    return " and ".join(map(season_name, seasons)) or "none"


def _shown_holidays(holidays: PlainHolidays) -> str:
    return f"of {holidays}" if isinstance(holidays, str) else counted(len(holidays), "date")


def _hyperparameters(forecaster: Forecaster) -> list[Column]:
    """Return the columns of a table of hyperparameters, in the order of their rank."""
    values, at, frozen = forecaster.hyperparameters, forecaster.active_bounds, forecaster.frozen
    owners, limits = belongings(forecaster.settings), _limits(forecaster.settings)
    parts = [
        Column("hyperparameter", list(values), is_name=True),
        Column("belongs to", [owners[name] for name in values], is_name=True),
        Column("value", [f"{value:.4g}" for value in values.values()]),
        Column("at bound", [at.get(name, "") for name in values]),
        Column("frozen", ["yes" if name in frozen else "" for name in values]),
        Column("limits", [limits[name] for name in values]),
    ]
    return [part for part in parts if any(part.cells)]
