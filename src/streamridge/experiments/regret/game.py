"""The repeated game of section 5: at each step a point is played and its cost revealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.datasets.synthetic import synthetic_series
from streamridge.features.lags import Features
from streamridge.hyperparameters.coordinates import Chart
from streamridge.kernels.radial import SquaredExponential
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.samples import Samples

LAGS = 20
# The kernel starts too narrow: forecasts zigzag as in section 6.1, and there is much to learn.
INVERSE_SCALE, INVERSE_SCALE_BOUNDS = 0.5, (1e-3, 1.0)
REGULARIZATION, REGULARIZATION_BOUNDS = 0.3, (0.03, 3.0)


class Reveal(NamedTuple):
    """The error of a step's forecast at one point, and the gradient of its cost, (d,)."""

    error: float
    gradient: Vector


@dataclass(frozen=True)
class Game:
    """A stream of costs: the squared errors of a model that is refitted before every step.

    Parameters
    ----------
    model
        The model to fit; the game starts at its hyperparameters.
    samples
        N training samples, then the T samples of the game.
    train_size
        N.

    Notes
    -----
    The cost of step t at the point z is f_t(z): the squared error at t of the model with the
    hyperparameters z, fitted on the N samples before t. Points are logarithms of hyperparameters.
    """

    model: KernelRidge
    samples: Samples
    train_size: int

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

    Values are in standard deviations of the first training set. The series is stationary, so an
    old training set is as good as a new one: methods differ by how they move, not by how old their
    training sets are.
    """
    series = synthetic_series(LAGS + train_size + steps, rng)
    unit = series[: LAGS + train_size].std()
    kernel = SquaredExponential(INVERSE_SCALE, INVERSE_SCALE_BOUNDS)
    model = KernelRidge(kernel, REGULARIZATION, REGULARIZATION_BOUNDS)
    return Game(model, Features(LAGS).samples(series / unit), train_size)
