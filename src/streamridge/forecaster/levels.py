"""Levels of bands: the shares of values that bands should hold, checked and named."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite
from streamridge.errors import InvalidInputError, shown
from streamridge.metrics import percent

# One level, or several.
Level: TypeAlias = float | Sequence[float]
Levels: TypeAlias = tuple[float, ...]

Part = TypeVar("Part")

# The level of the band that readings are judged by; it is learned whatever the user asks for.
JUDGED = 0.9
# The largest share below one.
LARGEST = float(np.nextafter(1.0, 0.0))


def require_levels(level: Level) -> Levels:
    """Return one level or several as a tuple; raise unless they are shares, and all different.

    Examples
    --------
    >>> require_levels(0.9), require_levels([0.8, 0.95])
    ((0.9,), (0.8, 0.95))
    >>> require_levels(90)
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: level must lie between 0 and 1, got 90.0. \
Write 0.9 for 90 %.
    """
    given = require_finite("level", level)
    shares = given.ravel().tolist()
    if given.ndim > 1 or len(set(shares)) < max(1, len(shares)):
        raise InvalidInputError(
            f"level must be one number, or several that differ, got {shown(level)}."
        )
    for share in shares:
        _require_share(share)
    return tuple(shares)


def one_or_all(levels: Levels) -> float | Levels:
    """Return the only level as a number, and several as they are."""
    return levels[0] if len(levels) == 1 else levels


def gaussian_quantile(level: float) -> float:
    """Return how many deviations the central band of a Gaussian with this level reaches.

    Examples
    --------
    >>> gaussian_quantile(0.95)
    1.9599639
    """
    return NormalDist().inv_cdf(min((1 + level) / 2, LARGEST))


def in_percent(levels: Levels) -> str:
    """Return levels in words, in the order given.

    Examples
    --------
    >>> in_percent((0.9,)), in_percent((0.5, 0.8, 0.975))
    ('90%', '50%, 80% and 97.5%')
    """
    *others, last = (f"{percent(level)}%" for level in levels)
    return f"{', '.join(others)} and {last}" if others else last


def band_words(levels: Levels) -> str:
    """Return what a forecast is drawn with, in words.

    Examples
    --------
    >>> band_words((0.9,)), band_words((0.8, 0.95))
    ('the 90% band', 'the 80% and 95% bands')
    """
    return f"the {in_percent(levels)} band{'s' if len(levels) > 1 else ''}"


def named(name: str, levels: Levels, parts: Sequence[Part]) -> dict[str, Part]:
    """Return the parts of a figure, one per level, by name; of one level, by the bare name.

    Examples
    --------
    >>> named("lower", (0.9,), [1.0]), named("lower", (0.8, 0.975), [2.0, 1.0])
    ({'lower': 1.0}, {'lower_80': 2.0, 'lower_97.5': 1.0})
    """
    if len(levels) == 1:
        return {name: parts[0]}
    return {f"{name}_{percent(level)}": part for level, part in zip(levels, parts, strict=True)}


def by_level(ends: NDArray[np.float64], levels: Levels) -> list[Vector]:
    """Return the ends of bands level by level; of several levels, the last axis is theirs."""
    return [ends] if len(levels) == 1 else list(np.moveaxis(ends, -1, 0))


def band_columns(
    levels: Levels, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return the ends of bands by name, level by level: "lower_80", "upper_80", "lower_95", ...

    Examples
    --------
    >>> list(band_columns((0.8, 0.95), np.zeros((1, 2)), np.ones((1, 2))))
    ['lower_80', 'upper_80', 'lower_95', 'upper_95']
    """
    pairs = zip(by_level(lower, levels), by_level(upper, levels), strict=True)
    return {
        side + name: ends
        for name, pair in named("", levels, list(pairs)).items()
        for side, ends in zip(("lower", "upper"), pair, strict=True)
    }


def _require_share(level: float) -> None:
    if not 0 < level < 1:
        hint = f" Write {level / 100:g} for {level:g} %." if 10 <= level < 100 else ""
        raise InvalidInputError(f"level must lie between 0 and 1, got {level}.{hint}")
