"""Every tuner on a loss with a known minimum: inside C, at a bound, and on a simplex."""

import numpy as np
import pytest

from streamridge import Simplex
from streamridge.hyperparameters.space import Group, Space
from streamridge.models.base import Model
from streamridge.tuners import HOAG, Bayesian, Grid, RandomSearch
from tests.support.toy_models import HIGH, LOW, Quadratic, QuadraticFit, search, toy_backtest

# How near to the minimum each comes, in logarithms; draws fill a square of 13.8 by 13.8 sparsely.
NEAR = {
    "grid": (Grid(7), 1e-9),
    "random": (RandomSearch(500), 1.0),
    "bayesian": (Bayesian(60), 1.5),
    "hoag": (HOAG(stop=1e-9), 1e-2),
    "hoag, exponential": (HOAG(stop=1e-9, schedule="exponential"), 1e-2),
    "hoag, two gradients": (HOAG(stop=1e-9, gradients=2), 1e-2),
}

every_searcher = pytest.mark.parametrize(("tuner", "near"), NEAR.values(), ids=NEAR)


@every_searcher
def test_an_interior_minimum_is_found(tuner, near):
    model = Quadratic(best=np.array([10.0, 10.0]), bends=np.array([1.0, 3.0]))

    found = search(tuner, toy_backtest(model))

    assert np.abs(np.log(found.lam / 10.0)).max() <= near


@every_searcher
@pytest.mark.parametrize(("best", "bound"), [(1e-5, LOW), (1e5, HIGH)])
def test_a_minimum_beyond_a_bound_is_found_at_the_bound(tuner, near, best, bound):
    model = Quadratic(best=np.array([best, best]), bends=np.array([1.0, 1.0]))

    found = search(tuner, toy_backtest(model))

    assert np.abs(np.log(found.lam / bound)).max() <= near


class Weighing(Model):
    """A model whose loss is the squared distance to the best weights."""

    best = np.array([0.5, 0.25, 0.25])

    @property
    def space(self):
        names = ("weight.a", "weight.b", "weight.c")
        return Space((Group("share", "weight", names, np.array([0.0, 0.1, 0.9]), Simplex(3)),))

    def fit(self, samples, lam, retired=None):
        return QuadraticFit(float(np.sum((lam - self.best) ** 2)), 2 * (lam - self.best))

    def resume(self, samples, lam, state):
        return self.fit(samples, lam)


@pytest.mark.parametrize(
    ("tuner", "near"),
    [
        (Grid(5), 1e-12),
        (RandomSearch(200), 0.1),
        (Bayesian(40), 0.15),
        (HOAG(stop=1e-9), 1e-3),
        (HOAG(stop=1e-9, coordinates="natural"), 1e-3),
    ],
    ids=["grid", "random", "bayesian", "hoag", "hoag, natural"],
)
def test_the_best_weights_are_found(tuner, near):
    found = search(tuner, toy_backtest(Weighing()))

    assert np.abs(found.lam - Weighing.best).max() <= near
    assert abs(found.lam.sum() - 1) <= 1e-12
