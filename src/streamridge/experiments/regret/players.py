"""The players: lazy descent, time-smoothed follow-the-leader, and one that never moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.experiments.regret.game import Game, Reveal
from streamridge.learners.base import run
from streamridge.learners.online import OnlineLearner
from streamridge.learners.smoothed_leader import SmoothedLeader
from streamridge.learners.steps import ConstantStep

# Called after every step with the number of steps done, and of all steps.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Play:
    """The play of one method, and what it cost.

    Parameters
    ----------
    iterates
        (T, d), the points played.
    gradients
        (T, d), the gradient of each step's cost at its point. With lazy updates this is the cost of
        the model last fitted, whose training set ends at that refit.
    errors
        (T,), the errors of the forecasts.
    refits
        Number of fits.
    evaluations
        Number of computed gradients.
    moves
        Number of moves of the point.
    update_every
        m, the number of steps in a window, in which the point stays the same.
    """

    iterates: Matrix
    gradients: Matrix
    errors: Vector
    refits: int
    evaluations: int
    moves: int
    update_every: int = 1


def play_lazily(game: Game, learning_rate: float, update_every: int, progress: Progress) -> Play:
    """Return the play of Algorithm 2, which moves and refits every m steps; whole windows only."""
    points: list[Vector] = []
    gradients: list[Vector] = []

    def watch(z: Vector, window: Matrix) -> None:
        points.extend([z] * len(window))
        gradients.extend(window)

    learner = OnlineLearner(
        game.model,
        game.history,
        train_size=game.train_size,
        update_every=update_every,
        step=ConstantStep(learning_rate),
        watch=watch,
    )
    errors = np.empty(game.steps)
    for t, step in enumerate(run(learner, game.stream)):
        errors[t] = step.error
        progress(t + 1, game.steps)
    return Play(
        np.array(points),
        np.array(gradients),
        errors[: len(points)],
        refits=learner.refits,
        evaluations=len(points),
        moves=learner.refits - 1,
        update_every=update_every,
    )


class RememberedCost:
    """The cost of one step; it refits only if the point differs from the last one."""

    def __init__(self, game: Game, t: int) -> None:
        self._game = game
        self._t = t
        self._last: tuple[Vector, Reveal] | None = None
        self.refits = 0

    def reveal(self, z: Vector) -> Reveal:
        """Return the error and the gradient at z."""
        if self._last is None or not np.array_equal(self._last[0], z):
            self._last = z, self._game.reveal(self._t, z)
            self.refits += 1
        return self._last[1]

    def __call__(self, z: Vector) -> Vector:
        """Return the gradient at z."""
        return self.reveal(z).gradient


def play_leader(
    game: Game, learning_rate: float, window: int, tolerance: float, progress: Progress
) -> Play:
    """Return the play of time-smoothed follow-the-leader.

    Every old cost has its own training set, so its gradient at a new point needs a refit. Gradients
    at the same point are not computed twice.
    """
    leader = SmoothedLeader.start(
        game.start,
        game.chart.feasible,
        learning_rate=learning_rate,
        window=window,
        tolerance=tolerance,
    )
    costs = [RememberedCost(game, t) for t in range(game.steps)]
    points, seen = [], []
    for t, cost in enumerate(costs):
        points.append(leader.z)
        seen.append(cost.reveal(leader.z))
        leader = leader.observe(cost)
        progress(t + 1, game.steps)
    refits = sum(cost.refits for cost in costs)
    return _play(points, seen, refits, leader.moves)


def play_still(game: Game, progress: Progress) -> Play:
    """Return the play of a method that refits before every step and never moves."""
    z, seen = game.start, []
    for t in range(game.steps):
        seen.append(game.reveal(t, z))
        progress(t + 1, game.steps)
    return _play([z] * game.steps, seen, refits=game.steps, moves=0)


def _play(points: list[Vector], seen: list[Reveal], refits: int, moves: int) -> Play:
    gradients = np.array([each.gradient for each in seen])
    errors = np.array([each.error for each in seen])
    return Play(np.array(points), gradients, errors, refits, evaluations=refits, moves=moves)
