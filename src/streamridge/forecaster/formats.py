"""Forecasters that an earlier version saved, translated into the names of this version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

State = Mapping[str, NDArray[Any]]

LEARNER = "model.learner."


def upgraded(state: State) -> State:
    """Return the state of a file of any format, with the names of the newest format.

    In format 1 every learner kept a descent, the steps since a search, and the cost of searches. In
    format 2 it keeps what its policy needs.
    """
    if f"{LEARNER}descent.z" not in state:
        return state
    renamed = {_renamed(name): array for name, array in state.items()}
    renamed[f"{LEARNER}policy.found"] = state[f"{LEARNER}descent.z"]
    renamed[f"{LEARNER}policy.held"] = (state[f"{LEARNER}descent.reach"] == 0).astype(float)
    return renamed


def _renamed(name: str) -> str:
    """Return the present name of a part of format 1.

    Examples
    --------
    >>> _renamed("model.learner.tally.fits"), _renamed("sensor.own.numbers")
    ('model.learner.policy.fits', 'sensor.own.numbers')
    """
    for old in ("descent.", "tally."):
        name = name.replace(f"{LEARNER}{old}", f"{LEARNER}policy.")
    return name.replace(f"{LEARNER}untuned", f"{LEARNER}policy.untuned")


def upgraded_preset(recipe: Any) -> Any:
    """Return the recipe of a preset with features as this version describes them.

    Before there were seasons of any length, `Profiles` knew a day and a week.
    """
    features = recipe.get("features") if isinstance(recipe, dict) else None
    if not isinstance(features, dict) or "day" not in features or features["kind"] != "Profiles":
        return recipe
    day, week = (
        {"kind": "Season", "name": name, "period": period, "count": count, "lags": lags}
        for name, period, count, lags in (
            ("day", features["day"], features["days"], features["lags"]),
            ("week", 7 * features["day"], features["weeks"], features["week_lags"]),
        )
    )
    kept = {name: features[name] for name in ("kind", "ahead", "extras")}
    return {**recipe, "features": {**kept, "seasons": [day, week]}}
