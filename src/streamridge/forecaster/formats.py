"""Forecasters that an earlier version saved, translated into the arrays of this version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.features.timeline import AT_REFIT, FILLED, READ, TRUSTED
from streamridge.forecaster.correction import ErrorCorrection
from streamridge.forecaster.issued import Trail
from streamridge.forecaster.unrest import Unrest
from streamridge.learners.state import joined, part

State = Mapping[str, NDArray[Any]]

LEARNER, TIMELINE, NAIVE = "model.learner.", "sensor.timeline.", "sensor.naive."
CALIBRATION, GUARD, SEEKER = "calibration.", "model.guard.", "model.seeker."
COMMITTEE = "panel.experts.committee."
NEW_GUARD = {f"{GUARD}losses": np.zeros(2), f"{GUARD}worse": np.array(0)}


def upgraded(state: State, horizon: int, naive: int) -> State:
    """Return the state of a file of any format, with the arrays of the newest format.

    In format 1 every learner kept a descent, the steps since a search, and the cost of searches. In
    format 2 it kept what its policy needs, and every row. In format 3 rows are made from the
    readings; a fit of an earlier format is made again from those that its file still holds. In
    format 4 forecasts that fill gaps are learned from, and several naive forecasts compete. In
    format 5 corrections of several half-lives compete, and unrest widens bands. Seasons may forget,
    as their description says; those of earlier formats do not. Experts are mixed, and the guard
    compares tuning with its start. In format 6 there are several committees of experts and one
    small fit beside the model; experts of format 5 start anew.

    Parameters
    ----------
    state
        The arrays of a whole forecaster.
    horizon, naive
        How many steps it forecasts, and how many naive forecasts there are.
    """
    if f"{LEARNER}descent.z" in state:
        state = _second(state)
    if f"{TIMELINE}read" in state:
        state = _third(state, horizon)
    if f"{NAIVE}size" in state:
        state = _fourth(with_fills(state), naive)
    state = with_guard(state)
    state = state if f"{CALIBRATION}unrest.usual" in state else _fifth(state, horizon)
    return _sixth(state) if f"{COMMITTEE}regrets" in state else state


def _second(state: State) -> State:
    """Return the state of format 1 in format 2."""
    renamed = {_renamed(name): array for name, array in state.items()}
    renamed[f"{LEARNER}policy.found"] = state[f"{LEARNER}descent.z"]
    renamed[f"{LEARNER}policy.held"] = (state[f"{LEARNER}descent.reach"] == 0).astype(float)
    return renamed


def _renamed(name: str) -> str:
    """Return the name in format 2 of a part of format 1.

    Examples
    --------
    >>> _renamed("model.learner.tally.fits"), _renamed("sensor.own.numbers")
    ('model.learner.policy.fits', 'sensor.own.numbers')
    """
    for old in ("descent.", "tally."):
        name = name.replace(f"{LEARNER}{old}", f"{LEARNER}policy.")
    return name.replace(f"{LEARNER}untuned", f"{LEARNER}policy.untuned")


def _third(state: State, horizon: int) -> State:
    """Return the state of format 2 in format 3."""
    third = dict(state) | _unrolled(state)
    third["sensor.own.excluded"] = np.zeros((0, 2), dtype=np.int64)
    if f"{LEARNER}current.t" in state:
        # A refit trains on all rows whose labels were known then.
        third[f"{LEARNER}current.since"] = state[f"{LEARNER}current.t"][-1] + horizon - 1
    return third


def _unrolled(state: State) -> dict[str, NDArray[Any]]:
    """Return the timeline of format 2, a ring of fixed size, as one of format 3."""
    values, read, trusted, extras = (
        state[f"{TIMELINE}{name}"] for name in ("values", "read", "trusted", "extras")
    )
    start, newest = (int(step) for step in state[f"{TIMELINE}span"])
    oldest = max(start, newest - len(values) + 1)
    at = np.arange(oldest, newest + 1) % len(values)
    flags = READ * read[at] | (TRUSTED | AT_REFIT) * trusted[at]
    return {
        f"{TIMELINE}values": values[at],
        f"{TIMELINE}extras": extras[at],
        f"{TIMELINE}flags": flags.astype(np.uint8),
        f"{TIMELINE}holes": np.zeros((0, 2), dtype=np.int64),
        f"{TIMELINE}span": np.array([start, oldest, newest]),
    }


def with_fills(state: State) -> State:
    """Return the state of a forecaster, or its later part, with the timeline of format 4.

    In format 3, it is not said that each step without a reading was filled in.
    """
    if f"{NAIVE}size" not in state:
        return state
    flags = state[f"{TIMELINE}flags"]
    filled = np.where(flags & READ, np.uint8(0), FILLED)
    news = {f"{TIMELINE}flags": flags | filled, f"{TIMELINE}replaced": np.zeros((0, 2))}
    return {**state, **news}


def _fourth(state: State, naive: int) -> State:
    """Return the state of format 3 in format 4: all naive forecasts start with the same errors."""
    fourth = {name: array for name, array in state.items() if not name.startswith(NAIVE)}
    seen = np.atleast_1d(state[f"{NAIVE}seen"])
    weights = np.full(naive, float(seen[0] > 0))
    fourth[f"{NAIVE}errors.weights"] = weights
    fourth[f"{NAIVE}errors.totals"] = weights * float(state[f"{NAIVE}size"])
    fourth |= {f"{NAIVE}bands.{name}": state[f"{NAIVE}{name}"] for name in ("reach", "seen")}
    fourth |= {f"calibration.errors.{name}": np.zeros(1) for name in ("totals", "weights")}
    return fourth


def with_guard(state: State) -> State:
    """Return the state of a whole forecaster with the guard of format 5, which starts anew.

    In format 4 it compared tuning with hyperparameters of a while ago.
    """
    if f"{GUARD}lam" not in state:
        return state
    others = {name: array for name, array in state.items() if not name.startswith(GUARD)}
    return {**others, **NEW_GUARD}


def _fifth(state: State, horizon: int) -> State:
    """Return the state of format 4 in format 5: all candidates start as the one correction was."""
    pending = part(state, f"{CALIBRATION}pending")
    start = ErrorCorrection.start(horizon)
    lives = len(start.means) if f"{CALIBRATION}correction.mean" in state else 0
    means = np.repeat(pending["means"][:, None], lives, axis=1)
    news: dict[str, State] = {
        "unrest": Unrest.start(horizon).state(),
        "trail": Trail.start(horizon).state(),
        "pending": {"means": means, "factors": np.ones_like(pending["spreads"])},
    }
    if lives:
        one = part(state, f"{CALIBRATION}correction")
        like = {"means": one["mean"], "variance": one["variance"]}
        like |= {name: one[name][:, None, None] for name in ("products", "squares")}
        news["correction"] = start.state() | {
            name: np.broadcast_to(array, getattr(start, name).shape) for name, array in like.items()
        }
    return dict(state) | joined({f"{CALIBRATION}{name}": arrays for name, arrays in news.items()})


def _sixth(state: State) -> State:
    """Return the state of format 5 in format 6, without its experts and what compared them."""
    dropped = ("panel.", "model.companions.")
    kept = {name: array for name, array in state.items() if not name.startswith(dropped)}
    anew = {**NEW_GUARD, f"{SEEKER}usual": np.array(np.inf)}
    return {name: anew.get(name, array) for name, array in kept.items()}


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
