"""Seasons: weighted means of the values some seasons ago, and calendar coordinates of steps."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import cos, pi, sin

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector, require_count, require_number, require_positive
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.space import Bounds, Group, positive_group, require_within
from streamridge.series.times import Steps

# The longest season, in steps: 30 years of seconds.
LONGEST = 10**9
# A period that is a fraction with at most this denominator repeats after few steps: a day of
# seven-minute steps has 1440/7 steps.
DENOMINATOR = 1000
# Longer cycles are not stored as a table.
LONGEST_CYCLE = 100_000


@dataclass(frozen=True)
class Season:
    """A season, and the features that rows have of it.

    A typical value is a weighted mean over the last seasons. The weight of the k-th season back is
    exp(-forgetting (k - 1)).

    Parameters
    ----------
    name
        Prefix of the blocks of a row, such as "day" for day_lags.
    period
        Length of the season in steps. It may be a fraction: a day of seven-minute steps has 205.7
        steps. The step k seasons ago is the nearest one.
    count
        Number of seasons in the mean.
    lags
        Number of deviations of the latest values from their seasonal profile.
    beside, apart
        Number of additional steps on each side of a season's step, and the distance between them.
    forgetting
        Rate at which the weights of earlier seasons decrease. Zero gives equal weights, which are
        not learned.
    forgetting_bounds
        Interval in which it is learned; None keeps it constant.

    Examples
    --------
    >>> Season("day", 1440 / 7, count=3).back
    array([206, 411, 617])
    >>> Season("day", 96, count=3, forgetting=0.1).weights.round(3)
    array([1.   , 0.905, 0.819])
    """

    name: str
    period: float
    count: int = 4
    lags: int = 4
    beside: int = 0
    apart: int = 1
    forgetting: float = 0.0
    forgetting_bounds: Bounds = None

    def __post_init__(self) -> None:
        require_positive("period", self.period)
        if self.period > LONGEST:
            raise InvalidInputError(
                f"period must be at most {LONGEST:,} steps, got {self.period:g}."
            )
        require_number("forgetting", self.forgetting)
        if self.forgetting:
            require_within("forgetting", self.forgetting, self.forgetting_bounds)
        for name in ("count", "lags", "apart"):
            require_count(name, getattr(self, name))
        require_count("beside", self.beside, least=0)
        if self.back.min() < 1:
            raise InvalidInputError(
                f"beside must reach less than a season, got {self.beside} steps {self.apart} apart."
            )

    @cached_property
    def back(self) -> Steps:
        """Return how many steps ago the values of the mean are."""
        seasons = np.rint(self.period * np.arange(1, self.count + 1)).astype(np.int64)
        beside = self.apart * np.arange(-self.beside, self.beside + 1)
        return (seasons[:, None] + beside).ravel()

    @property
    def group(self) -> Group:
        """Return the rate of forgetting as a hyperparameter, such as day_forgetting."""
        name = f"{self.name}_forgetting"
        return positive_group(name, "rate", self.forgetting, self.forgetting_bounds)

    def at(self, rate: float) -> Season:
        """Return the season at another rate of forgetting, which is not checked."""
        changed = copy(self)  # including cached values that do not depend on the rate
        changed.__dict__.pop("weights", None)
        object.__setattr__(changed, "forgetting", rate)
        return changed

    @cached_property
    def weights(self) -> Vector:
        """Return the weight of each value of the mean."""
        return np.exp(-self.forgetting * self.ages)

    @cached_property
    def ages(self) -> Vector:
        """Return the number of seasons between each value of the mean and the last season."""
        return np.repeat(np.arange(float(self.count)), 2 * self.beside + 1)

    def mean_tangent(self, values: Matrix, usable: Mask) -> tuple[Matrix, Mask]:
        """Return the derivatives of means in the rate of forgetting, and a mask of known means.

        The derivative is the sum of w' (v - mean) over the sum of w, for weights w and usable
        values v. It is zero where the mean is not known. Values are added one by one, as in
        `weighted_means`, but without an array of all partial sums.
        """
        total, slope, sums, slopes = np.zeros((4, *usable.shape[1:]))
        for weight, age, value, is_usable in zip(
            self.weights, self.ages, values, usable, strict=True
        ):
            counted = weight * is_usable
            weighted = counted * value
            total += counted
            slope -= age * counted
            sums += weighted
            slopes -= age * weighted
        known = total > 0
        total = np.where(known, total, 1.0)
        return (slopes - sums / total * slope) / total, known


def weighted_means(weights: Vector, values: Matrix, usable: Mask) -> tuple[Matrix, Mask]:
    """Return weighted means of usable values over the first axis, and a mask of the known means.

    Without a usable value, the first value replaces the mean. Values are added one by one, so that
    the bits of a mean depend only on its own values.
    """
    column = weights.reshape(-1, *[1] * (usable.ndim - 1))
    total, sums = (
        np.add.accumulate(np.where(usable, each, 0.0), axis=0)[-1]
        for each in (column, column * values)
    )
    known = np.asarray(usable.any(axis=0), dtype=bool)
    return np.where(known, sums / np.where(known, total, 1.0), values[0]), known


def calendar_at(at: Steps, periods: tuple[float, ...]) -> Matrix:
    """Return the sine of the time for each period, then the cosines; shape (n, 2 periods).

    A coordinate depends only on its step. The sine of a whole array is not used, because its last
    bit may depend on the position in the array.

    >>> calendar_at(np.array([0, 24, 48]), (96,)).round(3)
    array([[ 0.,  1.],
           [ 1.,  0.],
           [ 0., -1.]])
    """
    coordinates = np.empty((2, len(periods), len(at)))
    for i, period in enumerate(map(float, periods)):
        parts, cycle = _cycle(period)
        if cycle is None:
            coordinates[:, i] = _on_circle([step % period / period for step in at.tolist()])
        else:
            coordinates[:, i] = cycle[:, at * parts.denominator % parts.numerator]
    return coordinates.reshape(2 * len(periods), len(at)).T


def calendar_of(step: int, periods: tuple[float, ...]) -> list[float]:
    """Return the row of `calendar_at` for one step."""
    sines, cosines = [], []
    for period in map(float, periods):
        parts, cycle = _cycle(period)
        if cycle is None:
            angle = 2 * pi * (step % period / period)
            sines.append(sin(angle))
            cosines.append(cos(angle))
        else:
            place = step * parts.denominator % parts.numerator
            sines.append(cycle.item(0, place))
            cosines.append(cycle.item(1, place))
    return sines + cosines


@lru_cache(maxsize=32)
def _cycle(period: float) -> tuple[Fraction, Matrix | None]:
    """Return a period as a fraction, and a table of the cycle's coordinates if it is short."""
    parts = Fraction(period).limit_denominator(DENOMINATOR)
    if float(parts) != period or parts.numerator > LONGEST_CYCLE:
        return parts, None
    return parts, _on_circle([part / parts.numerator for part in range(parts.numerator)])


def _on_circle(turns: list[float]) -> Matrix:
    """Return the sine and the cosine of fractions of a turn, shape (2, n)."""
    angles = [2 * pi * turn for turn in turns]
    return np.array([[sin(angle) for angle in angles], [cos(angle) for angle in angles]])
