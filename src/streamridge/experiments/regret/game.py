"""Hyperparameter learning as the repeated game of section 5: a point is played, a cost revealed."""

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
# Started too narrow, the forecasts zigzag as those of section 6.1 do, and there is much to learn.
INVERSE_SCALE, INVERSE_SCALE_BOUNDS = 0.5, (1e-3, 1.0)
REGULARIZATION, REGULARIZATION_BOUNDS = 0.3, (0.03, 3.0)


class Reveal(NamedTuple):
    """Is what a step shows of its cost at one point: the error made, and the gradient, (d,)."""

    error: float
    gradient: Vector


@dataclass(frozen=True)
class Game:
    """Is a stream of costs: the squared errors of a model that is refitted before every step.

    Parameters
    ----------
    model
        What is fitted; the game starts at its hyperparameters.
    samples
        N training samples, then the T samples that are played.
    train_size
        N.

    Notes
    -----
    The cost of step t at the point z is f_t(z), the squared error at t of the model fitted at z on
    the N samples before t. Points are logarithms of positive hyperparameters.
    """

    model: KernelRidge
    samples: Samples
    train_size: int

    @property
    def steps(self) -> int:
        """Return T, how many costs there are."""
        return len(self.samples) - self.train_size

    @property
    def history(self) -> Samples:
        """Return the samples before the first step."""
        return self.samples[: self.train_size]

    @property
    def stream(self) -> Samples:
        """Return the samples that are played, one a step."""
        return self.samples[self.train_size :]

    @property
    def chart(self) -> Chart:
        """Return the coordinates of the points, with the set C they are played in."""
        return Chart.log(self.model.space.feasible)

    @property
    def start(self) -> Vector:
        """Return the first point, shape (d,)."""
        return self.chart.encode(self.model.space.values)

    def reveal(self, t: int, z: Vector) -> Reveal:
        """Return the error and the gradient of f_t at z, by one refit."""
        errors, gradients = self.reveal_window(t, 1, z)
        return Reveal(float(errors[0]), gradients[0])

    def reveal_window(self, t: int, m: int, z: Vector) -> tuple[Vector, Matrix]:
        """Return errors (m,) and gradients (m, d) at z of the steps from t on, by one refit.

        The model of step t serves all of them, as it does between the refits of Algorithm 2.
        """
        lam = self.model.space.feasible.project(self.chart.decode(z))
        fit = self.model.fit(self.samples[t : t + self.train_size], lam)
        window = self.stream[t : t + m]
        gradients = self.chart.pull_back(lam, fit.step_gradients(window))
        return (window.y - fit.predict(window.inputs))[:, 0], gradients


def synthetic_game(train_size: int, steps: int, rng: np.random.Generator) -> Game:
    """Return the game of section 6.1: its series, a squared exponential kernel started too narrow.

    Values are in standard deviations of the training set before the first step. The series is
    stationary, so that an older training set is as good as a fresh one: what differs between
    methods is how they move, not how stale their data are.
    """
    series = synthetic_series(LAGS + train_size + steps, rng)
    unit = series[: LAGS + train_size].std()
    kernel = SquaredExponential(INVERSE_SCALE, INVERSE_SCALE_BOUNDS)
    model = KernelRidge(kernel, REGULARIZATION, REGULARIZATION_BOUNDS)
    return Game(model, Features(LAGS).samples(series / unit), train_size)
