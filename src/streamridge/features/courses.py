"""Typical courses: weighted means over the seasons before a step, and how they move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.series.clock import Steps

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Seen:
    """The values that typical courses are the means of, and which of them count.

    Parameters
    ----------
    values, usable
        (b, ...), the values some steps back, and which can be used.
    stands_in
        Whether the first value may stand in for a mean.
    at
        (n, w), where the courses around each of n rows stand in the arrays above; None if they
        stand there as they are.
    """

    values: Matrix
    usable: Mask
    stands_in: Mask
    at: Steps | None = None

    def part(self, part: slice) -> Seen:
        """Return the values of one season."""
        return Seen(self.values[part], self.usable[part], self.stands_in, self.at)

    @cached_property
    def known(self) -> Mask:
        """Return where there is a usable value, (n, w)."""
        return self.around(self._known)

    def mean(self, weights: Vector) -> Matrix:
        """Return the weighted means of usable values, (n, w).

        Without a usable value, the first value stands in.
        """
        return self.around(self._mean(weights)[0])

    def tangent(self, weights: Vector, slopes: Vector) -> Matrix:
        """Return how the means move when the weights move along slopes, (n, w).

        What stands in for a mean does not move.
        """
        mean, total = self._mean(weights)
        return self.around(self._sum(slopes, self.values - mean) / total)

    def around(self, each: NDArray[T]) -> NDArray[T]:
        """Return what is known of all steps, around each row."""
        return each if self.at is None else np.asarray(each[self.at])

    @cached_property
    def _known(self) -> Mask:
        return np.asarray(self.usable.any(axis=0), dtype=bool)

    def _mean(self, weights: Vector) -> tuple[Matrix, Matrix]:
        """Return the weighted means, and the weights that they rest on; one without any."""
        known = self._known
        total = np.where(known, self._sum(weights, 1.0), 1.0)
        return np.where(known, self._sum(weights, self.values) / total, self.values[0]), total

    def _sum(self, weights: Vector, values: Matrix | float) -> Matrix:
        """Return weighted sums of usable values.

        They are summed one by one, so that each depends on its own values alone, to the last bit.
        """
        weights = weights.reshape(-1, *[1] * (self.usable.ndim - 1))
        return np.add.accumulate(np.where(self.usable, weights * values, 0.0), axis=0)[-1]
