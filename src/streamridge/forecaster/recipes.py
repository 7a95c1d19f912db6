"""Frozen values of this library as plain JSON, and back: what was built, and with what."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, StateError, StreamRidgeError
from streamridge.features.lags import Features
from streamridge.features.profiles import Profiles
from streamridge.forecaster.presets import Preset
from streamridge.kernels.drifting import Drifting
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD, Matern, SquaredExponential
from streamridge.learners.lazy_descent import AdaGradStep, ConstantStep
from streamridge.models.autoregressive import AutoregressiveRidge
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.standardized import Standardized
from streamridge.tuners.bayesian import Bayesian
from streamridge.tuners.fixed import Fixed
from streamridge.tuners.grid import Grid
from streamridge.tuners.hoag import HOAG
from streamridge.tuners.random_search import RandomSearch

KINDS = {
    kind.__name__: kind
    for kind in (
        *(Periodic, SquaredExponential, ARD, Matern, Linear, Drifting, Mixture),
        *(KernelRidge, AutoregressiveRidge, Standardized),
        *(ConstantStep, AdaGradStep, Features, Profiles, Preset),
        *(Fixed, Grid, RandomSearch, HOAG, Bayesian),
    )
}


def describe(value: Any) -> Any:
    """Return a value of this library as plain JSON.

    Examples
    --------
    >>> describe(Linear(("lags",)))
    {'kind': 'Linear', 'features': ['lags']}
    """
    if is_dataclass(value) and type(value).__name__ in KINDS:
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
    raise InvalidInputError(f"only parts of this library can be saved, got {value!r}.")


def build(recipe: Any) -> Any:
    """Return the value that was described.

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
        raise StateError(f"kind must be one of {', '.join(KINDS)}, got {recipe.get('kind')!r}.")
    try:
        return kind(**{name: build(part) for name, part in parts.items()})
    except (TypeError, StreamRidgeError) as error:
        raise StateError(f"{kind.__name__} cannot be made: {error}") from None
