"""The simplex: the set of weights that are not negative and sum to one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Vector, require_count
from streamridge.hyperparameters.box import Box
from streamridge.hyperparameters.feasible import TOLERANCE, Intervals, Part, Spacing

# Draws are kept this far from 0 and 1, so that their logarithms are finite and not zero.
LEAST_DRAW = 1e-12


def project_simplex(u: Vector) -> Vector:
    r"""Return the point of the simplex nearest to u.

    The nearest point is $\max(u - \sigma, 0)$ for the one $\sigma$ that makes it sum to one. Sort
    the entries downwards: then the first $\rho$ stay positive, where $\rho$ is the last index at
    which $u_{(\rho)}$ exceeds the $\sigma$ of the first $\rho$ entries alone.

    Notes
    -----
    Paper: the projection of Algorithm 2, line 4, onto the kernel weights. Cost: $O(M \log M)$.

    Examples
    --------
    >>> project_simplex(np.array([0.5, 0.9, -1.0]))
    array([0.3, 0.7, 0. ])
    """
    # A shift of u does not change the answer; without it, the 1 is lost beside entries of 1e17.
    u = u - u.max()
    descending = np.sort(u)[::-1]
    sigmas = (np.cumsum(descending) - 1) / np.arange(1, len(u) + 1)
    rho = np.flatnonzero(descending > sigmas)[-1]
    return np.maximum(u - sigmas[rho], 0.0)


@dataclass(frozen=True)
class Simplex:
    """The set of all weights that are not negative and sum to one.

    Examples
    --------
    >>> Simplex(2).project(np.array([3.0, 0.0]))
    array([1., 0.])
    """

    size: int

    def __post_init__(self) -> None:
        require_count("size", self.size)

    def project(self, u: Vector) -> Vector:
        """Return the weights nearest to u."""
        return project_simplex(u)

    def contains(self, u: Vector) -> bool:
        """Return whether u is a vector of weights, up to rounding."""
        return bool(u.min() >= -TOLERANCE and abs(u.sum() - 1) <= TOLERANCE)

    def tangent(self, g: Vector) -> Vector:
        """Return g less its mean: only what weights gain over each other can change them."""
        return g - g.mean()

    def active(self, u: Vector) -> NDArray[np.int8]:
        """Return -1 where a weight is 0, 1 where it is 1, and 0 between or for a single weight."""
        if self.size == 1:
            return np.zeros(1, dtype=np.int8)
        return (u >= 1).astype(np.int8) - (u <= 0).astype(np.int8)

    @property
    def is_tied(self) -> bool:
        """Return True: weights sum to one, so none can change alone."""
        return True

    @property
    def widths(self) -> Vector:
        """Return one for each weight, shape (size,)."""
        return np.ones(self.size)

    @property
    def limits(self) -> str:
        """Return the constraint on weights, in words."""
        return "between 0 and 1 and sum to 1"

    def completed(self, u: Vector, given: Mask) -> Vector:
        """Return u with the weights that are not `given` rescaled so that all sum to one.

        Examples
        --------
        >>> Simplex(3).completed(np.array([0.5, 0.3, 0.3]), np.array([True, False, False]))
        array([0.5 , 0.25, 0.25])
        """
        if given.all():
            return u
        others = np.where(given, 0.0, u)
        shares = others / others.sum() if others.sum() > 0 else ~given / (~given).sum()
        return np.where(given, u, (1 - u[given].sum()) * shares)

    def holding(self, u: Vector, held: Mask) -> Part:
        """Return the single point u if any weight is held, else the whole simplex."""
        return Box(u, u) if held.any() else self

    def logarithmic(self) -> None:
        """Return None: a weight may be zero, which has no logarithm."""

    def sample(self, rng: np.random.Generator, spacing: Spacing) -> Vector:
        """Return weights drawn uniformly from the simplex, whatever the spacing."""
        return rng.dirichlet(np.ones(self.size))

    def grid(self, points: int) -> list[Vector]:
        """Return all weights that are multiples of 1 / (points - 1).

        Examples
        --------
        >>> Simplex(2).grid(3)
        [array([0., 1.]), array([0.5, 0.5]), array([1., 0.])]
        """
        parts = points - 1
        cuts = combinations_with_replacement(range(parts + 1), self.size - 1)
        return [np.diff([0, *cut, parts]) / parts for cut in cuts]

    @property
    def draws(self) -> Intervals:
        """Return a unit interval per weight; a single weight is always one and needs no draw."""
        return np.zeros(self.size), np.full(self.size, 1.0 if self.size > 1 else 0.0)

    def from_draws(self, drawn: Vector) -> Vector:
        """Return -log of the draws, scaled to sum to one: uniform draws give uniform weights."""
        shares = -np.log(np.clip(drawn, LEAST_DRAW, 1 - LEAST_DRAW))
        return shares / shares.sum()

    def to_draws(self, u: Vector) -> Vector:
        """Return numbers d with -log(d) equal to the weights."""
        return np.exp(-u)
