"""The states of several parts in one mapping, each part under its own prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value")


def joined(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return the states of all parts in one mapping of arrays.

    Examples
    --------
    >>> joined({"a": {"x": 1.0}})
    {'a.x': array(1.)}
    """
    return {
        f"{part}.{name}": np.asarray(value)
        for part, state in parts.items()
        for name, value in state.items()
    }


def part(state: Mapping[str, Value], name: str) -> dict[str, Value]:
    """Return the state of one part, without its prefix.

    Examples
    --------
    >>> part({"a.x": 1.0, "b.x": 2.0}, "a")
    {'x': 1.0}
    """
    prefix = f"{name}."
    return {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
