"""What users hand to a forecaster, checked where it enters."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from streamridge.arrays import Matrix, Vector, require_number
from streamridge.errors import InvalidInputError, shown
from streamridge.learners.workspace import Workspace

# Larger readings would overflow when they are squared and summed.
LARGEST = 1e12


def require_reading(name: str, value: float | None) -> float:
    """Return a reading as a number; NaN if there is none."""
    if type(value) is float and abs(value) <= LARGEST:  # as a rule
        return value
    # pandas has missing values of its own, which are not even equal to themselves.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, float | np.floating) and np.isnan(value):
        return np.nan
    number = require_number(name, value)
    if abs(number) > LARGEST:
        raise InvalidInputError(f"{name} must be at most {LARGEST:g} in size, got {value}.")
    return number


def require_readings(name: str, values: Vector | Matrix) -> None:
    """Raise unless all readings of a history are missing, or not too large."""
    too_large = values[np.abs(values) > LARGEST]
    if too_large.size:
        raise InvalidInputError(
            f"{name} must be at most {LARGEST:g} in size, got {too_large[0]:g}."
        )


def require_columns(names: tuple[str, ...], extras: Mapping[str, float] | None) -> Vector:
    """Return the values of further columns in the order of their names."""
    if extras is not None and not isinstance(extras, Mapping):
        raise InvalidInputError(f"extras must map names to numbers, got {shown(extras)}.")
    given = {} if extras is None else dict(extras)
    if set(given) != set(names):
        wanted = ", ".join(names) or "nothing"
        raise InvalidInputError(f"extras must give {wanted}, got {', '.join(given) or 'none'}.")
    return np.array([require_reading(name, given[name]) for name in names])


def require_names(extras: object) -> tuple[str, ...]:
    """Return the names of further columns; raise unless they are names, and all different."""
    if isinstance(extras, str) or not np.iterable(extras):
        raise InvalidInputError(f"extras must be a tuple of names, got {shown(extras)}.")
    names = tuple(extras)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InvalidInputError(
            f"extras must be a tuple of names, all different, got {shown(extras)}."
        )
    return names


def require_path(path: object) -> Path:
    """Return the path of a file; raise unless it is text or a path."""
    if not isinstance(path, str | PathLike):
        raise InvalidInputError(f"path must be the name of a file, got {shown(path)}.")
    return Path(path)


def require_workspace(workspace: Workspace | None) -> Workspace | None:
    """Return a workspace, or None; raise at anything else."""
    if not isinstance(workspace, Workspace | None):
        raise InvalidInputError(f"workspace must be a Workspace or None, got {shown(workspace)}.")
    return workspace
