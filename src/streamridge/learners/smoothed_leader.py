"""Time-smoothed follow-the-leader of Hazan, Singh and Zhang (2017), the paper's comparison.

After every step it descends the mean of the last w costs until its projected gradient is small. Its
local regret is as good as lazy descent's. But every step evaluates w old gradients at new points,
and for hyperparameters every new point is a refit.
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

# With a step size below 2 / Q (Q: smoothness) the descent settles long before; above, maybe never.
MOST_MOVES = 10_000


@dataclass(frozen=True)
class SmoothedLeader:
    r"""The state of time-smoothed follow-the-leader, an `OnlineMethod`: z and the last w costs.

    Parameters
    ----------
    z
        The point, shape (d,).
    feasible
        The convex set C.
    learning_rate
        $\eta$ of the inner projected descent.
    window
        w, how many costs are averaged.
    tolerance
        $\delta$: the inner descent stops at a projected gradient of $\delta / w$.
    moves
        How often z has moved; for hyperparameters, each move is a refit.
    gradients
        How many gradients have been evaluated.

    Examples
    --------
    >>> from streamridge.hyperparameters.box import Box
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
