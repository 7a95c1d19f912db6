"""Candidates: which sensors may be neighbours of a sensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, shown

Position = tuple[float, float]
# All sensors, none, those listed, or the nearest by position.
NeighbourChoice = Literal["auto", "none"] | Mapping[str, Sequence[str]] | Mapping[str, Position]
# The number of nearest sensors that are candidates if positions are known.
NEAREST = 20


@dataclass(frozen=True)
class Candidates:
    """The candidates of every sensor.

    Parameters
    ----------
    choice
        "auto": all other sensors. "none": no sensor. A mapping from a sensor to a list of sensors,
        or from a sensor to its position (x, y), which makes the nearest sensors candidates.

    Examples
    --------
    >>> places = {"a": (0.0, 0.0), "b": (1.0, 0.0)}
    >>> Candidates(places).of("a", ("a", "b", "c")).tolist()
    [False, True, False]
    """

    choice: Any

    def __post_init__(self) -> None:
        if isinstance(self.choice, str) and self.choice in ("auto", "none"):
            return
        if isinstance(self.choice, Mapping) and self.choice:
            every = self.choice.values()
            if all(map(_is_list, every)) or all(map(_is_position, every)):
                plain = {str(name): list(each) for name, each in self.choice.items()}
                if all(map(_is_position, every)):
                    plain = {name: [float(x), float(y)] for name, (x, y) in plain.items()}
                object.__setattr__(self, "choice", plain)
                return
        raise InvalidInputError(
            "neighbours must be 'auto', 'none', a mapping from sensors to lists of sensors, or "
            f"from sensors to positions (x, y), got {shown(self.choice)}."
        )

    def of(self, sensor: str, sensors: Sequence[str]) -> Mask:
        """Return which of some sensors may be neighbours of a sensor, (n,)."""
        if isinstance(self.choice, str):
            return np.array([self.choice == "auto" and name != sensor for name in sensors])
        own = self.choice.get(sensor, [])
        if not _is_position(own):
            return np.array([name in own and name != sensor for name in sensors])
        known = [self.choice.get(name, (np.nan, np.nan)) for name in sensors]
        distances = np.linalg.norm(np.array(known, dtype=np.float64) - own, axis=1)
        distances[list(sensors).index(sensor)] = np.nan
        nearest = np.argsort(distances, kind="stable")[:NEAREST]  # NaN comes last
        allowed = np.zeros(len(sensors), dtype=bool)
        allowed[nearest] = ~np.isnan(distances[nearest])
        return allowed


def _is_list(given: object) -> bool:
    if not isinstance(given, Sequence) or isinstance(given, str):
        return False
    return all(isinstance(name, str) for name in given)


def _is_position(given: object) -> bool:
    return (
        isinstance(given, Sequence | np.ndarray)
        and len(given) == 2
        and all(isinstance(each, Real) and isfinite(each) for each in given)
    )
