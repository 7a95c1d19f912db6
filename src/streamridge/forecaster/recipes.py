"""Recipes: the parts of a forecaster as plain JSON for saving, and back."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from streamridge.errors import InvalidInputError, StateError, StreamRidgeError
from streamridge.features.lags import Features
from streamridge.features.profiles import Profiles, Season
from streamridge.forecaster.presets import Preset
from streamridge.kernels.drifting import Drifting
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD, Matern, SquaredExponential
from streamridge.kernels.remembering import Remembering
from streamridge.learners.steps import (
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
from streamridge.tuners.fixed import Fixed
from streamridge.tuners.grid import Grid
from streamridge.tuners.hoag import HOAG
from streamridge.tuners.random_search import RandomSearch

# What can be saved, by name; `register` adds to it.
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
            f"kind must have a name of its own, got {kind.__name__}, which is taken by "
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
    """Return the value that `describe` gave as plain JSON.

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
    """Return the value of a recipe; equal recipes give one object, which must not be changed."""
    return _built(json.dumps(recipe))


@lru_cache(maxsize=256)  # a fleet of forecasters has few different parts
def _built(text: str) -> Any:
    return build(json.loads(text))
