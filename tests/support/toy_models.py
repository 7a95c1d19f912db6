"""Models for tests of tuners: an explicit loss, and a model that records its calls."""

from dataclasses import dataclass

import numpy as np

from streamridge import Box, NotPositiveDefiniteError, Samples
from streamridge.hyperparameters.space import Group, Space
from streamridge.models.base import Model, ModelFit
from streamridge.tuners.base import Backtest

LOW, HIGH = 1e-3, 1e3
WIDTH = np.log(HIGH / LOW)


@dataclass
class Quadratic(Model):
    """A model with the explicit loss 1 + sum of bends (log lam - log best)^2."""

    best: np.ndarray
    bends: np.ndarray

    @property
    def space(self):
        names = tuple(f"rates[{i}]" for i in range(len(self.best)))
        box = Box(np.full(len(names), LOW), np.full(len(names), HIGH))
        return Space((Group("rates", "rate", names, np.ones(len(names)), box),))

    def fit(self, samples, lam, before=None):
        apart = np.log(lam / self.best)
        loss = 1 + float(np.sum(self.bends * apart**2))
        return QuadraticFit(loss, 2 * self.bends * apart / lam)

    def resume(self, samples, lam, state):
        return self.fit(samples, lam)


@dataclass
class QuadraticFit(ModelFit):
    loss: float
    gradient: np.ndarray

    def predict(self, inputs):
        raise NotImplementedError

    release = state = lambda self: {}

    def window_loss(self, window):
        return len(window) * self.loss

    def loss_and_gradient(self, window, tangents=None, loss=None):
        return len(window) * self.loss, len(window) * self.gradient


class Watched(Model):
    """A wrapper of a model that records its calls, and fails at refused hyperparameters.

    Parameters
    ----------
    model
        The other model.
    refused
        Returns whether there is no factor at some hyperparameters.
    """

    def __init__(self, model, refused=lambda lam: False):
        self.model = model
        self.refused = refused
        self.fitted = []
        self.approximated = []
        self.tolerances = []
        self.gradients = 0

    @property
    def space(self):
        return self.model.space

    def fit(self, samples, lam, before=None):
        self.fitted.append(lam.copy())
        self._check(lam)
        return WatchedFit(self, self.model.fit(samples, lam, before and before.fit))

    def approximate(self, samples, lam, tolerance, before=None):
        self.approximated.append(lam.copy())
        self.tolerances.append(tolerance)
        self._check(lam)
        inner = self.model.approximate(samples, lam, tolerance, before and before.fit)
        return WatchedFit(self, inner)

    def resume(self, samples, lam, state):
        return WatchedFit(self, self.model.resume(samples, lam, state))

    def _check(self, lam):
        if self.refused(lam):
            raise NotPositiveDefiniteError("A", 0.0, "lam", float(lam[-1]), 0.0)


@dataclass
class WatchedFit(ModelFit):
    model: Watched
    fit: object

    def predict(self, inputs):
        return self.fit.predict(inputs)

    def release(self):
        return self.fit.release()

    def state(self):
        return self.fit.state()

    def window_loss(self, window):
        return self.fit.window_loss(window)

    def loss_and_gradient(self, window, tangents=None, loss=None):
        self.model.gradients += 1
        return self.fit.loss_and_gradient(window, tangents, loss)


def toy_backtest(model, space=None):
    """Return a backtest of a model that ignores its samples."""
    samples = Samples.of(np.arange(6.0), np.zeros((6, 1)), np.zeros(6))
    return Backtest(model, samples[:3], samples[3:], space)


def search(tuner, backtest, start=None, seed=0):
    """Return the result of a tuner from a start; by default, the initial values of the space."""
    start = backtest.space.values if start is None else np.array(start, dtype=float)
    start.flags.writeable = False
    return tuner.tune(backtest, start, np.random.default_rng(seed))
