"""A forecaster as bytes: its parts as plain JSON, and its state whole or since the last refit.

A refit leaves the weights of its fit, the hyperparameters and their path, and old readings. Every
step changes a few kB more. To save often, keep the whole forecaster after each refit, and the
changes as often as needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import joined, part
from streamridge.errors import InvalidInputError, StateError, StreamRidgeError
from streamridge.features.lags import Features
from streamridge.features.profiles import Profiles
from streamridge.features.seasons import Season
from streamridge.features.timeline import updated
from streamridge.files.checkpoint import Header, decoded, encoded
from streamridge.forecaster.presets import Preset
from streamridge.kernels.drifting import Drifting, Remembering
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD, Matern, SquaredExponential
from streamridge.learners.lazy_descent import (
    AdaGradStep,
    AgreementStep,
    ConstantStep,
    DiscountedStep,
)
from streamridge.models.autoregressive import AutoregressiveRidge
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.nystrom import NystromRidge
from streamridge.models.standardized import Standardized
from streamridge.tuners.bayesian import Bayesian
from streamridge.tuners.candidates import Fixed, Grid, RandomSearch
from streamridge.tuners.hoag import HOAG

# The classes that can be saved, by name; `register` adds to them.
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Periodic, SquaredExponential, ARD, Matern, Linear, Drifting, Remembering, Mixture),
        *(KernelRidge, NystromRidge, AutoregressiveRidge, Standardized),
        *(ConstantStep, AdaGradStep, DiscountedStep, AgreementStep),
        *(Features, Profiles, Season, Preset),
        *(Fixed, Grid, RandomSearch, HOAG, Bayesian),
    )
}


Kind = TypeVar("Kind", bound=type)


def register(kind: Kind) -> Kind:
    """Let forecasters with parts of your own class be saved and loaded; use it as a decorator.

    Parameters
    ----------
    kind
        A frozen dataclass: a kernel, a model, features, a step rule or a tuner. Its fields are
        numbers, texts, tuples, or values that can be saved themselves. Register it under the same
        name before you load a file that uses it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register
    ... @dataclass(frozen=True)
    ... class Halved:
    ...     learning_rate: float
    ...     def start(self, z):
    ...         return np.zeros(0)
    ...     def step(self, z, g, memory):
    ...         return self.learning_rate * g / 2, memory
    >>> build(describe(Halved(0.1)))
    Halved(learning_rate=0.1)
    """
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise InvalidInputError(f"kind must be a dataclass, got {kind!r}.")
    if KINDS.get(kind.__name__, kind).__module__ != kind.__module__:
        raise InvalidInputError(
            f"kind must have a unique name, got {kind.__name__}, which is used by "
            f"{KINDS[kind.__name__].__module__}."
        )
    KINDS[kind.__name__] = kind
    _built.cache_clear()
    return kind


def describe(value: Any) -> Any:
    """Return a value of this library, or of a registered class, as plain JSON.

    Examples
    --------
    >>> describe(Linear(("lags",)))
    {'kind': 'Linear', 'features': ['lags']}
    """
    if KINDS.get(type(value).__name__) is type(value):
        parts = {field.name: describe(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **parts}
    if isinstance(value, tuple | list):
        return [describe(part) for part in value]
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    if isinstance(value, float) and not isfinite(value):
        return {"kind": "float", "x": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInputError(
        "a saved forecaster must be made of parts of this library, or of classes given to "
        f"streamridge.register, got {value!r}."
    )


def build(recipe: Any) -> Any:
    """Return the value of a description in plain JSON, as `describe` makes it.

    Examples
    --------
    >>> build({"kind": "Linear", "features": ["lags"]})
    Linear(features=('lags',))
    """
    if isinstance(recipe, list):
        return tuple(build(part) for part in recipe)
    if not isinstance(recipe, dict):
        return recipe
    parts = dict(recipe)
    if parts.get("kind") == "float":  # JSON has no infinity
        return float(parts["x"])
    kind = KINDS.get(parts.pop("kind", None))
    if kind is None:
        raise StateError(
            f"kind must be one of {', '.join(KINDS)}, got {recipe.get('kind')!r}. "
            "Import the module that gives it to streamridge.register before loading."
        )
    try:
        return kind(**{name: build(part) for name, part in parts.items()})
    except (TypeError, StreamRidgeError) as error:
        raise StateError(f"{kind.__name__} cannot be made: {error}") from None


def build_shared(recipe: Any) -> Any:
    """Return the value of a recipe; equal recipes share one object, which must not be changed."""
    return _built(json.dumps(recipe))


@lru_cache(maxsize=256)  # a fleet of forecasters has few different parts
def _built(text: str) -> Any:
    return build(json.loads(text))


Arrays = Mapping[str, NDArray[Any]]

WHOLE, CHANGES = "forecaster", "forecaster since its refit"
TIMELINE = "history.timeline"
# The arrays that identify a refit, and all arrays that stay the same until the next one.
REFIT = ("model.learner.current.", "model.path.")
UNCHANGED = (
    *REFIT,
    "model.learner.start.",
    "model.comparison.",
    "model.schedule.",
)


def whole(header: Header, state: Arrays) -> bytes:
    """Return a whole forecaster as bytes."""
    return encoded({"kind": WHOLE, **header}, state)


def changes_since_refit(header: Header, state: Arrays, timeline: Arrays) -> bytes:
    """Return the changes since the last refit, given the whole, and the timeline's changes."""
    changed = {
        name: array
        for name, array in state.items()
        if not name.startswith((*UNCHANGED, f"{TIMELINE}."))
    }
    names = [name for name in state if name.startswith(UNCHANGED)]
    plain = {name: header[name] for name in ("clock", "counts", "fitted")}
    about = {"kind": CHANGES, "refit": _digest(state), "unchanged": names}
    return encoded(about | plain, changed | joined({TIMELINE: timeline}))


def loaded(content: bytes, later: bytes | None, name: str) -> tuple[Header, Arrays]:
    """Return the header and the arrays of a forecaster, with later changes if given."""
    header, state = _decoded(content, name, WHOLE)
    if later is None:
        return header, state
    newer, changed = _decoded(later, "the later part", WHOLE, CHANGES)
    if newer["kind"] == WHOLE:
        return newer, changed
    if not header["fitted"] or newer["refit"] != _digest(state):
        raise StateError(
            "the later part must be of the same refit as the whole, got one of another. "
            "Keep the whole after each refit."
        )
    timeline = updated(part(state, TIMELINE), part(changed, TIMELINE))
    unchanged = {name: state[name] for name in newer["unchanged"] if name in state}
    light = {name: array for name, array in changed.items() if not name.startswith(TIMELINE)}
    return {**header, **newer}, {**unchanged, **light, **joined({TIMELINE: timeline.state()})}


def _decoded(content: bytes, name: str, *kinds: str) -> tuple[Header, dict[str, NDArray[Any]]]:
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidInputError(f"{name} must be bytes, got {type(content).__name__}.")
    header, state = decoded(bytes(content), name)
    if header.get("kind") not in kinds:
        raise StateError(f"{name} must hold a {kinds[0]}, got {header.get('kind')!r}.")
    return header, state


def _digest(state: Arrays) -> str:
    """Return a digest of the arrays that a refit leaves, different for every refit."""
    digest = blake2b(digest_size=16)
    for name in state:
        if name.startswith(REFIT):
            digest.update(np.ascontiguousarray(state[name]).tobytes())
    return digest.hexdigest()
