"""Local regret, eqs (20) and (22), assumption A4, and the method that the paper compares with.

Local regret measures how far from stationary the iterates were. Time-smoothed follow-the-leader of
Hazan, Singh and Zhang (2017) descends the mean of the last w costs after every step, until its
projected gradient is small. Its local regret is as good as the regret of lazy descent. But every
step evaluates w old gradients at new points, and for hyperparameters every new point is a refit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import (
    Vector,
    require_count,
    require_finite,
    require_positive,
    require_shape,
)
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Feasible, require_feasible
from streamridge.learners.lazy_descent import CostGradient


def projected_gradient(z: Vector, g: Vector, learning_rate: float, feasible: Feasible) -> Vector:
    r"""Return the part of a gradient that a projected step can follow.

    $$P(z, g, \eta) = \frac{1}{\eta} \big(z - \Pi_C(z - \eta g)\big)$$

    Notes
    -----
    Paper: eq. (20). It is zero exactly at the stationary points of C.
    """
    eta = learning_rate
    return (z - feasible.project(z - eta * g)) / eta


def local_regret(
    iterates: ArrayLike, gradients: ArrayLike, learning_rate: float, feasible: Feasible
) -> Vector:
    r"""Return the local regret $R_1, \dots, R_T$ of a sequence of iterates.

    $$R_T = \sum_{t<T} \|P(z_t, \nabla f_t(z_t), \eta)\|^2$$

    Parameters
    ----------
    iterates
        (T, d), the points z_t that were played.
    gradients
        (T, d), the gradient of each step's own cost at its own point.
    learning_rate
        $\eta$.
    feasible
        The convex set C.

    Returns
    -------
    (T,)
        The regret up to and including each step; it never falls.

    Notes
    -----
    Paper: eq. (22), Definition 1.

    Examples
    --------
    >>> from streamridge.hyperparameters.sets import Box
    >>> local_regret([[0.0], [1.0]], [[2.0], [-2.0]], 0.5, Box([0.0], [1.0]))
    array([0., 0.])
    >>> local_regret([[0.5], [0.5]], [[1.0], [0.0]], 0.5, Box([0.0], [1.0]))
    array([1., 1.])
    """
    z = require_finite("iterates", iterates)
    g = require_finite("gradients", gradients)
    require_shape("iterates", z, (None, feasible.size))
    require_shape("gradients", g, z.shape)
    require_positive("learning_rate", learning_rate)
    P = [projected_gradient(*pair, learning_rate, feasible) for pair in zip(z, g, strict=True)]
    return np.cumsum(np.square(P).sum(axis=1)) if len(P) else np.empty(0)


def gradient_variation(gradients: ArrayLike, update_every: int) -> Vector:
    r"""Return the observed variation of the gradients within each window of m steps.

    $$\sum_{i<m} \|\nabla f_{t+i}(z) - \nabla F_{t,m}(z)\|^2$$

    Its largest entry is the smallest constant $V_m$ for which assumption A4 holds in the run.

    Parameters
    ----------
    gradients
        (T, d), the gradients of each step at the point of its window.
    update_every
        m; an incomplete last window is left out.

    Returns
    -------
    (T // m,)
        The variation of each window.

    Examples
    --------
    >>> gradient_variation([[1.0], [3.0], [5.0], [5.0]], update_every=2)
    array([2., 0.])
    """
    g = require_finite("gradients", gradients)
    require_shape("gradients", g, (None, None))
    m = require_count("update_every", update_every)
    windows = g[: len(g) // m * m].reshape(-1, m, g.shape[1])
    return np.square(windows - windows.mean(axis=1, keepdims=True)).sum(axis=(1, 2))


# With a step size below 2 / Q (Q: smoothness) the descent settles long before; above, maybe never.
MOST_MOVES = 10_000


@dataclass(frozen=True)
class SmoothedLeader:
    r"""The state of time-smoothed follow-the-leader: z and the last w costs.

    Parameters
    ----------
    z
        The point, shape (d,).
    feasible
        The convex set C.
    learning_rate
        $\eta$ of the inner projected descent.
    window
        w, the number of costs that are averaged.
    tolerance
        $\delta$: the inner descent stops at a projected gradient of $\delta / w$.
    moves
        The number of moves of z; for hyperparameters, each move is a refit.
    gradients
        The number of gradients that have been evaluated.

    Examples
    --------
    >>> from streamridge.hyperparameters.sets import Box
    >>> leader = SmoothedLeader.start([5.0], Box([0.0], [9.0]), learning_rate=0.25, window=2)
    >>> leader = leader.observe(lambda z: 2 * (z - 1.0))
    >>> leader.z.round(1), leader.moves > 1
    (array([1.]), True)
    """

    z: Vector
    feasible: Feasible
    learning_rate: float
    window: int
    tolerance: float
    costs: tuple[CostGradient, ...] = ()
    moves: int = 0
    gradients: int = 0

    @classmethod
    def start(
        cls,
        z: ArrayLike,
        feasible: Feasible,
        *,
        learning_rate: float,
        window: int,
        tolerance: float = 0.1,
    ) -> Self:
        """Return the state at an initial point of C."""
        z = require_feasible(z, feasible)
        require_positive("learning_rate", learning_rate)
        require_positive("tolerance", tolerance)
        return cls(z, feasible, learning_rate, require_count("window", window), tolerance)

    def observe(self, gradient: CostGradient) -> Self:
        """Return the state after the cost of a step is revealed and the mean cost is descended."""
        after = replace(self, costs=(*self.costs, gradient)[-self.window :])
        for _ in range(MOST_MOVES):
            before, after = after, after._descend()
            if after.moves == before.moves:
                return after
        raise InvalidInputError(
            f"learning_rate must let the mean of {self.window} costs settle within {MOST_MOVES} "
            f"moves, got {self.learning_rate}. Lower it, or raise the tolerance."
        )

    def _descend(self) -> Self:
        """Return the state after one inner step; z stays once the projected gradient is small."""
        # Costs before the first step are zero, so the mean always divides by w.
        gradients = require_finite("gradient", [cost(self.z) for cost in self.costs])
        require_shape("gradient", gradients[0], self.z.shape)
        g = gradients.sum(axis=0) / self.window
        z = self.feasible.project(self.z - self.learning_rate * g)
        looked = replace(self, gradients=self.gradients + len(self.costs))
        if np.linalg.norm(self.z - z) <= self.learning_rate * self.tolerance / self.window:
            return looked
        return replace(looked, z=z, moves=self.moves + 1)
