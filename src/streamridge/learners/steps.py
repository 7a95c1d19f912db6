"""Step rules: how far a descent moves along a gradient.

A rule sees the point and the mean gradient of a window, and what it remembers of the windows
before. Its memory is an array of a shape of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_number, require_positive

# What a rule remembers: an array of any shape.
Memory: TypeAlias = NDArray[np.float64]


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
