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
