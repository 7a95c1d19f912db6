"""The repeated game of section 5, and the methods that play it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.datasets.synthetic import synthetic_series
from streamridge.features.lags import Features
from streamridge.hyperparameters.feasible import Chart
from streamridge.kernels.radial import SquaredExponential
from streamridge.learners.base import run
from streamridge.learners.lazy_descent import ConstantStep
from streamridge.learners.online import OnlineLearner
from streamridge.learners.regret import SmoothedLeader
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.runs.step_loop import StepProgress
from streamridge.samples import Samples

LAGS = 20
# The kernel starts too narrow, as in section 6.1, so that there is much to learn.
INVERSE_SCALE, INVERSE_SCALE_BOUNDS = 0.5, (1e-3, 1.0)
REGULARIZATION, REGULARIZATION_BOUNDS = 0.3, (0.03, 3.0)


class Reveal(NamedTuple):
    """The error of a step's forecast at one point, and the gradient of its cost, (d,)."""

    error: float
    gradient: Vector


@dataclass(frozen=True)
class Game:
    """A stream of costs: the squared errors of a model that is refitted before every step.

    The cost of step t at the point z is f_t(z): the squared error at t of the model with the
    hyperparameters z, fitted on the N samples before t. Points are logarithms of hyperparameters.
    """

    model: KernelRidge  # the game starts at its hyperparameters
    samples: Samples  # N training samples, then the T samples of the game
    train_size: int  # N

    @property
    def steps(self) -> int:
        """Return T, the number of costs."""
        return len(self.samples) - self.train_size

    @property
    def history(self) -> Samples:
        """Return the samples before the first step."""
        return self.samples[: self.train_size]

    @property
    def stream(self) -> Samples:
        """Return the samples of the game, one per step."""
        return self.samples[self.train_size :]

    @property
    def chart(self) -> Chart:
        """Return the coordinates of the points, with the feasible set C."""
        return Chart.log(self.model.space.feasible)

    @property
    def start(self) -> Vector:
        """Return the first point, shape (d,)."""
        return self.chart.encode(self.model.space.values)

    def reveal(self, t: int, z: Vector) -> Reveal:
        """Return the error at t and the gradient of f_t, both at z, by one refit."""
        errors, gradients = self.reveal_window(t, 1, z)
        return Reveal(float(errors[0]), gradients[0])

    def reveal_window(self, t: int, m: int, z: Vector) -> tuple[Vector, Matrix]:
        """Return the errors (m,) and gradients (m, d) at z of m steps from t on, by one refit.

        All of them use the model of step t, as between two refits of Algorithm 2.
        """
        lam = self.model.space.feasible.project(self.chart.decode(z))
        fit = self.model.fit(self.samples[t : t + self.train_size], lam)
        window = self.stream[t : t + m]
        gradients = self.chart.pull_back(lam, fit.step_gradients(window))
        return (window.y - fit.predict(window.inputs))[:, 0], gradients


def synthetic_game(train_size: int, steps: int, rng: np.random.Generator) -> Game:
    """Return a game on the series of section 6.1, with a kernel that starts too narrow.

    Values are in standard deviations of the first training set. The series is stationary: an old
    training set is as good as a new one, so methods differ only in their moves.
    """
    series = synthetic_series(LAGS + train_size + steps, rng)
    unit = series[: LAGS + train_size].std()
    kernel = SquaredExponential(INVERSE_SCALE, INVERSE_SCALE_BOUNDS)
    model = KernelRidge(kernel, REGULARIZATION, REGULARIZATION_BOUNDS)
    return Game(model, Features(LAGS).samples(series / unit), train_size)


@dataclass(frozen=True)
class Play:
    """The play of one method, and its costs."""

    iterates: Matrix  # (T, d), the points played
    # (T, d), the gradient of each step's cost at its point. With lazy updates it is the cost of
    # the latest fit, whose training set ends at that refit.
    gradients: Matrix
    errors: Vector  # (T,), of the forecasts
    refits: int  # number of fits
    evaluations: int  # number of computed gradients
    moves: int  # number of moves of the point
    update_every: int = 1  # m, the number of steps in a window, in which the point stays the same


def play_lazily(
    game: Game, learning_rate: float, update_every: int, progress: StepProgress
) -> Play:
    """Return the play of Algorithm 2, which moves and refits every m steps; full windows only."""
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


class CachedCost:
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
    game: Game, learning_rate: float, window: int, tolerance: float, progress: StepProgress
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
    costs = [CachedCost(game, t) for t in range(game.steps)]
    points, seen = [], []
    for t, cost in enumerate(costs):
        points.append(leader.z)
        seen.append(cost.reveal(leader.z))
        leader = leader.observe(cost)
        progress(t + 1, game.steps)
    refits = sum(cost.refits for cost in costs)
    return _play(points, seen, refits, leader.moves)


def play_still(game: Game, progress: StepProgress) -> Play:
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
