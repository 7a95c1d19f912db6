"""A forecaster as bytes: whole, or only what has changed since its last refit.

A refit leaves the weights of its fit, the hyperparameters and their path, and readings that are not
read again: about 75 kB at N = 2880. Every step changes a few kB beside. So whoever saves often
keeps the whole after each refit, and the small part as often as needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, StateError
from streamridge.features.timeline import updated
from streamridge.files.checkpoint import Header, decoded, encoded
from streamridge.forecaster.formats import NEW_GUARD, upgraded, with_fills, with_guard
from streamridge.forecaster.settings import Settings
from streamridge.forecaster.stepper import Stepper
from streamridge.learners.state import joined, part

State = Mapping[str, NDArray[Any]]

WHOLE, LATER = "forecaster", "forecaster since its refit"
TIMELINE = "sensor.timeline"
# The arrays that a refit leaves, which stay the same until the next one.
FITTED = ("model.learner.current.", "model.path.")
LEFT = (
    "model.learner.current.",
    "model.learner.retired.",
    "model.guard.",
    "model.companion.",
    "model.seeker.",
    "model.path.",
)
# What refits were told apart by before format 5.
GUARDED = ("model.learner.current.", "model.guard.", "model.path.")


def to_bytes(settings: Settings, stepper: Stepper) -> bytes:
    """Return a whole forecaster."""
    header = {"kind": WHOLE, "settings": settings.described(), **_plain(stepper)}
    return encoded(header, stepper.state())


def since_refit(settings: Settings, stepper: Stepper) -> bytes:
    """Return what has changed in a forecaster since its last refit; all of it before the first."""
    if stepper.model is None:
        return to_bytes(settings, stepper)
    state = stepper.state()
    changed = {
        name: array for name, array in state.items() if not name.startswith((*LEFT, f"{TIMELINE}."))
    }
    changed |= joined({TIMELINE: stepper.sensor.timeline.changes()})
    header = {"kind": LATER, "refit": _refit(state), "left": _left(state), **_plain(stepper)}
    return encoded(header, changed)


def from_bytes(content: bytes, later: bytes | None, name: str) -> tuple[Settings, Stepper]:
    """Return the parts of a forecaster, brought up to date by what changed later, if given."""
    header, state = _decoded(content, name, WHOLE)
    if later is not None:
        return _built(*_brought_up_to_date(header, state, later), name)
    return _built(header, state, name)


# What becomes of numbers and texts that no forecaster has written; a huge one asks for huge memory.
UNREADABLE = (
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    MemoryError,
)


def _built(header: Header, state: State, name: str) -> tuple[Settings, Stepper]:
    try:
        settings = Settings.of(header["settings"])
        stepper = Stepper(settings)
        stepper.counts.update(header["counts"])
        stepper.sensor.clock.restore(header["clock"])
        newest = upgraded(state, settings.horizon, naive=len(settings.periods) + 1)
        stepper.restore(newest, fitted=header["fitted"])
    except StateError:
        raise
    except UNREADABLE as error:
        raise StateError(f"{name} does not hold a whole forecaster: {error}") from None
    return settings, stepper


def _brought_up_to_date(header: Header, state: State, later: bytes) -> tuple[Header, State]:
    """Return a whole forecaster with what has changed in it later."""
    newer, changed = _decoded(later, "the later part", WHOLE, LATER)
    if newer["kind"] == WHOLE:
        return newer, changed
    if not header["fitted"] or newer["refit"] not in (_refit(state), _refit(state, GUARDED)):
        raise StateError(
            "the later part must be of the same refit as the whole, got one of another. "
            "Keep the whole after each refit."
        )
    timeline = updated(*(part(with_fills(each), TIMELINE) for each in (state, changed)))
    left = (*newer["left"], *NEW_GUARD)  # which were others before format 5
    kept = {name: each for name, each in with_guard(state).items() if name in left}
    light = {name: array for name, array in changed.items() if not name.startswith(TIMELINE)}
    return {**header, **newer}, {**kept, **light, **joined({TIMELINE: timeline.state()})}


def _decoded(content: bytes, name: str, *kinds: str) -> tuple[Header, dict[str, NDArray[Any]]]:
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidInputError(f"{name} must be bytes, got {type(content).__name__}.")
    header, state = decoded(bytes(content), name)
    if header.get("kind") not in kinds:
        raise StateError(f"{name} must hold a {kinds[0]}, got {header.get('kind')!r}.")
    return header, state


def _plain(stepper: Stepper) -> Header:
    """Return the plain values that change with every step."""
    return {
        "clock": stepper.sensor.clock.state(),
        "counts": dict(stepper.counts),
        "fitted": stepper.model is not None,
    }


def _refit(state: State, parts: tuple[str, ...] = FITTED) -> str:
    """Return a digest of what a refit left: no other refit of any forecaster has the same."""
    digest = blake2b(digest_size=16)
    for name in state:
        if name.startswith(parts):
            digest.update(np.ascontiguousarray(state[name]).tobytes())
    return digest.hexdigest()


def _left(state: State) -> list[str]:
    """Return the names of the arrays that the last refit left."""
    return [name for name in state if name.startswith(LEFT)]
