"""Algorithm 3: online projected gradient descent with lazy updates, and its step rules.

It works for any stream of costs. It sums the gradients of m steps at one point, then takes one
projected step along their mean, eq. (18). A step rule decides the length of the step: it sees the
point, the mean gradient of a window, and its own memory of earlier windows.

`ConstantStep` and `AdaGradStep` have a learning rate; the memory of AdaGrad only grows. The others
need no rate. They divide a gradient by its usual recent size, so the unit of the loss does not
matter. They forget, so they follow a drift for years. A gradient far above the usual size is cut to
a few times that size, so a burst hardly changes their memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import (
    Vector,
    require_count,
    require_finite,
    require_number,
    require_positive,
    require_shape,
)
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Feasible, require_feasible

# The memory of a rule: an array of any shape.
Memory: TypeAlias = NDArray[np.float64]

# A gradient is cut to at most this multiple of its recent root mean square.
FAR = 3.0
# Windows in the mean that a gradient is compared with.
FEW = 5
# The largest growth of the logarithm of a step size per window, and the range of a step size: the
# usual size times or divided by this factor.
GROWTH, SPAN = 0.3, 10.0


class StepRule(Protocol):
    """A rule that turns a mean gradient into a displacement."""

    def start(self, z: Vector) -> Memory:
        """Return the memory of the rule before the first step from z, shape (d,)."""

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement to subtract from z, shape (d,), and the memory after it."""


@dataclass(frozen=True)
class ConstantStep:
    """The paper's rule: move by learning_rate times the gradient.

    Examples
    --------
    >>> ConstantStep(0.5).step(np.zeros(1), np.array([2.0]), memory=np.zeros(1))
    (array([1.]), array([0.]))
    """

    learning_rate: float

    def __post_init__(self) -> None:
        require_positive("learning_rate", require_number("learning_rate", self.learning_rate))

    def start(self, z: Vector) -> Memory:
        return np.zeros(len(z))

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement eta g."""
        return self.learning_rate * g, memory


@dataclass(frozen=True)
class AdaGradStep:
    """A rule that divides each coordinate's gradient by the root of its summed squares.

    In logarithmic coordinates the moves do not depend on units: the first move of every coordinate
    is learning_rate, and the moves shrink like one over the root of their number.

    Examples
    --------
    >>> AdaGradStep(0.5).step(np.zeros(2), np.array([3.0, 0.0]), memory=np.array([16.0, 0.0]))
    (array([0.3, 0. ]), array([25.,  0.]))
    """

    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        require_positive("learning_rate", require_number("learning_rate", self.learning_rate))

    def start(self, z: Vector) -> Memory:
        return np.zeros(len(z))

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement eta g / sqrt(sum of g^2), zero where every g was zero."""
        memory = memory + g * g
        return self.learning_rate * g / np.sqrt(np.where(memory > 0, memory, 1.0)), memory


@dataclass(frozen=True)
class RateFree:
    """The parameters of rules without a rate: the usual move, and the length of their memory."""

    size: float = 0.05
    memory: float = 20.0

    def __post_init__(self) -> None:
        require_positive("size", require_number("size", self.size))
        if not require_number("memory", self.memory) >= 1:
            raise InvalidInputError(f"memory must be at least one window, got {self.memory}.")

    def _in_usual_sizes(self, g: Vector, sums: Memory) -> tuple[Vector, Memory]:
        """Return g divided by its root mean square, and the number and sum of squares with g.

        Before that, g is cut to a few times its usual size, unless it is the first gradient. The
        result is zero where all squares were zero.
        """
        count, squares = sums
        limit = np.where(squares > 0, FAR * np.sqrt(squares / np.maximum(count, 1.0)), np.inf)
        g = np.clip(g, -limit, limit)
        sums = (1 - 1 / self.memory) * sums + [np.ones(len(g)), g * g]
        count, squares = sums
        mean = np.divide(squares, count, out=np.zeros_like(squares), where=squares > 0)
        return g / np.sqrt(np.where(mean > 0, mean, 1.0)), sums  # a mean may underflow


@dataclass(frozen=True)
class DiscountedStep(RateFree):
    """A rule that divides each coordinate's gradient by its recent root mean square.

    Parameters
    ----------
    size
        The usual move of a coordinate; in logarithms, the usual relative change of its value.
    memory
        Windows in the mean.

    Examples
    --------
    >>> rule = DiscountedStep(0.05, memory=20)
    >>> displacement, memory = rule.step(np.zeros(2), np.array([3e6, 0.0]), rule.start(np.zeros(2)))
    >>> displacement
    array([0.05, 0.  ])
    """

    def start(self, z: Vector) -> Memory:
        return np.zeros((2, len(z)))  # the number and the sum of squares of gradients

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement size g / sqrt(mean of g^2), zero where every g was zero."""
        u, sums = self._in_usual_sizes(g, memory)
        return self.size * u, sums


@dataclass(frozen=True)
class AgreementStep(RateFree):
    """A rule whose moves grow while the gradients of a coordinate agree, and shrink while not.

    It is Rprop for noisy gradients. Instead of two signs, it compares a gradient with the mean of
    the last few, each divided by its usual size. So noise changes a step size only a little, and
    for a limited time.

    Parameters
    ----------
    size
        The usual move of a coordinate whose gradients neither agree nor disagree.
    memory
        Windows in the mean squares and in the step sizes.

    Notes
    -----
    Let u be the gradient divided by its usual size, and v the mean of the last few u. The logarithm
    of a step size decays by 1 / memory per window and changes by `GROWTH` u v, at most by `GROWTH`.
    A step size stays within a factor of `SPAN` of the usual one.

    Examples
    --------
    >>> rule = AgreementStep(0.05)
    >>> memory = rule.start(np.zeros(2))
    >>> for sign in (1, -1, 1, -1, 1, -1):
    ...     displacement, memory = rule.step(np.zeros(2), np.array([5.0, 5.0 * sign]), memory)
    >>> displacement.round(3)
    array([ 0.095, -0.042])
    """

    def start(self, z: Vector) -> Memory:
        # The number and the sum of squares of gradients, the mean of the last few, and the log of a
        # step size divided by the usual one.
        return np.zeros((4, len(z)))

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement, zero where g is zero."""
        u, sums = self._in_usual_sizes(g, memory[:2])
        mean, growth = memory[2], memory[3]
        growth = (1 - 1 / self.memory) * growth + GROWTH * np.clip(u * mean, -1.0, 1.0)
        growth = np.clip(growth, -np.log(SPAN), np.log(SPAN))
        mean = mean + (u - mean) / FEW
        return self.size * np.exp(growth) * u, np.vstack([sums, mean, growth])


def require_pull(pull: float) -> None:
    """Raise unless the share of a distance that a window undoes is below one."""
    if not 0 <= require_number("pull", pull) < 1:
        raise InvalidInputError(f"pull must be at least 0 and below 1, got {pull}.")


# The cost of one time step, given by its gradient.
CostGradient = Callable[[Vector], Vector]


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
    usual
        The point that moves are pulled towards, shape (d,); the start by default.
    pull
        The share of the distance from there that each window undoes; 0 by default.
    g
        Sum of the gradients seen since the last move.
    memory
        The memory of the step rule.
    seen
        Number of gradients in that sum.
    moves
        The number of moves of z.
    skipped
        The number of moves that were skipped because the sum or its step was not finite.

    Examples
    --------
    >>> from streamridge.hyperparameters.sets import Box
    >>> from streamridge.learners.lazy_descent import ConstantStep
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
    usual: Vector
    pull: float
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
        usual: ArrayLike | None = None,
        pull: float = 0.0,
    ) -> Self:
        """Return the state at an initial point of C."""
        z = require_feasible(z, feasible)
        usual = z if usual is None else require_feasible(usual, feasible)
        require_pull(pull)
        m = require_count("update_every", update_every)
        g, reach = np.zeros(len(z)), np.broadcast_to(reach, z.shape)
        return cls(z, feasible, step, m, reach, usual, pull, g, memory=step.start(z))

    def observe(self, gradient: CostGradient) -> Self:
        """Return the state after the cost of a step is revealed; every m-th time, z moves."""
        after = self.add(gradient(self.z))
        return after.move() if after.seen == self.update_every else after

    def add(self, g: Vector, count: int = 1) -> Self:
        """Return the state with the summed gradients of `count` more steps."""
        require_shape("gradient", np.asarray(g), self.z.shape)
        return replace(self, g=self.g + g, seen=self.seen + count)

    def move(self, windows: int = 1) -> Self:
        """Return the state after one projected step along the mean gradient, eq. (18).

        After several windows the step is that many times as long, and the pull compounds. The pull
        is added to the step.
        """
        settled = replace(self, g=np.zeros_like(self.g), seen=0)
        if not self.seen:
            return settled
        with np.errstate(over="ignore", invalid="ignore"):
            # A rule scales each coordinate separately: two weights with gradients of the same sign
            # would make equal moves, which cancel in the projection.
            g = self.feasible.tangent(self.g / self.seen)
            displacement, memory = self.step.step(self.z, g, self.memory)
        if not all(np.isfinite(part).all() for part in (self.g, displacement, memory)):
            return replace(settled, skipped=self.skipped + 1)
        undone = 1 - (1 - self.pull) ** windows
        displacement = windows * displacement + undone * (self.z - self.usual)
        z = self.feasible.project(self.z - np.clip(displacement, -self.reach, self.reach))
        return replace(settled, z=z, memory=memory, moves=self.moves + 1)

    def moved_to(self, z: ArrayLike) -> Self:
        """Return the state at another point, without the gradients summed so far."""
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
        """Return this descent with the state of another descent with the same settings."""
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
