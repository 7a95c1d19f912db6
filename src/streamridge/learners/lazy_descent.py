"""Algorithm 3: online projected gradient descent with lazy updates, for any stream of costs.

It sums the gradients of m steps at one point, then takes one projected step along their mean,
eq. (18). It knows nothing of kernels. A step rule decides how long the step is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Vector, require_count, require_finite, require_shape
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Feasible, require_feasible
from streamridge.learners.steps import Memory, StepRule

# The cost of one time step, given by its gradient.
CostGradient = Callable[[Vector], Vector]


class OnlineMethod(Protocol):
    """A method that plays a point, sees the cost of each step, and may move; states are frozen."""

    @property
    def z(self) -> Vector:
        """Return the point that is played, shape (d,)."""

    @property
    def moves(self) -> int:
        """Return how often the point has moved; for hyperparameters, each move is a refit."""

    def observe(self, gradient: CostGradient) -> Self:
        """Return the state after the cost of a step is revealed by its gradient."""


@dataclass(frozen=True)
class LazyDescent:
    """The state of Algorithm 3: a point z in C, and the gradients summed since it was reached.

    Parameters
    ----------
    z
        The point, shape (d,).
    feasible
        The convex set C.
    step
        Step rule.
    update_every
        m, the steps between moves.
    reach
        Largest change of each coordinate in one move; unlimited by default, zero allows none.
    g
        Sum of the gradients seen since the last move.
    memory
        What the step rule remembers, in a shape of its own.
    seen
        Number of gradients in that sum.
    moves
        How often z has moved.
    skipped
        How often a move was left out because the sum or its step was not finite.

    Examples
    --------
    >>> from streamridge.hyperparameters.box import Box
    >>> from streamridge.learners.steps import ConstantStep
    >>> descent = LazyDescent.start([5.0], Box([0.0], [9.0]), ConstantStep(0.5), update_every=2)
    >>> for target in (1.0, 1.0, 1.0, 1.0):
    ...     descent = descent.observe(lambda z: 2 * (z - target))
    >>> descent.z, descent.moves
    (array([1.]), 2)
    """

    z: Vector
    feasible: Feasible
    step: StepRule
    update_every: int
    reach: Vector
    g: Vector
    memory: Memory
    seen: int = 0
    moves: int = 0
    skipped: int = 0

    @classmethod
    def start(
        cls,
        z: ArrayLike,
        feasible: Feasible,
        step: StepRule,
        *,
        update_every: int,
        reach: ArrayLike = np.inf,
    ) -> Self:
        """Return the state at an initial point of C."""
        z = require_feasible(z, feasible)
        m = require_count("update_every", update_every)
        g, reach = np.zeros(len(z)), np.broadcast_to(reach, z.shape)
        return cls(z, feasible, step, m, reach, g, memory=step.start(z))

    def observe(self, gradient: CostGradient) -> Self:
        """Return the state after the cost of a step is revealed; every m-th time, z moves."""
        after = self.add(gradient(self.z))
        return after.move() if after.seen == self.update_every else after

    def add(self, g: Vector, count: int = 1) -> Self:
        """Return the state with the summed gradients of `count` more steps."""
        require_shape("gradient", np.asarray(g), self.z.shape)
        return replace(self, g=self.g + g, seen=self.seen + count)

    def move(self) -> Self:
        """Return the state after one projected step along the mean gradient, eq. (18)."""
        settled = replace(self, g=np.zeros_like(self.g), seen=0)
        if not self.seen:
            return settled
        with np.errstate(over="ignore", invalid="ignore"):
            # A rule measures each coordinate by itself: of two weights with gradients of one sign,
            # it would make equal moves, which cancel in the projection.
            g = self.feasible.tangent(self.g / self.seen)
            displacement, memory = self.step.step(self.z, g, self.memory)
        if not all(np.isfinite(part).all() for part in (self.g, displacement, memory)):
            return replace(settled, skipped=self.skipped + 1)
        displacement = np.clip(displacement, -self.reach, self.reach)
        z = self.feasible.project(self.z - displacement)
        return replace(settled, z=z, memory=memory, moves=self.moves + 1)

    def moved_to(self, z: ArrayLike) -> Self:
        """Return the state at another point, without the gradients summed at this one."""
        point = require_feasible(z, self.feasible)
        return replace(self, z=point, g=np.zeros_like(self.g), seen=0)

    def state(self) -> dict[str, Memory | int]:
        """Return everything that changes, as arrays and numbers."""
        return {
            "z": self.z,
            "reach": self.reach,
            "g": self.g,
            "memory": self.memory,
            "seen": self.seen,
            "moves": self.moves,
            "skipped": self.skipped,
        }

    def restore(self, state: Mapping[str, Memory | float]) -> Self:
        """Return this descent with the state of another one of the same settings."""
        g, memory = (require_finite(name, state[name]).copy() for name in ("g", "memory"))
        for name, array, like in (("g", g, self.g), ("memory", memory, self.memory)):
            require_shape(name, array, like.shape)
        reach = np.array(state["reach"], dtype=np.float64)  # infinite where nothing limits it
        require_shape("reach", reach, self.z.shape)
        if not (reach >= 0).all():
            raise InvalidInputError(f"reach must not be negative, got {reach.min()}.")
        names = ("seen", "moves", "skipped")
        seen, moves, skipped = (require_count(name, state[name], least=0) for name in names)
        z = require_feasible(state["z"], self.feasible)
        return replace(
            self, z=z, reach=reach, g=g, memory=memory, seen=seen, moves=moves, skipped=skipped
        )
