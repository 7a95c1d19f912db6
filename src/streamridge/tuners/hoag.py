r"""HOAG of Pedregosa (2016): hyper-gradient descent with approximate gradients.

Every iteration solves the inner system $A\theta = y$ and the adjoint system $A v = u$ only to a
tolerance, by conjugate gradients that start from the previous solutions. The tolerances shrink so
that their sum is finite, which lets the descent converge to a stationary point of the exact loss. A
gradient has two terms: one through $\theta$, one through the kernel between training and validation
set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from streamridge.arrays import Vector, require_count, require_number, require_positive
from streamridge.errors import InvalidInputError, listed
from streamridge.hyperparameters.feasible import (
    Chart,
    Coordinates,
    chart_of,
    require_coordinates,
)
from streamridge.hyperparameters.space import Space
from streamridge.tuners.base import Backtest, Tuned, Tuner, best_of

Schedule = Literal["quadratic", "cubic", "exponential"]
SCHEDULES = ("quadratic", "cubic", "exponential")

# Factor of the exponential schedule per iteration.
DECAY = 0.9
# Factors of the step size after a step that lowered the loss, and after a step that did not.
LONGER, SHORTER = 1.25, 0.5
# Length of a trial step, as a share of an interval, that shows which coordinates can move.
SHORT = 1e-6


@dataclass(frozen=True)
class HOAG(Tuner):
    """A descent of the backtest's loss along approximate gradients.

    Parameters
    ----------
    iterations
        Largest number of steps.
    coordinates
        "log" descends in logarithms, "natural" in the hyperparameters themselves. If a period is
        learned, "natural" is better: in logarithms its many local minima dominate the step.
    schedule
        How the tolerance of systems shrinks with the iteration k: like 1 / k^2, 1 / k^3 or 0.9^k.
    tolerance
        Relative residual of the first systems.
    first_step
        Largest move of the first step, as a share of a coordinate's interval.
    stop
        The descent ends when a step lowers the loss by no more than this share of it, or would move
        no coordinate by more than this share of its interval.
    gradients
        Number of gradients computed at each point, 1 or 2. The paper's prototype seems to compute
        two: the systems of the second start from the solutions of the first.

    Notes
    -----
    F. Pedregosa, Hyperparameter optimization with approximate gradient, ICML 2016. The step adapts:
    it grows while the loss falls, and a step that raised the loss is undone and halved. Each loss
    is known only to the tolerance of its iteration.
    """

    iterations: int = 100
    coordinates: Coordinates = "log"
    schedule: Schedule = "quadratic"
    tolerance: float = 0.01
    first_step: float = 0.1
    stop: float = 1e-5
    gradients: int = 1

    def __post_init__(self) -> None:
        require_count("iterations", self.iterations)
        require_coordinates(self.coordinates)
        if self.schedule not in SCHEDULES:
            raise InvalidInputError(
                f"schedule must be one of {listed(SCHEDULES)}, got {self.schedule!r}."
            )
        if require_count("gradients", self.gradients) > 2:
            raise InvalidInputError(f"gradients must be 1 or 2, got {self.gradients!r}.")
        for name in ("tolerance", "first_step", "stop"):
            require_positive(name, require_number(name, getattr(self, name)))

    def tolerance_at(self, k: int) -> float:
        """Return the tolerance of iteration k = 1, 2, ...

        Examples
        --------
        >>> HOAG(schedule="quadratic", tolerance=0.1).tolerance_at(10)
        0.001
        """
        if self.schedule == "exponential":
            return self.tolerance * DECAY ** (k - 1)
        return self.tolerance / k ** (2 if self.schedule == "quadratic" else 3)

    def trials(self, space: Space) -> int:
        return self.gradients * (1 + self.iterations) + 2

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        chart = chart_of(self.coordinates, backtest.space.feasible)
        here = self._look(backtest, chart, chart.encode(start), 1)
        step = self.first_step / max(_reach(chart, here), np.finfo(float).tiny)
        for k in range(2, self.iterations + 2):
            if step * _reach(chart, here) <= self.stop:
                break
            z = chart.feasible.project(here.z - step * here.g)
            there = self._look(backtest, chart, z, k)
            if there.loss >= here.loss:
                step *= SHORTER
                continue
            settled = here.loss - there.loss <= self.stop * here.loss
            here, step = there, step * LONGER
            if settled:
                break
        return best_of(backtest, start, [here.lam])

    def _look(self, backtest: Backtest[Any], chart: Chart, z: Vector, k: int) -> Iterate:
        lam = backtest.space.feasible.project(chart.decode(z))
        for _ in range(self.gradients):
            loss, g = backtest.loss_and_gradient(lam, self.tolerance_at(k))
        free = np.isfinite(chart.widths)
        return Iterate(z, lam, loss, np.where(free, chart.pull_back(lam, g), 0.0))


@dataclass(frozen=True)
class Iterate:
    """A point of the descent: its coordinates, hyperparameters, loss and gradient."""

    z: Vector
    lam: Vector
    loss: float
    g: Vector


def _reach(chart: Chart, here: Iterate) -> float:
    """Return the largest move per step size of a projected step, as a share of an interval.

    A coordinate that is pushed against its bound does not move for any gradient.
    """
    steepest = float(np.max(np.abs(here.g) / chart.widths, initial=0.0))
    short = SHORT / max(steepest, np.finfo(float).tiny)
    moved = here.z - chart.feasible.project(here.z - short * here.g)
    return float(np.max(np.abs(moved) / chart.widths, initial=0.0)) / short
