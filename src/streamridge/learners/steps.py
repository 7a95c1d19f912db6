"""Step rules: how far a descent moves along a gradient.

A rule sees the point and the mean gradient of a window, and what it remembers of the windows
before. Its memory is an array of a shape of its own.

`ConstantStep` and `AdaGradStep` have a rate, and the memory of the latter only ever grows. The
others need no rate. They measure a gradient by its usual size of late, so that the unit of the loss
does not matter, and they forget, so that they follow a drift for years. A gradient far beyond the
usual size counts as a few times that size: a burst hardly changes what they remember.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_number, require_positive
from streamridge.errors import InvalidInputError

# What a rule remembers: an array of any shape.
Memory: TypeAlias = NDArray[np.float64]

# A gradient of more than this many times its root mean square of late is cut off there.
FAR = 3.0
# Windows of the mean that a gradient is compared with.
FEW = 5
# How much the logarithm of a size grows in a window in which gradients agree, at most; and how many
# times the usual size it can get, up or down.
GROWTH, SPAN = 0.3, 10.0


class StepRule(Protocol):
    """A rule that turns a mean gradient into a displacement."""

    def start(self, z: Vector) -> Memory:
        """Return the rule's memory before the first step from z, shape (d,); of any shape."""

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
        """Return zeros, which nothing reads."""
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
        """Return the sums of squares of no gradients."""
        return np.zeros(len(z))

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement eta g / sqrt(sum of g^2), zero where every g was zero."""
        memory = memory + g * g
        return self.learning_rate * g / np.sqrt(np.where(memory > 0, memory, 1.0)), memory


@dataclass(frozen=True)
class RateFree:
    """What rules without a rate have in common: the usual move, and how long they remember."""

    size: float = 0.05
    memory: float = 20.0

    def __post_init__(self) -> None:
        require_positive("size", require_number("size", self.size))
        if not require_number("memory", self.memory) >= 1:
            raise InvalidInputError(f"memory must be one window at least, got {self.memory}.")


@dataclass(frozen=True)
class DiscountedStep(RateFree):
    """A rule that divides each coordinate's gradient by its root mean square of late.

    Parameters
    ----------
    size
        The usual move of a coordinate; in logarithms, the usual relative change of its value.
    memory
        Windows that the mean looks back on.

    Examples
    --------
    >>> rule = DiscountedStep(0.05, memory=20)
    >>> displacement, memory = rule.step(np.zeros(2), np.array([3e6, 0.0]), rule.start(np.zeros(2)))
    >>> displacement
    array([0.05, 0.  ])
    """

    def start(self, z: Vector) -> Memory:
        """Return the number and the sum of squares of no gradients, shape (2, d)."""
        return np.zeros((2, len(z)))

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement size g / sqrt(mean of g^2), zero where every g was zero."""
        g = _tamed(g, *memory)
        memory = (1 - 1 / self.memory) * memory + [np.ones(len(g)), g * g]
        return self.size * _measured(g, *memory), memory


@dataclass(frozen=True)
class AgreementStep(RateFree):
    """A rule whose moves grow while the gradients of a coordinate agree, and shrink while not.

    It is Rprop for noisy gradients: not two signs are compared, but a gradient with the mean of the
    last few, each in units of its usual size. So noise makes a size wander little, and what it did
    is forgotten.

    Parameters
    ----------
    size
        The usual move of a coordinate whose gradients neither agree nor disagree.
    memory
        Windows that mean squares and sizes look back on.

    Notes
    -----
    With u the gradient in its unit and v the mean of a few before it, the logarithm of a size
    changes by `GROWTH` u v, at most `GROWTH`, and forgets 1 / memory of what it was. A size stays
    within `SPAN` times the usual one, up and down.

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
        """Return zeros, shape (4, d).

        They are the number and the sum of squares of gradients, the mean of the last few, and the
        logarithm of a size over the usual one.
        """
        return np.zeros((4, len(z)))

    def step(self, z: Vector, g: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """Return the displacement, zero where g is zero."""
        keep = 1 - 1 / self.memory
        g = _tamed(g, *memory[:2])
        sums = keep * memory[:2] + [np.ones(len(g)), g * g]
        u, mean, growth = _measured(g, *sums), memory[2], memory[3]
        growth = keep * growth + GROWTH * np.clip(u * mean, -1.0, 1.0)
        growth = np.clip(growth, -np.log(SPAN), np.log(SPAN))
        mean = mean + (u - mean) / FEW
        return self.size * np.exp(growth) * u, np.vstack([sums, mean, growth])


def _tamed(g: Vector, count: Vector, squares: Vector) -> Vector:
    """Return g with what is far beyond its usual size cut off; all of it before the first."""
    limit = np.where(squares > 0, FAR * np.sqrt(squares / np.maximum(count, 1.0)), np.inf)
    return np.clip(g, -limit, limit)


def _measured(g: Vector, count: Vector, squares: Vector) -> Vector:
    """Return g in units of its root mean square; zero where all squares were zero."""
    mean = np.divide(squares, count, out=np.zeros_like(squares), where=squares > 0)
    return g / np.sqrt(np.where(mean > 0, mean, 1.0))  # a mean may be too small for a number
