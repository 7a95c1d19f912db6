"""Models for tests of tuners: a loss that is an explicit function, and models that are watched."""

from dataclasses import dataclass

import numpy as np

from streamridge import Box, NotPositiveDefiniteError, Samples
from streamridge.hyperparameters.groups import Group
from streamridge.hyperparameters.space import Space
from streamridge.models.base import approximate
from streamridge.tuners.backtest import Backtest

LOW, HIGH = 1e-3, 1e3
WIDTH = np.log(HIGH / LOW)


@dataclass
class Quadratic:
    """Has the loss 1 + sum of bends (log lam - log best)^2, fit or no fit."""

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


@dataclass
class QuadraticFit:
    loss: float
    gradient: np.ndarray

    def window_loss(self, window):
        return len(window) * self.loss

    def loss_and_gradient(self, window):
        return len(window) * self.loss, len(window) * self.gradient


class Watched:
    """Another model, which remembers what it was asked and refuses where it is told to.

    Parameters
    ----------
    model
        The other model.
    refused
        Tells at which hyperparameters there is no factor.
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
        inner = approximate(self.model, samples, lam, tolerance, before and before.fit)
        return WatchedFit(self, inner)

    def _check(self, lam):
        if self.refused(lam):
            raise NotPositiveDefiniteError("A", 0.0, "lam", float(lam[-1]), 0.0)


@dataclass
class WatchedFit:
    model: Watched
    fit: object

    def window_loss(self, window):
        return self.fit.window_loss(window)

    def loss_and_gradient(self, window):
        self.model.gradients += 1
        return self.fit.loss_and_gradient(window)


def toy_backtest(model, space=None):
    """Return a backtest of a model that looks at no sample."""
    samples = Samples.of(np.arange(6.0), np.zeros((6, 1)), np.zeros(6))
    return Backtest(model, samples[:3], samples[3:], space)


def search(tuner, backtest, start=None, seed=0):
    """Return what a tuner finds from a start, that of the space by default."""
    start = backtest.space.values if start is None else np.array(start, dtype=float)
    start.flags.writeable = False
    return tuner.tune(backtest, start, np.random.default_rng(seed))
